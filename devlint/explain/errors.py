"""The device errors of torch: how each is recognised, what it means, what to do, and where its cause is looked for.

The texts are torch's own, in the wording of 2.13 (ATen/native, torch/csrc/utils, torch/cuda/__init__.py) and in those of
older releases, which people still paste: 0.4 names types, 1.0 back ends, 1.2 device types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

#: Where the cause is looked for. "operands": what meets on the failing line, and where each of it was made. "line": the
#: failing line itself. "device": the same, and where the device that it names was chosen. "wrapper": where a module was
#: wrapped. "loader": what the workers and collate functions of loaders return.
Sought = Literal["operands", "line", "device", "wrapper", "loader"]


@dataclass(frozen=True, slots=True)
class Family:
    """One family of device errors. `codes`: the rules that find it in the code."""

    pattern: re.Pattern[str]
    meaning: str
    remedy: str
    sought: Sought
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeviceError:
    """One device error in a text: its family, the words that its text fills in, and where it stands."""

    family: Family
    named: dict[str, str]
    start: int

    @property
    def meaning(self) -> str:
        return self.family.meaning.format(**{key: _plain(value) for key, value in self.named.items()})

    @property
    def remedy(self) -> str:
        return self.family.remedy.format(**self.named)

    @property
    def places(self) -> set[str]:
        """The two sides as the error names them, each "cpu" or the type of an accelerator; empty when it names none."""
        return {_type(self.named[key]) for key in ("off", "other") if key in self.named}

    @property
    def is_modules(self) -> bool | None:
        """Whether it is the module that is on the CPU, and not its input, as far as the error names an argument of a layer.

        torch checks the arguments in their order: the one that it names is on the second of the two devices, those before it
        on the first (ATen/core/op_registration/adaption.h, `check_and_update_common_device`).
        """
        what, method = self.named.get("what", "").lower(), self.named.get("method", "")
        if what not in _OF_LAYERS or "loss" in method or "cpu" not in self.places:
            return None
        named_on_host = _type(self.named["off"]) == "cpu"
        return named_on_host == _OF_LAYERS[what]

    @property
    def meets_host(self) -> bool:
        """Whether one side is on the CPU, as far as the error tells: one that names a single side does not."""
        if "cards" in self.named:
            return False
        return not {"off", "other"} <= self.named.keys() or "cpu" in self.places

    @property
    def is_missing(self) -> bool:
        """Whether the machine lacks what the program asks for: an accelerator, or one of its cards."""
        return not {"DEV201", "DEV202", "DEV205", "DEV208"}.isdisjoint(self.family.codes)

    @property
    def is_of_types(self) -> bool:
        """Whether both sides are at one place, and differ in their type of numbers alone."""
        return {"off", "other"} <= self.named.keys() and _place(self.named["off"]) == _place(self.named["other"])


#: The arguments of layers that errors name, and whether they are the module's own.
_OF_LAYERS = {
    "input": False, "mat1": False, "index": False, "indices": False, "hidden": False,
    "weight": True, "bias": True, "mat2": True, "running_mean": True, "running_var": True, "parameter": True,
}  # fmt: skip
_MEET = ("DEV101", "DEV102", "DEV103", "DEV104", "DEV106")
_MOVE = "move the tensor on the wrong device, or create it on the right device with `device=`"


def _family(pattern: str, meaning: str, remedy: str, sought: Sought, *codes: str) -> Family:
    return Family(re.compile(pattern, re.IGNORECASE), meaning, remedy, sought, codes)


#: Characters at the end of a log that are searched first, and before an error for its frames: a thousand frames or more.
LAST = 300_000

#: The most telling wordings first: of two that match at one place the earlier one counts.
FAMILIES = (
    _family(
        r"but got (?P<what>[\w']+) is on (?P<off>[\w:]+), different from other tensors on (?P<other>[\w:]+)",
        "one operand of the operation is on {off}, and the other operands are on {other}",
        "move this operand to the device of the other operands before this line",
        "operands", *_MEET,
    ),
    _family(
        r"found at least two devices, (?P<other>[\w:]+) and (?P<off>[\w:]+)!?"
        r"(?: \(when checking arg\w+ for argument (?P<what>\w+) in method (?P<method>\w+))?",
        "the operands of the operation are on {other} and on {off}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"(?P<what>Input) type \((?P<off>[\w.]+)\) and (?:weight|bias) type \((?P<other>[\w.]+)\) should be the same",
        "the input of a layer ({off}) and its weights ({other}) are on different devices",
        "move the input to the device of the model before the call, or move the model to the device of the input",
        "operands", "DEV103", "DEV101", "DEV102",
    ),
    _family(
        r"\b(?:Input and \w+|\w+) tensors are not at the same device, found input tensor at (?P<other>[\w:]+) and "
        r"(?P<what>\w+) tensor at (?P<off>[\w:]+)",
        "the {what} tensor of a recurrent layer is on {off}, but its input is on {other}",
        "create the hidden state with `device=x.device`, and move the layer and its input to one device",
        "operands", "DEV102", "DEV103", "DEV101",
    ),
    _family(
        r"indices should be either on cpu or on the same device as the indexed tensor \((?P<other>[\w:]+)",
        "a tensor on {other} is indexed with a tensor on another device",
        "move the index to the CPU, or move the indexed tensor to the device of the index",
        "operands", "DEV104", "DEV101", "DEV102",
    ),
    _family(
        r"expected self and (?P<what>\w+) to be on the same device, but got \w+ on (?P<off>[\w:]+) and self "
        r"on (?P<other>[\w:]+)",
        "the argument `{what}` is on {off}, but the tensor `self` is on {other}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"(?:must be|are expected to be|should be|to be) on the same device[.,]? *(?:but )?(?:received|got|found)"
        r"(?: \w+ on)? (?P<other>[\w:]+) and(?: \w+ on)? (?P<off>[\w:]+)",
        "the operands of the operation are on {other} and on {off}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"Expected object of (?:device type|backend|type) (?P<other>[\w.]+) but (?:got|found) "
        r"(?:device type|backend|type) (?P<off>[\w.]*\w)",
        "one operand of the operation is on {off}, and the other operands are on {other}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"expected (?:device|backend|type) (?P<other>[\w:.]+)(?: and dtype \w+)? but got "
        r"(?:device |backend )?(?P<off>[\w:.]*\w)",
        "one operand of the operation is on {off}, and the other operand is on {other}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"Expected tensor to have (?P<other>[\w:]+) (?:Backend|Device|DeviceType), but got tensor with (?P<off>[\w:]+) "
        r"(?:Backend|Device|DeviceType)",
        "one operand of the operation is on {off}, and the other operands are on {other}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"Tensor for (?:argument #\d+ |argument )?'?(?P<what>\w+)'? is on (?P<off>[\w:]+),?.{0,120}? but expected "
        r"(?:(?:it|them) to be )?on (?P<other>[\w:]+)",
        "one operand of the operation is on {off}, and the other operands are on {other}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"(?P<what>input)\(device='(?P<off>[\w:]+)'\) and weight\(device='?(?P<other>[\w:]+)'?\)",
        "the input of a layer is on {off}, but its weights are on {other}",
        "move the input to the device of the model before the call, or move the model to the device of the input",
        "operands", "DEV103", "DEV101", "DEV102",
    ),
    _family(
        r"Expected out tensor to have device (?P<other>[\w:]+), but got (?P<off>[\w:]+) instead",
        "the result is computed on {other}, but the tensor for `out=` is on {off}",
        "create the tensor for `out=` on the device of the operands, or remove `out=`",
        "operands", *_MEET,
    ),
    _family(
        r"CPU Scalar support for (?P<what>\w+) argument is not supported|Trying to pass too many CPU scalars to non-CPU "
        r"kernel|INTERNAL ASSERT FAILED .{0,200}?expected a (?P<other>\w+) device but found (?P<off>\w+)",
        "the operation does not accept a 0-dim CPU tensor together with tensors on an accelerator",
        "create the 0-dim tensor on the accelerator (`torch.tensor(2.0, device=x.device)`), or pass a Python number",
        "operands", *_MEET,
    ),
    _family(
        r"Could not run 'aten::slow_conv3d_forward' with arguments from the '(?P<other>\w+)' backend",
        "the input of a 3-D convolution is on the CPU, but its weights are on {other}",
        "move the input to the device of the model before the call",
        "operands", "DEV103", "DEV101", "DEV102",
    ),
    _family(
        r"tensor_split expected \w+ to be on cpu, but it's on (?P<off>[\w:]+)",
        "the split indices are on {off}, but torch reads them on the CPU",
        "pass the indices as numbers, or copy them to the CPU: `.cpu()`",
        "operands", "DEV109",
    ),
    _family(
        r"Expected data\.get_device\(\) == (?P<what>\w+)_value\.get_device\(\) to be true",
        "the {what} of the segments and the data are on different devices",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"meshgrid expects all tensors to have the same device",
        "the operands of the operation are on different devices",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"RNG state must be a torch\.ByteTensor",
        "the state of a random generator must be on the CPU, but the given tensor is not on the CPU",
        "copy the state to the CPU (`state.cpu()`), or load it with `map_location=\"cpu\"`",
        "line", "DEV208", "DEV110",
    ),
    _family(
        r"Placeholder storage has not been allocated on (?P<other>\w+) device",
        "an operation on {other} got a tensor on the CPU",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"Passed (?P<off>\w+) tensor to (?P<other>\w+) op",
        "an operation on {other} got a tensor on {off}",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"to have the same device as tensor for .{0,40}; but device (?P<off>[\w:]+) does not equal (?P<other>[\w:]+)",
        "the operands of the operation are on different GPUs, {other} and {off}",
        "keep all tensors of a process or replica on one GPU, and name this GPU in one place",
        "operands", "DEV101", "DEV601", "DEV602",
    ),
    _family(
        r"(?P<cards>arguments are located on different GPUs|Arguments must be on the same GPU|"
        r"tensors? (?:are|is|to be) on different GPUs)",
        "the operands of the operation are on different GPUs",
        "keep all tensors of a process or replica on one GPU, and name this GPU in one place",
        "operands", "DEV101", "DEV601", "DEV602",
    ),
    _family(
        r"expected a '(?P<other>\w+)(?::\d+)?' (?:device type for generator|generator device) but found '(?P<off>\w+)",
        "random numbers are drawn on {other}, but the generator is on {off}",
        'create the generator on the device of the random numbers: `torch.Generator(device="{other}")`',
        "device", "DEV110",
    ),
    _family(
        r"'lengths' argument should be a 1D CPU int64 tensor|lengths.{0,20} should be a 1D (?:CPU )?int64 tensor, but got",
        "`pack_padded_sequence` needs its lengths on the CPU, even if the data is on another device",
        "pass `lengths.cpu()`",
        "line", "DEV112",
    ),
    _family(
        r"can't convert (?P<off>[\w:]+)(?: device type)? tensor to numpy",
        "numpy reads host memory, but the tensor is on {off}",
        "copy the tensor to the host first: `.detach().cpu().numpy()`",
        "line", "DEV109",
    ),
    _family(
        r"Attempting to deserialize object on (?:a )?(?P<off>\w+) device",
        "the checkpoint was saved on {off}, but this machine has no {off} device",
        'pass `map_location="cpu"` or the device of this run to `torch.load`',
        "line", "DEV208",
    ),
    _family(
        r"don't know how to restore data location of [\w.]+ \(tagged with (?P<off>\w+)",
        "the checkpoint was saved on {off}, but this machine or this build of torch does not support {off}",
        'pass `map_location="cpu"` or the device of this run to `torch.load`',
        "line", "DEV208",
    ),
    _family(
        r"Torch not compiled with CUDA enabled|No CUDA GPUs are available|Found no NVIDIA driver|"
        r"CUDA driver version is insufficient|The NVIDIA driver on your system is too old|"
        r"Could not run '[\w:.]+' with arguments from the 'CUDA' backend|"
        r"type torch\.cuda\.\w+ not available|Cannot initialize CUDA without ATen_cuda|no CUDA-capable device is detected",
        "the program needs CUDA, but this machine or this build of torch has no CUDA",
        "choose an available device in one place, and use it everywhere; `devlint doctor` says why CUDA is missing",
        "device", "DEV201", "DEV202", "DEV205",
    ),
    _family(
        r"(?:Torch not compiled with|PyTorch is not linked with support for) (?P<off>(?!CUDA)\w+)",
        "the program needs {off}, but this build of torch does not support {off}",
        "choose an available device in one place, and use it everywhere; `devlint doctor` lists the devices",
        "device", "DEV201", "DEV202", "DEV205",
    ),
    _family(
        r"invalid device ordinal|\bInvalid device id\b",
        "the program uses a GPU index that this machine does not have",
        "choose an available device in one place: `cuda` without an index is the current GPU",
        "device", "DEV201", "DEV202", "DEV604",
    ),
    _family(
        r"(?:Expected one of .{0,200}?device type at start of device string: |Invalid device string: )'?(?P<off>[\w:.-]+)",
        "`{off}` is not a device name of torch",
        'use a device type, with an index if there are several devices: "cuda", "cuda:1", "mps", "cpu"',
        "device", "DEV303", "DEV301",
    ),
    _family(
        r"Device string must not be empty",
        "the device is an empty string",
        'use a device type: "cuda", "mps", "cpu"; an option may have an empty default value',
        "device", "DEV303",
    ),
    _family(
        r"\bto\(\) received an invalid combination of arguments",
        "an argument of `.to()` is not a device",
        "pass a device, a dtype or a tensor: `.to(device)`",
        "device", "DEV303", "DEV301",
    ),
    _family(
        r"Cannot access accelerator device when none is available",
        "a `torch.accelerator` function was called on a machine without an accelerator",
        "call the function only under `if torch.accelerator.is_available():`",
        "line", "DEV212",
    ),
    _family(
        r"cannot pin '(?P<off>[\w.]+)'|Only dense CPU tensors can be pinned",
        "only host memory can be pinned, but the tensor is on an accelerator",
        "return CPU tensors from the dataset and move the batch in the loop, or remove `pin_memory`",
        "loader", "DEV509", "DEV605",
    ),
    _family(
        r"Both events must be (?:completed|recorded) before calculating elapsed time",
        "the time between two events is read before both events are complete",
        "record both events, and wait for the second event: `end.synchronize()`",
        "line", "DEV402",
    ),
    _family(
        r"Cannot re-initialize \w+ in forked subprocess",
        "a forked worker process uses CUDA",
        "return CPU tensors from the dataset and move the batch in the loop, or start the workers with `spawn`",
        "line", "DEV605",
    ),
    _family(
        r"Cannot convert a MPS Tensor to float64|MPS framework doesn't support float64",
        "a float64 tensor is moved to MPS, but MPS does not support float64",
        "convert the tensor to float32 first: `.float()`, or create it with `dtype=torch.float32`",
        "line", "DEV214",
    ),
    _family(
        r"module must have its parameters and buffers on device (?P<other>[\w:]+).{0,60}?found one of them on device: "
        r"(?P<off>(?!cpu)\w+:(?P<what>\d+))",
        "`DataParallel` copies the module from its first GPU, {other}, but the module is on {off}",
        "list the GPUs with the GPU of the module first: `device_ids=[{what}, ...]`; or move the module to {other}",
        "wrapper", "DEV601",
    ),
    _family(
        r"module must have its parameters and buffers on device (?P<other>[\w:]+)",
        "`DataParallel` needs the module on its first GPU, {other}",
        "move the module to {other} before `DataParallel` wraps it",
        "wrapper", "DEV601",
    ),
    _family(
        r"(?P<kind>GradScaler|autocast)\.__(?:init|new)__\(\) (?:got multiple values for argument '(?:init_scale|enabled)'|"
        r"got an unexpected keyword argument 'device(?:_type)?')",
        "`{kind}` of `torch.cuda.amp` has no device argument",
        'use the class of `torch.amp`, whose first argument is the device type: `torch.amp.{kind}("cuda", ...)`',
        "line", "DEV209", "DEV303", "DEV306",
    ),
    _family(
        r"autocast\.__init__\(\) missing 1 required positional argument: 'device_type'",
        "the first argument of `torch.autocast` must be the device type",
        'pass the device type: `torch.autocast("cuda")` or `torch.autocast(device.type)`',
        "line", "DEV209", "DEV303", "DEV306",
    ),
    _family(
        r"(?P<kind>load_state_dict|load_model|from_pretrained)\(\) got an unexpected keyword argument 'map_location'",
        "`{kind}` has no parameter `map_location`: it does not read the file",
        "pass `map_location` to the call that reads the file: `torch.load(path, map_location=...)`",
        "line", "DEV208", "DEV303",
    ),
    _family(
        r"(?P<kind>'[\w.]+' object|type object '[\w.]+') has no attribute 'device'",
        "{kind} has no attribute `device`; tensors have this attribute",
        "read `.device` of one of its tensors (`next(model.parameters()).device`, `batch[0].device`), or pass the device",
        "line", "DEV301",
    ),
    _family(
        r"(?P<kind>'[\w.]+' object|type object '[\w.]+'|module '[\w.]+') has no attribute "
        r"'(?P<what>to|cuda|cpu|get_device|is_cuda|device_count|xpu|mps|accelerator)'",
        "{kind} has no attribute `{what}`",
        "remove the call, and move the tensors or modules that the object uses",
        "line", "DEV301", "DEV302", "DEV303", "DEV304",
    ),
    _family(
        r"received an invalid combination of arguments - got \((?:[^()\n]*torch\.cuda\.\w+[^()\n]*torch\.(?!cuda)\w*Tensor|"
        r"[^()\n]*torch\.(?!cuda)\w*Tensor[^()\n]*torch\.cuda\.\w+)",
        "some arguments of the operation are on CUDA, and some are on the CPU",
        _MOVE, "operands", *_MEET,
    ),
    _family(
        r"Broadcast function not implemented for CPU tensors|all tensors must be on devices\[0\]",
        "`DataParallel` copies the module from its first GPU, but the module is not on this GPU",
        "move the module to the first GPU before `DataParallel` wraps it: `nn.DataParallel(model.to(device))`",
        "wrapper", "DEV601",
    ),
    _family(
        r"No backend type associated with device type (?P<off>\w+)|Tensors must be CUDA and dense",
        "a collective operation got a tensor on a device that the process group does not support",
        "move the tensor to the GPU of this process before the call; NCCL only takes CUDA tensors",
        "operands", *_MEET,
    ),
    _family(
        r"(?:tensors?|input|inputs|operands|arguments|data|parameters|weights?)\b.{0,60}"
        r"(?:on|at|in) (?:(?:the )?same|(?:a )?different|one) devices?|"
        r"(?:the same|different) devices?\b.{0,120}\b(?:cuda|mps|xpu|npu|cpu)\b",
        "the operands of the operation are not on the same device",
        _MOVE, "operands", *_MEET,
    ),
)  # fmt: skip


def recognise(text: str) -> DeviceError | None:
    """The last device error in a text; None when there is none that devlint knows."""
    return _last(text, max(0, len(text) - LAST)) or _last(text, 0)


def _last(text: str, begin: int) -> DeviceError | None:
    """The last device error that stands after a place."""
    best: DeviceError | None = None
    for family in FAMILIES:
        for match in family.pattern.finditer(text, begin):
            if best is not None and not _is_later(text, best.start, match.start()):
                continue
            found = DeviceError(family, {k: v for k, v in match.groupdict().items() if v}, match.start())
            if not found.is_of_types:
                best = found
    return best


#: Characters within which two wordings belong to one error, where no other error begins between them.
_SAME = 240
_BEGINS = re.compile(r"Traceback \(most recent call last\)|^.{0,60}?\b[\w.]*(?:Error|Exception): ", re.MULTILINE)


def _is_later(text: str, known: int, start: int) -> bool:
    """Whether what starts at a place belongs to another error, further down, than what is known."""
    return start > known + _SAME or (start > known and _BEGINS.search(text, known, start) is not None)


def _type(device: str) -> str:
    """The type of device that an error's word stands for: `cuda:0`, `CUDA`, `torch.cuda.FloatTensor`, `GPU`."""
    word = device.lower().partition(":")[0]
    if "." in word or word.endswith(("tensor", "type")):
        named = [part for part in ("cuda", "mps", "xpu", "npu", "hpu", "xla") if part in word]
        return named[0] if named else "cpu"
    if word.startswith("cuda") or word == "gpu" or word.isdigit():
        return "cuda"
    return "cpu" if word.startswith("cpu") else word


def _place(device: str) -> str:
    """A device's type, and its number where the error names one."""
    return _type(device) + (device if device.isdigit() else device.partition(":")[2])


def _plain(word: str) -> str:
    return "the CPU" if word.lower() == "cpu" else word
