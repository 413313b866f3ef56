"""Models that are placed while they are loaded: `AutoModel.from_pretrained(name, device_map="auto")`.

On a machine with one accelerator the whole model is there, and what it is called with must be, too. Hooks that move the inputs
are only attached where the model is spread over several devices, or quantized [accelerate/big_modeling.py, `dispatch_model`].
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.values import NOTHING, UNKNOWN, Device, Value, describe, may_be_accelerator, symbol

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.machine import Machine

#: Options of `from_pretrained` by which a model is placed while it is loaded [transformers/modeling_utils.py].
PLACED = frozenset(
    {
        "device_map", "device", "load_in_8bit", "load_in_4bit", "quantization_config", "tp_plan", "max_memory",
        "offload_folder", "offload_state_dict", "offload_buffers", "gguf_file",
    }
)  # fmt: skip
#: Words in the names of checkpoints that are quantized already.
_QUANTIZED = re.compile(r"gptq|awq|bnb|[48]bit|int[48]|gguf|hqq|fp8", re.IGNORECASE)
#: Plans that put a model on the accelerators there are [transformers documentation, "Big models"].
_PLANS = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})


def placed(machine: Machine, node: ast.Call, arguments: Arguments) -> Value | None:
    """The model that `from_pretrained` gives where `device_map` alone places it; None where nobody knows where it is."""
    if arguments.star or PLACED.intersection(arguments.keywords) != {"device_map"}:
        return None
    name = arguments.nodes[0] if arguments.nodes else None
    if isinstance(name, ast.Constant) and _QUANTIZED.search(str(name.value)) is not None:
        return None
    device = device_of(machine, node, *arguments.keywords["device_map"])
    if not may_be_accelerator(device):
        return None
    origin = machine.origin(node, f"loaded to {describe(device)} here")
    return Value("module", device, because=(origin,), moved=True, ident=origin.span)


def device_of(machine: Machine, node: ast.Call, given: ast.expr, value: Value) -> Device:
    """The one device that a map names: by a plan, for the whole model, or as `{"": device}`."""
    if isinstance(given, ast.Dict) and len(given.keys) == 1:
        key = given.keys[0]
        if not isinstance(key, ast.Constant) or key.value != "" or not isinstance(value.elements, dict):
            return UNKNOWN
        value = value.elements.get("", NOTHING)
    if (value.kind == "string" and value.constant in _PLANS) or (
        value.kind == "number" and isinstance(value.constant, int) and value.constant >= 0
    ):
        return symbol("device_map", machine.span(node).start)  # a number is an index among the accelerators
    return value.device if value.kind in ("device", "string") else UNKNOWN
