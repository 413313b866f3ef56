"""`devlint server`: a language server over standard input and output (extra `lsp`).

Diagnostics as you type; quick fixes, safe ones preferred, unsafe ones singly; `source.fixAll.devlint` with the safe fixes;
"ignore on this line"; hover on a finding, on a code in a comment, on a value (its device, and why).
"""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from devlint import __version__
from devlint.editor import session
from devlint.editor.session import Document
from devlint.model import Diagnostic, Position, Safety, Severity

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.devlint"
_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}

server = LanguageServer("devlint", __version__)
_open: dict[str, Document] = {}


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


def _whole(document: Document, text: str) -> lsp.TextEdit:
    end = document.source.position(len(document.source.text))
    return lsp.TextEdit(lsp.Range(lsp.Position(0, 0), _client(document, end)), text)


def _diagnostic(document: Document, found: Diagnostic, uri: str) -> lsp.Diagnostic:
    related = [
        lsp.DiagnosticRelatedInformation(
            lsp.Location(uri, lsp.Range(_client(document, r.start), _client(document, r.end))), r.message
        )
        for r in found.related
        if r.path == document.path
    ]
    return lsp.Diagnostic(
        _range(document, found), found.message, _SEVERITY[found.severity], found.code, source="devlint",
        related_information=related,
    )  # fmt: skip


def _check(ls: LanguageServer, uri: str) -> None:
    text: TextDocument = ls.workspace.get_text_document(uri)
    document = _open[uri] = session.open_document(text.path, text.source)
    found = [_diagnostic(document, d, uri) for d in document.diagnostics]
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, text.version))


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: LanguageServer, params: lsp.DidOpenTextDocumentParams) -> None:
    _check(ls, params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def did_change(ls: LanguageServer, params: lsp.DidChangeTextDocumentParams) -> None:
    _check(ls, params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: LanguageServer, params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    _open.pop(uri, None)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))


@server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_watched_files(ls: LanguageServer, params: lsp.DidChangeWatchedFilesParams) -> None:
    """Settings changed: check everything again."""
    for uri in list(_open):
        _check(ls, uri)


@server.feature(
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
)
def code_action(ls: LanguageServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    uri = params.text_document.uri
    document = _open.get(uri)
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
            edit = lsp.WorkspaceEdit({uri: [_whole(document, text)]})
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
        edit = lsp.WorkspaceEdit({uri: [_whole(document, session.fixed_text(document, fix))]})
        safe = fix.safety is Safety.SAFE
        title = f"{found.code}: {fix.title}" + ("" if safe else " (unsafe)")
        actions.append(
            lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, diagnostics=shown, is_preferred=safe, edit=edit)
        )
    offset, comment = session.suppression(document, found)
    place = _client(document, document.source.position(offset))
    edit = lsp.WorkspaceEdit({uri: [lsp.TextEdit(lsp.Range(place, place), comment)]})
    title = f"{found.code}: ignore on this line"
    actions.append(lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, diagnostics=shown, edit=edit))
    return actions


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
def hover(ls: LanguageServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document = _open.get(params.text_document.uri)
    if document is None or params.position.line >= document.source.rows:
        return None
    text = session.hover(document, *_own(document, params.position))
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None
