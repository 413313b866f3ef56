"""What the facts claim is what happens: every probe file runs, and each claimed device is compared with the real one.

A file's functions and methods are called with arguments made from their annotations, tensors and modules on the
accelerator where there is one; names without an annotation stand for tensors, `device` and `helper` for what they say.
`reveal_device` records where its argument is. A claim holds when every device that a probe saw is one of those claimed;
a symbol stands for one device as long as one call lasts.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.values import Device, Place, Symbol, Value
from devlint.settings import Settings
from devlint.source import Source, decode, parse
from devlint.testing import case_files
from devlint.testing.markers import read_fixture
from devlint.testing.probes import PROBE, reveal

pytestmark = pytest.mark.runtime

FIXTURES = Path(__file__).parents[2] / "fixtures" / "facts"
CASES = case_files(FIXTURES)

#: Functions that end with an error, for want of better arguments or on purpose; later probes are not reached.
STOPS_EARLY = {"branches.branches", "factories.make", "results.results"}
#: Files with probes that no call reaches: loops over an empty loader.
UNREACHED = {"loaders", *(name.partition(".")[0] for name in STOPS_EARLY)}


@dataclass
class Seen:
    """What one probe saw: devices by call, and whether each tensor was 0-dim."""

    devices: list[tuple[int, frozenset[str]]] = field(default_factory=list)
    zero_dim: set[bool] = field(default_factory=set)


class Run:
    """One execution of a probe file."""

    def __init__(self, source: Source, accelerator: str) -> None:
        self.source = source
        self.accelerator = accelerator
        self.seen: dict[int, Seen] = {}
        self.calls = 0
        self.stopped: dict[str, BaseException] = {}

    def execute(self) -> None:
        """Run the module, then each function and method that it defines."""
        namespace: dict[str, Any] = {"__name__": "probed", "__file__": self.source.path}
        before = getattr(builtins, PROBE, None)
        setattr(builtins, PROBE, self.probe)
        try:
            exec(compile(self.source.text, self.source.path, "exec", dont_inherit=True), namespace)
            for node in ast.parse(self.source.text).body:
                if isinstance(node, ast.FunctionDef):
                    self.call(namespace[node.name], node.name)
                elif isinstance(node, ast.ClassDef):
                    self.call_methods(namespace[node.name])
        finally:
            if before is None:
                delattr(builtins, PROBE)
            else:
                setattr(builtins, PROBE, before)

    def call(self, function: Callable[..., Any], name: str) -> None:
        """Call a function with every combination of its flags."""
        import torch

        parameters = list(inspect.signature(function).parameters.values())
        for arguments in product(*(list(self.arguments(p)) for p in parameters)):
            self.calls += 1
            try:
                function(*arguments)
            except Exception as error:
                self.stopped[name] = error
            finally:
                torch.set_default_device(None)

    def call_methods(self, class_: type) -> None:
        """Make an instance, put a module on the accelerator, and call the methods that the class itself defines."""
        import torch

        parameters = list(inspect.signature(class_).parameters.values())
        instance = class_(*(next(self.arguments(p)) for p in parameters))
        if isinstance(instance, torch.nn.Module):
            instance.to(self.accelerator)
        for name in vars(class_):
            if inspect.isfunction(vars(class_)[name]) and (not name.startswith("__") or name == "__getitem__"):
                self.call(getattr(instance, name), f"{class_.__name__}.{name}")

    def arguments(self, parameter: inspect.Parameter) -> Iterator[Any]:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        annotation = parameter.annotation
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        if "Tensor" in str(annotation):
            yield torch.ones(3, 3, device=self.accelerator)
        elif annotation is torch.device or parameter.name == "device":
            yield torch.device(self.accelerator)
        elif annotation is torch.dtype:
            yield torch.float64
        elif annotation is torch.nn.Module:
            yield torch.nn.Linear(3, 3, device=self.accelerator)
        elif annotation is DataLoader:
            yield DataLoader(TensorDataset(torch.ones(4, 3), torch.ones(4)), batch_size=2)
        elif annotation is bool:
            yield from (False, True)
        elif annotation is int:
            yield from (3, 1, 2)
        elif text == "list":
            yield [torch.ones(3, device=self.accelerator)]
        elif text == "dict":
            yield {"x": torch.ones(3, device=self.accelerator), "device": {"device": self.accelerator}}
        elif text.startswith("tuple"):
            yield (3,)
        elif parameter.name == "helper":
            yield lambda value: value.to(self.accelerator)
        elif parameter.name == "items":
            yield [{"x": torch.ones(3)}]
        elif annotation is inspect.Parameter.empty:
            yield torch.ones(3, 3, device=self.accelerator)
        else:
            raise AssertionError(f"no argument is known for `{parameter}`")

    def probe(self, value: Any) -> Any:
        import torch

        frame = inspect.currentframe()
        assert frame is not None and frame.f_back is not None
        entry = self.seen.setdefault(frame.f_back.f_lineno, Seen())
        entry.devices.append((self.calls, frozenset(map(str, devices_of(value)))))
        if isinstance(value, torch.Tensor):
            entry.zero_dim.add(value.dim() == 0)
        return value


def devices_of(value: Any) -> set[Any]:
    """The devices of all tensors in a value."""
    import torch

    if isinstance(value, torch.Tensor):
        return {value.device}
    if isinstance(value, torch.nn.Module):
        return {t.device for t in (*value.parameters(), *value.buffers())}
    if isinstance(value, torch.device):
        return {value}
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return {device for element in value for device in devices_of(element)}
    return set()


def admits(device: Device, seen: str) -> bool:
    """Whether a claimed device allows the one that was seen. `cuda` without a card allows any card."""
    kind, _, card = seen.partition(":")
    return any(
        isinstance(place, Symbol) or (place.type == kind and (place.card is None or str(place.card) == (card or "0")))
        for place in device
    )


def contradictions(run: Run, claims: list[tuple[int, Value]]) -> list[str]:
    """Claims of the facts that the run refutes, as `line: text`."""
    found: list[str] = []
    symbols: dict[tuple[int, Symbol], tuple[int, str]] = {}
    for row, value in claims:
        seen = run.seen.get(row)
        if seen is None:
            continue
        if value.device:
            for call, devices in seen.devices:
                refuted = [device for device in devices if not admits(value.device, device)]
                found += [f"{row}: claimed {reveal(value)}, seen {device}" for device in refuted]
                place = next(iter(value.device))
                if len(value.device) == 1 and isinstance(place, Symbol):
                    for device in devices:
                        first = symbols.setdefault((call, place), (row, device))
                        if first[1] != device:
                            found.append(f"{row}: `{place}` is {device}, and {first[1]} in line {first[0]}")
        known = value.kind in ("tensor", "parameter", "buffer") and value.zero_dim is not None
        if known and seen.zero_dim - {value.zero_dim}:
            found.append(f"{row}: claimed {'' if value.zero_dim else 'not '}0-dim, seen otherwise")
    return found


def read(path: Path) -> tuple[Source, list[tuple[int, Value]]]:
    source = decode(read_fixture(path.read_bytes(), path.as_posix()).raw, path.as_posix())
    facts = analyse(parse(source), source, Settings())
    return source, [(source.position(span.start).row, value) for span, value in facts.probes]


def execute(source: Source, accelerator: str) -> Run:
    run = Run(source, accelerator)
    context: Any = nullcontext()
    if accelerator != "cpu":
        from devlint.runtime.simulator import DeviceSpec, simulate

        context = simulate(DeviceSpec("cuda", 3))
    with context:
        run.execute()
    return run


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_claims_hold(path: Path) -> None:
    source, claims = read(path)
    with_card, without = execute(source, "cuda:0"), execute(source, "cpu")
    assert not contradictions(with_card, claims), f"with an accelerator, {path.name}"
    assert not contradictions(without, claims), f"without an accelerator, {path.name}"
    stopped = {name: error for name, error in with_card.stopped.items() if f"{path.stem}.{name}" not in STOPS_EARLY}
    assert not stopped
    missed = [row for row, _ in claims if row not in with_card.seen and row not in without.seen]
    assert path.stem in UNREACHED or not missed, f"probes in lines {missed} of {path.name} were not reached"


def test_a_wrong_claim_is_found() -> None:
    text = f"import torch\ndef f(x: torch.Tensor):\n    {PROBE}(x)\n    {PROBE}(x.cpu())\n"
    run = execute(decode(text.encode(), "wrong.py"), "cuda:0")
    cpu, card = Value("tensor", frozenset({Place("cpu")}), False), Value("tensor", frozenset({Place("cuda", 1)}))
    home = Value("tensor", frozenset({Symbol("home", 0)}))
    assert contradictions(run, [(3, cpu)]) == ["3: claimed tensor cpu, seen cuda:0"]
    assert contradictions(run, [(3, card)]) == ["3: claimed tensor cuda:1, seen cuda:0"]
    assert contradictions(run, [(3, home), (4, home)]) == ["4: `home` is cpu, and cuda:0 in line 3"]
    assert contradictions(run, [(3, Value("tensor", home.device, True))]) == ["3: claimed 0-dim, seen otherwise"]
    assert not contradictions(run, [(3, home), (4, cpu)])
