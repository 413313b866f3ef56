"""What ruff, ty and pyright have, and whether devlint has it, row by row: each cell is tried.

Usage: python benchmarks/peers.py FOLDER ... > benchmarks/peers.md

FOLDER: where the programs `ruff`, `ty`, `pyright`, `pyright-langserver` and `devlint` are. Each cell is one run of a program in
a folder with a few small files: *yes* where the output has the text that the row looks for. Where a program has no such
option, its help is searched for one. A row of the language server looks at what the server answers to `initialize`, or at the
findings that it sends for a file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

TOOLS: Final = ("ruff", "ty", "pyright", "devlint")
CODE: Final = 'import os\n\nimport torch\n\nx: int = "a"\ny = torch.zeros(3).to("cuda")\n'
NOTEBOOK: Final = {
    "cells": [{"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": [], "source": CODE}],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
UNUSED: Final = """import torch

x = torch.zeros(3)  # noqa: F401, DEV101
z: int = 1  # ty: ignore[invalid-assignment]
w: int = 1  # type: ignore
"""
SLOWEST: Final = 60  # seconds


class Try(NamedTuple):
    """A command line without the program, and what its output has where the program has what the row is about."""

    command: str
    pattern: str


class Row(NamedTuple):
    """`tries`: for ruff, ty, pyright and devlint. A text is for the server: the capability that it names."""

    what: str
    tries: tuple[Try | str, Try | str, Try | str, Try | str]


def options(pattern: str) -> tuple[Try, Try, Try, Try]:
    """The help of each program, searched for one option."""
    return (
        Try("check --help", pattern),
        Try("check --help", pattern),
        Try("--help", pattern),
        Try("check --help", pattern),
    )


def formats(name: str, pattern: str) -> tuple[Try, Try, Try, Try]:
    """A report in a format, or for pyright its help."""
    same = Try(f"check --output-format {name} bad.py", pattern)
    return same, same, Try("--help", rf"--output\w*{name}"), same


CONCISE: Final = "check --output-format concise bad.py"
COMMAND_LINE: Final = (
    Row("one line for each finding", (
        Try(CONCISE, r"bad\.py:1:8: "), Try(CONCISE, r"bad\.py:5:"),
        Try("bad.py", r"bad\.py:5:\d+ - "), Try(CONCISE, r"bad\.py:6:"),
    )),
    Row("the code around a finding", (
        Try("check bad.py", r"\^\^"), Try("check bad.py", r"\^\^"), Try("bad.py", r"\^\^"), Try("check bad.py", r"\^\^"),
    )),
    Row("a small diff with the finding", (
        Try("check bad.py", r"(?m)^.{0,8}- import os"), Try("check bad.py", r"(?m)^\d* *- "), Try("bad.py", r"(?m)^\d* *- "),
        Try("check bad.py", r"(?m)^\d* *\+ y"),
    )),
    Row("JSON of its own", (
        Try("check --output-format json bad.py", '"location"'), Try("check --output-format json bad.py", '"location"'),
        Try("--outputjson bad.py", '"generalDiagnostics"'), Try("check --output-format json bad.py", '"location"'),
    )),
    Row("SARIF", formats("sarif", '"runs"')),
    Row("JUnit", formats("junit", "<testsuite")),
    Row("annotations for GitHub", formats("github", "(?m)^::(error|warning)")),
    Row("a report for GitLab", formats("gitlab", '"fingerprint"')),
    Row("the address of a rule's page, for programs", (
        Try("check --output-format json bad.py", '"url": "https'),
        Try("check --output-format sarif bad.py", '"helpUri": ?"https'),
        Try("--outputjson bad.py", "https://"),
        Try("check --output-format sarif bad.py", '"helpUri": "https'),
    )),
    Row("counts by rule", (
        Try("check --statistics bad.py", r"(?m)^1\s+F401"), Try("check --help", "--statistics"), Try("--help", "by rule"),
        Try("check --statistics bad.py", r"(?m)^1\s+DEV201"),
    )),
    Row("counts by rule before many findings", (
        Try("check many.py", r"(?m)\A.*\n *60 +F821"), Try("check many.py", r"\A.*\n *60 "), Try("many.py", r"\A.*\n *60 "),
        Try("check many.py", r"\A.*\n *60 +DEV201"),
    )),
    Row("fixes", (
        Try("check --diff bad.py", "-import os"), Try("check --help", r"--fix\b"), Try("--help", r"--fix\b"),
        Try("check --diff bad.py", r"\+y = .*device"),
    )),
    Row("fixes as a patch", options(r"--diff\b")),
    Row("fixes that need to be asked for", options(r"--unsafe-fixes")),
    Row("fixes that are run and judged", (
        Try("help", r"\bverify\b"), Try("help", r"\bverify\b"), Try("--help", r"--verify\b"),
        Try("help", r"verify +run a program"),
    )),
    Row("a comment for each finding that is there", options(r"--add-(noqa|ignore)")),
    Row("findings for comments that silence nothing", (
        Try("check --select RUF100 unused.py", "RUF100"),
        Try("check --error unused-ignore-comment unused.py", "unused-ignore-comment"),
        Try("-p strict.json", "reportUnnecessaryTypeIgnoreComment"),
        Try("check unused.py", "DEV901"),
    )),
    Row("a file of known findings", options(r"--baseline")),
    Row("findings on changed lines alone", options(r"--diff-base")),
    Row("findings of a severity and above", options(r"--level|--min-severity")),
    Row("exit code 0 with findings", options(r"--exit-zero")),
    Row("the page of a rule", (
        Try("rule F401", "What it does"), Try("explain rule invalid-assignment", "What it does"), Try("--help", "explain"),
        Try("rule DEV201", "What it flags"),
    )),
    Row("the list of settings", (
        Try("config", "line-length"), Try("help", r"\bconfig\b"), Try("--help", "list.*settings"),
        Try("config", "torch-version"),
    )),
    Row("a JSON schema of the settings, printed", (
        Try("config --help", "schema"), Try("help", "schema"), Try("--help", "schema"),
        Try("config --schema", r'"\$schema"'),
    )),
    Row("settings for one folder of a project", (
        Try("check sub/bad.py --show-settings", r"line_length = 77|line-length = 77"), Try("check sub", r"warning\["),
        Try("sub/bad.py", "warning: Type"), Try("check sub/bad.py --show-settings", '"2.9"'),
    )),
    Row("notebooks", (
        Try("check bad.ipynb", "cell 1"), Try("check bad.ipynb", "cell 1"),
        Try("bad.ipynb", 'declared type "int"'), Try("check bad.ipynb", "cell 1"),
    )),
    Row("Python in Markdown", (
        Try("check bad.md", r"bad\.md:\d"), Try("check bad.md", r"(?s)\A(?!.*invalid-syntax).*bad\.md:\d"),
        Try("bad.md", r"(?s)\A(?!.*backticks).*bad\.md:\d"), Try("check bad.md", r"bad\.md:\d"),
    )),
    Row("runs again when a file changes", options(r"--watch")),
    Row("a cache between runs", options(r"--no-cache")),
    Row("completion for a shell", (
        Try("generate-shell-completion bash", "complete"), Try("generate-shell-completion bash", "complete"),
        Try("--help", "completion"), Try("completion bash", "complete"),
    )),
    Row("rules of one's own", (
        Try("config", r"(?m)^plugins$"), Try("check --help", "plugin"), Try("--help", "plugin"),
        Try("config plugins", "use the rules of these"),
    )),
    Row("what is inferred about a value", (
        Try("check reveal.py", r"Literal\[1\]"), Try("check reveal.py", r"Literal\[1\]"), Try("reveal.py", r"Literal\[1\]"),
        Try("reveal bad.py:6", "cuda"),
    )),
    Row("the cause of a traceback", (
        Try("help", "traceback"), Try("help", "traceback"), Try("--help", "traceback"), Try("help", "traceback"),
    )),
    Row("a formatter", (
        Try("help", r"(?m)^  format "), Try("help", r"(?m)^  format "), Try("--help", "format files"),
        Try("help", r"(?m)^  format "),
    )),
    Row("the imports between files", (
        Try("analyze graph bad.py", "bad.py"), Try("help", "graph"), Try("--help", "--dependencies"), Try("help", "graph"),
    )),
)  # fmt: skip
SERVER: Final = (
    Row("quick fixes", ("codeActionProvider",) * 4),
    Row("all fixes on save", ("codeActionProvider.codeActionKinds:source.fixAll",) * 4),
    Row("hover", ("hoverProvider",) * 4),
    Row("inlay hints", ("inlayHintProvider",) * 4),
    Row("the way to a definition", ("definitionProvider",) * 4),
    Row("completion of code", ("completionProvider",) * 4),
    Row("renaming", ("renameProvider",) * 4),
    Row("colours by meaning", ("semanticTokensProvider",) * 4),
    Row("findings when the editor asks (pull)", ("diagnosticProvider",) * 4),
    Row("notebooks", ("notebookDocumentSync",) * 4),
    Row("other places of a finding (in one small file)", ("relatedInformation",) * 4),
    Row("a link from a code to its page", ("codeDescription",) * 4),
)
SERVERS: Final = {
    "ruff": ("ruff", "server"),
    "ty": ("ty", "server"),
    "pyright": ("pyright-langserver", "--stdio"),
    "devlint": ("devlint", "server"),
}
OF_FINDINGS: Final = ("relatedInformation", "codeDescription")


def prepare(folder: Path) -> None:
    """The files that the rows name."""
    (folder / "bad.py").write_text(CODE)
    (folder / "unused.py").write_text(UNUSED)
    (folder / "bad.ipynb").write_text(json.dumps(NOTEBOOK))
    (folder / "bad.md").write_text(f"# Text\n\n```python\n{CODE}```\n")
    many = "".join(f'a{number} = torch.zeros({number}, device="mps:{number}")  # {number}\n' for number in range(60))
    names = "".join(f"unknown_{number}\n" for number in range(60))
    (folder / "many.py").write_text(f"import torch\n\n{many}{names}")
    (folder / "reveal.py").write_text("from typing import reveal_type\n\nn = 1\nreveal_type(n)\n")
    strict = {"include": ["unused.py"], "reportUnnecessaryTypeIgnoreComment": "error"}
    (folder / "strict.json").write_text(json.dumps(strict))
    (folder / "sub").mkdir()
    (folder / "sub" / "bad.py").write_text(CODE)
    (folder / "sub" / "ruff.toml").write_text("line-length = 77\n")
    (folder / "sub" / "ty.toml").write_text('[rules]\ninvalid-assignment = "warn"\n')
    (folder / "sub" / "pyrightconfig.json").write_text('{"reportAssignmentType": "warning"}')
    (folder / "sub" / "devlint.toml").write_text('torch-version = "2.9"\n')


class Programs:
    """The programs, run in one folder. What a command printed is kept."""

    def __init__(self, places: list[str], folder: Path) -> None:
        self._path = os.pathsep.join((*map(os.path.abspath, places), os.environ["PATH"]))
        self._folder = folder
        self.output = cache(self._output)
        self.answers = cache(self._answers)

    def find(self, name: str) -> str:
        """Raises SystemExit where a program is not there."""
        found = shutil.which(name, path=self._path)
        if found is None:
            raise SystemExit(f"no program {name} in the folders that are named")
        return found

    def _output(self, tool: str, command: str) -> str:
        done = subprocess.run(
            [self.find(tool), *command.split()],
            cwd=self._folder, capture_output=True, text=True, timeout=SLOWEST, check=False,
            env={**os.environ, "PATH": self._path, "NO_COLOR": "1", "COLUMNS": "200"},
        )  # fmt: skip
        return done.stdout + done.stderr

    def _answers(self, tool: str) -> dict[str, Any]:
        """What a server is capable of, with what its findings have."""
        capabilities, _ = self._conversation(tool, pulls=True)
        _, found = self._conversation(tool, pulls=False)
        return capabilities | {name: any(each.get(name) for each in found) for name in OF_FINDINGS}

    def _conversation(self, tool: str, pulls: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What a server says that it can do, and the first findings that it sends by itself.

        `pulls`: for an editor that asks for findings. A server sends none to such an editor.
        """
        name, *arguments = SERVERS[tool]
        with subprocess.Popen(
            [self.find(name), *arguments], cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**os.environ, "PATH": self._path},
        ) as server:  # fmt: skip
            try:
                return _start(server, self._folder, pulls), [] if pulls else _findings(server, self._folder)
            finally:
                server.kill()

    def has(self, tool: str, wanted: Try | str) -> bool:
        """Whether one cell is a yes."""
        if isinstance(wanted, Try):
            return re.search(wanted.pattern, self.output(tool, wanted.command)) is not None
        found: Any = self.answers(tool)
        path, _, item = wanted.partition(":")
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return any(each.startswith(item) for each in found or ()) if item else found not in (None, False)


