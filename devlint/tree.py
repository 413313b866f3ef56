"""The one module that joins the two trees: spans of the `ast` on one side, libcst nodes on the other.

libcst never sees a whole file. It parses the smallest statement around a place: a simple statement as it stands, or the
header of a compound one with `pass` as its body. Such a chunk is cut from the file in segments, so that every offset in
it maps back to the file; libcst's own spans on the chunk say where each node stands.

libcst 1.9 ends the process on nesting that `ast` merely refuses, and generates code by recursion. So the depth of a
statement is measured first, iteratively, and beyond `DEPTH_LIMIT` the statement is refused with a SourceError. The
native parser fails above 1,200 nested brackets on a stack of 8 MiB and above 144 on 1 MiB; code generation takes four
Python frames for one nested call and fails at 240 of them under the default recursion limit.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, cast

from devlint.errors import SourceError
from devlint.model import Span
from devlint.source import Source

if TYPE_CHECKING:
    import libcst as cst

DEPTH_LIMIT = 120
STRINGS_LIMIT = 300  # strings side by side: two Python frames each, and the native parser takes 1,200 on 1 MiB

_KEPT = 200  # parsed statements that are kept: a file may have thousands of suspects
_TO_COLON = re.compile(r"(?:[^:#]|#[^\r\n]*)*:")
_BRACKET = re.compile(r"[()\[\]{}]")
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")  # in the order of the text


class Segment(NamedTuple):
    """`length` code points of the chunk from `chunk` on are those of the file from `file` on."""

    chunk: int
    file: int
    length: int


@dataclass(frozen=True, slots=True)
class Head:
    """A simple statement, or the header of a compound statement, handler or case; `span` is its text in the file.

    `owner` is the `ast` node, `block` the statements it stands among. `blocks` are those below a compound statement,
    which ends at `end`.
    """

    owner: ast.stmt | ast.ExceptHandler | ast.match_case
    span: Span
    block: Sequence[ast.AST]
    blocks: tuple[Sequence[ast.AST], ...]
    end: int

    @property
    def is_compound(self) -> bool:
        """Whether `span` is a header with a block below."""
        return bool(self.blocks)


@dataclass(slots=True)
class Chunk:
    """A head as libcst sees it. `statement` is its node; `spans` holds each node's range in the file, without its own
    parentheses; `by_span` the node that a range means."""

    head: Head
    text: str  # the code of `module`
    segments: tuple[Segment, ...]
    module: cst.Module
    statement: cst.CSTNode
    spans: dict[cst.CSTNode, Span]
    by_span: dict[Span, cst.CSTNode]

    def to_file(self, start: int, end: int) -> Span | None:
        """The range of the file for one of the chunk; None for what was added to make the chunk parse."""
        return _chunk_to_file(self.segments)(start, end)


class Tree:
    """The syntax of one file, by span. Statements are parsed by libcst when they are first asked for, once each."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.ast = tree
        self.lines_parsed = 0
        self._newline = "\r\n" if "\r\n" in source.text else "\n"
        self._heads: list[Head] | None = None
        self._head_starts: list[int] = []
        self._chunks: dict[int, Chunk] = {}
        self._homes: dict[cst.CSTNode, Chunk] = {}

    def forget(self) -> None:
        """Drop parsed statements when there are many. Nodes given out before are no nodes of this tree afterwards."""
        if len(self._chunks) > _KEPT:
            self._chunks.clear()
            self._homes.clear()

    def at(self, span: Span) -> cst.CSTNode:
        """The CST node with this span: an expression where one has it, else the innermost node of another kind.

        A compound statement is found by the span that `ast` gives it. Raises LookupError when no node has the span (the
        tuple of `x[a, b]` is none in libcst), and SourceError for a statement that libcst cannot take.
        """
        chunk = self.chunk(span)
        node = chunk.by_span.get(span)
        if node is None:
            row, column = self.source.position(span.start)
            raise LookupError(f"no CST node has the span of {self.source.text[slice(*span)]!r} at {row}:{column}")
        return node

    def statement_at(self, span: Span) -> cst.CSTNode:
        """The small statement, or the compound statement (handler, case) by its header, that covers `span`."""
        return self.chunk(span).statement

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node that this tree gave out stands, without its parentheses. Raises LookupError for other nodes."""
        return self.home(node).spans[node]

    def home(self, node: cst.CSTNode) -> Chunk:
        """The chunk that a node came from. Raises LookupError for nodes that did not come from this tree."""
        try:
            return self._homes[node]
        except KeyError:
            raise LookupError(f"{type(node).__name__} is not a node of {self.source.path}") from None

    def code(self, node: cst.CSTNode) -> str:
        """The text of any node, found or built, with the line ending of its file."""
        import libcst as cst

        home = self._homes.get(node)
        if home is not None:
            return home.module.code_for_node(node)
        return cst.Module(body=[], default_newline=self._newline).code_for_node(node)

    def has_comment(self, node: cst.CSTNode) -> bool:
        """Whether a comment stands inside the text of a node, its parentheses and the whitespace it owns included."""
        import libcst as cst

        if "#" not in self.code(node):
            return False
        pending = [node]
        while pending:
            current = pending.pop()
            if isinstance(current, cst.Comment):
                return True
            pending.extend(current.children)
        return False

    def chunk(self, span: Span) -> Chunk:
        """The parsed statement around `span`. Raises LookupError outside statements, SourceError where libcst fails."""
        head = self.head(span)
        chunk = self._chunks.get(id(head.owner))
        if chunk is None:
            chunk = self._parse(head)
            self._chunks[id(head.owner)] = chunk
            self._homes.update(dict.fromkeys(chunk.spans, chunk))
        return chunk

    def head(self, span: Span) -> Head:
        """The innermost statement that covers the start of `span`, as a whole or by its header. Raises LookupError."""
        if self._heads is None:
            self._heads = self._all_heads()
            self._head_starts = [head.span.start for head in self._heads]
        index = bisect_right(self._head_starts, span.start) - 1
        if index >= 0:
            head = self._heads[index]
            if head.blocks and head.span.end < 0:
                head = self._heads[index] = replace(head, span=Span(head.span.start, self._colon(head.owner)))
            if span.end <= head.end and (not head.blocks or span.start < head.span.end):
                return head
        row, column = self.source.position(span.start)
        raise LookupError(f"no statement at {row}:{column}")

    def _all_heads(self) -> list[Head]:
        """All statements, handlers and cases in the order of the text; where a header ends is left open (-1)."""
        heads: list[Head] = []
        pending: list[tuple[ast.AST, Sequence[ast.AST]]] = [(node, self.ast.body) for node in reversed(self.ast.body)]
        while pending:
            node, block = pending.pop()
            owner = cast("ast.stmt | ast.ExceptHandler | ast.match_case", node)
            blocks = tuple(getattr(owner, name) for name in _BLOCKS if getattr(owner, name, ()))
            last = owner.body[-1] if isinstance(owner, ast.match_case) else owner
            end = self.source.span(last).end
            heads.append(Head(owner, Span(self.start(owner), -1 if blocks else end), block, blocks, end))
            for below in reversed(blocks):
                pending.extend((inner, below) for inner in reversed(below))
        return heads

    def start(self, owner: ast.AST) -> int:
        """Where a statement starts, decorators and the words `case` and `@` included."""
        text = self.source.text
        if isinstance(owner, ast.match_case):
            start = self.source.span(owner.pattern).start
            return text.rfind("case", 0, start)
        decorators: list[ast.expr] = getattr(owner, "decorator_list", [])
        if decorators:
            return text.rfind("@", 0, self.source.span(decorators[0]).start)
        return self.source.span(owner).start

    def _colon(self, owner: ast.AST) -> int:
        """The offset after the colon that ends a header."""
        text = self.source.text
        from_ = self.start(owner)
        if getattr(owner, "decorator_list", None):
            from_ = self.source.span(owner).start
        for child in _header_children(owner):
            from_ = max(from_, self.source.span(child).end)
        match = _TO_COLON.match(text, from_)
        if match is None:
            raise LookupError(f"no colon after {text[from_ : from_ + 40]!r}")
        return match.end()

    def _parse(self, head: Head) -> Chunk:
        import libcst as cst
        from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

        source = self.source
        place_of_head = source.position(head.span.start)
        if _is_too_deep(head, source.text[slice(*head.span)]):
            raise SourceError("statement is nested too deeply, or too long a chain, to be analysed", *place_of_head)
        text, segments, unwrap = self._cut(head)
        try:
            module = cst.parse_module(text)
            if "\n" not in text and "\r" not in text:  # line endings that an edit adds are the file's
                module = module.with_changes(default_newline=self._newline)
        except cst.ParserSyntaxError as error:
            raise SourceError(f"libcst cannot parse this statement: {error.message}", *place_of_head) from error
        if module.code != text:
            raise SourceError("libcst does not reproduce this statement", *place_of_head)
        self.lines_parsed += source.row(max(head.span.start, head.span.end - 1)) - source.row(head.span.start) + 1
        found = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
        to_chars = _bytes_to_chars(text)
        to_file = _chunk_to_file(segments)
        spans: dict[cst.CSTNode, Span] = {}
        by_span: dict[Span, cst.CSTNode] = {}
        ranks: dict[type[cst.CSTNode], int] = {}  # asking each node for its bases takes longer than placing it
        for node, place in found.items():
            span = to_file(to_chars(place.start), to_chars(place.start + place.length))
            if span is None:
                continue
            spans[node] = span
            known = by_span.get(span)
            for kind in (type(node),) if known is None else (type(node), type(known)):
                if kind not in ranks:
                    ranks[kind] = _rank(kind)
            if known is None or ranks[type(node)] > ranks[type(known)]:
                by_span[span] = node
        for node, (start, end) in spans.items():
            if type(node) is not cst.Tuple and type(node) is not cst.GeneratorExp:
                continue
            if node.lpar:  # `ast` counts the parentheses of these two as theirs
                by_span[Span(spans[node.lpar[-1]].start, spans[node.rpar[0]].end)] = node
            elif type(node) is cst.GeneratorExp:  # the only argument of a call: the parentheses are the call's
                by_span[Span(source.text.rfind("(", 0, start), source.text.find(")", end) + 1)] = node
        statement = unwrap(module)
        if head.is_compound:
            whole = head.span if isinstance(head.owner, ast.match_case) else source.span(head.owner)
            spans[statement] = whole
            by_span[whole] = statement
        return Chunk(head, text, segments, module, statement, spans, by_span)

    def _cut(self, head: Head) -> tuple[str, tuple[Segment, ...], _Unwrap]:
        """The text that libcst gets for a head, where it comes from, and how to find the statement in the result."""
        text, owner, (start, end) = self.source.text, head.owner, head.span
        if not head.is_compound:
            return text[start:end], (Segment(0, start, end - start),), _small_statement
        if isinstance(owner, ast.match_case):
            before = f"match _:{self._newline} "
            return before + text[start:end] + " pass", (Segment(len(before), start, end - start),), _case
        if isinstance(owner, ast.ExceptHandler):
            before = f"try: pass{self._newline}"
            return before + text[start:end] + " pass", (Segment(len(before), start, end - start),), _handler
        if isinstance(owner, ast.Match):
            return text[start:end] + f"{self._newline} case _: pass", (Segment(0, start, end - start),), _compound
        if isinstance(owner, ast.Try) or type(owner).__name__ == "TryStar":
            return text[start:end] + f" pass{self._newline}finally: pass", (Segment(0, start, end - start),), _compound
        if isinstance(owner, ast.If) and text.startswith("elif", start):
            return text[start + 2 : end] + " pass", (Segment(0, start + 2, end - start - 2),), _compound
        pieces: list[str] = []
        segments: list[Segment] = []
        length = 0
        for decorator in getattr(owner, "decorator_list", []):
            at = self.source.span(decorator)
            sign = text.rfind("@", 0, at.start)
            stop = _end_of_decorator(text, sign, at.end)
            pieces.append(text[sign:stop] + self._newline)
            segments.append(Segment(length, sign, stop - sign))
            length += len(pieces[-1])
        first = self.source.span(owner).start
        pieces.append(text[first:end] + " pass")
        segments.append(Segment(length, first, end - first))
        return "".join(pieces), tuple(segments), _compound


_Unwrap = Callable[["cst.Module"], "cst.CSTNode"]


def _compound(module: cst.Module) -> cst.CSTNode:
    return module.body[0]


def _small_statement(module: cst.Module) -> cst.CSTNode:
    return cast("cst.SimpleStatementLine", module.body[0]).body[0]


def _handler(module: cst.Module) -> cst.CSTNode:
    return cast("cst.Try | cst.TryStar", module.body[0]).handlers[0]


def _case(module: cst.Module) -> cst.CSTNode:
    return cast("cst.Match", module.body[0]).cases[0]


def _rank(kind: type[cst.CSTNode]) -> int:
    """Which of several nodes with one span is meant: expressions before statements and arguments before whitespace."""
    import libcst as cst

    if issubclass(kind, cst.BaseExpression):
        return 2
    return 0 if issubclass(kind, cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace | cst.Newline) else 1


def _is_too_deep(head: Head, text: str) -> bool:
    """Whether libcst could fail on the depth of a statement or header; found without recursion."""
    roots: list[ast.AST] = [head.owner]
    if head.is_compound:
        roots = [*_header_children(head.owner), *getattr(head.owner, "decorator_list", [])]
    depth = max((_depth(root) for root in roots), default=0)
    if depth > DEPTH_LIMIT or depth + _bracket_depth(text) > DEPTH_LIMIT:
        return True
    return _adjacent_strings(text) > STRINGS_LIMIT


def _header_children(owner: ast.AST) -> list[ast.AST]:
    """The nodes with a place in the header of a compound statement; decorators are left out."""
    skipped = {*_BLOCKS, "decorator_list"}
    pending = [child for name, child in ast.iter_fields(owner) if name not in skipped]
    found: list[ast.AST] = []
    while pending:
        child = pending.pop()
        if isinstance(child, list):
            pending.extend(child)
        elif isinstance(child, ast.arguments | ast.withitem):  # without a place of their own
            pending.extend(value for _, value in ast.iter_fields(child))
        elif isinstance(child, ast.AST) and hasattr(child, "lineno"):
            found.append(child)
    return found


def _depth(root: ast.AST) -> int:
    """How deep libcst nests the nodes of `root`; each operand of `and` and `or` is a level of its own there."""
    deepest = 0
    pending: list[tuple[ast.AST, int]] = [(root, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        below = depth + (len(node.values) if isinstance(node, ast.BoolOp) else 1)
        pending.extend((child, below) for child in ast.iter_child_nodes(node))
    return deepest


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return


def _deepest(brackets: Iterator[str]) -> int:
    depth = deepest = 0
    for bracket in brackets:
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


def _bracket_depth(text: str) -> int:
    """How deep brackets nest, those of f-strings included. Strings are told apart only where it could matter."""
    rough = _deepest(_brackets(text))
    if rough <= DEPTH_LIMIT // 2:
        return rough
    return _deepest(_brackets_outside_strings(text))


def _brackets(text: str) -> Iterator[str]:
    return (match.group() for match in _BRACKET.finditer(text))


def _brackets_outside_strings(text: str) -> Iterator[str]:
    for token in _tokens(text):
        if token.type == tokenize.OP and token.string in "()[]{}":
            yield token.string
        elif token.type == tokenize.STRING and "f" in token.string[:2].lower():  # one token before Python 3.12
            yield from _brackets(token.string)


def _adjacent_strings(text: str) -> int:
    """The most strings that stand side by side and are joined; libcst nests each in the one before."""
    if text.count('"') + text.count("'") <= 2 * STRINGS_LIMIT:
        return 0
    most = run = 0
    open_ = 0
    starts = getattr(tokenize, "FSTRING_START", None), getattr(tokenize, "TSTRING_START", None)
    ends = getattr(tokenize, "FSTRING_END", None), getattr(tokenize, "TSTRING_END", None)
    for token in _tokens(text):
        if token.type in starts:
            open_ += 1
        elif token.type in ends:
            open_ -= 1
            run += open_ == 0
        elif open_ or token.type in (tokenize.NL, tokenize.COMMENT):
            continue
        elif token.type == tokenize.STRING:
            run += 1
        else:
            run = 0
        most = max(most, run)
    return most


def _end_of_decorator(text: str, sign: int, end: int) -> int:
    """The end of a decorator, closing parentheses included; its `@` is at `sign`, its expression ends at `end`."""
    for _ in range(text.count("(", sign, end) - text.count(")", sign, end)):
        end = text.index(")", end) + 1
    return end


def _bytes_to_chars(text: str) -> Callable[[int], int]:
    if text.isascii():
        return lambda offset: offset
    raw = text.encode("utf-8")
    return lambda offset: len(raw[:offset].decode("utf-8"))


def _chunk_to_file(segments: Sequence[Segment]) -> Callable[[int, int], Span | None]:
    """From a range of the chunk to one of the file; None for what was added to make the chunk parse."""
    chunk_starts = [segment.chunk for segment in segments]

    def place(offset: int, index: int) -> int | None:
        if index < 0:
            return None
        segment = segments[index]
        inside = offset - segment.chunk
        return segment.file + inside if inside <= segment.length else None

    def convert(start: int, end: int) -> Span | None:
        first = bisect_right(chunk_starts, start) - 1
        last = bisect_right(chunk_starts, end - 1) - 1 if end > start else first
        here, there = place(start, first), place(end, last)
        return None if here is None or there is None else Span(here, there)

    return convert
