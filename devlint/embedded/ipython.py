"""What IPython adds to Python: magics, shell commands and questions, put out of the parser's sight.

Each is replaced by as many characters of a letter that the code does not use, so that every place stays and the text
can be restored after the code around it was fixed. At the start of a row it becomes a comment, else a name. What `%timeit`
and `%time` run stays in sight, as the annotation of such a name.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from devlint.errors import SourceError
from devlint.source import Source, parse

# Cell magics whose cell is Python that runs in the notebook's own process, or is checked as such.
PYTHON_CELLS = frozenset(
    {"capture", "devlint", "memit", "mprun", "prun", "time", "timeit", "scalene", "snakeviz", "lprun"}
)

# Commands that IPython takes without a percent sign, where no Python can be meant.
_WORDS = "pip|conda|mamba|uv|cd|ls|cat|cp|mkdir|mv|rm"
_AUTOMATIC = rf"(?:{_WORDS})[ \t]+(?![ \t=(.,:+*/<>|&^%@-])"
# The same before what may go on as Python: `ls -la data`, `cd ..`. The row by itself tells.
_MAYBE = re.compile(rf"[ \t]*(?:{_WORDS})[ \t]+[^\r\n\\()\[\]{{}}\"']*(?=[\r\n]|\Z)")
# What IPython takes without a percent sign where it is the whole cell: its line magics
# [IPython/core/prefilter.py: AutoMagicChecker; the names as `%lsmagic` lists them].
_ALONE = frozenset(
    {
        "alias", "alias_magic", "autoawait", "autocall", "automagic", "bookmark", "cat", "cd", "code_wrap", "colors",
        "conda", "config", "cp", "debug", "dhist", "dirs", "doctest_mode", "ed", "edit", "env", "gui", "hist",
        "history", "killbgscripts", "ldir", "lf", "lk", "ll", "load", "load_ext", "loadpy", "logoff", "logon",
        "logstart", "logstate", "logstop", "ls", "lsmagic", "lx", "macro", "magic", "mamba", "matplotlib",
        "micromamba", "mkdir", "more", "mv", "notebook", "page", "pastebin", "pdb", "pdef", "pdoc", "pfile", "pinfo",
        "pinfo2", "pip", "popd", "pprint", "precision", "prun", "psearch", "psource", "pushd", "pwd", "pycat",
        "pylab", "quickref", "recall", "rehashx", "reload_ext", "rep", "rerun", "reset", "reset_selective", "rm",
        "rmdir", "run", "save", "sc", "set_env", "sx", "system", "tb", "time", "timeit", "unalias", "unload_ext",
        "uv", "who", "who_ls", "whos", "xdel", "xmode",
    }
)  # fmt: skip
_WORD = re.compile(r"[ \t]*([a-z_0-9]+)[ \t]+(?!=)")
_LINE = r"(?:[^\r\n\\]|\\(?!\r|\n))*\\?"  # up to the line break; a backslash before it carries the command on
_COMMAND = rf"(?:[%!?](?:{_LINE}))"
_MAGIC = re.compile(
    rf"[ \t]*(?:(?P<command>{_COMMAND}|{_AUTOMATIC}{_LINE})"
    rf"|[A-Za-z_][\w., ]*(?:\[[^\]=\r\n]*\][\w., ]*)*=[ \t]*(?P<value>[%!](?!=){_LINE})"
    r"|(?P<question>[\w.\[\]*]+\?{1,2})[ \t]*(?=[\r\n]|\Z))"
)
_TIMED = re.compile(r"%time(?:it)?(?:[ \t]+-(?:[nrtp][ \t]*\d+|[co]|q))*[ \t]+(?=[A-Za-z_(\[])")
_CELL_MAGIC = re.compile(r"\s*%%(\w*)")
_ROW = re.compile(r"[^\r\n]+")
_ROW_END = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(
    r"(?P<string>\"\"\"|'''|\"|')|(?P<comment>\#[^\r\n]*)|(?P<open>[\[({])|(?P<close>[\])}])"
    r"|(?P<joined>\\(?:\r\n|\r|\n))|(?P<newline>\r\n|\r|\n)|(?P<other>[ \t]+|\w+|.)",
    re.DOTALL,
)
_CLOSING = {
    '"""': re.compile(r'(?:\\.|[^\\])*?"""', re.DOTALL),
    "'''": re.compile(r"(?:\\.|[^\\])*?'''", re.DOTALL),
    '"': re.compile(r'(?:\\(?:\r\n|.)|[^"\\\r\n])*"?', re.DOTALL),
    "'": re.compile(r"(?:\\(?:\r\n|.)|[^'\\\r\n])*'?", re.DOTALL),
}


# What goes before a cell that is indented as a whole: IPython takes the indentation of its first row from all rows.
HEADER = "if 1:\n"
_INDENTED = re.compile(r"(?:[ \t]*\r?\n)*[ \t]+[^\s]")


def mask(cell: str, letter: str, header: str = "") -> tuple[str, SourceError | None]:
    """A cell as Python of the same length, and what is wrong with it when it cannot be parsed; it is then left out.

    `header`: what stands before the cell when it is parsed.
    """
    magic = _CELL_MAGIC.match(cell)
    if magic is not None and magic.group(1) not in PYTHON_CELLS:
        return _blank(cell, letter), None
    if _error(header + cell) is None:
        return cell, None
    if _is_alone(cell):
        return _blank(cell, letter), None
    pieces, at = [], 0
    for start, end in _magics(cell):
        pieces += [cell[at:start], _stand_in(cell, start, end, letter)]
        at = end
    masked = "".join([*pieces, cell[at:]])
    error = _error(header + masked)
    if error is None:
        return masked, None
    return _blank(cell, letter), _raised(error, header.count("\n"))


def _is_alone(cell: str) -> bool:
    """Whether a cell that is no Python is one row that begins with a magic."""
    row = cell.strip("\r\n")
    word = _WORD.match(row)
    return word is not None and word[1] in _ALONE and _ROW.fullmatch(row) is not None


def _raised(error: SourceError, rows: int) -> SourceError:
    """The error without the rows of a header, which the parser's own messages count too."""
    text = re.sub(r"(?<= on line )\d+", lambda match: str(int(match.group()) - rows), str(error))
    return SourceError(text, max(1, error.row - rows), error.column)


