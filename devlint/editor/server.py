"""`devlint server`: a language server over standard input and output (extra `lsp`).

Diagnostics as you type; quick fixes, safe ones preferred, unsafe ones singly; `source.fixAll.devlint` with the safe fixes;
"ignore on this line"; hover on a finding, on a code in a comment, on a value (its device, and why); on request, hints
that show where values are. The cells of a notebook are checked together, and each gets its own findings.

Texts are checked one after the other in a thread of their own, so that what is asked meanwhile is answered. A hover and
hints are answered in another one, for the text as it is, and wait for no check.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec, TextDocument

from devlint import __version__
from devlint.addresses import rule_url
from devlint.config import FILE_NAMES
from devlint.editor import places, session
from devlint.editor.session import Document
from devlint.errors import SourceError
from devlint.model import Diagnostic, Position, Related, Safety, Severity, TextEdit
from devlint.source import Source, read_source

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.devlint"
PAUSE = 0.1  # seconds without a further change before a text is checked again
_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    [lsp.NotebookDocumentFilterWithCells(cells=[lsp.NotebookCellLanguage("python")], notebook="jupyter-notebook")]
)

server = LanguageServer("devlint", __version__, notebook_document_sync=_NOTEBOOKS)
_open: dict[str, Document] = {}
_cells: dict[str, dict[int, str]] = {}  # of each open notebook: the cell documents by number
_wanted: set[str] = set()  # the files that are open in the editor, whether they have been checked or not
_said: set[str] = set()
_checks = ThreadPoolExecutor(1, "devlint-check")
_hovers = ThreadPoolExecutor(1, "devlint-hover")
_options = session.Options()
_measure = PositionCodec()  # of columns, as it was agreed on with the client
_STACK = 64 << 20  # bytes: a parser goes deep, and a thread of macOS has half a MiB

_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

P = ParamSpec("P")
R = TypeVar("R")


def main() -> NoReturn:
    """Serve until the client leaves."""
    from devlint.facts.analysis import RECURSION

    # The protocol ends rows at these three alone; pygls would end them at form feeds and other separators as well.
    TextDocument.lines = property(lambda text: tuple(_ROW.findall(text.source)))  # type: ignore[method-assign,assignment]
    threading.stack_size(_STACK)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION))  # for both threads: an analysis sets it back
    server.start_io()
    leave()


@server.feature(lsp.EXIT)
def leave(*_: object) -> NoReturn:
    """End at once. Python would wait for the thread of a running check, which nobody wants any more."""
    sys.stderr.flush()
    os._exit(0)


async def _done_by(pool: ThreadPoolExecutor, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What the thread of a pool makes of some work; others are served meanwhile."""
    return await asyncio.wrap_future(pool.submit(work, *args, **kwargs))


def _units(text: str) -> int:
    """The length of a text as the client counts columns; in UTF-16 code units by default."""
    return int(_measure.client_num_units(text))


def _client(source: Source, position: Position) -> lsp.Position:
    line = source.line_text(position.row) if position.row <= source.rows else ""
    return lsp.Position(position.row - 1, _units(line[: position.column - 1]))


def _own(document: Document, position: lsp.Position) -> Position:
    line = document.source.line_text(position.line + 1) if position.line < document.source.rows else ""
    column, units = 0, 0
    while units < position.character and column < len(line):
        units += _units(line[column])
        column += 1
    return Position(position.line + 1, column + 1)


def _range(document: Document, found: Diagnostic) -> lsp.Range:
    return lsp.Range(_client(document.source, found.start), _client(document.source, found.end))


def _edits(document: Document, edits: Iterable[TextEdit]) -> list[lsp.TextEdit]:
    return [
        lsp.TextEdit(lsp.Range(_place(document, edit.start), _place(document, edit.end)), edit.text) for edit in edits
    ]


def _place(document: Document, offset: int) -> lsp.Position:
    return _client(document.source, document.source.position(offset))


def _diagnostic(document: Document, found: Diagnostic, uri: str) -> lsp.Diagnostic:
    related = [each for place in found.related for each in _related(document, place, uri)]
    url = rule_url(found.code)
    return lsp.Diagnostic(
        _range(document, found), found.message, _SEVERITY[found.severity], found.code, source="devlint",
        related_information=related, code_description=lsp.CodeDescription(url) if url else None,
    )  # fmt: skip


def _related(document: Document, place: Related, uri: str) -> Iterable[lsp.DiagnosticRelatedInformation]:
    """The second place of a finding: in the document, in another cell of its notebook, or in another file."""
    source = document.source
    if place.path != document.path:
        try:
            source = read_source(Path(place.path))
        except SourceError:
            return
        uri = Path(os.path.abspath(place.path)).as_uri()
    elif place.cell is not None and place.cell != document.cell:
        cells = next((cells for cells in _cells.values() if uri in cells.values()), {})
        uri = cells.get(place.cell, "")
        if uri not in _open:
            return
        source = _open[uri].source
    where = lsp.Range(_client(source, place.start), _client(source, place.end))
    yield lsp.DiagnosticRelatedInformation(lsp.Location(uri, where), place.message)


