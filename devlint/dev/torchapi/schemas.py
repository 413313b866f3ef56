"""Operator schemas of a wheel: `torchgen/packaged/ATen/native/native_functions.yaml`, read line by line.

The file is regular enough for that, and reading it so takes 20 ms instead of seconds. What is kept per overload: its
arguments, its returns, its tags, and the class of its device check, which decides what may be mixed on CUDA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

YAML = "torchgen/packaged/ATen/native/native_functions.yaml"
_FUNC = re.compile(r"- func: ([\w.]+)\((.*?)\) -> (.*)", re.S)
_DISPATCH = re.compile(r"\n  dispatch:\n((?:    .*\n?|\s*#.*\n?)+)")
_ARGUMENT = re.compile(r",(?![^(\[]*[)\]])")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: `type` without its alias annotation (`Tensor`, `Tensor?`, `Tensor[]`, `int[]?`), `written` if
    mutated.
    """

    name: str
    type: str
    keyword_only: bool
    default: str | None
    written: bool

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensors(self) -> bool:
        return self.type.startswith(("Tensor[", "Tensor?["))


@dataclass(frozen=True, slots=True)
class Schema:
    """One overload. `check` is E exact, T TensorIterator, C composite explicit, I composite implicit, N none."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    tags: frozenset[str]
    variants: frozenset[str]
    python_module: str
    check: str

    @property
    def is_out(self) -> bool:
        return any(a.keyword_only and a.written for a in self.arguments)

    @property
    def tensor_inputs(self) -> int:
        """How many places take tensors; a list of tensors counts twice, since it mixes within itself."""
        return sum(
            1 if a.is_tensor else 2 for a in self.arguments if (a.is_tensor or a.is_tensors) and not a.keyword_only
        )


def _arguments(text: str) -> tuple[Argument, ...]:
    found: list[Argument] = []
    keyword_only = False
    for part in _ARGUMENT.split(text):
        part = part.strip()
        if part == "*":
            keyword_only = True
            continue
        if not part:
            continue
        declared, _, default = part.partition("=")
        kind, _, name = declared.strip().rpartition(" ")
        alias = re.search(r"\(([^)]*)\)", kind)
        plain = re.sub(r"\([^)]*\)", "", kind)
        found.append(
            Argument(name, plain, keyword_only, default.strip() or None, bool(alias and "!" in alias.group(1)))
        )
    return tuple(found)


def _returns(text: str) -> tuple[str, ...]:
    text = text.strip()
    plain = re.sub(r"\([a-z!|> *-]*\)", "", text) if not text.startswith("(") else text
    if plain.startswith("("):
        inner = re.sub(r"\([a-z!]+\)", "", plain[1:-1])
        return tuple(p.strip().split(" ")[0] for p in inner.split(",") if p.strip())
    return (plain.split(" ")[0],)


def _line(block: str, key: str) -> str:
    found = re.search(rf"\n  {key}: (.*)", block)
    return found.group(1) if found else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(w.strip() for w in text.split("#")[0].strip(" []").split(",") if w.strip())


def read(root: Path) -> dict[str, tuple[Schema, ...]]:
    """Schemas by operator name, `out=` overloads included, in the file's order. Raises OSError when the file is
    missing.
    """
    text = (root / YAML).read_text(encoding="utf-8")
    raw = []
    for block in re.split(r"\n(?=- func: )", text):
        found = _FUNC.match(block.split("\n", 1)[0])
        if found is None:
            continue
        full, arguments, returns = found.groups()
        keys: set[str] = set()
        dispatch = _DISPATCH.search(block + "\n")
        if dispatch:
            for line in dispatch.group(1).splitlines():
                line = line.split("#")[0]
                if ":" in line:
                    keys |= {k.strip() for k in line.split(":")[0].split(",")}
        if "\n  ufunc_inner_loop:" in block:
            keys |= {"CPU", "CUDA"}
        check = _line(block, "device_check")
        raw.append(
            (full, arguments, returns, keys, _line(block, "structured_delegate").split("#")[0].strip(), check, block)
        )
    keys_of = {full: keys for full, _, _, keys, _, _, _ in raw}
    result: dict[str, list[Schema]] = {}
    for full, arguments, returns, keys, delegate, check, block in raw:
        name, _, overload = full.partition(".")
        cuda = "CUDA" in keys or (bool(delegate) and "CUDA" in keys_of.get(delegate, set()))
        if cuda:
            rule = "E" if "NoCheck" not in check else "T" if "TensorIterator" in check else "N"
        elif keys & {"CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"}:
            rule = "C"
        else:
            rule = "I"
        schema = Schema(
            name,
            overload,
            _arguments(arguments),
            _returns(returns),
            _words(_line(block, "tags")),
            _words(_line(block, "variants")) or frozenset({"function"}),
            _line(block, "python_module").split("#")[0].strip(),
            rule,
        )
        result.setdefault(name, []).append(schema)
    return {name: tuple(found) for name, found in result.items()}
