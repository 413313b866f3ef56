"""One file in, sorted findings out: gate, `ast`, facts, events to suspects to judgements, suppression.

The engine knows no rule by name. libcst is imported when the first suspect of a run is judged. What goes wrong inside a
rule or the analysis is reported as a crash with file and line, and the rest goes on.
"""

from __future__ import annotations

import ast
import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.errors import RuleCrash, SourceError
from devlint.facts import Facts
from devlint.facts.events import Event
from devlint.facts.text.shown_torch import WORDS as WITHOUT_IMPORT
from devlint.model import (
    ENGINE_RULES,
    UNKNOWN_CODE,
    UNREADABLE_FILE,
    UNUSED_SUPPRESSION,
    Diagnostic,
    FileResult,
    Finding,
    Origin,
    Position,
    Proof,
    Related,
    Severity,
    Span,
    TextFix,
)
from devlint.rule import Rule
from devlint.settings import Settings
from devlint.source import Source, check_syntax, decode, parse, read_source
from devlint.suppression import Suppressions, names_rules_of_ours
from devlint.tree import Tree
from devlint.unused import judge as judge_comments

if TYPE_CHECKING:
    import libcst as cst

    from devlint.facts.project.project import Project
    from devlint.file_state import FileState
    from devlint.inference.analysis import Session
    from devlint.inference.program.neighbours import Neighbours
    from devlint.project_files import Search

Analyse = Callable[[ast.Module, Source, Settings], Facts]

_TOO_DEEP = "nested too deeply to be analysed"
#: Suspects of one function that rest on an assumption and are judged; each may read all of the function again.
ASKED = 200


class EventSite:
    """The syntax around one event: the `Site` that rules get."""

    __slots__ = ("_event", "_facts", "_tree")

    def __init__(self, tree: Tree, facts: Facts, event: Event) -> None:
        self._tree = tree
        self._facts = facts
        self._event = event

    @property
    def facts(self) -> Facts:
        return self._facts

    @property
    def node(self) -> cst.CSTNode:
        return self._tree.at(self._event.span)

    @property
    def statement(self) -> cst.CSTNode:
        return self._tree.statement_at(self._event.span)

    def at(self, span: Span) -> cst.CSTNode:
        return self._tree.at(span)

    def statement_at(self, span: Span) -> cst.CSTNode:
        return self._tree.statement_at(span)

    def span(self, node: cst.CSTNode) -> Span:
        return self._tree.span(node)

    def line(self, span: Span) -> str:
        return self._tree.source.line(span.start)

    def code(self, node: cst.CSTNode) -> str:
        return self._tree.code(node)

    def has_comment(self, node: cst.CSTNode) -> bool:
        return self._tree.has_comment(node)

    def expression(self, code: str) -> cst.BaseExpression:
        import libcst as cst

        return cst.parse_expression(code)

    def spell(self, qualname: str) -> str:
        return self._facts.spell(qualname)


