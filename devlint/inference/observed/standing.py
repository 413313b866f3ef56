"""Where things stand when a function runs: what its object keeps after the constructor, and what its calls hand over.

A run knows what it is given by an access path alone. The object of a method is the one that `witness/roots.py` judges the
method on. A call is asked for its values as they were when it was made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from devlint.inference.observed.collect import Observer, Sight
from devlint.inference.observed.handed import CALLS
from devlint.inference.program.definitions import File, binding_of
from devlint.inference.summary import stories
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.instantiate import Instance
from devlint.inference.terms.conditions import compatible
from devlint.inference.terms.places import Alternative, Path, Places
from devlint.inference.terms.values import Value
from devlint.inference.witness.roots import before_any_move, moved_from_outside

#: A call on the way: the run in which it stands, and its node.
Call = tuple[Frame, ast.AST]


class Standing:
    """Answers for the runs of one file."""

    def __init__(self, analyser: Analyser, observer: Observer, file: File) -> None:
        self.analyser = analyser
        self.observer = observer
        self.file = file
        self._objects: dict[Frame, Instance | None] = {}
        self._moved: tuple[int, frozenset[str]] = (0, frozenset())  # of so many files

    # -- the object of a method

    def on_object(self, frame: Frame, sight: Sight) -> Sight:
        """A sight with the places that the object of the method tells."""
        if not any(_is_field(each) for each in sight.places):
            return sight
        instance = self._object_of(frame)
        if instance is None or instance.condition(sight.condition) is None:
            return sight
        moved = self._moved_fields()
        found: list[Alternative] = []
        for each in sight.places:
            told = instance.places((each,)) if _is_field(each) and each.atom.key[-1] not in moved else ()
            found += told if told and all(_is_told(other) for other in told) else (each,)
        return sight._replace(places=tuple(found))

    def _moved_fields(self) -> frozenset[str]:
        """The fields that some file moves on an object that is not its own. Asked again once more files are read."""
        files = self.analyser.project.files
        if self._moved[0] != len(files):
            found = [moved_from_outside(each) for each in files.values() if each is not None]
            self._moved = len(files), frozenset[str]().union(*found)
        return self._moved[1]

    def _object_of(self, frame: Frame) -> Instance | None:
        if frame not in self._objects:
            self._objects[frame] = self._make_object(frame)
        return self._objects[frame]

    def _make_object(self, frame: Frame) -> Instance | None:
        function = frame.function
        if function is None or function.owner is None or binding_of(function) in ("static", "class"):
            return None
        class_ = frame.receiver or function.owner
        if function.name == "__init__" or function.name in before_any_move(class_):
            return None  # its object is not complete
        settled, summary = stories.settled(self.analyser, class_), self.analyser.summary(function, class_)
        if settled is None or summary is None:
            return None
        there = replace(settled.story.frame, state=settled.before(function), condition=frozenset())
        return Instance(there, summary, {"self": settled.story.me}, function.node)

    # -- what calls hand over

    def by_calls(self, frame: Frame, sight: Sight, depth: int) -> Iterator[tuple[Sight, tuple[Call, ...]]]:
        """What a value is at each call that says where it is, with the calls that lead to it, innermost first."""
        root = _root(sight.places)
        if root is None or depth == 0:
            return
        for instance, name in self._handing(frame, root):
            yield from self.at_call(instance, sight, depth, (root, name))

    def at_call(
        self, instance: Instance, sight: Sight, depth: int, renamed: tuple[str, str] | None = None
    ) -> Iterator[tuple[Sight, tuple[Call, ...]]]:
        """What a value is at one call, where that or the calls of the caller say where it is."""
        then = self.observer.then(instance)
        if then.condition(sight.condition) is None:
            return
        root, name = renamed or ("", "")
        places = then.places(_renamed(sight.places, root, name))
        if ":" in root and places != instance.places(_renamed(sight.places, root, name)):
            return  # what the object keeps was moved after it was handed over
        there = self.on_object(instance.frame, sight._replace(places=places, condition=frozenset()))
        step = (instance.frame, instance.node)
        if there.places and all(_is_told(each) for each in there.places):
            yield there._replace(condition=sight.condition), (step,)
            return
        for each, calls in self.by_calls(instance.frame, there, depth - 1):
            yield each._replace(condition=sight.condition), (step, *calls)

    def _handing(self, frame: Frame, root: str) -> Iterator[tuple[Instance, str]]:
        """The calls that hand over what a root stands for, and the name that it has there."""
        if ":" in root and not root.startswith("@"):
            yield from self.observer.holding(root)
            return
        function = frame.function
        if function is None or root not in {each.arg for each in function.all_parameters()}:
            return
        made = [each for each in self.observer.real_calls(function) if _is_of_run(each, frame)]
        yield from ((each, root) for each in made[:CALLS])


def _is_of_run(instance: Instance, frame: Frame) -> bool:
    """Whether a call leads to this run of a function: with the same kind of object and of arguments."""
    summary = instance.summary
    return summary.frame is frame or (summary.site.receiver is frame.receiver and _same_given(summary.given, frame))


def _same_given(given: Mapping[str, Value], frame: Frame) -> bool:
    return all(given.get(name) == value for name, value in frame.given.items())


def _is_field(each: Alternative) -> bool:
    return each.atom.tag in ("place", "names") and len(each.atom.key) > 1 and each.atom.key[0] == "self"


def _is_told(each: Alternative) -> bool:
    return each.atom.tag == "at"


def _root(places: Places) -> str | None:
    """The one name under which all that is open was given."""
    roots = {each.atom.key[0] for each in places if each.atom.tag in ("place", "names")}
    return roots.pop() if len(roots) == 1 else None


def _renamed(places: Places, root: str, name: str) -> Places:
    """Places under the name that their root has in the function that it was given to."""
    if root == name:
        return places

    def under(path: Path) -> Path:
        return (name, *path[1:]) if path and path[0] == root else path

    return tuple(
        each._replace(atom=each.atom._replace(key=under(each.atom.key)))
        if each.atom.tag in ("place", "names")
        else each
        for each in places
    )


def possible(sight: Sight) -> Places:
    """The places that the conditions around a point allow."""
    return tuple(each for each in sight.places if compatible(each.condition, sight.condition)) or sight.places
