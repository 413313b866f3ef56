"""The contract of a rule: metadata, the event it subscribes to, one cheap question and one judgement."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from devlint.errors import RuleLoadError
from devlint.facts.events import Event
from devlint.inference.events import DeviceMismatch
from devlint.inference.observed.events import Inferred
from devlint.model import Finding, LeftAlone, RuleMeta, Span

if TYPE_CHECKING:
    import libcst as cst

    from devlint.facts import Facts

E = TypeVar("E", bound=Event)

_CODE = re.compile(r"[A-Z]{1,3}[0-9]{3}\Z")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")


class Site(Protocol):
    """The syntax around an event, parsed by libcst when it is first touched. Only statements that are asked for are parsed."""

    @property
    def facts(self) -> Facts: ...

    @property
    def node(self) -> cst.CSTNode:
        """The CST node whose text is the event's span."""

    @property
    def statement(self) -> cst.CSTNode:
        """The small statement (`cst.Assign`, ...) that holds the event, or the compound one whose header does."""

    def at(self, span: Span) -> cst.CSTNode:
        """The CST node with this span, anywhere in the file. Raises LookupError when no node has it."""

    def statement_at(self, span: Span) -> cst.CSTNode:
        """The small statement, or compound statement by its header, that covers `span`."""

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node that this site gave out stands in the file."""

    def line(self, span: Span) -> str:
        """How a message calls the line that a span starts on: `line 12`, in a notebook `line 3 of cell 2`."""

    def code(self, node: cst.CSTNode) -> str:
        """The text of any CST node, found or built."""

    def has_comment(self, node: cst.CSTNode) -> bool:
        """Whether a comment stands inside the text of `node`."""

    def expression(self, code: str) -> cst.BaseExpression:
        """Parse an expression to build an edit from."""

    def spell(self, qualname: str) -> str:
        """How this file writes `torch.device` and the like: through its own import alias, else by the full name."""


class Rule(ABC, Generic[E]):
    """A stateless judgement about one type of event.

    Subclasses set `meta` and `event`; the docstring of their module is the documentation. With `reads_callers`, inferred
    events also say what calls in other files of the project hand over.
    """

    meta: ClassVar[RuleMeta]
    event: ClassVar[type[Event]]
    also: ClassVar[tuple[type[Event], ...]] = ()  # other types of events that it judges
    reads_callers: ClassVar[bool] = False  # whether calls in other files say what arguments are; that takes time

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("abstract", False):
            return
        meta, event = getattr(cls, "meta", None), getattr(cls, "event", None)
        if not isinstance(meta, RuleMeta):
            raise RuleLoadError(f"{cls.__module__}.{cls.__qualname__}: `meta` must be a RuleMeta")
        if not (isinstance(event, type) and issubclass(event, Event)):
            raise RuleLoadError(f"{cls.__module__}.{cls.__qualname__}: `event` must be a type of event")
        if not _CODE.match(meta.code) or not _NAME.match(meta.name) or not meta.summary:
            raise RuleLoadError(f"{cls.__module__}.{cls.__qualname__}: bad code, name or summary in {meta}")
        if all(issubclass(kind, (Inferred, DeviceMismatch)) for kind in (event, *cls.also)):
            cls.meta = replace(meta, needs_inference=True)

    @abstractmethod
    def suspects(self, event: E, facts: Facts) -> bool:
        """The cheap question: may this event be a finding? Pure; no libcst, no I/O."""

    @abstractmethod
    def judge(self, event: E, site: Site) -> Finding | None:
        """The judgement, on CST nodes, with the fix. None: no finding after all."""

    def left_alone(self, event: E, facts: Facts) -> LeftAlone | None:
        """Why an event that would be a finding is none on purpose: the code means what it says. Pure, no libcst.

        Asked under `--verbose` alone, about events that came to no finding. None: there was nothing to find.
        """
        return None

    def left_alone_beside(self, facts: Facts) -> Iterator[tuple[Span, LeftAlone]]:
        """What a reader may expect a finding of although no event stands for it, with the reason. Asked as `left_alone` is."""
        return iter(())