class Linter:
    """Lints files with the rules that the settings select. Holds no state of a file; one serves many files."""

    def __init__(
        self,
        rules: Sequence[Rule[Any]],
        settings: Settings | None = None,
        analyse: Analyse | None = None,
        explains: bool = False,
    ) -> None:
        self.explains = explains  # results say where rules are silent on purpose
        self.settings = settings if settings is not None else Settings()
        selects = self.settings.selects
        self.rules = tuple(rule for rule in rules if selects(rule.meta.code, rule.meta.name, rule.meta.opt_in))
        self.known = (*(rule.meta for rule in rules), *ENGINE_RULES)
        self.on_comments = frozenset(
            m.code for m in (UNUSED_SUPPRESSION, UNKNOWN_CODE) if selects(m.code, m.name, m.opt_in)
        )
        self._analyse = analyse
        self._project: Project | None = None
        self._session: Session | None = None
        self._words = tuple({word.encode(): None for rule in self.rules for word in rule.meta.words})
        self._ungated = any(not rule.meta.words for rule in self.rules)
        self._by_event: dict[type[Event], tuple[Rule[Any], ...]] = {}

    def check_file(self, path: Path, name: str | None = None) -> FileResult:
        """Lint a file by path; `name` is what reports show. When it cannot be read or decoded: DEV900."""
        try:
            source = read_source(path, name)
        except SourceError as error:
            return _unreadable(str(path) if name is None else name, error)
        return self.check(source)

    def check_bytes(self, raw: bytes, path: str) -> FileResult:
        """Lint bytes, such as those of standard input, under the name `path`."""
        try:
            source = decode(raw, path)
        except SourceError as error:
            return _unreadable(path, error)
        return self.check(source)

    def may_fire(self, raw: bytes) -> bool:
        """The lexical gate: whether the bytes hold `torch`, or a word of a file that does without it, and one of the words
        that some rule needs.

        A rule that declares no words is asked about every file.
        """
        if self._ungated:
            return True
        handled = b"torch" in raw or any(word in raw for word in WITHOUT_IMPORT)
        return handled and any(word in raw for word in self._words)

    def check(self, source: Source) -> FileResult:
        """Lint one decoded file. Never raises for what the file holds, nor for what a rule does."""
        result = FileResult(source.path)
        statistics = result.statistics
        statistics.files = 1
        statistics.lines = source.rows
        if not self.may_fire(source.raw):
            statistics.gated = 1
            try:
                check_syntax(source)
            except SourceError as error:
                result.diagnostics.append(unreadable(source.path, error, source))
            else:
                _Check(self, source, result).comments(Suppressions(source))
        else:
            with _collector_off() as was_off:
                _Check(self, source, result).run(freezes=was_off)
        if not self.settings.reports_unreadable:
            result.diagnostics = [each for each in result.diagnostics if each.code != UNREADABLE_FILE.code]
        if self.settings.changes_diagnostics:
            result.diagnostics = [self._as_set(each) for each in result.diagnostics]
            result.suppressed = [self._as_set(each) for each in result.suppressed]
        result.diagnostics = [each for each in result.diagnostics if self.settings.reports(each)]
        return result

    def _as_set(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic with the severity, and its fix with the safety, that the settings give it."""
        fix = diagnostic.fix
        if fix is not None:
            fix = replace(fix, safety=self.settings.safety(diagnostic.code, fix.safety))
        return replace(diagnostic, severity=self.settings.severity(diagnostic.code, diagnostic.severity), fix=fix)

    def rules_for(self, event: Event) -> tuple[Rule[Any], ...]:
        """The rules that subscribe to this event's type, or to a base of it."""
        kind = type(event)
        rules = self._by_event.get(kind)
        if rules is None:
            rules = tuple(rule for rule in self.rules if issubclass(kind, (rule.event, *rule.also)))
            self._by_event[kind] = rules
        return rules

    def parse(self, source: Source) -> ast.Module:
        """The tree of one file: that which an importing file has read already, where there is one."""
        return self.project.parsed(source).tree if self.project is not None else parse(source)

    @property
    def project(self) -> Project | None:
        """The files of the project; None for an analysis of the caller's."""
        if self._project is None and self._analyse is None:
            from devlint.facts.project.project import Project

            self._project = Project()
        return self._project

    def load_tree(self, path: str) -> tuple[FileState, ast.Module | None]:
        """The state of a file of the project, and its tree where it can be read."""
        from devlint.file_state import FileState

        if self.project is None:
            return FileState.of(path), None
        state, loaded = self.project.load(path)
        return state, loaded.tree if loaded is not None else None

    @property
    def session(self) -> Session | None:
        """What the checks of this process share; None for an analysis of the caller's."""
        if self._session is None and self.project is not None:
            from devlint.inference.analysis import Session

            self._session = Session(self.load_tree)
            self.project.spare = self._session.tree_of
        return self._session

    def neighbours(self, path: str) -> Neighbours | None:
        """The project around a file; None for an analysis of the caller's."""
        project = self.project
        if project is None:
            return None
        from devlint.inference.program.neighbours import Neighbours

        def source(other: str) -> Source | None:
            _, loaded = project.load(other)
            return loaded.source if loaded is not None else None

        return Neighbours(path, project.files, source)

    def analyse(self, tree: ast.Module, source: Source) -> Facts:
        """The device facts of one file."""
        if self._analyse is None:
            from devlint.facts.analysis import analyse

            self._analyse = partial(analyse, project=self.project)
        return self._analyse(tree, source, self.settings)


class _Check:
    """The work on one file."""

    def __init__(self, linter: Linter, source: Source, result: FileResult) -> None:
        self.linter = linter
        self.source = source
        self.result = result
        self.found: dict[tuple[str, Span], Diagnostic] = {}
        self.crashed: set[str] = set()
        self.others: dict[str, Source | None] = {}
        self.left_alone: dict[tuple[str, Span], Diagnostic] = {}
        self.read: dict[str, FileState] = {}  # the other files that the findings follow from
        self.asked: Counter[str] = Counter()  # suspects, by function
        self.searched: Search | None = None  # what the inference looked for in the files of the project

    def run(self, freezes: bool) -> None:
        """`freezes`: in a run over many files the collector need not look at the tree, which holds no cycles."""
        if freezes:
            gc.collect(0)  # what an earlier round left
        try:
            module = self.linter.parse(self.source)
        except SourceError as error:
            self.result.diagnostics.append(unreadable(self.source.path, error, self.source))
            return
        if freezes:
            gc.freeze()
        try:
            facts = self.linter.analyse(module, self.source)
        except SourceError as error:
            self.result.diagnostics.append(unreadable(self.source.path, error, self.source))
            return
        except RecursionError:
            deepest = SourceError(_TOO_DEEP, *_deepest(module))
            self.result.diagnostics.append(unreadable(self.source.path, deepest, self.source))
            return
        except Exception as error:  # a fault of the analysis must not end the run
            self.crash("the analysis", _row_in(error, 1), error)
            return
        self.result.statistics.budget_hits = facts.budget_hits
        self.result.statistics.tensors = len(facts.variables)
        self.result.statistics.placed = sum(facts.variables.values())
        for span in facts.too_deep:
            self.add_unreadable(SourceError(_TOO_DEEP, *self.source.position(span.start)))
        tree = Tree(self.source, module)
        replaced = self.replaced()
        for event in (*facts.events, *self.inferred(module)):
            for rule in self.linter.rules_for(event):
                if rule.meta.code not in self.crashed and not (
                    rule.meta.code in replaced and isinstance(event, rule.event)
                ):
                    tree.forget()
                    self.ask(rule, event, facts, tree)
        if self.linter.explains:
            self.leave_beside(facts)
        self.result.statistics.lines_parsed_by_libcst = tree.lines_parsed
        self.read.update(facts.read)
        if self.read:
            folder = os.path.dirname(os.path.abspath(self.source.path))
            self.result.others = lines_of(self.read, folder)
        searched = facts.searched()
        self.result.searched = searched.joined(self.searched) if searched is not None else self.searched
        self.finish(tree)
        self.add_contexts(tree)
        left = (note for place, note in self.left_alone.items() if place not in self.found)
        self.result.left_alone = sorted(left, key=lambda d: (d.span, d.code))

    def replaced(self) -> frozenset[str]:
        """The rules that the new inference answers in place of the old one."""
        if self.linter.settings.inference != "new":
            return frozenset()
        from devlint.inference.analysis import CODES

        return CODES

    def inferred(self, module: ast.Module) -> Sequence[Event]:
        """What the new inference finds and sees, where it is switched on and a rule asks for it."""
        if self.linter.settings.inference != "new":
            return ()
        from devlint.inference.analysis import infer
        from devlint.inference.events import DeviceMismatch
        from devlint.inference.observed.events import Inferred

        asked = [kind for rule in self.linter.rules for kind in (rule.event, *rule.also)]
        observes = {kind for kind in asked if issubclass(kind, Inferred)}
        if not observes and not any(issubclass(DeviceMismatch, kind) for kind in asked):
            return ()
        around = self.linter.neighbours(os.path.abspath(self.source.path))
        try:
            found = infer(
                module, self.source, self.linter.load_tree, self.linter.settings.targets, around, observes=observes,
                callers=any(rule.reads_callers for rule in self.linter.rules), session=self.linter.session,
            )  # fmt: skip
        except RecursionError:
            self.add_unreadable(SourceError(_TOO_DEEP, *_deepest(module)))
            return ()
        except Exception as error:  # a fault of the inference must not end the run
            self.crash("the inference", _row_in(error, 1), error)
            return ()
        self.read.update(found.read)
        if around is not None:
            folder = os.path.dirname(os.path.abspath(self.source.path))
            self.result.reached = sorted(os.path.relpath(path, folder) for path in around.reached)
            self.searched = around.search()
        return (*found.mismatches, *found.observed)

    def ask(self, rule: Rule[Any], event: Event, facts: Facts, tree: Tree) -> None:
        try:
            finding = None
            if rule.suspects(event, facts):
                self.result.statistics.suspects += 1
                if self.is_beyond_budget(event):
                    return
                finding = rule.judge(event, EventSite(tree, facts, event))
            if finding is not None:
                shown = facts.holds(event) if isinstance(event, rule.event) else ()
                if shown is not None:
                    finding = replace(finding, because=(*finding.because, *shown)) if shown else finding
                    self.add(rule, finding, self.fix(finding, tree, facts), event)
                elif self.linter.explains:
                    note = self.diagnostic(
                        rule, finding.span, f"{finding.message}: every call that says where hands it host data"
                    )
                    self.left_alone.setdefault((rule.meta.code, finding.span), note)
            elif self.linter.explains:
                self.leave(rule, event, facts)
        except SourceError as error:  # the statement is too deep for libcst
            self.add_unreadable(error)
        except RecursionError:
            self.add_unreadable(SourceError(_TOO_DEEP, *self.source.position(event.span.start)))
        except Exception as error:  # a fault of one rule must not end the run
            self.crashed.add(rule.meta.code)
            self.crash(rule.meta.code, self.source.row(event.span.start), error)

    def is_beyond_budget(self, event: Event) -> bool:
        """Whether so much of a function is suspect that no more of it is judged; `--statistics` shows it.

        What is certain is always judged: it is not asked of the calls.
        """
        function = event.function if event.certainty == "assume" else ""
        self.asked[function] += 1
        self.result.statistics.budget_hits += bool(function) and self.asked[function] == ASKED + 1
        return bool(function) and self.asked[function] > ASKED

    def fix(self, finding: Finding, tree: Tree, facts: Facts) -> TextFix | None:
        if finding.fix is None:
            return None
        from devlint.fix.edits import resolve

        return resolve(finding.fix, tree, facts, self.linter.settings)

    def leave(self, rule: Rule[Any], event: Event, facts: Facts) -> None:
        """Note why a rule is silent about an event on purpose, if it is."""
        left = rule.left_alone(event, facts)
        if left is None:
            return
        line = "" if left.at is None else f" ({self.source.line(left.at.start)})"
        note = self.diagnostic(rule, event.span, left.reason + line)
        self.left_alone.setdefault((rule.meta.code, event.span), note)

    def leave_beside(self, facts: Facts) -> None:
        """Note what rules are silent about on purpose although nothing stands for it among the events."""
        known = {place for _, place in (*self.left_alone, *self.found)}
        for rule in self.linter.rules:
            for place, left in rule.left_alone_beside(facts):
                if place not in known:
                    self.left_alone[(rule.meta.code, place)] = self.diagnostic(rule, place, left.reason)

    def add(self, rule: Rule[Any], finding: Finding, fix: TextFix | None, event: Event) -> None:
        certainty = event.certainty
        related = tuple(related for origin in finding.because for related in self.related(origin))
        diagnostic = self.diagnostic(rule, finding.span, finding.message)
        severity = finding.severity or diagnostic.severity
        if certainty == "assume" and severity is Severity.ERROR:
            severity = Severity.WARNING
        severity = getattr(event, "severity", severity)
        diagnostic = replace(
            diagnostic,
            severity=severity,
            fix=fix,
            related=related,
            certainty=certainty,
            evidence=getattr(event, "evidence", None),
            proof=_proof(event),
            portability=finding.portability or rule.meta.portability,
            decision=finding.decision,
        )
        known = self.found.setdefault((rule.meta.code, finding.span), diagnostic)
        if known.certainty == "assume" and certainty == "certain":
            self.found[(rule.meta.code, finding.span)] = diagnostic  # what needs no assumption says more

    def diagnostic(self, rule: Rule[Any], span: Span, message: str) -> Diagnostic:
        meta, position = rule.meta, self.source.position
        start, end = position(span.start), position(span.end)
        return Diagnostic(self.source.path, meta.code, meta.name, meta.severity, message, span, start, end)

    def add_unreadable(self, error: SourceError) -> None:
        diagnostic = unreadable(self.source.path, error, self.source)
        self.found.setdefault((diagnostic.code, diagnostic.span), diagnostic)

    def related(self, origin: Origin) -> Iterator[Related]:
        """The second place of a finding; none when it is in a file that cannot be read any more."""
        source: Source | None = self.source
        if origin.path is not None and origin.path != self.source.path:
            if origin.path not in self.others:
                try:
                    self.others[origin.path] = read_source(Path(origin.path))
                except SourceError:
                    self.others[origin.path] = None
            source = self.others[origin.path]
        if source is not None and origin.span.end <= len(source.text):
            start, end = source.position(origin.span.start), source.position(origin.span.end)
            yield Related(source.path, start, end, origin.text)

    def finish(self, tree: Tree) -> None:
        """Sort the findings and set apart those that a comment silences."""
        suppressions = Suppressions(self.source)
        self.keep_one_of_each()
        for diagnostic in sorted(self.on_their_ways(tree), key=lambda d: (d.span, d.code)):
            if diagnostic.code != UNREADABLE_FILE.code and suppressions.covers(
                diagnostic.code, diagnostic.name, self.rows(diagnostic, tree)
            ):
                self.result.suppressed.append(diagnostic)
            else:
                self.result.diagnostics.append(diagnostic)
        self.comments(suppressions)

    def on_their_ways(self, tree: Tree) -> Iterator[Diagnostic]:
        """The findings, those about other machines with the way to their statement."""
        known: dict[int, tuple[int, ...]] = {}
        for diagnostic in self.found.values():
            portability = diagnostic.portability
            if portability is None:
                yield diagnostic
                continue
            from devlint.folding import may_be_skipped, ways

            known = known or ways(tree.ast)
            try:
                statement = tree.head(diagnostic.span).owner
            except LookupError:
                yield diagnostic
                continue
            if portability.stops and may_be_skipped(statement, diagnostic.span, self.source.span):
                portability = portability._replace(stops=False)
            yield replace(diagnostic, portability=portability, way=known.get(id(statement), ()))

    def keep_one_of_each(self) -> None:
        """Drop the findings of rules that give way to another one of the same expression."""
        giving = {rule.meta.code: rule.meta.gives_way for rule in self.linter.rules if rule.meta.gives_way}
        for code, span in [key for key in self.found if key[0] in giving]:
            others = [
                of for by, of in self.found if by in giving[code] and of.start <= span.start and span.end <= of.end
            ]
            if any(of.start == span.start or of.end == span.end for of in others):
                del self.found[code, span]
                self.result.gave_way.append((code, span))

    def comments(self, suppressions: Suppressions) -> None:
        """Judge the comments themselves, after all that they silence was found."""
        if not self.linter.on_comments or not names_rules_of_ours(self.source):
            return
        result = self.result
        unread = any(diagnostic.code == UNREADABLE_FILE.code for diagnostic in result.diagnostics)
        complete = not (result.crashes or result.statistics.budget_hits or unread)
        on = {rule.meta.code for rule in self.linter.rules} - self.replaced()  # the other inference may need a comment
        for diagnostic in judge_comments(self.source, suppressions, self.linter.known, on, complete):
            if diagnostic.code not in self.linter.on_comments:
                continue
            silenced = suppressions.covers(diagnostic.code, diagnostic.name, (diagnostic.start.row,))
            (result.suppressed if silenced else result.diagnostics).append(diagnostic)
        result.diagnostics.sort(key=lambda d: (d.span, d.code))

    def rows(self, diagnostic: Diagnostic, tree: Tree) -> set[int]:
        """The first and last rows of the finding and of its statement, where a comment may silence it."""
        rows = {diagnostic.start.row, self.last_row(diagnostic.span)}
        try:
            statement = tree.head(diagnostic.span).span
        except LookupError:
            return rows
        return rows | {self.source.row(statement.start), self.last_row(statement)}

    def add_contexts(self, tree: Tree) -> None:
        """Tell of each finding what stays the same of its place when rows shift."""
        if not (self.result.diagnostics or self.result.suppressed):
            return
        from devlint.identity import context, names_around

        for findings in (self.result.diagnostics, self.result.suppressed):
            for index, diagnostic in enumerate(findings):
                try:
                    statement = tree.head(diagnostic.span).span
                except LookupError:  # it is about the file, or about a comment
                    continue
                names = names_around(tree.ast, diagnostic.start.row)
                found = context(names, self.source.text[slice(*statement)])
                findings[index] = replace(diagnostic, context=found)

    def last_row(self, span: Span) -> int:
        return self.source.row(max(span.start, span.end - 1))

    def crash(self, what: str, row: int, error: Exception) -> None:
        self.result.crashes.append(str(RuleCrash(what, self.source.path, row, error)) + _raised_at(error))


def lines_of(states: Mapping[str, FileState], folder: str) -> list[str]:
    """States of files by absolute path, as lines with the path from a folder where there is a way (none to another drive)."""
    ways: dict[str, str] = {}  # many paths share a directory
    found = []
    for path, state in states.items():
        above, name = os.path.split(path)
        way = ways.get(above)
        if way is None:
            try:
                way = os.path.relpath(above, folder)
            except ValueError:
                way = above
            ways[above] = way
        found.append(state.line(name if way == os.curdir else os.path.join(way, name)))
    return found


def _proof(event: Event) -> Proof | None:
    """Whether an event is proved, or rests on a call that cannot be read."""
    soft = getattr(event, "soft", None)
    return None if soft is None else "soft" if soft else "proved"


def unreadable(path: str, error: SourceError, source: Source | None = None) -> Diagnostic:
    """DEV900 at the place of the error."""
    place = Position(error.row, error.column)
    offset = 0
    if source is not None:
        offset = min(source.starts[min(error.row, len(source.starts)) - 1] + error.column - 1, len(source.text))
    meta = UNREADABLE_FILE
    return Diagnostic(path, meta.code, meta.name, meta.severity, str(error), Span(offset, offset), place, place)


def _unreadable(path: str, error: SourceError) -> FileResult:
    result = FileResult(path, [unreadable(path, error)])
    result.statistics.files = 1
    return result


def _deepest(module: ast.Module) -> tuple[int, int]:
    """Row and column of the statement that holds the most deeply nested node, found without recursion."""
    best, place = 0, (1, 1)
    pending: list[tuple[ast.AST, int, tuple[int, int]]] = [(module, 0, place)]
    while pending:
        node, depth, around = pending.pop()
        if isinstance(node, ast.stmt):
            around = (node.lineno, node.col_offset + 1)
        if depth > best:
            best, place = depth, around
        pending.extend((child, depth + 1, around) for child in ast.iter_child_nodes(node))
    return place


def _row_in(error: BaseException, otherwise: int) -> int:
    """The row of the file that the analysis worked on, where its frames name an `ast` node; else `otherwise`."""
    row = otherwise
    trace = error.__traceback__
    while trace is not None:
        for name in ("node", "statement", "stmt", "call", "expr"):
            row = getattr(trace.tb_frame.f_locals.get(name), "lineno", row)
        trace = trace.tb_next
    return row


def _raised_at(error: BaseException) -> str:
    """Where in devlint or the rule package the error was raised, for the bug report."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f" ({Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name})"


@contextmanager
def _collector_off() -> Iterator[bool]:
    """The garbage collector rests while a file's trees are built; they hold no cycles worth its passes.

    Gives whether it rested before.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield not was_on
    finally:
        if was_on:
            gc.enable()
