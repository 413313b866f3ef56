"""Which sentences of devlint readers must read twice.

Usage: python benchmarks/english.py draw --seed N            choose the sources, into english.json
       python benchmarks/english.py write PLACE              PLACE.md to read, PLACE.json with what each number stands for
       python benchmarks/english.py count PLACE MARKS...     the share that each reader marked, either, and both

The sources are README.md, five pages of docs/ (the changelog is left out), 20 rules as `devlint rule CODE` prints them, and
60 findings above info of `devlint check fixtures --select ALL`, at most three of a rule. They are drawn once, so that two
states of the texts are compared on the same sources. A finding is known by its rule, its file and its line of code, so its
message may change between two states.

Each sentence of prose gets a number. Headings, code, rows of terms and cells that hold only code get none. The headings of a
table's columns stand above its first row, also without a number. A sentence that stands in several sources has one number,
where it stands first. Readers mark a number a line, with or without a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).parents[1]
DRAWN: Final = Path(__file__).with_suffix(".json")
PAGES: Final = 5
RULES: Final = 20
FINDINGS: Final = 60
FINDINGS_OF_A_RULE: Final = 3
NO_PAGES: Final = frozenset({"changelog.md"})  # a history, as long as all other pages together
CHECK: Final = ("check", "fixtures", "--select", "ALL", "--output-format", "full", "--color", "never")

_CODE_SPAN: Final = re.compile(r"`[^`]*`")
_WORD: Final = re.compile(r"(?<!\S)[(\"']*[^\W\d_]+(?:[-'/][^\W\d_]+)*[)\"',.;:!?]*(?!\S)")
_END: Final = re.compile(r"[.!?][\"')\]]*(?=\s)")
_ABBREVIATION: Final = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)\.$", re.IGNORECASE)
_MARKER: Final = re.compile(r"\s*#\s*(?:(?:todo-)?(?:expect|quiet)|reveal|fixes)(?:@\S*)?:.*$")
_PLACE: Final = re.compile(r"^ *--> (?P<file>.+\.py):(?P<row>\d+):(?P<column>\d+)$", re.MULTILINE)
_LABEL: Final = re.compile(r"^[\s|_]*[|][\s|_]*(?:\^+|-+)(?P<said>.*)$")
_SHOWN_CODE: Final = re.compile(r"^\s*(?:\d+ [+|-]|\||-->|::|\.\.\.)")


class EnglishError(Exception):
    """What a person can mend: a source that is gone, a mark that is no number of the list."""


class FindingKey(NamedTuple):
    """A finding without its message: the same before and after its words change."""

    code: str
    file: str
    text: str  # its line of code, without markers of the fixture
    nth: int  # among the findings of the rule on such lines of the file, from 0


class Piece(NamedTuple):
    """A part of a source: its sentences have numbers, what is only shown has none."""

    sentences: tuple[str, ...]
    shown: str = ""
    start: str = ""  # what stands before the first sentence, such as the mark of a list


class Source(NamedTuple):
    """One text as a user sees it."""

    section: str
    name: str
    pieces: list[Piece]


class Sentence(NamedTuple):
    """One row of the list that `write` keeps."""

    section: str
    source: str
    text: str


def main() -> None:
    arguments = _arguments()
    try:
        if arguments.command == "draw":
            _draw(arguments.seed)
        elif arguments.command == "write":
            _write(arguments.place)
        else:
            _count(arguments.place, arguments.marks, arguments.sentences)
    except EnglishError as error:
        sys.exit(str(error))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Which sentences of devlint readers must read twice.")
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw", help="choose the sources")
    draw.add_argument("--seed", type=int, required=True)
    write = commands.add_parser("write", help="write the numbered sentences of the sources")
    write.add_argument("place", type=Path, help="a path without suffix")
    count = commands.add_parser("count", help="count what readers marked")
    count.add_argument("place", type=Path, help="the path that `write` was given")
    count.add_argument("marks", nargs="+", type=Path, help="a file of numbers for each reader")
    count.add_argument("--sentences", action="store_true", help="also print what was marked, with the reasons")
    return parser.parse_args()


# -- the draw ------------------------------------------------------------------------------------------------------------


def _draw(seed: int) -> None:
    chance = random.Random(seed)
    pages = sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name not in NO_PAGES)
    rules = sorted(row["code"] for row in json.loads(_devlint("rule", "--all", "--output-format", "json")))
    findings = sorted(_findings(_devlint(*CHECK)))
    drawn = {
        "seed": seed,
        "pages": [f"docs/{page}" for page in sorted(chance.sample(pages, PAGES))],
        "rules": sorted(chance.sample(rules, RULES)),
        "findings": sorted(_few_of_each_rule(chance.sample(findings, len(findings)))),
    }
    _keep(DRAWN, json.dumps(drawn, indent=1, ensure_ascii=False) + "\n")
    print(f"{PAGES} pages, {RULES} rules and {FINDINGS} of {len(findings)} findings: {DRAWN.name}")


def _few_of_each_rule(shuffled: Iterable[FindingKey]) -> list[FindingKey]:
    taken: Counter[str] = Counter()
    chosen: list[FindingKey] = []
    for key in shuffled:
        if taken[key.code] < FINDINGS_OF_A_RULE and len(chosen) < FINDINGS:
            taken[key.code] += 1
            chosen.append(key)
    return chosen


def _findings(report: str) -> dict[FindingKey, str]:
    """The findings of a full report, each as a user sees it."""
    rows: dict[str, list[str]] = {}
    seen: Counter[tuple[str, str, str]] = Counter()
    findings: dict[FindingKey, str] = {}
    for shown in report.split("\n\n"):
        place = _PLACE.search(shown)
        if place is None:
            continue
        file = place["file"]
        if file not in rows:
            rows[file] = (ROOT / file).read_text(encoding="utf-8", errors="replace").splitlines()
        row = int(place["row"]) - 1
        text = _without_marker(rows[file][row]).strip() if row < len(rows[file]) else ""
        code = shown.split(maxsplit=1)[0]
        findings[FindingKey(code, file, text, seen[code, file, text])] = shown
        seen[code, file, text] += 1
    return findings


def _without_marker(line: str) -> str:
    return _MARKER.sub("", line)


def _devlint(*arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "devlint", *arguments], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    if ran.returncode > 1:
        raise EnglishError(f"devlint {' '.join(arguments)}: exit code {ran.returncode}\n{ran.stderr}")
    return ran.stdout


# -- the list ------------------------------------------------------------------------------------------------------------


def _write(place: Path) -> None:
    drawn = json.loads(DRAWN.read_text(encoding="utf-8"))
    keys = [FindingKey(*row) for row in drawn["findings"]]
    found = _findings(_devlint(*CHECK))
    numbers: dict[str, int] = {}
    kept: dict[str, Sentence] = {}
    lines = ["# Sentences", ""]
    for source in (*_pages(drawn), *_messages(keys, found)):
        lines += [f"## {source.name}", ""]
        for piece in source.pieces:
            lines += [_numbered(piece, source, numbers, kept), ""]
    _keep(place.with_suffix(".md"), "\n".join(lines))
    table = {number: sentence._asdict() for number, sentence in kept.items()}
    _keep(place.with_suffix(".json"), json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    for name, total in Counter(sentence.section for sentence in kept.values()).items():
        print(f"{total:5} {name}")
    print(f"{len(kept):5} in all")
    for key in keys:
        if key not in found:
            print(f"left out, as it is no longer found: {key.code} in {key.file}: {key.text}")


def _numbered(piece: Piece, source: Source, numbers: dict[str, int], kept: dict[str, Sentence]) -> str:
    """A piece with numbers; a sentence that had its number before stands there without one."""
    if not piece.sentences:
        return piece.shown
    said: list[str] = []
    for text in piece.sentences:
        if text in numbers:
            said.append(f"({_number(numbers[text])} again) {text}")
            continue
        numbers[text] = len(numbers) + 1
        number = _number(numbers[text])
        kept[number] = Sentence(source.section, source.name, text)
        said.append(f"**{number}** {text}")
    return piece.start + "  \n".join(said)


def _number(number: int) -> str:
    return f"S{number:04}"


def _pages(drawn: dict[str, Any]) -> Iterator[Source]:
    yield Source("README", "README.md", pieces_of_markdown(_text("README.md")))
    for page in drawn["pages"]:
        yield Source("docs", page, pieces_of_markdown(_text(page)))
    for code in drawn["rules"]:
        yield Source("rules", f"devlint rule {code}", pieces_of_markdown(_devlint("rule", code, "--color", "never")))


def _messages(keys: Iterable[FindingKey], found: dict[FindingKey, str]) -> Iterator[Source]:
    for key in keys:
        if key in found:
            name = f"{key.code} in {key.file}, {key.nth + 1}: {key.text}"
            yield Source("messages", name, _pieces_of_a_finding(found[key]))


def _text(name: str) -> str:
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise EnglishError(f"{name} was drawn and is gone") from None


# -- sentences -----------------------------------------------------------------------------------------------------------


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a paragraph, with code spans as they are; none where it says nothing in words."""
    joined = " ".join(text.split())
    masked = _CODE_SPAN.sub(lambda code: "`" * len(code[0]), joined)
    if not _is_prose(masked):
        return ()
    parts: list[str] = []
    start = 0
    for end in _END.finditer(masked):
        before = masked[start : end.start() + 1]
        if _ABBREVIATION.search(before) or before.endswith(".."):
            continue
        parts.append(joined[start : end.end()].strip())
        start = end.end()
    parts.append(joined[start:].strip())
    return tuple(part for part in parts if part)