def is_indented(cell: str) -> bool:
    """Whether the first row of a cell that is not blank is indented."""
    return _INDENTED.match(cell) is not None


def unmask(masked: str, original: list[str], letter: str) -> str:
    """The text with what was put out of sight back in place, in order. Raises ValueError when some of it is missing."""
    pattern = stand_ins(letter)
    pieces, at, rest = [], 0, iter(original)
    for match in pattern.finditer(masked):
        text = next(rest, None)
        if text is None or len(text) != len(match.group()):
            raise ValueError("a magic was changed")
        pieces += [masked[at : match.start()], text]
        at = match.end()
    if next(rest, None) is not None:
        raise ValueError("a magic was removed")
    return "".join([*pieces, masked[at:]])


def hidden(cell: str, masked: str, letter: str) -> list[str]:
    """What `mask` put out of sight, in order."""
    return [cell[match.start() : match.end()] for match in stand_ins(letter).finditer(masked)]


def stand_ins(letter: str) -> re.Pattern[str]:
    """Finds what `mask` put in place of something."""
    return re.compile(f"#?{letter}+:?")


def _error(text: str) -> SourceError | None:
    """What keeps IPython from running a cell. A `return` outside of functions parses and does not compile."""
    try:
        tree = parse(Source("", b"", text))
    except SourceError as error:
        return error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        return SourceError(error.msg, error.lineno or 1, error.offset or 1)
    except (ValueError, RecursionError, MemoryError):  # what the analysis says more of
        return None
    return None


def _blank(cell: str, letter: str) -> str:
    return _ROW.sub(lambda match: _comment(len(match.group()), letter), cell)


def _stand_in(cell: str, start: int, end: int, letter: str) -> str:
    timed = _TIMED.match(cell, start)
    if timed is not None and timed.end() == end:
        return letter * (end - start - 1) + ":"
    at_row_start = start == 0 or cell[start - 1] in "\r\n"
    return _comment(end - start, letter) if at_row_start else letter * (end - start)


def _comment(length: int, letter: str) -> str:
    return "#" + letter * (length - 1) if length > 1 else letter


def _magics(cell: str) -> Iterator[tuple[int, int]]:
    """The ranges that are not Python; only where a statement may start, and not in strings or brackets."""
    at, depth, statement_start = 0, 0, True
    while at < len(cell):
        if statement_start and depth == 0:
            command = _MAYBE.match(cell, at)
            if command is not None and _error(command.group().strip()) is not None:
                yield command.span()
                at = command.end()
                statement_start = False
                continue
            match = _MAGIC.match(cell, at)
            if match is not None:
                timed = _TIMED.match(cell, match.start("command")) if match["command"] else None
                run = cell[timed.end() : match.end("command")] if timed is not None else ""
                if timed is not None and ";" not in run and _error(f"_:{run.strip()}") is None:
                    yield timed.span()
                    at = timed.end()
                    continue
                kind = "command" if match["command"] else "value" if match["value"] else "question"
                yield match.span(kind)
                at = match.end(kind)
                while cell[at - 1] == "\\":  # the rows that a shell command goes on in
                    row = _ROW_END.match(cell, at)
                    following = _ROW.match(cell, row.end()) if row is not None else None
                    if following is None:
                        break
                    yield following.span()
                    at = following.end()
        token = _TOKEN.match(cell, at)
        if token is None:
            break
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "string":
            closing = _CLOSING[token.group()].match(cell, at)
            at = closing.end() if closing is not None else len(cell)
        depth = max(0, depth + (kind == "open") - (kind == "close"))
        statement_start = kind == "newline"
