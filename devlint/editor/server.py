"""`devlint server`: a language server over standard input and output (extra `lsp`).

Diagnostics as you type; quick fixes, safe ones preferred, unsafe ones singly; `source.fixAll.devlint` with the safe fixes;
"ignore on this line"; hover on a finding, on a code in a comment, on a value (its device, and why). The cells of a
notebook are checked together, and each gets its own findings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from devlint import __version__
from devlint.config import FILE_NAMES
from devlint.editor import session
from devlint.editor.session import Document
from devlint.model import Diagnostic, Position, Related, Safety, Severity, TextEdit

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
_said: set[str] = set()


def main() -> int:
    """Serve until the client leaves."""
    server.start_io()
    return 0


def _units(text: str) -> int:
    """UTF-16 code units, the protocol's default measure of columns."""
    return len(text) + sum(ord(c) > 0xFFFF for c in text)


def _client(document: Document, position: Position) -> lsp.Position:
    line = document.source.line_text(position.row) if position.row <= document.source.rows else ""
    return lsp.Position(position.row - 1, _units(line[: position.column - 1]))


def _own(document: Document, position: lsp.Position) -> Position:
    line = document.source.line_text(position.line + 1) if position.line < document.source.rows else ""
    column, units = 0, 0
    while units < position.character and column < len(line):
        units += _units(line[column])
        column += 1
    return Position(position.line + 1, column + 1)


def _range(document: Document, found: Diagnostic) -> lsp.Range:
    return lsp.Range(_client(document, found.start), _client(document, found.end))


def _edits(document: Document, edits: Iterable[TextEdit]) -> list[lsp.TextEdit]:
    return [
        lsp.TextEdit(lsp.Range(_place(document, edit.start), _place(document, edit.end)), edit.text) for edit in edits
    ]


def _place(document: Document, offset: int) -> lsp.Position:
    return _client(document, document.source.position(offset))


def _diagnostic(document: Document, found: Diagnostic, uri: str) -> lsp.Diagnostic:
    related = [each for place in found.related for each in _related(document, place, uri)]
    return lsp.Diagnostic(
        _range(document, found), found.message, _SEVERITY[found.severity], found.code, source="devlint",
        related_information=related,
    )  # fmt: skip


def _related(document: Document, place: Related, uri: str) -> Iterable[lsp.DiagnosticRelatedInformation]:
    """The second place of a finding, in the document or in another cell of its notebook."""
    if place.path != document.path:
        return
    if place.cell is not None and place.cell != document.cell:
        cells = next((cells for cells in _cells.values() if uri in cells.values()), {})
        uri = cells.get(place.cell, "")
        if uri not in _open:
            return
        document = _open[uri]
    where = lsp.Range(_client(document, place.start), _client(document, place.end))
    yield lsp.DiagnosticRelatedInformation(lsp.Location(uri, where), place.message)


def _check(ls: LanguageServer, uri: str) -> None:
    """Check a file and tell the client."""
    text = ls.workspace.get_text_document(uri)
    document = _open[uri] = session.open_document(text.path, text.source)
    _publish(ls, uri, document, text.version)


def _check_notebook(ls: LanguageServer, uri: str) -> None:
    """Check the cells of a notebook together and tell the client what was found in each."""
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is None:
        return
    uris = [cell.document for cell in notebook.cells if cell.kind is lsp.NotebookCellKind.Code]
    texts = [ls.workspace.get_text_document(each) for each in uris]
    path = ls.workspace.get_text_document(uri).path
    documents = session.open_notebook(path, [text.source for text in texts])
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


def _current(ls: LanguageServer, uri: str) -> Document | None:
    """The document as it is now, checked anew when it changed since."""
    document = _open.get(uri)
    if document is None or document.source.text == ls.workspace.get_text_document(uri).source:
        return document
    notebook = next((each for each, cells in _cells.items() if uri in cells.values()), None)
    if notebook is None:
        _check(ls, uri)
    else:
        _check_notebook(ls, notebook)
    return _open.get(uri)


@server.feature(lsp.INITIALIZED)
def initialized(ls: LanguageServer, params: lsp.InitializedParams) -> None:
    """Ask to be told of changed settings."""
    workspace = ls.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace is not None else None
    if watched is not None and watched.dynamic_registration:
        files = lsp.DidChangeWatchedFilesRegistrationOptions(
            [lsp.FileSystemWatcher(f"**/{name}") for name in FILE_NAMES]
        )
        wanted = lsp.Registration("devlint-settings", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, files)
        ls.client_register_capability(lsp.RegistrationParams([wanted]))


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: LanguageServer, params: lsp.DidOpenTextDocumentParams) -> None:
    _check(ls, params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
async def did_change(ls: LanguageServer, params: lsp.DidChangeTextDocumentParams) -> None:
    uri, version = params.text_document.uri, params.text_document.version
    await asyncio.sleep(PAUSE)
    if uri in _open and ls.workspace.get_text_document(uri).version == version:
        _check(ls, uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: LanguageServer, params: lsp.DidCloseTextDocumentParams) -> None:
    _forget(ls, params.text_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
def notebook_did_open(ls: LanguageServer, params: lsp.DidOpenNotebookDocumentParams) -> None:
    _check_notebook(ls, params.notebook_document.uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
async def notebook_did_change(ls: LanguageServer, params: lsp.DidChangeNotebookDocumentParams) -> None:
    uri, version = params.notebook_document.uri, params.notebook_document.version
    await asyncio.sleep(PAUSE)
    notebook = ls.workspace.get_notebook_document(notebook_uri=uri)
    if notebook is not None and notebook.version == version:
        _check_notebook(ls, uri)


@server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
def notebook_did_close(ls: LanguageServer, params: lsp.DidCloseNotebookDocumentParams) -> None:
    for uri in _cells.pop(params.notebook_document.uri, {}).values():
        _forget(ls, uri)


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_watched_files(ls: LanguageServer, params: lsp.DidChangeWatchedFilesParams) -> None:
    """Settings changed: check everything again."""
    _said.clear()
    for uri in [each for each in _open if _open[each].cell is None]:
        _check(ls, uri)
    for uri in list(_cells):
        _check_notebook(ls, uri)


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
)
def code_action(ls: LanguageServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    uri = params.text_document.uri
    document = _current(ls, uri)
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
        text = session.fix_all(document)
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
def hover(ls: LanguageServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document = _current(ls, params.text_document.uri)
    if document is None or params.position.line >= document.source.rows:
        return None
    text = session.hover(document, *_own(document, params.position))
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None
