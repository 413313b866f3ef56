"""Runs two devlints, A and B, side by side on all labels and on pinned trees, and prints what B wins and loses.

    python benchmarks/compare_engines.py --cache DIR [--clones DIR] [--corpus DIR] [--wheels DIR [--download]]
        [--a-python PYTHON] [--b-python PYTHON] [--a ARGUMENTS] [--b ARGUMENTS] [--a-set NAME=VALUE] [--b-set NAME=VALUE]
        [--only SET ...] [--trees PART ...] [--rules PREFIXES] [--jobs N] [--rows FILE]

Without a word about the sides, A has DEVLINT_INFERENCE=old and B has DEVLINT_INFERENCE=new. The folder --cache keeps what a
side said of an input, by the content of the input and of that devlint.

| set | what | needs |
|---|---|---|
| fixes, other, mixed, blind | benchmarks/labelled_*fixes.json, each file by itself | --clones |
| corpus | bugs.jsonl, negatives.jsonl and codes.json of a folder | --corpus, --clones |
| programs | fixtures/programs, with the bug and repaired | |
| explained | benchmarks/explained_errors.json | --clones |
| pinned | benchmarks/pinned_trees.json: wheels by version, repositories by commit | --wheels, --clones |

*Won* and *lost* are labels that only B, only A finds by a rule that answers their kind. *New* and *gone* are findings that
only B, only A has: in pinned trees, in labelled files, and as alarms in code that is right. Nothing but totals is printed of a
label with `read` false. A finding of severity info counts, and is left out in the figures "above info".

A rule that has more than 20 findings in one pinned tree, of which A has not every one, stops the change (exit status 1) until
twenty of those of B stand in benchmarks/read_findings.json with a verdict. A crash or a hang also gives exit status 1.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from explained_errors import answers_in, rank_of, traceback_of
from fix_quality import SLACK
from labelled_fixes import ANSWERS, files_of, git_of, text_of, write_project
from sides import Finding, Side, SideError, interpreter, keep, read_kept

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "fixtures" / "programs"
LABELLED = {
    "fixes": "labelled_fixes.json",
    "other": "labelled_other_fixes.json",
    "mixed": "labelled_mixed_fixes.json",
    "blind": "labelled_blind_fixes.json",
}
SETS = (*LABELLED, "corpus", "programs", "explained", "pinned")
#: The rules of mixed devices, which `--inference new` answers.
RULES = ("DEV101", "DEV102", "DEV103", "DEV104", "DEV109")
#: What may be said of a repaired program.
ALLOWED = ("DEV205", "DEV207", "DEV208", "DEV509")
#: The families that name the bug of a program, as in tests/test_programs.py.
ABOUT_BUGS = ("DEV1", "DEV3", "DEV6", *ALLOWED)
MANY = 20  # findings of one rule in one pinned tree
TREE_LIMIT = 3600.0  # seconds for one tree
Rows = list[dict[str, Any]]
#: By the name of a group, whether a label belongs to it.
Groups = dict[str, Callable[[dict[str, Any]], bool]]


@dataclass
class Report:
    """What a comparison found: lines to print, rows to keep, and what stops the change."""

    lines: list[str] = field(default_factory=list)
    rows: Rows = field(default_factory=list)
    stops: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)
        print(line, flush=True)


@dataclass
class Tally:
    """How many of some labels each side finds."""

    labels: int = 0
    a: int = 0
    a_loud: int = 0
    b: int = 0
    b_loud: int = 0
    won: int = 0
    lost: int = 0

    def add(self, a: Sequence[Finding], b: Sequence[Finding]) -> None:
        self.labels += 1
        self.a += bool(a)
        self.b += bool(b)
        self.a_loud += any(map(is_loud, a))
        self.b_loud += any(map(is_loud, b))
        self.won += bool(b and not a)
        self.lost += bool(a and not b)

    def line(self, name: str) -> str:
        return (
            f"  {name:34} of {self.labels:4}: A {self.a:4} (above info {self.a_loud:4})  B {self.b:4} "
            f"(above info {self.b_loud:4})  won {self.won:3}  lost {self.lost:3}"
        )


@dataclass
class Comparison:
    """Two sides, the threads that ask them, and the report."""

    a: Side
    b: Side
    pool: ThreadPoolExecutor
    rules: tuple[str, ...]
    report: Report = field(default_factory=Report)

    def both(self, ask: Callable[[Side], Any]) -> tuple[Any, Any]:
        """What each side answers; None for one that failed, which stops the change."""
        return self._safely(ask, self.a), self._safely(ask, self.b)

    def _safely(self, ask: Callable[[Side], Any], side: Side) -> Any:
        try:
            return ask(side)
        except SideError as error:
            self.report.stops.append(str(error))
            return None

    def each(self, asks: Iterable[Callable[[Side], Any]]) -> Iterator[tuple[Any, Any]]:
        """What both sides answer to each of several questions, in their order, as soon as it is there."""
        return self.pool.map(self.both, asks)


def is_loud(finding: Finding) -> bool:
    return finding.severity != "info"


def cached(side: Side, kind: str, content: str, ask: Callable[[], list[Finding]]) -> list[Finding]:
    """What a side says of an input, from what was kept if it is there."""
    path = side.kept(kind, content)
    if (known := read_kept(path)) is not None:
        return [Finding(*row) for row in known]
    found = ask()
    keep(path, [[f.path, f.first, f.last, f.code, f.evidence, f.severity, f.message] for f in found])
    return found


def check_files(files: dict[str, bytes], side: Side) -> list[Finding]:
    """What a side says of files that are a project of their own."""

    def ask() -> list[Finding]:
        with tempfile.TemporaryDirectory() as name:
            write_project(Path(name), files.items())
            return side.check(Path(name).resolve())

    content = "".join(f"{path} {hashlib.sha256(text).hexdigest()}\n" for path, text in sorted(files.items()))
    return cached(side, "files", content, ask)


def hits(findings: Iterable[Finding], lines: Iterable[int], codes: Iterable[str], slack: int = 0) -> list[Finding]:
    """The findings by these rules that span one of the lines."""
    wanted, rows = tuple(codes), tuple(lines)
    return [
        f for f in findings
        if f.code.startswith(wanted) and any(f.first - slack <= row <= f.last + slack for row in rows)
    ]  # fmt: skip


def only_here(ours: Iterable[Finding], theirs: Iterable[Finding], rules: tuple[str, ...]) -> list[Finding]:
    """The findings by some rules that one side has and the other one has not at that place."""
    places = {finding.place for finding in theirs}
    return [f for f in ours if f.place not in places and f.code.startswith(rules)]


def by_rule(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    return Counter((finding.code, finding.evidence) for finding in findings)


def table(columns: dict[str, Counter[tuple[str, str]]]) -> list[str]:
    """A table by rule and evidence, with a column for each counter."""
    keys = sorted({key for counter in columns.values() for key in counter})
    if not keys:
        return []
    head = "  " + f"{'rule':8} {'evidence':18}" + "".join(f"{name:>8}" for name in columns)
    rows = [
        f"  {code:8} {evidence:18}" + "".join(f"{counter[code, evidence]:8}" for counter in columns.values())
        for code, evidence in keys
    ]
    return [head, *rows]


def code_of(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    """The rule and the evidence by which a label is found: the first that is louder than info."""
    chosen = next(filter(is_loud, findings), findings[0])
    return Counter({(chosen.code, chosen.evidence): 1})


@dataclass
class Judged:
    """A label, the name of its place, and the findings of each side that name it."""

    label: dict[str, Any]
    place: str
    a: list[Finding]
    b: list[Finding]


def tell_labels(report: Report, name: str, judged: Sequence[Judged], groups: Groups) -> None:
    """Print the totals of labels by group, and rows of those that were read."""
    unread = [one for one in judged if one.label.get("read") is False]
    read = [one for one in judged if one.label.get("read") is not False]
    won, lost = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for title, part in (("unread", unread), ("read", read)):
        for group, belongs in groups.items():
            tally = Tally()
            for one in part:
                if belongs(one.label):
                    tally.add(one.a, one.b)
            if tally.labels:
                report.say(tally.line(f"{name}, {title}, {group}"))
    for one in read:
        if bool(one.a) == bool(one.b):
            continue
        change, found = ("won", one.b) if one.b else ("lost", one.a)
        counts = code_of(found)
        (won if one.b else lost).update(counts)
        code, evidence = next(iter(counts))
        report.rows.append({"set": name, "change": change, "place": one.place, "code": code, "evidence": evidence})
        report.say(f"    {change:4} {one.place} {one.label.get('kind', '')} {code} {evidence}")
    for line in table({"won": won, "lost": lost}):
        report.say(line)


def tell_findings(
    report: Report, name: str, where: str, a: Sequence[Finding], b: Sequence[Finding], rules: tuple[str, ...]
) -> tuple[list[Finding], list[Finding]]:
    """Keep the rows of new and gone findings of one input, and return both."""
    new, gone = only_here(b, a, rules), only_here(a, b, rules)
    for change, findings in (("new", new), ("gone", gone)):
        for f in findings:
            place = f"{where}/{f.path}:{f.first}"
            report.rows.append(
                {"set": name, "change": change, "place": place, "code": f.code, "evidence": f.evidence,
                 "severity": f.severity, "message": f.message}
            )  # fmt: skip
    return new, gone


def answered_by(rules: tuple[str, ...]) -> Callable[[dict[str, Any]], bool]:
    """Whether a label is of a kind that one of these rules answers first of all."""
    kinds = {kind for kind, codes in ANSWERS.items() if codes[0].startswith(rules)}
    return lambda label: label["kind"] in kinds


def compare_labelled(run: Comparison, name: str, clones: Path) -> None:
    """Compare on one set of labelled repairs, each file by itself."""
    labels = json.loads((HERE / LABELLED[name]).read_text(encoding="utf-8"))
    texts = list(run.pool.map(functools.partial(labelled_text, clones), labels))
    there = [(label, text) for label, text in zip(labels, texts, strict=True) if text is not None]
    asks = [functools.partial(check_files, {Path(label["path"]).name: text}) for label, text in there]
    judged, new, gone = [], list[Finding](), list[Finding]()
    for (label, _), (a, b) in zip(there, run.each(asks), strict=True):
        if a is None or b is None:
            continue
        place = f"{label['repo']}@{label['commit'][:10]} {label['path']}:{label['lines']}"
        codes = ANSWERS[label["kind"]]
        judged.append(Judged(label, place, hits(a, label["lines"], codes), hits(b, label["lines"], codes)))
        if label["read"]:
            where = f"{label['repo']}@{label['commit'][:10]}/{Path(label['path']).parent}"
            added, dropped = tell_findings(run.report, name, where, a, b, run.rules)
            new += added
            gone += dropped
    run.report.say(f"{name}: {len(there)} of {len(labels)} labels are in the clones")
    groups: Groups = {"all kinds": lambda _: True, "kinds of the rules": answered_by(run.rules)}
    tell_labels(run.report, name, judged, groups)
    say_table(run.report, "findings in the files of read labels", new, gone)


def say_table(report: Report, title: str, new: Sequence[Finding], gone: Sequence[Finding]) -> None:
    lines = table({"new": by_rule(new), "gone": by_rule(gone)})
    for line in [f"  {title}:", *lines] if lines else []:
        report.say(line)


def labelled_text(clones: Path, label: dict[str, Any]) -> bytes | None:
    git = git_of(clones, label["repo"])
    return text_of(git, label) if git is not None else None


def read_lines(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def compare_corpus(run: Comparison, corpus: Path, clones: Path) -> None:
    """Compare on a corpus of bugs and of places that must stay silent, as its own scorer counts them."""
    codes = json.loads((corpus / "codes.json").read_text(encoding="utf-8"))
    answers = answered_by(run.rules)
    groups: Groups = {
        "one file": lambda label: label["scope"] != "cross",
        "needs other files": lambda label: label["scope"] == "cross",
        "kinds of the rules": lambda label: label["scope"] != "cross" and answers(label),
    }
    for name in ("bugs", "negatives"):
        labels = read_lines(corpus / f"{name}.jsonl")
        texts = list(run.pool.map(functools.partial(labelled_text, clones), labels))
        there = [(label, text) for label, text in zip(labels, texts, strict=True) if text is not None]
        asks = [functools.partial(check_files, {Path(label["path"]).name: text}) for label, text in there]
        judged = []
        for (label, _), (a, b) in zip(there, run.each(asks), strict=True):
            if a is None or b is None:
                continue
            slack = 5 if name == "bugs" and label["kind"] in SLACK else 0
            found = [hits(side, label["lines"], codes[label["kind"]], slack) for side in (a, b)]
            judged.append(Judged(label, f"{label['id']} {label['repo']} {label['path']}:{label['lines']}", *found))
        run.report.say(f"corpus, {name}: {len(there)} of {len(labels)} are in the clones" + alarm_note(name))
        tell_labels(run.report, f"corpus {name}", judged, groups)


def alarm_note(name: str) -> str:
    return "; to find one is an alarm: won is a new alarm, lost is one that is gone" if name == "negatives" else ""


def is_alarm(finding: Finding) -> bool:
    """Whether a finding in a repaired program is one too many, as tests/test_programs.py says."""
    return finding.code.startswith(ABOUT_BUGS) and not finding.code.startswith(ALLOWED)


def compare_programs(run: Comparison) -> None:
    """Compare on the programs of fixtures/programs and on their repaired twins."""
    labels = json.loads((PROGRAMS / "labels.json").read_text(encoding="utf-8"))
    files = {path.relative_to(PROGRAMS).as_posix(): path.read_bytes() for path in PROGRAMS.rglob("*.py")}
    both = run.both(functools.partial(check_files, files))
    if None in both:
        return
    found: list[dict[str, list[Finding]]] = [defaultdict(list), defaultdict(list)]
    for side, findings in zip(found, both, strict=True):
        for finding in findings:
            side[finding.path].append(finding)
    judged = []
    for label in labels:
        sides = (hits(side[label["program"]], label["lines"], ABOUT_BUGS) for side in found)
        judged.append(Judged(label, f"{label['program']}:{label['lines']}", *sides))
    tell_labels(run.report, "programs", judged, {"all": lambda _: True})
    twins = [label["program"].replace(".py", ".good.py") for label in labels]
    alarms = [[f for twin in twins for f in side[twin] if is_alarm(f)] for side in found]
    flagged = [len({f.path for f in side}) for side in alarms]
    new, gone = tell_findings(run.report, "programs repaired", "fixtures/programs", alarms[0], alarms[1], ("DEV",))
    run.report.say(f"  {'programs, repaired, flagged':34} of {len(twins):4}: A {flagged[0]:4}  B {flagged[1]:4}")
    for finding in new:
        run.report.say(f"    new  {finding.path}:{finding.first} {finding.code} {finding.evidence} {finding.message}")
    say_table(run.report, "alarms in repaired programs", new, gone)


def explain(clones: Path, case: dict[str, Any], side: Side) -> list[list[tuple[str, int]]]:
    """The lines that each answer of `devlint explain` names for a case."""
    path = side.kept("explain", f"{case['repository']} {case['commit']} {traceback_of(case)}")
    if (known := read_kept(path)) is not None:
        return [[(way, row) for way, row in answer] for answer in known]
    git = git_of(clones, case["repository"])
    assert git is not None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_project(folder, files_of(git, case["commit"]))
        shown = side.run(folder, ("explain", "-"), traceback_of(case))["out"]
    named = [sorted(answer) for answer in answers_in(shown)]
    keep(path, named)
    return named


def compare_explained(run: Comparison, clones: Path) -> None:
    """Compare the first and the first three answers of `devlint explain`."""
    cases = json.loads((HERE / "explained_errors.json").read_text(encoding="utf-8"))
    there = [case for case in cases if has_commit(clones, case["repository"], case["commit"])]
    answers = list(run.each(functools.partial(explain, clones, case) for case in there))
    run.report.say(f"explained: {len(there)} of {len(cases)} cases are in the clones")
    for title, read in (("unread", False), ("read", True)):
        first, third, won, lost, every = [0, 0], [0, 0], 0, 0, 0
        for case, sides in zip(there, answers, strict=True):
            if case["read"] is not read or None in sides:
                continue
            ranks = [rank_of(case, [set(answer) for answer in side]) for side in sides]
            every += 1
            first = [count + (rank == 1) for count, rank in zip(first, ranks, strict=True)]
            third = [count + (rank is not None and rank <= 3) for count, rank in zip(third, ranks, strict=True)]
            better, worse = ranks[1] == 1 != ranks[0], ranks[0] == 1 != ranks[1]
            won, lost = won + better, lost + worse
            if read and (better or worse):
                change = "won" if better else "lost"
                run.report.rows.append({"set": "explained", "change": change, "place": case["url"], "ranks": ranks})
                run.report.say(f"    {change:4} {case['url']} rank {ranks[0]} {ranks[1]}")
        run.report.say(
            f"  {'explained, ' + title:34} of {every:4}: first A {first[0]:4} B {first[1]:4}  among three A {third[0]:4} "
            f"B {third[1]:4}  won {won:3}  lost {lost:3}"
        )


def has_commit(clones: Path, repository: str, commit: str) -> bool:
    git = git_of(clones, repository)
    if git is None:
        return False
    asked = ["git", "--git-dir", str(git), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Tree:
    """A pinned tree: its name with its version, and where its files come from."""

    name: str
    archive: Path | None = None
    git: Path | None = None
    commit: str = ""

    @functools.cached_property
    def content(self) -> str:
        if self.archive is None:
            return self.commit
        return hashlib.sha256(self.archive.read_bytes()).hexdigest()

    def files(self) -> Iterable[tuple[str, bytes]]:
        """The Python files of the tree, and those that say which torch it asks for."""
        if self.git is not None:
            return files_of(self.git, self.commit)
        assert self.archive is not None
        return zip_files(self.archive) if self.archive.suffix in (".whl", ".zip") else tar_files(self.archive)


def zip_files(archive: Path) -> Iterable[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if name.endswith(".py"):
                yield name, opened.read(name)


def tar_files(archive: Path) -> Iterable[tuple[str, bytes]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
            if content is not None:
                yield member.name.split("/", 1)[-1], content.read()


def archive_of(wheels: Path, name: str, version: str) -> Path | None:
    """The file of a distribution in a folder of wheels and source archives."""
    wanted = f"{name}-{version}".lower().replace("-", "_").replace(".", "_")
    for path in sorted(wheels.iterdir()) if wheels.is_dir() else ():
        if path.name.lower().replace("-", "_").replace(".", "_").startswith(wanted + "_"):
            return path
    return None


def pinned_trees(clones: Path | None, wheels: Path | None) -> tuple[list[Tree], list[str]]:
    """The pinned trees that are at hand, and the names of those that are not."""
    trees, missing = [], []
    for pin in json.loads((HERE / "pinned_trees.json").read_text(encoding="utf-8")):
        if "commit" in pin:
            name = f"{pin['name']}@{pin['commit'][:10]}"
            git = git_of(clones, pin["name"]) if clones is not None else None
            at_hand = git is not None and clones is not None and has_commit(clones, pin["name"], pin["commit"])
            tree = Tree(name, git=git, commit=pin["commit"]) if at_hand else None
        else:
            name = f"{pin['name']} {pin['version']}"
            archive = archive_of(wheels, pin["name"], pin["version"]) if wheels is not None else None
            tree = Tree(name, archive=archive) if archive is not None else None
        if tree is None:
            missing.append(name)
        else:
            trees.append(tree)
    return trees, missing


def check_tree(tree: Tree, side: Side) -> list[Finding]:
    """What a side says of a whole tree."""

    def ask() -> list[Finding]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            write_project(folder, tree.files())
            return side.check(folder, limit=TREE_LIMIT)

    return cached(side, "tree", tree.content, ask)


def unread_rules(
    tree: str, a: Sequence[Finding], b: Sequence[Finding], rules: tuple[str, ...], readings: Rows
) -> list[str]:
    """What must be read of a tree before the change may go on."""
    asked = []
    changed = {finding.code for finding in only_here(b, a, rules)}
    for code in sorted(changed):
        places = {f"{f.path}:{f.first}" for f in b if f.code == code}
        read = places & {f"{r['path']}:{r['line']}" for r in readings if r["tree"] == tree and r["code"] == code}
        if len(places) > MANY and len(read) < MANY:
            asked.append(f"{tree}: {code} has {len(places)} findings, {len(read)} of {MANY} were read")
    return asked


def compare_pinned(run: Comparison, clones: Path | None, wheels: Path | None, parts: Sequence[str]) -> None:
    """Compare on the pinned trees, and ask for readings where a rule says much."""
    trees, missing = pinned_trees(clones, wheels)
    trees = [tree for tree in trees if not parts or any(part in tree.name for part in parts)]
    run.report.say(f"pinned: {len(trees)} trees at hand, {len(missing)} not: {', '.join(missing) or '-'}")
    readings = json.loads((HERE / "read_findings.json").read_text(encoding="utf-8"))
    columns: dict[str, list[Finding]] = defaultdict(list)
    for tree, (a, b) in zip(trees, run.each(functools.partial(check_tree, tree) for tree in trees), strict=True):
        if a is None or b is None:
            continue
        new, gone = tell_findings(run.report, "pinned", tree.name, a, b, run.rules)
        a, b = ([f for f in side if f.code.startswith(run.rules)] for side in (a, b))
        for name, part in (("A", a), ("B", b), ("new", new), ("gone", gone)):
            columns[name] += part
        run.report.say(f"  {tree.name:50} A {len(a):5}  B {len(b):5}  new {len(new):5}  gone {len(gone):5}")
        run.report.stops += unread_rules(tree.name, a, b, run.rules, readings)
    for line in table({name: by_rule(findings) for name, findings in columns.items()}):
        run.report.say(line)


def download(wheels: Path) -> None:
    """Bring the pinned wheels that are not there."""
    wheels.mkdir(parents=True, exist_ok=True)
    for pin in json.loads((HERE / "pinned_trees.json").read_text(encoding="utf-8")):
        if "version" in pin and archive_of(wheels, pin["name"], pin["version"]) is None:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels)]
            subprocess.run([*command, f"{pin['name']}=={pin['version']}"], check=False)


def compare(run: Comparison, options: argparse.Namespace) -> None:
    """Compare on every set that was asked for and whose sources are named."""
    for name in options.only or SETS:
        needs = {
            "programs": True,
            "corpus": options.corpus and options.clones,
            "pinned": options.wheels or options.clones,
        }
        if not needs.get(name, options.clones):
            run.report.say(f"{name}: left out, it needs {'--corpus and ' if name == 'corpus' else ''}--clones")
            continue
        start = time.monotonic()
        if name in LABELLED:
            compare_labelled(run, name, options.clones)
        elif name == "corpus":
            compare_corpus(run, options.corpus, options.clones)
        elif name == "programs":
            compare_programs(run)
        elif name == "explained":
            compare_explained(run, options.clones)
        else:
            compare_pinned(run, options.clones, options.wheels, options.trees)
        run.report.say(f"  ({time.monotonic() - start:.0f} s)")


def parsed() -> argparse.Namespace:
    about = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(
        description=about[0], epilog="\n".join(about[2:]), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="the folder that keeps what each side said")
    parser.add_argument("--clones", type=Path, help="a folder `owner+name` for each repository, with its history")
    parser.add_argument("--corpus", type=Path, help="a folder with bugs.jsonl, negatives.jsonl and codes.json")
    parser.add_argument("--wheels", type=Path, help="a folder with the pinned wheels")
    parser.add_argument("--download", action="store_true", help="bring the pinned wheels that are not there")
    for side in "ab":
        parser.add_argument(f"--{side}", default="", help="further arguments of `devlint check`")
        parser.add_argument(f"--{side}-python", help="an interpreter that has devlint")
        parser.add_argument(f"--{side}-set", action="append", default=[], help="a variable, NAME=VALUE")
    parser.add_argument("--only", nargs="+", choices=SETS)
    parser.add_argument("--trees", nargs="+", default=[], help="parts of names of pinned trees: leave the others out")
    parser.add_argument("--rules", default=",".join(RULES), help="the rules whose new and gone findings count")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120, help="the limit for one labelled file or answer")
    parser.add_argument("--rows", type=Path, help="write what is won, lost, new and gone here, as lines of JSON")
    return parser.parse_args()


def sides_of(options: argparse.Namespace) -> tuple[Side, Side]:
    """Both sides. Raises SideError where one cannot run or where they are the same."""
    words = (options.a, options.b, options.a_set, options.b_set)
    if not any(words) and options.a_python == options.b_python:
        options.a_set, options.b_set = ["DEVLINT_INFERENCE=old"], ["DEVLINT_INFERENCE=new"]
    cache, limit = options.cache, options.seconds
    a = Side("A", interpreter(options.a_python), options.a, options.a_set, cache, limit)
    b = Side("B", interpreter(options.b_python), options.b, options.b_set, cache, limit)
    if a.identity == b.identity:
        raise SideError("A and B are the same devlint with the same settings")
    return a, b


def main() -> int:
    options = parsed()
    if options.download and options.wheels:
        download(options.wheels)
    try:
        a, b = sides_of(options)
    except SideError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            run = Comparison(a, b, pool, tuple(options.rules.split(",")))
            compare(run, options)
    finally:
        a.close()
        b.close()
    if options.rows:
        options.rows.write_text("".join(json.dumps(row) + "\n" for row in run.report.rows), encoding="utf-8")
    for stop in run.report.stops:
        print(f"stop: {stop}")
    return int(bool(run.report.stops))


if __name__ == "__main__":
    sys.exit(main())
