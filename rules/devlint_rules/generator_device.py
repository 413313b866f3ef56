"""A random generator is on the wrong device for an operation, or a random state is on the wrong device for a generator.

## What it flags
The rule reports these cases:

* An operation draws random numbers for a tensor, but the generator and the tensor have different device types:
  `torch.randn(..., generator=g)`, `x.normal_(generator=g)`.
* A sampler, `random_split` or a `DataLoader` gets a generator on an accelerator. All three draw on the CPU.
* A `DataLoader` has `shuffle=True` and no generator, and `torch.set_default_device(...)` may set an accelerator.
* A random state is not on the CPU. For example, `torch.load(..., map_location=device)` moves the state to an
  accelerator.
* The code reads the random state of one generator and sets it on a generator with a different device type. For example,
  it sets the state of a CPU generator on a CUDA generator.

## Why it matters
An operation with the wrong generator stops with "Expected a 'cuda' device type for generator but found 'cpu'". A random
state on an accelerator stops with "RNG state must be a torch.ByteTensor".

## Example
    import torch


    def noise(x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator()
        return torch.randn(x.shape, device=x.device, generator=generator)

Use instead:

    import torch


    def noise(x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator(device=x.device)
        return torch.randn(x.shape, device=x.device, generator=generator)

## Fix safety
There are three fixes:

* The generator is created for the device of the operation.
* The operation runs on the device of the generator.
* The random state is copied to the CPU.

These three fixes are safe. If the devices are the same, nothing changes. If the devices differ, the program without the
fix stops with an error.

Another fix creates a generator for a `DataLoader` that shuffles. This fix is unsafe when the default device may be the
CPU, because the order of the batches changes.

The rule makes a suggestion without an edit in these cases:

* No variable in scope holds the device.
* One generator is used on the CPU and on an accelerator.

## Known limits
The rule reports nothing when the device of the generator is unknown. Most generators that are function arguments have
an unknown device. The rule also reports nothing for two accelerators of the same type, such as two GPUs.
"""

from __future__ import annotations

import ast

from devlint.api import (
    HOME,
    SOMEWHERE,
    Edit,
    Facts,
    Finding,
    Fix,
    GeneratorMeet,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
    is_surely_accelerator,
)

from . import _shared as shared
from ._calls import keywords, with_keyword
from ._torch import has_torch

_DEFAULT_SINCE = (2, 3)  # the torch that has `torch.get_default_device`


class GeneratorDevice(Rule[GeneratorMeet]):
    meta = RuleMeta(
        code="DEV110",
        name="generator-device",
        summary="a random operation and its generator, or a random state, are on different devices",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("enerator", "rng_state", "set_default_device", "manual_seed", "set_state"),
    )
    event = GeneratorMeet

    def suspects(self, event: GeneratorMeet, facts: Facts) -> bool:
        return not event.under.catches("RuntimeError")

    def judge(self, event: GeneratorMeet, site: Site) -> Finding | None:
        message, fix = self._message(event), self._fix(event, site)
        span = event.generator.span if event.how == "state" and event.generator is not None else event.span
        return Finding(span, message, fix, shared.trail(event, span))

    def _message(self, event: GeneratorMeet) -> str:
        function = f"`{event.qualname}`"
        if event.generator is None:
            return (
                f"{function} shuffles with a CPU generator, but draws on the default device, "
                f"{describe(event.place)}: pass a `generator=` of that device"
            )
        name, device = shared.name(event.generator), event.generator.value.device
        if event.how == "foreign":
            return f"{name} is not a state of the generator that {function} sets: each device type has its own states"
        if event.how == "state":
            takes = "states" if event.qualname.endswith("_all") else "a state"
            return f"{name} {shared.whereabouts(event.generator.value)}; {function} accepts {takes} only on the CPU"
        may_be = "may be" if SOMEWHERE in device else "is"
        draws = "may draw on" if event.place == HOME else "draws on"
        return (
            f"{name} {may_be} a generator for {describe(device - {SOMEWHERE})}, but {function} {draws} "
            f"{describe(event.place)}: torch requires one device type for both"
        )

    def _fix(self, event: GeneratorMeet, site: Site) -> Fix:
        if event.how == "foreign":
            return Fix("Save and restore the state of each device with the functions of that device", Safety.HINT)
        if event.generator is None:
            return self._shuffle(event, site)
        if event.how == "state":
            node = site.at(event.generator.span)
            title = f"Copy {shared.name(event.generator)} to the CPU"
            if event.qualname.endswith("_all"):
                return Fix(f"Copy each state of {shared.name(event.generator)} to the CPU", Safety.HINT)
            if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
                return Fix(title, Safety.HINT)
            return Fix(title, Safety.SAFE, (Edit(node, shared.chain(node, "cpu")),))
        return self._make_there(event, site) or self._draw_there(event, site) or self._hint(event)

    def _make_there(self, event: GeneratorMeet, site: Site) -> Fix | None:
        """`torch.Generator()` becomes `torch.Generator(device=...)`."""
        assert event.generator is not None
        made = event.generator.value.made
        if len(made) != 1 or made[0].span in site.facts.cpu_generators:
            return None
        device = site.facts.device_expression(made[0].scope, event.place)
        call = site.at(made[0].span)
        if device is None or not isinstance(call, cst.Call) or site.has_comment(call):
            return None
        edit = Edit(call, with_keyword(call, "device", site.expression(device)))
        return Fix(f"Make the generator for `{device}`", Safety.SAFE, (edit,))

    def _draw_there(self, event: GeneratorMeet, site: Site) -> Fix | None:
        """A factory call without a device gets that of its generator."""
        call = site.node
        if event.drawn is not None or not isinstance(event.node, ast.Call) or not isinstance(call, cst.Call):
            return None
        assert event.generator is not None
        if "device" in keywords(event.node) or event.qualname.startswith("torch.utils.") or site.has_comment(call):
            return None
        if not shared.is_path(event.generator.node):
            return None
        device = site.facts.device_expression(event.scope, event.generator.value.device)
        device = device if device is not None else f"{event.generator.text}.device"
        edit = Edit(call, with_keyword(call, "device", site.expression(device)))
        return Fix(f"Draw on `{device}`", Safety.SAFE, (edit,))

    def _hint(self, event: GeneratorMeet) -> Fix:
        return Fix(f"Make the generator for {describe(event.place)}: `torch.Generator(device=...)`", Safety.HINT)

    def _shuffle(self, event: GeneratorMeet, site: Site) -> Fix:
        made = f"{site.spell('torch.Generator')}(device={site.spell('torch.get_default_device')}())"
        title = f"Pass `generator={made}`"
        call = site.node
        if not has_torch(_DEFAULT_SINCE, site.facts) or not isinstance(call, cst.Call) or site.has_comment(call):
            return Fix(title, Safety.HINT)
        safety = Safety.SAFE if is_surely_accelerator(event.place) else Safety.UNSAFE
        return Fix(title, safety, (Edit(call, with_keyword(call, "generator", site.expression(made))),))