async def _check(ls: LanguageServer, uri: str) -> None:
    """Check a file and tell the client, unless it was changed or closed meanwhile."""
    text = ls.workspace.get_text_document(uri)
    source, version = text.source, text.version

    def is_wanted() -> bool:
        return uri in _wanted and ls.workspace.get_text_document(uri).source == source

    def open_it() -> Document | None:
        return session.open_document(text.path, source) if is_wanted() else None

    document = await _done_by(_checks, open_it)
    if document is not None and is_wanted():
        _open[uri] = document
        _publish(ls, uri, document, version)


async def _check_notebook(ls: LanguageServer, uri: str) -> None:
    """Check the cells of a notebook together and tell the client what was found in each, unless they changed meanwhile."""
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is None:
        return
    version = notebook.version
    uris = [cell.document for cell in notebook.cells if cell.kind is lsp.NotebookCellKind.Code]
    texts = [ls.workspace.get_text_document(each) for each in uris]
    path = ls.workspace.get_text_document(uri).path
    documents = await _done_by(_checks, session.open_notebook, path, [text.source for text in texts])
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is None or notebook.version != version:
        return
    gone = set(_cells.get(uri, {}).values()) - set(uris)
    _cells[uri] = dict(enumerate(uris, start=1))
    _open.update(zip(uris, documents, strict=True))
    for each, document, text in zip(uris, documents, texts, strict=True):
        _publish(ls, each, document, text.version)
    for each in gone:
        _forget(ls, each)


def _publish(ls: LanguageServer, uri: str, document: Document, version: int | None) -> None:
    if document.problem is not None and document.problem not in _said:
        _said.add(document.problem)
        message = f"devlint: {document.problem} (the default settings are used)"
        ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, message))
    found = [_diagnostic(document, each, uri) for each in document.diagnostics]
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))


def _forget(ls: LanguageServer, uri: str) -> None:
    _open.pop(uri, None)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


async def _current(ls: LanguageServer, uri: str) -> Document | None:
    """The document as it is now, checked anew when it changed since."""
    if _is_current(ls, uri):
        return _open[uri]
    notebook = next((each for each, cells in _cells.items() if uri in cells.values()), None)
    if notebook is not None:
        await _check_notebook(ls, notebook)
    elif uri in _wanted:
        await _check(ls, uri)
    return _open[uri] if _is_current(ls, uri) else None


def _is_current(ls: LanguageServer, uri: str) -> bool:
    """Whether the text has been checked as it is now."""
    return uri in _open and _open[uri].source.text == ls.workspace.get_text_document(uri).source


@server.feature(lsp.INITIALIZE)
def initialize(ls: LanguageServer, params: lsp.InitializeParams) -> None:
    """Read the options that the client starts with, and how it counts columns."""
    global _measure
    _measure = ls.workspace.position_codec
    _set_options(ls, params.initialization_options)


@server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
async def did_change_configuration(ls: LanguageServer, params: lsp.DidChangeConfigurationParams) -> None:
    """Take changed options, which the client sends or is asked for; then it asks again for what they change."""
    before = _options.inlay_hints
    if params.settings:
        _set_options(ls, params.settings)
    else:
        await _ask_options(ls)
    workspace = ls.client_capabilities.workspace
    can_refresh = workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support
    if _options.inlay_hints != before and can_refresh:
        ls.workspace_inlay_hint_refresh(None)


async def _ask_options(ls: LanguageServer) -> None:
    workspace = ls.client_capabilities.workspace
    if workspace is not None and workspace.configuration:
        asked = lsp.ConfigurationParams([lsp.ConfigurationItem(section="devlint")])
        for given in await ls.workspace_configuration_async(asked):
            _set_options(ls, given)


def _set_options(ls: LanguageServer, given: Any) -> None:
    for problem in _options.take(given):
        ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"devlint: {problem}"))


