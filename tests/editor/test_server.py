"""The language server, spoken to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server needs the extra lsp")
pytest_lsp = pytest.importorskip("pytest_lsp", reason="tests of the server need pytest-lsp")

from lsprotocol import types as lsp  # noqa: E402
from pytest_lsp import LanguageClient  # noqa: E402

PROGRAM = """\
import torch

model = torch.nn.Linear(2, 2).cuda()
x = torch.ones(1, 2)
y = "重要🔥"; z = model(x)
w = x  # devlint: ignore[DEV101] meant
"""
#: A function that other files call: what they do with its result is not known.
IMPORTED = """\
import torch


def batch():
    return torch.rand(3).cuda()
"""


@pytest_lsp.fixture(  # type: ignore[untyped-decorator]
    config=pytest_lsp.ClientServerConfig(server_command=[sys.executable, "-m", "devlint", "server"])
)
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    @lsp_client.feature(lsp.CLIENT_REGISTER_CAPABILITY)  # type: ignore[untyped-decorator]
    def register(params: lsp.RegistrationParams) -> None:
        pass

    await lsp_client.initialize_session(
        lsp.InitializeParams(capabilities=pytest_lsp.client_capabilities("visual-studio-code"), root_uri=None)
    )
    yield
    await lsp_client.shutdown_session()


async def opened(client: LanguageClient, tmp_path: Path, text: str = PROGRAM) -> str:
    uri = (tmp_path / "train.py").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return uri


async def actions(
    client: LanguageClient, uri: str, row: int, only: list[Any] | None = None
) -> dict[str, lsp.CodeAction]:
    place = lsp.Range(lsp.Position(row, 0), lsp.Position(row, 200))
    context = lsp.CodeActionContext(client.diagnostics[uri], only=only)
    found = await client.text_document_code_action_async(
        lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), place, context)
    )
    return {action.title: action for action in found or () if isinstance(action, lsp.CodeAction)}


def new_text(action: lsp.CodeAction, uri: str) -> str:
    assert action.edit is not None and action.edit.changes is not None
    return "".join(edit.new_text for edit in action.edit.changes[uri])


async def hover(client: LanguageClient, uri: str, row: int, column: int) -> str:
    found = await client.text_document_hover_async(
        lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(row, column))
    )
    if found is None:
        return ""
    assert isinstance(found.contents, lsp.MarkupContent)
    return found.contents.value


@pytest.mark.asyncio
async def test_a_finding_as_you_type(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path, "import torch\n")
    assert not client.diagnostics[uri]
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(2, uri), [lsp.TextDocumentContentChangeWholeDocument(PROGRAM)]
        )
    )
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    found = next(d for d in client.diagnostics[uri] if d.code == "DEV102")
    assert found.range == lsp.Range(lsp.Position(3, 4), lsp.Position(3, 20))
    assert found.source == "devlint"


@pytest.mark.asyncio
async def test_the_second_place_is_counted_in_utf16_units(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    found = next(d for d in client.diagnostics[uri] if d.code == "DEV102")
    places = [r.location.range.start for r in found.related_information or ()]
    assert lsp.Position(4, 16) in places  # the flame is one code point and two units


@pytest.mark.asyncio
async def test_a_safe_fix_is_preferred(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    offered = await actions(client, uri, 3)
    fix = next(action for title, action in offered.items() if title.startswith("DEV102: ") and "ignore" not in title)
    assert fix.is_preferred
    assert "x = torch.ones(1, 2, device=" in new_text(fix, uri)


@pytest.mark.asyncio
async def test_an_unsafe_fix_is_offered_singly(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path, IMPORTED)
    offered = await actions(client, uri, 4)
    fix = next(action for title, action in offered.items() if title.startswith("DEV202") and title.endswith("(unsafe)"))
    assert not fix.is_preferred
    assert ".to(device)" in new_text(fix, uri)


@pytest.mark.asyncio
async def test_a_line_is_silenced_by_a_comment(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    offered = await actions(client, uri, 3)
    assert new_text(offered["DEV102: ignore on this line"], uri) == "  # devlint: ignore[DEV102]"


@pytest.mark.asyncio
async def test_fix_all_applies_the_safe_fixes_alone(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    offered = await actions(client, uri, 0, [lsp.CodeActionKind.SourceFixAll])
    text = new_text(offered["devlint: apply all safe fixes"], uri)
    assert text == (
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n\n'
        "model = torch.nn.Linear(2, 2).to(device)\n"
        "x = torch.ones(1, 2, device=next(model.parameters()).device)\nw = x\n"
    )  # the rows of the fixes alone


@pytest.mark.asyncio
async def test_hover_on_a_value_says_where_it_is_and_why(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    text = await hover(client, uri, 3, 0)
    assert "`x`: tensor on the CPU" in text
    assert f"- [line 4]({uri}#L4): created on the CPU here" not in text  # there is no such file yet
    assert "- line 4: created on the CPU here" in text


@pytest.mark.asyncio
async def test_the_reasons_in_a_hover_are_links(client: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    uri = await opened(client, tmp_path)
    text = await hover(client, uri, 3, 4)
    assert f"- [line 4]({uri}#L4): created on the CPU here" in text  # why the value is where it is
    assert f"- [line 5]({uri}#L5): " in text  # where the finding fails


@pytest.mark.asyncio
async def test_hover_on_a_code_in_a_comment_shows_the_rule(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    assert "**DEV101 mixed-device-operands**" in await hover(client, uri, 5, PROGRAM.split("\n")[5].index("DEV101") + 1)


@pytest.mark.asyncio
async def test_a_syntax_error_is_a_finding(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path, "import torch\nx = (\n")
    assert [d.code for d in client.diagnostics[uri]] == ["DEV900"]


@pytest.mark.asyncio
async def test_what_is_asked_while_typing_is_answered_for_the_text_as_it_is(
    client: LanguageClient, tmp_path: Path
) -> None:
    uri = await opened(client, tmp_path, "import torch\n")
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(2, uri), [lsp.TextDocumentContentChangeWholeDocument(PROGRAM)]
        )
    )
    assert "`x`: tensor on the CPU" in await hover(client, uri, 3, 0)


@pytest.mark.asyncio
async def test_an_excluded_file_has_no_findings(client: LanguageClient, tmp_path: Path) -> None:
    (tmp_path / "devlint.toml").write_text('exclude = ["train.py"]\n')
    uri = await opened(client, tmp_path)
    assert not client.diagnostics[uri]


@pytest.mark.asyncio
async def test_bad_settings_are_said_and_the_defaults_hold(client: LanguageClient, tmp_path: Path) -> None:
    settings = tmp_path / "devlint.toml"
    settings.write_text('selct = ["DEV1"]\n')
    uri = await opened(client, tmp_path)
    assert "DEV102" in {d.code for d in client.diagnostics[uri]}
    assert [each.message for each in client.messages if "unknown key `selct`" in each.message]
    settings.write_text('select = ["DEV2"]\n')
    client.workspace_did_change_watched_files(
        lsp.DidChangeWatchedFilesParams([lsp.FileEvent(settings.as_uri(), lsp.FileChangeType.Changed)])
    )
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert {str(d.code)[:4] for d in client.diagnostics[uri]} == {"DEV2"}


@pytest.mark.asyncio
async def test_a_text_is_what_the_editor_says_whatever_encoding_its_comment_names(
    client: LanguageClient, tmp_path: Path
) -> None:
    text = (
        "# coding: latin-1\nimport torch\nmodel = torch.nn.Linear(2, 2).cuda()\ns = 'é'; z = model(torch.ones(1, 2))\n"
    )
    uri = await opened(client, tmp_path, text)
    found = next(d for d in client.diagnostics[uri] if d.code == "DEV102")
    assert found.range.start == lsp.Position(3, text.split("\n")[3].index("torch.ones"))


@pytest.mark.asyncio
async def test_an_edit_behind_a_form_feed_which_ends_no_row(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path, "import torch\n# \f part\u2028two\nx = 1\n")
    place = lsp.Range(lsp.Position(2, 0), lsp.Position(3, 0))
    added = "model = torch.nn.Linear(2, 2).cuda()\nz = model(torch.ones(1, 2))\n"
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(2, uri), [lsp.TextDocumentContentChangePartial(place, added)]
        )
    )
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    found = next(d for d in client.diagnostics[uri] if d.code == "DEV102")
    assert found.range == lsp.Range(lsp.Position(3, 10), lsp.Position(3, 26))


@pytest.mark.asyncio
async def test_the_second_place_may_be_in_another_file(client: LanguageClient, tmp_path: Path) -> None:
    made = tmp_path / "made.py"
    made.write_text("import torch\n\n\ndef make():\n    return torch.ones(1, 2)\n", encoding="utf-8")
    text = "import torch\nfrom made import make\nmodel = torch.nn.Linear(2, 2).cuda()\nz = model(make())\n"
    uri = await opened(client, tmp_path, text)
    places = [r.location for d in client.diagnostics[uri] for r in d.related_information or ()]
    assert lsp.Position(4, 11) in [place.range.start for place in places if place.uri == made.as_uri()]
    assert f"[{made} line 5]({made.as_uri()}#L5): created on the CPU here" in await hover(client, uri, 3, 12)


@pytest.mark.asyncio
async def test_a_hover_leaves_findings_out_for_an_editor_that_adds_them(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path)
    assert "DEV102" in await hover(client, uri, 3, 4)
    client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings={"findingsInHover": False}))
    assert (await hover(client, uri, 3, 4)).startswith("`torch.ones(1, 2)`: tensor on the CPU")


def message(method: str, params: object, number: int | None = None) -> bytes:
    """A message as the protocol frames it; a number makes it a request."""
    content = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    text = json.dumps(content).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["told to end", "left alone"])
def test_a_server_does_not_finish_a_check_that_nobody_waits_for(how: str, tmp_path: Path) -> None:
    text = {"uri": (tmp_path / "slow.py").as_uri(), "languageId": "python", "version": 1, "text": SLOW * 15}
    command = [sys.executable, "-m", "devlint", "server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(message("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1))
        server.stdin.write(message("textDocument/didOpen", {"textDocument": text}))
        server.stdin.flush()
        server.stdout.read(1)  # the answer to the first message: it serves
        time.sleep(1)  # the check has begun
        if how == "told to end":
            server.stdin.write(message("shutdown", None, 2) + message("exit", None))
        server.stdin.close()
        try:
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()


@pytest_lsp.fixture(  # type: ignore[untyped-decorator]
    config=pytest_lsp.ClientServerConfig(server_command=[sys.executable, "-m", "devlint", "server"])
)
async def client_in_bytes(lsp_client: LanguageClient) -> AsyncIterator[None]:
    """A client that counts columns in bytes, as Neovim does, and starts with hints."""
    utf8 = lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind.Utf8])
    given = lsp.InitializeParams(
        capabilities=lsp.ClientCapabilities(general=utf8), root_uri=None, initialization_options={"inlayHints": True}
    )
    await lsp_client.initialize_session(given)
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_columns_are_counted_as_the_client_prefers(client_in_bytes: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client_in_bytes, tmp_path)
    found = next(d for d in client_in_bytes.diagnostics[uri] if d.code == "DEV102")
    places = [r.location.range.start for r in found.related_information or ()]
    assert lsp.Position(4, 22) in places  # three, three and four bytes
    assert (4, 19, ": cuda") in await hints(client_in_bytes, uri)
    assert "`z`: " in await hover(client_in_bytes, uri, 4, 18)


async def hints(client: LanguageClient, uri: str) -> list[tuple[int, int, str]]:
    found = await client.text_document_inlay_hint_async(
        lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), lsp.Range(lsp.Position(0, 0), lsp.Position(50, 0)))
    )
    return [(each.position.line, each.position.character, str(each.label)) for each in found or ()]


@pytest.mark.asyncio
async def test_hints_of_places_come_once_a_setting_asks_for_them(client: LanguageClient, tmp_path: Path) -> None:
    uri = await opened(client, tmp_path, "import torch\ns = '🔥'; x = torch.ones(1, device='cuda:0')\n")
    assert await hints(client, uri) == []
    client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams(settings={"devlint": {"inlayHints": True, "command": ["devlint"]}})
    )
    assert await hints(client, uri) == [(1, 11, ": cuda:0")]  # in UTF-16 units


@pytest.mark.asyncio
async def test_an_option_of_the_wrong_kind_is_said(client: LanguageClient, tmp_path: Path) -> None:
    client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings={"inlayHints": "yes"}))
    uri = await opened(client, tmp_path, "import torch\nx = torch.ones(1)\n")
    assert await hints(client, uri) == []
    assert [m.message for m in client.messages] == ['devlint: the option `inlayHints` takes true or false, not "yes"']


CELLS = ["import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()", "%time f()\nx = torch.ones(1, 2)\nz = model(x)\n"]


async def opened_notebook(client: LanguageClient, tmp_path: Path, *texts: str) -> tuple[str, list[str]]:
    uri = (tmp_path / "a.ipynb").as_uri()
    cells = [uri.replace("file:", "vscode-notebook-cell:") + f"#{number}" for number in range(len(texts))]
    client.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            lsp.NotebookDocument(
                uri, "jupyter-notebook", 1, [lsp.NotebookCell(lsp.NotebookCellKind.Code, each) for each in cells]
            ),
            [lsp.TextDocumentItem(each, "python", 1, text) for each, text in zip(cells, texts, strict=True)],
        )
    )
    await until(lambda: all(each in client.diagnostics for each in cells))
    return uri, cells


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what several messages bring, some of which may be there already."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come")


@pytest.mark.asyncio
async def test_cells_of_a_notebook_are_checked_together(client: LanguageClient, tmp_path: Path) -> None:
    _, (first, second) = await opened_notebook(client, tmp_path, *CELLS)
    assert {str(d.code) for d in client.diagnostics[first]} == {"DEV202"}
    (found,) = client.diagnostics[second]
    assert (found.code, found.range.start) == ("DEV102", lsp.Position(1, 4))
    assert "on line 3 of cell 2" in found.message
    assert [r.location.uri for r in found.related_information or ()] == [second, first]


@pytest.mark.asyncio
async def test_a_cell_has_fixes_and_hover_of_its_own(client: LanguageClient, tmp_path: Path) -> None:
    _, (_, second) = await opened_notebook(client, tmp_path, *CELLS)
    fixed = "x = torch.ones(1, 2, device=next(model.parameters()).device)\n"
    offered = await actions(client, second, 1)
    assert fixed in [new_text(each, second) for each in offered.values()]
    everything = await actions(client, second, 0, [lsp.CodeActionKind.SourceFixAll])
    assert new_text(everything["devlint: apply all safe fixes"], second) == fixed
    assert "- line 2 of cell 2: created on the CPU here" in await hover(client, second, 1, 0)


@pytest.mark.asyncio
async def test_a_changed_cell_changes_what_is_found_in_others(client: LanguageClient, tmp_path: Path) -> None:
    uri, (first, second) = await opened_notebook(client, tmp_path, *CELLS)
    text = lsp.NotebookDocumentCellContentChanges(
        lsp.VersionedTextDocumentIdentifier(2, first),
        [lsp.TextDocumentContentChangeWholeDocument("import torch\nmodel = torch.nn.Linear(2, 2)")],
    )
    client.notebook_document_did_change(
        lsp.DidChangeNotebookDocumentParams(
            lsp.VersionedNotebookDocumentIdentifier(2, uri),
            lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(text_content=[text])),
        )
    )
    await until(lambda: not client.diagnostics[first] and not client.diagnostics[second])


SLOW = "import torch\n" + "".join(
    f"""
def f{number}(x, model, batches):
    model = model.cuda()
    for i in range(3):
        y = torch.ones(3)
        z = model(y) + torch.zeros(3) + x.to("cuda")
        batches.append(z)
    return z
"""
    for number in range(40)
)


@pytest.mark.asyncio
async def test_hover_does_not_wait_for_a_running_check(client: LanguageClient, tmp_path: Path) -> None:
    slow = (tmp_path / "slow.py").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(slow, "python", 1, SLOW)))
    uri = (tmp_path / "train.py").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, PROGRAM)))
    assert "`x`: tensor on the CPU" in await hover(client, uri, 3, 0)
    assert slow not in client.diagnostics  # its check runs still
    assert uri not in client.diagnostics  # and that of this file waits for it


@pytest.mark.asyncio
async def test_a_file_that_was_closed_while_it_was_checked_has_no_findings(
    client: LanguageClient, tmp_path: Path
) -> None:
    slow = (tmp_path / "slow.py").as_uri()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(slow, "python", 1, SLOW)))
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(slow)))
    uri = await opened(client, tmp_path, PROGRAM)
    await until(lambda: bool(client.diagnostics.get(uri)))
    assert not client.diagnostics.get(slow)
