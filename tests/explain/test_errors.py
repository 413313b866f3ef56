"""Which device error a text has: the wordings of torch from 0.4 to 2.13."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devlint.explain.errors import FAMILIES, recognise

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"

# (wording, a rule that finds it, where its cause is looked for)
WORDINGS = [
    # 0.4: types
    ("Expected object of type torch.FloatTensor but found type torch.cuda.FloatTensor for", "DEV101", "operands"),
    ("expected type torch.FloatTensor but got torch.cuda.FloatTensor", "DEV101", "operands"),
    ("Input type (CUDAFloatTensor) and weight type (CPUFloatTensor) should be the same", "DEV103", "operands"),
    (
        "torch.addmm received an invalid combination of arguments - got (int, torch.cuda.FloatTensor, int, "
        "torch.cuda.FloatTensor, torch.FloatTensor, out=torch.cuda.FloatTensor), but expected one of:",
        "DEV101",
        "operands",
    ),
    ("arguments are located on different GPUs at", "DEV101", "operands"),
    ("all tensors must be on devices[0]", "DEV601", "wrapper"),
    ("can't convert CUDA tensor to numpy (it doesn't support GPU arrays). Use .cpu() to move", "DEV109", "line"),
    ("cuda runtime error (10) : invalid device ordinal at torch/csrc/cuda/Module.cpp:32", "DEV201", "device"),
    ("cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version", "DEV201", "device"),
    ("cuda runtime error (38) : no CUDA-capable device is detected at", "DEV201", "device"),
    ("Cannot initialize CUDA without ATen_cuda library. PyTorch splits its backend into two", "DEV201", "device"),
    # 1.0 and 1.1: back ends
    ("Expected object of backend CUDA but got backend CPU for argument #4 'mat1'", "DEV101", "operands"),
    ("Expected object of backend CPU but got backend CUDA for sequence element 1 in sequence", "DEV101", "operands"),
    ("expected backend CUDA and dtype Float but got backend CPU and dtype Float", "DEV101", "operands"),
    ("Expected tensor to have CUDA Backend, but got tensor with CPU Backend (while checking", "DEV101", "operands"),
    ("Broadcast function not implemented for CPU tensors", "DEV601", "wrapper"),
    ("can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.", "DEV109", "line"),
    ("don't know how to restore data location of torch.FloatStorage (tagged with xla:0)", "DEV208", "line"),
    # 1.2 to 1.13: devices
    ("Expected object of device type cuda but got device type cpu for argument #2 'mat2' in", "DEV101", "operands"),
    ("expected device cuda:0 and dtype Float but got device cpu and dtype Float", "DEV101", "operands"),
    ("expected device cpu but got device cuda:0", "DEV101", "operands"),
    (
        "Function AddBackward0 returned an invalid gradient at index 1 - expected device cpu but got cuda:0",
        "DEV101",
        "operands",
    ),
    ("Tensor for argument #2 'mat2' is on CPU, but expected it to be on GPU (while checking", "DEV101", "operands"),
    (
        "Tensor for 'out' is on CPU, Tensor for argument #1 'self' is on CPU, but expected them to be on GPU",
        "DEV101",
        "operands",
    ),
    (
        "Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; "
        "but device 1 does not equal 0 (while checking arguments for cudnn_convolution)",
        "DEV101",
        "operands",
    ),
    ("Expected condition, x and y to be on the same device, but condition is on cpu and x and y", "DEV101", "operands"),
    ("stft input and window must be on the same device but got self on cuda:0 and window on cpu", "DEV101", "operands"),
    (
        "grid_sampler(): expected input and grid to be on same device, but input is on cuda:0 and grid is on cpu",
        "DEV101",
        "operands",
    ),
    ("torch.cat(): all input tensors must be on the same device. Received cpu and cuda:0", "DEV101", "operands"),
    (
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
        "DEV103",
        "operands",
    ),
    ("Input type (MPSFloatType) and weight type (torch.FloatTensor) should be the same", "DEV103", "operands"),
    (
        "Input and parameter tensors are not at the same device, found input tensor at cpu and parameter "
        "tensor at cuda:0",
        "DEV103",
        "operands",
    ),
    ("module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one", "DEV601", "wrapper"),
    ("Could not run 'aten::empty.memory_format' with arguments from the 'CUDA' backend. This", "DEV201", "device"),
    (
        "Expected one of cpu, cuda, mkldnn, opengl, hip, msnpu device type at start of device string: gpu",
        "DEV303",
        "device",
    ),
    ("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must", "DEV605", "line"),
    # 2.11, as a card says it (benchmarks/gpu)
    ("Expected out tensor to have device cuda:0, but got cpu instead", "DEV101", "operands"),
    (
        "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors.",
        "DEV101",
        "operands",
    ),
    ("Trying to pass too many CPU scalars to non-CPU kernel!", "DEV101", "operands"),
    (
        'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/cuda/Loops.cuh":109, please '
        "report a bug to PyTorch. argument 1: expected a CUDA device but found cpu",
        "DEV101",
        "operands",
    ),
    (
        "Could not run 'aten::slow_conv3d_forward' with arguments from the 'CUDA' backend. This could be because",
        "DEV103",
        "operands",
    ),
    (
        "Expected tensor to have cuda DeviceType, but got tensor with cpu DeviceType (while checking arguments for inner())",
        "DEV101",
        "operands",
    ),
    ("tensor_split expected tensor_indices_or_sections to be on cpu, but it's on cuda:0", "DEV109", "operands"),
    (
        "Expected data.get_device() == lengths_value.get_device() to be true, but got false.  (Could this error",
        "DEV101",
        "operands",
    ),
    ("meshgrid expects all tensors to have the same device", "DEV101", "operands"),
    ("RNG state must be a torch.ByteTensor", "DEV208", "line"),
    ("Only dense CPU tensors can be pinned", "DEV509", "loader"),
    ("Both events must be completed before calculating elapsed time.", "DEV402", "line"),
    ("Invalid device id", "DEV201", "device"),
    # 2.13
    (
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "DEV101",
        "operands",
    ),
    (
        "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors "
        "on cuda:0 (when checking argument in method wrapper_CUDA_addmm)",
        "DEV101",
        "operands",
    ),
    ("Expected all tensors to be on the same device. addmm: expected 'mat2' to be a CPU tensor,", "DEV101", "operands"),
    (
        "Expected query, key, and value to have the same device type, but got query.device: cuda:0 "
        "key.device: cpu and value.device: cpu instead.",
        "DEV101",
        "operands",
    ),
    ("expected self and mask to be on the same device, but got mask on cpu and self on cuda:0", "DEV101", "operands"),
    ("Expected b and A to be on the same device, but found b on cuda:0 and A on cpu instead.", "DEV101", "operands"),
    (
        "Tensors of the same index must be on the same device and the same dtype except `step` tensors that "
        "can be CPU and float32/64",
        "DEV101",
        "operands",
    ),
    ("assigned grad has data located on a different device", "DEV101", "operands"),
    (
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
        "DEV102",
        "operands",
    ),
    ("indices should be either on cpu or on the same device as the indexed tensor (cpu)", "DEV104", "operands"),
    ("Placeholder storage has not been allocated on MPS device!", "DEV101", "operands"),
    ("Tensor for argument weight is on cpu but expected on mps", "DEV101", "operands"),
    ("Passed CPU tensor to MPS op", "DEV101", "operands"),
    (
        "slow_conv2d_forward_mps: input(device='cpu') and weight(device=mps:0')  must be on the same device",
        "DEV103",
        "operands",
    ),
    ("No backend type associated with device type cpu", "DEV101", "operands"),
    ("Expected a 'cuda' device type for generator but found 'cpu'", "DEV110", "device"),
    ("Expected a 'cuda:0' generator device but found 'cpu'", "DEV110", "device"),
    (
        "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: cuda:1",
        "DEV601",
        "wrapper",
    ),
    ("TypeError: GradScaler.__init__() got multiple values for argument 'init_scale'", "DEV209", "line"),
    ("TypeError: GradScaler.__init__() got an unexpected keyword argument 'device'", "DEV209", "line"),
    ("TypeError: autocast.__new__() got multiple values for argument 'enabled'", "DEV209", "line"),
    ("TypeError: autocast.__init__() missing 1 required positional argument: 'device_type'", "DEV209", "line"),
    (
        "TypeError: Module.load_state_dict() got an unexpected keyword argument 'map_location'",
        "DEV208",
        "line",
    ),
    ("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor", "DEV112", "line"),
    ("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host", "DEV109", "line"),
    ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.", "DEV208", "line"),
    ("Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1.", "DEV208", "line"),
    ("Torch not compiled with CUDA enabled", "DEV201", "device"),
    ("Torch not compiled with XPU enabled", "DEV201", "device"),
    ("PyTorch is not linked with support for mps devices", "DEV201", "device"),
    ("No CUDA GPUs are available", "DEV201", "device"),
    ("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "DEV201", "device"),
    ("The NVIDIA driver on your system is too old (found version 11040).", "DEV201", "device"),
    ("type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.", "DEV201", "device"),
    ("CUDA error: invalid device ordinal", "DEV201", "device"),
    ("Invalid device string: 'cuda0'", "DEV303", "device"),
    ("to() received an invalid combination of arguments - got (str, int), but expected one of:", "DEV303", "device"),
    ("Cannot access accelerator device when none is available.", "DEV212", "line"),
    ("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned", "DEV509", "loader"),
    ("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.", "DEV214", "line"),
    ("'DataLoader' object has no attribute 'cuda'", "DEV301", "line"),
    ("'list' object has no attribute 'to'", "DEV301", "line"),
    ("'Net' object has no attribute 'device'", "DEV301", "line"),
    ("Device string must not be empty", "DEV303", "device"),
    ("to() received an invalid combination of arguments - got (dtype=torch.dtype, device=bool, )", "DEV303", "device"),
    ("module 'torch' has no attribute 'accelerator'", "DEV301", "line"),
]

MEETING = "Expected all tensors to be on the same device, but found at least two devices, {} and {}!"


@pytest.mark.parametrize(("text", "code", "sought"), WORDINGS)
def test_a_wording(text: str, code: str, sought: str) -> None:
    error = recognise(f"RuntimeError: {text}\n")
    assert error is not None
    assert code in error.family.codes
    assert error.family.sought == sought
    assert error.meaning and error.remedy


def test_every_error_that_a_card_gave_is_recognised() -> None:
    parts = [json.loads(file.read_text("utf-8"))["parts"] for file in sorted(GPU.glob("*.golden.json"))]
    texts = {row["real"] for part in parts for row in part["snippets"]["rows"] if row.get("real")}
    texts |= {row["text"] for part in parts for row in part["mixed"]["rows"] if row["text"]}
    assert [text for text in sorted(texts) if recognise(f"RuntimeError: {text}") is None] == []


def test_every_family_has_a_wording_here() -> None:
    met = {error.family.pattern for text, _, _ in WORDINGS if (error := recognise(text)) is not None}
    assert met == {family.pattern for family in FAMILIES}


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: too many values to unpack",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.80 GiB total capacity)",
        "RuntimeError: CUDA error: device-side assert triggered",
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x2)",
        "RuntimeError: expected scalar type Half but found Float",
        "RuntimeError: Expected object of scalar type Float but got scalar type Double for argument #2 'mat2'",
        "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "AttributeError: 'Net' object has no attribute 'fc3'",
        "AttributeError: 'Tensor' object has no attribute 'device_mesh'",
        'RuntimeError: Error(s) in loading state_dict for Net: Missing key(s) in state_dict: "fc.weight"',
        "",
    ],
)
def test_no_device_error(text: str) -> None:
    assert recognise(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Input type (torch.cuda.FloatTensor) and weight type (torch.cuda.HalfTensor) should be the same",
        "Input type (c10::Half) and bias type (float) should be the same",
        "Expected object of type torch.cuda.LongTensor but found type torch.cuda.FloatTensor for argument #2 'target'",
        "expected type torch.cuda.FloatTensor but got torch.cuda.DoubleTensor",
        "expected backend CPU and dtype Float but got backend CPU and dtype Long",
        "expected device cuda:0 and dtype Float but got device cuda:0 and dtype Double",
    ],
)
def test_types_of_numbers_that_differ_on_one_device(text: str) -> None:
    assert recognise(f"RuntimeError: {text}") is None


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (MEETING.format("cuda:0", "cpu"), {"cuda", "cpu"}),
        (MEETING.format("mps:0", "cpu"), {"mps", "cpu"}),
        (MEETING.format("cuda:0", "cuda:1"), {"cuda"}),
        ("Expected object of type torch.FloatTensor but found type torch.cuda.LongTensor for argument", {"cuda", "cpu"}),
        ("Input type (CUDAFloatTensor) and weight type (CPUFloatTensor) should be the same", {"cuda", "cpu"}),
        ("Input type (torch.FloatTensor) and weight type (MPSFloatType) should be the same", {"mps", "cpu"}),
        ("Expected object of backend CPU but got backend CUDA for argument #2 'mat2'", {"cuda", "cpu"}),
        ("Tensor for argument #2 'mat2' is on CPU, but expected it to be on GPU", {"cuda", "cpu"}),
        ("Placeholder storage has not been allocated on MPS device!", {"mps"}),
        ("Broadcast function not implemented for CPU tensors", set()),
    ],
)  # fmt: skip
def test_the_places_that_an_error_names(text: str, places: set[str]) -> None:
    error = recognise(text)
    assert error is not None
    assert error.places == places


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        (MEETING.format("cuda:0", "cpu"), True),
        (MEETING.format("cuda:0", "cuda:1"), False),
        ("arguments are located on different GPUs at THCTensorMathBlas.cu:270", False),
        ("Expected tensor for argument #1 'input' to have the same device as tensor for argument #2 'weight'; "
         "but device 1 does not equal 0", False),
        ("Placeholder storage has not been allocated on MPS device!", True),
        ("Broadcast function not implemented for CPU tensors", True),
    ],
)  # fmt: skip
def test_whether_one_side_is_on_the_host(text: str, meets: bool) -> None:
    error = recognise(text)
    assert error is not None
    assert error.meets_host is meets


def test_the_meaning_has_the_words_of_the_text() -> None:
    error = recognise(MEETING.format("cuda:1", "cpu"))
    assert error is not None
    assert error.meaning == "the operands of the operation are on cuda:1 and on the CPU"


def test_the_most_telling_of_two_wordings() -> None:
    error = recognise(
        "Expected all tensors to be on the same device, but got index is on cpu, different from other tensors on cuda:0"
    )
    assert error is not None
    assert error.meaning == "one operand of the operation is on the CPU, and the other operands are on cuda:0"


@pytest.mark.parametrize(
    "between",
    ["During handling of the above exception, another exception occurred:", "The above exception was the direct cause"],
)
def test_the_last_error_of_a_chain(between: str) -> None:
    error = recognise(
        f"RuntimeError: {MEETING.format('cuda:0', 'cpu')}\n\n{between}\n\nTraceback (most recent call last):\n"
        "AttributeError: 'Adam' object has no attribute 'to'\n"
    )
    assert error is not None
    assert error.family.codes[0] == "DEV301"


def test_the_last_device_error_of_a_chain_that_ends_in_another() -> None:
    error = recognise(
        f"RuntimeError: {MEETING.format('cuda:0', 'cpu')}\n\nDuring handling of the above exception, another "
        "exception occurred:\n\nKeyError: 'loss'\n"
    )
    assert error is not None
    assert error.family.codes[0] == "DEV101"


def test_the_last_of_two_errors_in_a_log() -> None:
    error = recognise("AssertionError: Torch not compiled with CUDA enabled\nRuntimeError: No such file\n"
                      "TypeError: can't convert mps:0 device type tensor to numpy.\n")  # fmt: skip
    assert error is not None
    assert error.family.codes == ("DEV109",)


def test_an_error_of_a_worker() -> None:
    error = recognise(
        "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "data.py", line 4, in __getitem__\n    return x.cuda()\n'
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing\n"
    )
    assert error is not None
    assert error.family.codes == ("DEV605",)


@pytest.mark.parametrize(
    ("text", "is_modules"),
    [
        ("cuda:0 and cpu! (when checking argument for argument mat1 in method wrapper_addmm)", False),
        ("cpu and cuda:0! (when checking argument for argument mat1 in method wrapper_addmm)", True),
        ("cuda:0 and cpu! (when checking argument for argument weight in method wrapper_cudnn_batch_norm)", True),
        ("cuda:0 and cpu! (when checking argument for argument weight in method wrapper_nll_loss_forward)", None),
        ("cuda:0 and cpu!", None),
    ],
)  # fmt: skip
def test_the_argument_that_is_named_is_on_the_second_device(text: str, is_modules: bool | None) -> None:
    error = recognise(f"Expected all tensors to be on the same device, but found at least two devices, {text}")
    assert error is not None
    assert error.is_modules is is_modules


def test_a_layer_whose_weights_stayed_behind() -> None:
    error = recognise("Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same")
    assert error is not None
    assert error.is_modules


def test_the_input_of_a_layer_that_stayed_behind() -> None:
    error = recognise("Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same")
    assert error is not None
    assert error.is_modules is False
