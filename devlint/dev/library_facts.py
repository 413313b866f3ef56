"""What a library's own source says of its functions: rows for `devlint/knowledge/libraries`, by the inference.

The source is read and never run. A row is written only where it holds on every path of a function: where its result is, which
parameters are tensors that must be on one device, and whether it reads a tensor on the host. What the inference cannot tell
has no row.
"""

from __future__ import annotations

import ast
import json
import os
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

from devlint.file_state import FileState
from devlint.inference.program.definitions import File, Function
from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.model import Constraint, Summary
from devlint.inference.terms.places import CPU, Alternative
from devlint.knowledge import stubs

#: The kinds of results that need no device, by the name that a row gives them.
_PLAIN = {"number": "number", "bool": "bool", "array": "ndarray", "string": "str", "none": "none"}


class Facts(NamedTuple):
    """One row, without its names."""

    result: str
    device: str | None
    operands: tuple[str, ...]
    exact: bool
    host: bool


def facts_of(name: str, folder: str | None = None) -> dict[str, Facts]:
    """The facts of the public functions of a package, by qualified name.

    `folder`: the folder of the package; None: the installed one. Raises ImportError where there is none.
    """
    root = os.path.abspath(folder) if folder is not None else _installed(name)
    project = Project(_load)
    analyser = Analyser(project)
    found: dict[str, Facts] = {}
    for path in _modules(root):
        file = project.file(path)
        inside = os.path.relpath(path, root)[: -len(".py")].replace(os.sep, ".").removesuffix("__init__").strip(".")
        if file is None or any(part.startswith("_") for part in inside.split(".")):
            continue
        for public, function in _public(project, file, path.endswith("__init__.py")):
            facts = _facts(analyser, function)
            if facts is not None:
                found[".".join(part for part in (name, inside, public) if part)] = facts
    return found


def _installed(name: str) -> str:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {name}")
    return os.path.abspath(next(iter(spec.submodule_search_locations)))


def _load(path: str) -> tuple[FileState, ast.Module | None]:
    with open(path, encoding="utf-8") as file:
        return None, ast.parse(file.read(), path)  # type: ignore[return-value]  # nobody asks for the state


def _modules(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "_")) and each != "tests")
        yield from (os.path.join(folder, each) for each in sorted(files) if each.endswith(".py"))


def _public(project: Project, file: File, is_package: bool) -> Iterator[tuple[str, Function]]:
    """The functions that a module offers: its own ones and, for a package, those that it imports from its modules."""
    for name, function in file.functions.items():
        if not name.startswith("_"):
            yield name, function
    for name, target in file.imports.items() if is_package else ():
        found = project.find(file, target) if not name.startswith("_") else None
        if isinstance(found, Function) and found.owner is None:
            yield name, found


def _facts(analyser: Analyser, function: Function) -> Facts | None:
    """What holds of a function on every path; None where that is nothing."""
    if any(True for _ in function.decorators()):
        return None  # what a decorator gives may be anything
    summary = analyser.summary(function, None)
    if summary is None:
        return None
    tensors = [each for each in function.positional() if _is_tensor(summary, each)]
    device = _device(summary, tensors)
    result = "tensor" if device is not None else _PLAIN.get(summary.result.kind)
    host = any(_reads_host(each, tensors[:1]) for each in summary.constraints)
    if result is None or not (tensors or device):
        return None
    exact = _must_be_together(summary, tensors)
    if result != "tensor" and not host and not exact:
        return None
    operands = tuple(f"{each}*" for each in tensors) if exact else ()
    return Facts(result, device, operands, exact, host)


def _is_tensor(summary: Summary, name: str) -> bool:
    """Whether a parameter is a tensor and nothing else, by its annotation or by how it is used."""
    given = summary.given.get(name)
    return given is not None and given.missing is None and (given.kind == "tensor" or (name,) in summary.site.tensors)


def _device(summary: Summary, tensors: list[str]) -> str | None:
    """Where the tensor that a function returns is; None where it returns none, or that depends."""
    result = summary.result
    if any(each.kind != "tensor" for each, _, _ in summary.frame.returns):
        return None
    if not result.proved or not result.places or any(at.soft for at in result.places):
        return None
    if tensors and all(_is_of(at, tensors[0]) for at in result.places):
        return "first_tensor"
    made = all(at.atom == CPU and at.origin is not None and at.origin.why == "factory" for at in result.places)
    return "default" if made and not tensors else None


def _is_of(at: Alternative, name: str) -> bool:
    return at.atom.tag == "place" and at.atom.key == (name,)


def _reads_host(each: Constraint, first: list[str]) -> bool:
    always = not each.condition and not each.is_likely and not each.caught
    return bool(first) and each.how == "host" and always and any(_is_of(at, first[0]) for at in each.second.places)


def _must_be_together(summary: Summary, tensors: list[str]) -> bool:
    """Whether operations that always run need all tensors on one device, even those without a dimension."""
    groups = {name: {name} for name in tensors}
    for each in summary.constraints:
        if each.mixing != "exact" or each.condition or each.is_likely or each.how == "host":
            continue
        first, second = (_only(operand.places, tensors) for operand in (each.first, each.second))
        if first is not None and second is not None:
            joined = groups[first] | groups[second]
            groups.update(dict.fromkeys(joined, joined))
    return len(tensors) > 1 and len(groups[tensors[0]]) == len(tensors)


def _only(places: tuple[Alternative, ...], tensors: list[str]) -> str | None:
    """The parameter that a value is always with."""
    names = {at.atom.key[0] for at in places if at.atom.tag == "place" and len(at.atom.key) == 1 and not at.condition}
    return next(iter(names)) if len(names) == 1 == len(places) and names <= set(tensors) else None


def rows(found: dict[str, Facts], name: str, version: str) -> str:
    """The rows as TOML: one for all names with equal facts. Names that a person described are left out."""
    grouped: dict[Facts, list[str]] = {}
    for qualified, facts in found.items():
        if not stubs.written(qualified):
            grouped.setdefault(facts, []).append(qualified.removeprefix(name + "."))
    lines = [f"# Written by `python -m devlint.dev.stubs generate {name}` from the source of {name} {version}.", ""]
    for facts, names in grouped.items():
        lines += ["[[functions]]", f'source = "{name} {version}: its source, read by the inference"', 'names = """']
        lines += [*textwrap.wrap(" ".join(names), 120), '"""', f'result = "{facts.result}"']
        lines += [f'device = "{facts.device}"'] if facts.device is not None else []
        lines += [f"operands = {json.dumps(list(facts.operands))}"] if facts.operands else []
        lines += ['mixing = "exact"'] if facts.exact else []
        lines += ["host = true"] if facts.host else []
        lines.append("")
    return "\n".join(lines)


__all__ = ["Facts", "facts_of", "rows"]