@server.feature(lsp.INITIALIZED)
async def initialized(ls: LanguageServer, params: lsp.InitializedParams) -> None:
    """Ask for the options, and to be told when they or the settings of a project change."""
    workspace = ls.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace is not None else None
    options = workspace.did_change_configuration if workspace is not None else None
    wanted = []
    if watched is not None and watched.dynamic_registration:
        files = lsp.DidChangeWatchedFilesRegistrationOptions(
            [lsp.FileSystemWatcher(f"**/{name}") for name in FILE_NAMES]
        )
        wanted.append(lsp.Registration("devlint-settings", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, files))
    if options is not None and options.dynamic_registration:
        wanted.append(lsp.Registration("devlint-options", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION))
    if wanted:
        ls.client_register_capability(lsp.RegistrationParams(wanted))
    await _ask_options(ls)


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
async def did_open(ls: LanguageServer, params: lsp.DidOpenTextDocumentParams) -> None:
    _wanted.add(params.text_document.uri)
    await _check(ls, params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
async def did_change(ls: LanguageServer, params: lsp.DidChangeTextDocumentParams) -> None:
    uri, version = params.text_document.uri, params.text_document.version
    await asyncio.sleep(PAUSE)
    is_last = uri in _wanted and ls.workspace.get_text_document(uri).version == version
    if is_last and not _is_current(ls, uri):
        await _check(ls, uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: LanguageServer, params: lsp.DidCloseTextDocumentParams) -> None:
    _wanted.discard(params.text_document.uri)
    _forget(ls, params.text_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
async def notebook_did_open(ls: LanguageServer, params: lsp.DidOpenNotebookDocumentParams) -> None:
    await _check_notebook(ls, params.notebook_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
async def notebook_did_change(ls: LanguageServer, params: lsp.DidChangeNotebookDocumentParams) -> None:
    uri, version = params.notebook_document.uri, params.notebook_document.version
    await asyncio.sleep(PAUSE)
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is not None and notebook.version == version:
        await _check_notebook(ls, uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def notebook_did_close(ls: LanguageServer, params: lsp.DidCloseNotebookDocumentParams) -> None:
    for uri in _cells.pop(params.notebook_document.uri, {}).values():
        _forget(ls, uri)


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
async def did_change_watched_files(ls: LanguageServer, params: lsp.DidChangeWatchedFilesParams) -> None:
    """Settings changed: check everything again."""
    _said.clear()
    for uri in sorted(_wanted):
        await _check(ls, uri)
    for uri in list(_cells):
        await _check_notebook(ls, uri)


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
)
async def code_action(ls: LanguageServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    uri = params.text_document.uri
    document = await _current(ls, uri)
    if document is None:
        return []
    only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
    actions: list[lsp.CodeAction] = []
    if not only or any(lsp.CodeActionKind.QuickFix.value.startswith(kind) for kind in only):
        first, last = _own(document, params.range.start), _own(document, params.range.end)
        for found in document.diagnostics:
            if found.start <= last and first <= found.end:
                actions += _quick_fixes(document, found, uri)
    if not only or any(FIX_ALL.startswith(kind) for kind in only):
        text = await _done_by(_checks, session.fix_all, document)
        if text != document.source.text:
            edit = lsp.WorkspaceEdit({uri: _edits(document, session.changes(document.source.text, text))})
            title = "devlint: apply all safe fixes"
            actions.append(
                lsp.CodeAction(title, lsp.CodeActionKind(FIX_ALL) if FIX_ALL in _KINDS else FIX_ALL, edit=edit)
            )
    return actions


_KINDS = {kind.value for kind in lsp.CodeActionKind}


def _quick_fixes(document: Document, found: Diagnostic, uri: str) -> list[lsp.CodeAction]:
    actions = []
    shown = [_diagnostic(document, found, uri)]
    fix = found.fix
    if fix is not None and fix.edits:
        after = session.fixed_text(document, fix)
        edit = lsp.WorkspaceEdit({uri: _edits(document, session.changes(document.source.text, after))})
        safe = fix.safety is Safety.SAFE
        title = f"{found.code}: {fix.title}" + ("" if safe else " (unsafe)")
        actions.append(
            lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, diagnostics=shown, is_preferred=safe, edit=edit)
        )
    offset, comment = session.suppression(document, found)
    edit = lsp.WorkspaceEdit({uri: _edits(document, [TextEdit(offset, offset, comment)])})
    title = f"{found.code}: ignore on this line"
    actions.append(lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, diagnostics=shown, edit=edit))
    return actions


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
async def hover(ls: LanguageServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document = _seen(ls, params.text_document.uri, params.position.line)
    if document is None or params.position.line >= document.source.rows:
        return None
    place = _own(document, params.position)
    text = await _done_by(_hovers, session.hover, document, *place, with_findings=_options.findings_in_hover)
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None


@server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
async def inlay_hint(ls: LanguageServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Where the values are that some rows bind, once an option asks for it."""
    document = _seen(ls, params.text_document.uri, params.range.start.line) if _options.inlay_hints else None
    if document is None:
        return []
    first, last = params.range.start.line + 1, params.range.end.line + 1
    found = await _done_by(_hovers, places.hints, document, first, last)
    return [_inlay_hint(document, each) for each in found]


def _inlay_hint(document: Document, hint: places.Hint) -> lsp.InlayHint:
    why = lsp.MarkupContent(lsp.MarkupKind.Markdown, hint.why)
    where = _client(document.source, Position(hint.row, hint.column))
    return lsp.InlayHint(where, f": {hint.place}", lsp.InlayHintKind.Type, tooltip=why)


def _seen(ls: LanguageServer, uri: str, line: int) -> Document | None:
    """The document to ask of a line: the checked one, or while it is being checked the text alone.

    Of a cell, which is nothing by itself, the one that was checked last, where the line is still the same.
    """
    text = ls.workspace.get_text_document(uri)
    known = _open.get(uri)
    if known is not None and known.source.text == text.source:
        return known
    if uri in _wanted:
        return session.unchecked_document(text.path, text.source)
    if known is None or line >= min(len(text.lines), known.source.rows):
        return None
    return known if known.source.line_text(line + 1).rstrip("\r\n") == text.lines[line].rstrip("\r\n") else None
