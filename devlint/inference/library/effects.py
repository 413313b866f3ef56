"""What library functions do with their arguments besides computing: which only look, which call what they get.

Rows name their source. A function in none of these tables may change whatever it can reach.
"""

from __future__ import annotations

from typing import Final

#: Calls its first argument with the others [torch.utils.checkpoint; concurrent.futures does so later].
CALLS_FIRST: Final = frozenset({"torch.utils.checkpoint.checkpoint"})
#: Gives its first argument, or something that acts like it [each function's documentation].
GIVES_FIRST: Final = frozenset(
    {
        "torch.compile",
        "torch.jit.script",
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.jit.ignore",
        "torch.jit.export",
        "torch.quantization.prepare",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.optim.swa_utils.AveragedModel",
    }
)
#: Of a module: its first arguments that must be on one device. The others may be on the CPU [torch.nn.CTCLoss].
DEVICE_ARGUMENTS: Final = {"torch.nn.CTCLoss": 2}
#: Goes through its first argument and gives its items unchanged [tqdm, rich, itertools, fastprogress documentation].
ITERATES_FIRST: Final = frozenset(
    {
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.trange",
        "tqdm.std.tqdm",
        "tqdm.autonotebook.tqdm",
        "tqdm.rich.tqdm",
        "rich.progress.track",
        "itertools.islice",
        "itertools.cycle",
        "itertools.chain",
        "fastprogress.progress_bar",
        "fastprogress.master_bar",
        "alive_progress.alive_it",
        "progressbar.progressbar",
        "tqdm.asyncio.tqdm",
    }
)
#: Functions of numpy that ask a tensor itself, and make an array of a sequence of tensors [numpy/_core/fromnumeric.py].
REDUCES_SEQUENCES: Final = frozenset(
    f"numpy.{name}" for name in ("mean", "sum", "std", "var", "max", "min", "prod", "amax", "amin")
)
#: Clocks of the host [Python's library reference, "time" and "timeit"].
CLOCKS: Final = frozenset(
    {"time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "time.perf_counter_ns", "time.monotonic_ns",
     "timeit.default_timer", "datetime.datetime.now"}
)  # fmt: skip
#: The source of random numbers that `numpy.random.default_rng` makes. Its methods give arrays where they get a size, which is
#: the first argument of some [numpy documentation, "Random Generator"].
NUMPY_GENERATOR: Final = "numpy.random.Generator"
NUMPY_SIZE_FIRST: Final = frozenset({"random", "standard_normal", "standard_exponential"})
#: Libraries whose functions do not change what torch objects they get [each library's documentation].
_LOOK_ONLY: Final = (
    "numpy.",
    "math.",
    "os.",
    "sys.",
    "time.",
    "json.",
    "logging.",
    "warnings.",
    "random.",
    "matplotlib.",
    "PIL.",
    "cv2.",
    "scipy.",
    "sklearn.",
    "pandas.",
    "argparse.",
    "pathlib.",
    "re.",
    "datetime.",
    "collections.",
    "itertools.",
    "functools.",
    "operator.",
    "string.",
    "glob.",
    "shutil.",
    "pickle.",
    "yaml.",
    "torch.",
    "tensorboardX.",
    "tqdm.",
    "pprint.",
    "typing.",
    "traceback.",
    "gc.",
    "psutil.",
    "subprocess.",
    "tempfile.",
    "copy.",
    "inspect.",
    "textwrap.",
    "hashlib.",
    "uuid.",
    "platform.",
    "socket.",
    "threading.",
    "contextlib.",
    "abc.",
    "enum.",
    "dataclasses.",
    "csv.",
    "io.",
    "struct.",
    "zipfile.",
    "urllib.",
    "requests.",
    "torchmetrics.functional.",
    "torchvision.utils.",
    "torchvision.transforms.functional.",
    "einops.",
    "seaborn.",
    "loguru.",
    "wandb.log",
    "wandb.Image",
    "wandb.init",
    "wandb.config",
    "gym.",
    "gymnasium.",
    "imageio.",
    "skimage.",
    "h5py.",
)


def only_looks(name: str) -> bool:
    """Whether a library's function leaves the modules and containers that it gets as they are."""
    return name.startswith(_LOOK_ONLY)