def _start(server: subprocess.Popen[bytes], folder: Path, pulls: bool) -> dict[str, Any]:
    """Start a server as an editor does, and give what it is capable of."""
    publish = {"relatedInformation": True, "codeDescriptionSupport": True}
    kinds = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source", "source.fixAll"]}}}
    document = {"publishDiagnostics": publish, "codeAction": kinds, **({"diagnostic": {}} if pulls else {})}
    client = {"textDocument": document, "notebookDocument": {"synchronization": {}}}
    uri = folder.as_uri()
    folders = [{"uri": uri, "name": "x"}]
    start = {"processId": None, "rootUri": uri, "workspaceFolders": folders, "capabilities": client}
    _send(server, {"id": 1, "method": "initialize", "params": start})
    for message in _messages(server):
        if message.get("id") == 1 and "method" not in message:
            capabilities: dict[str, Any] = message["result"]["capabilities"]
            return capabilities
    raise SystemExit("a server ended before it said what it can do")


def _findings(server: subprocess.Popen[bytes], folder: Path) -> list[dict[str, Any]]:
    """Open a file, and give the first findings."""
    document = {"uri": (folder / "bad.py").as_uri(), "languageId": "python", "version": 1, "text": CODE}
    _send(server, {"method": "initialized", "params": {}})
    _send(server, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
    for message in _messages(server):
        if "method" in message and "id" in message:  # a question of the server: nothing is set
            asked = message.get("params") or {}
            _send(server, {"id": message["id"], "result": [None for _ in asked.get("items", ())]})
        if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["diagnostics"]:
            found: list[dict[str, Any]] = message["params"]["diagnostics"]
            return found
    return []


def _send(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    assert server.stdin is not None
    server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    server.stdin.flush()


def _messages(server: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert server.stdout is not None
    while True:
        length = 0
        while (line := server.stdout.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            elif not line and not length:
                return
        yield json.loads(server.stdout.read(length))


def table(programs: Programs, rows: tuple[Row, ...]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| | {' | '.join(TOOLS)} |"
    yield f"|---|{'---|' * len(TOOLS)}"
    for row in rows:
        cells = ["yes" if programs.has(tool, each) else "no" for tool, each in zip(TOOLS, row.tries, strict=True)]
        yield f"| {row.what} | {' | '.join(cells)} |"


HEAD: Final = """\
# What ruff, ty and pyright have

Printed by `python benchmarks/peers.py FOLDER`, which tries each cell. *yes*: the program has it, *no*: it does not.
"""
TAIL: Final = """
## What devlint lacks

* **The address of a rule's page, and the link from a code to it.** Both need an address of the project
  (`devlint/addresses.py`), which is empty. The tests set an address and find the links.
* **A run when a file changes, and findings when the editor asks.** The server sends the findings of a file as you type.
* **A formatter, the imports between files, definitions, completion, renaming, colours.** devlint finds device bugs. Use it
  beside a formatter and a type checker.

## Around the programs

This was not tried, because it needs a network. For [ruff](https://docs.astral.sh/ruff/integrations/),
[ty](https://docs.astral.sh/ty/editors/) and [pyright](https://microsoft.github.io/pyright/#/installation), read their
pages. Of devlint:

| | devlint |
|---|---|
| a package index | not there. `.ci/release` builds the files and checks them |
| an extension for VS Code | built and run, not published ([editors](../docs/editors.md)) |
| pre-commit hooks | yes, run ([log](recipes/pre_commit.log)) |
| a GitHub action | yes. `tests/test_action.py` runs its steps |
| beside flake8 and ruff | yes, run ([log](recipes/ruff_external.log)) |
"""


def main() -> None:
    """Raises SystemExit where a program is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="where the programs are")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        programs = Programs(parser.parse_args().folders, folder)
        versions = [f"{tool} {programs.output(tool, '--version').split()[1]}" for tool in TOOLS]
        print(HEAD + f"Versions: {', '.join(versions)}.")
        for title, rows in (("Command line", COMMAND_LINE), ("Language server", SERVER)):
            print(f"\n## {title}\n\n" + "\n".join(table(programs, rows)))
        print(TAIL, end="")


if __name__ == "__main__":
    main()