def _is_prose(masked: str) -> bool:
    """Two words beside the code at least; a row of terms between middle dots is none."""
    return " · " not in masked and len(_WORD.findall(masked)) > 1


def pieces_of_markdown(text: str) -> list[Piece]:
    """The parts of a Markdown text in their order."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    pieces: list[Piece] = []
    row: list[str] = []
    opened: list[str] = []
    start = ""
    for token in tokens:
        if token.nesting == 1:
            opened.append(token.type)
            start = "* " if token.type == "list_item_open" else start
            row = [] if token.type == "tr_open" else row
        elif token.nesting == -1:
            opened.pop()
            start = "" if token.type == "list_item_close" else start
            if token.type == "tr_close" and any(row):
                pieces += [_heads_of_columns(row)] if "thead_open" in opened else _pieces_of_a_row(row)
        elif token.type in ("fence", "code_block"):
            pieces.append(Piece((), _fenced(token.content)))
        elif token.type == "inline" and "tr_open" in opened:
            row.append(_plain(token))
        elif token.type == "inline" and "heading_open" in opened:
            pieces.append(Piece((), f"### {_plain(token)}"))
        elif token.type == "inline":
            said = _plain(token)
            pieces.append(Piece(sentences(said), said, start))
            start = ""
    return pieces


def _heads_of_columns(cells: list[str]) -> Piece:
    """The header row of a table, above its first row: a page shows it, so a reader of the list needs it, too."""
    return Piece((), f"Columns of the table: {' | '.join(cells)}")


def _pieces_of_a_row(cells: list[str]) -> list[Piece]:
    """A row of a table: its cells one below the other."""
    return [
        Piece(sentences(cell), f"{start}{cell}", start)
        for cell, start in zip(cells, ["* | "] + ["  | "] * (len(cells) - 1), strict=True)
    ]


def _plain(token: Token) -> str:
    """What a reader sees of inline Markdown; code keeps its marks."""
    said: list[str] = []
    for child in token.children or ():
        if child.type == "text":
            said.append(child.content)
        elif child.type == "code_inline":
            said.append(f"`{child.content}`")
        elif child.type in ("softbreak", "hardbreak"):
            said.append(" ")
    return "".join(said)


def _pieces_of_a_finding(shown: str) -> list[Piece]:
    """A finding as it is printed, then what its message, its trace and its hint say."""
    lines = shown.strip("\n").splitlines()
    pieces = [Piece((), _fenced("\n".join(_without_marker(line) for line in lines)))]
    message = re.sub(r"^\S+ (?:\[\*\] )?", "", lines[0])
    for said in (message, *_said_below(lines[1:])):
        pieces.append(Piece(sentences(said) or (said,), said, "* "))
    return pieces


def _said_below(lines: list[str]) -> Iterator[str]:
    for line in lines:
        label = _LABEL.match(line)
        if label is not None:
            if label["said"].strip():
                yield label["said"].strip()
        elif not _SHOWN_CODE.match(line) and line.strip():
            yield line.strip()


def _fenced(code: str) -> str:
    return f"```text\n{code.rstrip()}\n```"


# -- the marks -----------------------------------------------------------------------------------------------------------


def _count(place: Path, files: list[Path], tell: bool) -> None:
    table = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
    kept = {number: Sentence(**row) for number, row in table.items()}
    readers = [_marks(file, kept) for file in files]
    sections: dict[str, list[str]] = defaultdict(list)
    sources: dict[str, list[str]] = defaultdict(list)
    for number, sentence in kept.items():
        sections[sentence.section].append(number)
        sources[sentence.source].append(number)
    names = [file.stem for file in files] + ["either", "both"]
    print("| source | sentences | " + " | ".join(names) + " |")
    print("|---|---|" + "---|" * len(names))
    print(_row("all", list(kept), readers))
    for name, numbers in (*sections.items(), *sources.items()):
        if name in sections or any(number in marks for marks in readers for number in numbers):
            print(_row(name, numbers, readers))
    if tell:
        _tell(kept, dict(zip(names[: len(files)], readers, strict=True)))


def _marks(file: Path, kept: dict[str, Sentence]) -> dict[str, str]:
    """The numbers of one reader, with the reasons."""
    marks: dict[str, str] = {}
    for row, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        word, _, reason = line.strip().partition(" ")
        digits = re.fullmatch(r"[Ss]?0*([0-9]+)[.:,]?", word)
        number = _number(int(digits[1])) if digits else word
        if number not in kept:
            raise EnglishError(f"{file}:{row}: {word} is no number of the list")
        marks[number] = reason.strip()
    return marks


def _row(name: str, numbers: list[str], readers: list[dict[str, str]]) -> str:
    by_reader = [{number for number in numbers if number in marks} for marks in readers]
    either, both = set.union(*by_reader), set.intersection(*by_reader)
    shares = [f"{len(marked)} ({100 * len(marked) / len(numbers):.1f} %)" for marked in (*by_reader, either, both)]
    return f"| {name.replace('|', chr(92) + '|')} | {len(numbers)} | {' | '.join(shares)} |"


def _tell(kept: dict[str, Sentence], readers: dict[str, dict[str, str]]) -> None:
    for number, sentence in kept.items():
        reasons = [f"    {name}: {marks[number] or 'no reason'}" for name, marks in readers.items() if number in marks]
        if reasons:
            print("", f"{number} {sentence.source}", f"    {sentence.text}", *reasons, sep="\n")


def _keep(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


if __name__ == "__main__":
    main()
