"""Innocent variations of a program: the same program in a project, as a mapping from path to text.

A variation does not change what the program does. Those in `ARGUABLE` say something about the intent that a reader may weigh.
`variations_of` gives all that apply to a source; the tables below are the data.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterator

Project = dict[str, str]
Change = Callable[[str], Project | None]

FILE_NAMES = (
    "main.py", "a.py", "noise.py", "utils.py", "model.py", "demo.py", "example.py", "test_x.py", "x_test.py", "benchmark.py",
    "cuda_utils.py", "gpu.py", "train_gpu.py", "train_ddp.py", "multi_gpu.py", "convert.py", "export_onnx.py", "inference.py",
    "train_cpu.py", "profile_run.py", "tutorial.py", "run.py", "eval.py", "my_snippet.py", "lesson_3.py", "ops.py", "layers.py",
)  # fmt: skip
FOLDERS = (
    "tests", "examples", "scripts", "onnx", "src", "benchmarks", "tools", "docs", "notebooks", "utils", "models", "cuda", "gpu",
    "cpu", "demo", "legacy", "experiments", "my_project",
)  # fmt: skip
HEADINGS = (
    "Train a small model.", "Runs on CPU and GPU.", "Example for the blog post.", "Moves the data to the GPU.",
    "Requires a GPU.", "Needs CUDA.", "Test of the device code.", "Benchmark.", "CPU only.", "See https://pytorch.org/tutorials/beginner/basics",
    "Multi-GPU training with NCCL.",
)  # fmt: skip
COMMENTS = (
    "todo: make this faster", "cpu", "move to gpu", "cuda", "device", "hack", "must be on the GPU", "on CPU on purpose?",
)  # fmt: skip
IMPORTS = (
    "import numpy as np", "import onnx", "import tensorflow as tf", "import pytorch_lightning as pl", "import lightning as L",
    "from transformers import AutoModel", "import unittest", "import pytest", "import horovod.torch as hvd",
    "from accelerate import Accelerator", "import deepspeed", "import matplotlib.pyplot as plt2", "import ray", "import cupy",
    "import triton", "import jax", "import argparse", "import tqdm", "import torchvision", "import torch.nn.functional as F",
    "import torch_xla", "import apex", "import torch.multiprocessing as mp", "import os as os2",
    "from torch.utils.cpp_extension import load", "import torch_geometric", "import pandas as pd", "import wandb",
    "import math, random", "import torch.distributed as dist2", "import pycuda.driver as drv", "import onnxruntime",
    "import tensorrt", "import gradio as gr", "import cv2", "from fastai.vision.all import *", "import ignite",
    "import gpytorch", "import timm", "import sys", "from torch.cuda import amp", "import torch.optim as optim", "import faiss",
    "import spacy", "import pynvml", "import intel_extension_for_pytorch as ipex", "from __future__ import annotations",
)  # fmt: skip
LINES = {
    "manual_seed": "torch.manual_seed(0)",
    "cudnn.benchmark": "torch.backends.cudnn.benchmark = True",
    "print version": "print(torch.__version__)",
    "constant": "EPOCHS = 10",
    "argparse": (
        "import argparse\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--epochs', type=int, default=3)\nargs = parser.parse_args()"
    ),
    "logging": "import logging\n\nlogging.basicConfig(level=logging.INFO)",
    "warnings": "import warnings\n\nwarnings.filterwarnings('ignore')",
    "set_num_threads": "torch.set_num_threads(1)",
    "set_printoptions": "torch.set_printoptions(precision=3)",
    "unrelated function": "def add_one(number):\n    return number + 1\n",
    "unrelated class": "class Config:\n    lr = 0.1\n",
    "unrelated CPU tensor": "unrelated = torch.zeros(3)",
    "guarded seed": "if torch.cuda.is_available():\n    torch.cuda.manual_seed_all(0)",
    "guarded print": "if torch.cuda.is_available():\n    print('GPU')",
    "unused is_available": "HAS_GPU = torch.cuda.is_available()",
    "unused device": "unused_device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "function with guard": (
        "def seed_all(seed):\n    if torch.cuda.is_available():\n        torch.cuda.manual_seed_all(seed)\n"
    ),
    "function with device parameter": "def move(item, device):\n    return item.to(device)\n",
    "function with try": (
        "def has_triton():\n    try:\n        import triton\n    except ImportError:\n        return False\n    return True\n"
    ),
    "unused lambda": "identity = lambda value: value",
    "os.environ OMP": "import os\n\nos.environ['OMP_NUM_THREADS'] = '1'",
    "os.environ CUDA_LAUNCH_BLOCKING": "import os\n\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'",
    "set_default_dtype": "torch.set_default_dtype(torch.float32)",
    "set_grad_enabled": "torch.set_grad_enabled(True)",
    "try import": "try:\n    import apex\nexcept ImportError:\n    apex = None",
    "device count print": "print('GPUs', torch.cuda.device_count())",
}
#: What stands before and behind the body of the program, which is indented.
WRAPPERS = {
    "in def main() that is called": ("def main():", "\n\nmain()\n"),
    "in def main() under __name__": ("def main():", '\n\nif __name__ == "__main__":\n    main()\n'),
    "in def main() -> None under __name__": ("def main() -> None:", '\n\nif __name__ == "__main__":\n    main()\n'),
    "in def run_experiment() never called": ("def run_experiment():", ""),
    "in def test_it() never called": ("def test_it():", ""),
    "in def demo() never called": ("def demo():", ""),
    "in def benchmark() never called": ("def benchmark():", ""),
    "in def main(args)": ("def main(args):", '\n\nif __name__ == "__main__":\n    main(None)\n'),
    "under if __name__": ('if __name__ == "__main__":', ""),
    "in try/finally": ("try:", "finally:\n    print('done')\n"),
    "in try/except KeyboardInterrupt": ("try:", "except KeyboardInterrupt:\n    print('stopped')\n"),
    "in try/except Exception with print": ("try:", "except Exception as error:\n    print(error)\n    raise\n"),
    "in async def": ("async def main():", ""),
    "in a method": ("class Trainer:\n    def run(self):", "\n\nTrainer().run()\n"),
    "in a test method": ("class TestThings:\n    def test_it(self):", ""),
    "in a nested function": ("def outer():\n    def inner():", "    inner()\n\n\nouter()\n"),
}
#: Another file of the project: its path and its text.
FILES = {
    "helper.py": ("helper.py", "def add(a, b):\n    return a + b\n"),
    "empty __init__.py": ("__init__.py", ""),
    "tests/test_nothing.py": ("tests/test_nothing.py", "def test_nothing():\n    assert True\n"),
    "tests/test_train.py imports train": (
        "tests/test_train.py", "import train\n\n\ndef test_train():\n    assert train\n",
    ),
    "app.py imports train": ("app.py", "import train\n\nprint(train)\n"),
    "setup.py": ("setup.py", "from setuptools import setup\n\nsetup(name='thing', version='1', py_modules=['train'])\n"),
    "requirements.txt": ("requirements.txt", "torch\nnumpy\n"),
    "requirements.txt torch==2.1": ("requirements.txt", "torch==2.1.0\n"),
    "pyproject torch>=2.0": (
        "pyproject.toml", "[project]\nname = 'thing'\nversion = '1'\ndependencies = ['torch>=2.0']\n",
    ),
    "pyproject without torch": (
        "pyproject.toml", "[project]\nname = 'thing'\nversion = '1'\ndependencies = ['numpy']\n",
    ),
    "README.md GPU": ("README.md", "# Thing\n\nRuns on a GPU with CUDA 12.\n"),
    "README.md python train.py": ("README.md", "# Thing\n\n```\npython train.py --gpu 0\n```\n"),
    "Dockerfile nvidia": ("Dockerfile", "FROM nvidia/cuda:12.0\nRUN pip install torch\n"),
    "train.sh": ("train.sh", "CUDA_VISIBLE_DEVICES=0 python train.py\n"),
    "utils.py device=cpu": ("utils.py", "device = 'cpu'\n"),
    "utils.py guarded": (
        "utils.py",
        "import torch\n\n\ndef pick():\n    return torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n",
    ),
    "other.py with a CUDA script": ("other.py", "import torch\n\nx = torch.randn(3).cuda()\nprint(x)\n"),
    "other.py with a CPU script": ("other.py", "import torch\n\nx = torch.randn(3)\nprint(x)\n"),
    "model.py": (
        "model.py",
        "from torch import nn\n\n\nclass OtherNet(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(3, 3)\n\n    def forward(self, x):\n        return self.fc(x)\n",
    ),
    "same names elsewhere": ("lib/train.py", "def main():\n    return 1\n"),
    "config.yaml device: cuda": ("config.yaml", "device: cuda\n"),
    "conftest.py": ("conftest.py", "import pytest\n"),
    "ci": (
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python train.py\n",
    ),
}  # fmt: skip
NAMES = (
    "batch", "imgs", "state", "cpu_data", "foo", "host_x", "indices", "mask", "target", "gpu_x", "cuda_x", "out1", "tmp", "X",
    "data", "dev", "net", "cpu_model", "params", "_x", "my_long_descriptive_name", "args_x", "cache", "ref", "expected", "cuda",
    "gpu",
)  # fmt: skip
FUNCTION_NAMES = (
    "foo", "main", "test_it", "helper", "cuda_helper", "benchmark", "on_cpu", "_private", "to_gpu", "demo", "build", "get",
    "compute_loss", "collate",
)  # fmt: skip
CLASS_NAMES = (
    "Foo", "TestNet", "CudaNet", "Decoder", "MyDataset", "_Hidden", "CPUThing", "Wrapper", "BaseNet", "Demo", "NetMixin",
    "AbstractNet", "Attention",
)  # fmt: skip
_ABOUT_DEVICES = ("Requires a GPU.", "Needs CUDA.", "CPU only.")
ARGUABLE = frozenset(
    {f"{place}: {text}" for place in ("docstring", "comment on top") for text in _ABOUT_DEVICES}
    | {
        "import: import triton", "import: from torch.utils.cpp_extension import load", "import: import torch_xla",
        "import: import cupy", "import: import pycuda.driver as drv", "import: import tensorrt",
        "structure: in def test_it() never called", "structure: in a test method", "file name: test_x.py",
        "file name: x_test.py", "folder: tests/", "second file: pyproject without torch",
        "second file: requirements.txt torch==2.1",
    }
)  # fmt: skip
#: What an inserted line may itself be found for.
MAY_COME = ("DEV201", "DEV202", "DEV205", "DEV206", "DEV211", "DEV501")
_NEW_TENSOR = r"^(\s*)(\w+) = (torch\.(?:randn|zeros|ones|rand|tensor|randperm)\()"
_ARGUMENT_TYPES = {"n": "int", "device": "torch.device", "rows": "list", "i": "int"}


def subject(project: Project) -> str:
    """The path of the program itself among the files of a variation."""
    own = [path for path in project if path.endswith("train.py") and not path.startswith("lib/")]
    return (own or list(project))[0]


def variations_of(source: str) -> Iterator[tuple[str, Project]]:
    """Every variation that applies to a source: its name, "group: what", and the project."""
    for name, change in CHANGES.items():
        project = change(source)
        if project is not None:
            yield name, project
    yield from renamings(source)


def _import_rows(source: str) -> tuple[list[str], int]:
    """The lines, and how many of them end with the last import."""
    rows = source.splitlines(keepends=True)
    last = max((i for i, row in enumerate(rows) if row.startswith(("import ", "from "))), default=-1)
    return rows, last + 1


def after_imports(source: str, text: str) -> str:
    rows, at = _import_rows(source)
    return "".join(rows[:at]) + "\n" + text + "\n" + "".join(rows[at:])


def wrapped(head: str, tail: str) -> Change:
    """A change that puts the body of a program below a head of one or two lines."""
    indent = " " * 4 * len(head.splitlines())

    def change(source: str) -> Project:
        rows, at = _import_rows(source)
        body = textwrap.indent("".join(rows[at:]).strip("\n"), indent)
        return {"train.py": "".join(rows[:at]) + f"\n\n{head}\n{body}\n{tail}"}

    return change


def commented(comment: str) -> Change:
    """A change that writes a comment behind each line but the imports."""

    def change(source: str) -> Project:
        rows = [
            f"{row}  # {comment}" if row.strip() and not row.startswith(("import", "from")) else row
            for row in source.splitlines()
        ]
        return {"train.py": "\n".join(rows) + "\n"}

    return change


def replaced(pattern: str, text: str) -> Change:
    """A change by a regular expression; None where nothing matches."""

    def change(source: str) -> Project | None:
        new = re.sub(pattern, text, source, flags=re.M)
        return {"train.py": new} if new != source else None

    return change


def torch_as_th(source: str) -> Project | None:
    if not re.search(r"^import torch$", source, re.M) or re.search(r"^(import|from) torch\.", source, re.M):
        return None
    return {
        "train.py": re.sub(r"^import torch$", "import torch as th", re.sub(r"\btorch\.", "th.", source), flags=re.M)
    }


def arguments_annotated(source: str) -> Project | None:
    def annotated(argument: str) -> str:
        name = argument.strip()
        if name in ("self", "cls") or ":" in argument or "=" in argument:
            return argument
        return f"{argument}: {_ARGUMENT_TYPES.get(name, 'torch.Tensor')}"

    def head(match: re.Match[str]) -> str:
        return f"def {match[1]}(" + ", ".join(annotated(part) for part in match[2].split(",") if part.strip()) + "):"

    new = re.sub(r"def (\w+)\(([^)]*)\):", head, source)
    return {"train.py": new} if new != source else None


def placed(path: str, others: Project | None = None) -> Change:
    """A change that puts the source at a path, beside other files."""
    return lambda source: {path: source, **(others or {})}


def put_around(before: str = "", after: str = "") -> Change:
    """A change that puts text before and after the source."""
    return lambda source: {"train.py": before + source + after}


def put_after_imports(text: str) -> Change:
    """A change that puts a line below the imports."""
    return lambda source: {"train.py": after_imports(source, text)}


def _changes() -> Iterator[tuple[str, Change]]:
    for name in FILE_NAMES:
        yield f"file name: {name}", placed(name)
    for folder in FOLDERS:
        yield f"folder: {folder}/", placed(f"{folder}/train.py")
    yield "folder: package pkg/ with __init__.py", placed("pkg/train.py", {"pkg/__init__.py": ""})
    for text in HEADINGS:
        yield f"docstring: {text}", put_around(f'"""{text}"""\n\n')
        yield f"comment on top: {text}", put_around(f"# {text}\n")
    for text in COMMENTS:
        yield f"comment on each line: {text}", commented(text)
    yield "blank: two blank lines on top", put_around("\n\n")
    heading = "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\n"
    yield "blank: shebang and coding line", put_around(heading)
    yield "blank: CRLF", lambda source: {"train.py": source.replace("\n", "\r\n")}
    for text in IMPORTS:
        yield f"import: {text}", put_around(f"{text}\n")
    for name, text in LINES.items():
        yield f"line after imports: {name}", put_after_imports(text)
        yield f"line at the end: {name}", put_around(after=f"\n\n{text}\n")
    for name, (head, tail) in WRAPPERS.items():
        yield f"structure: {name}", wrapped(head, tail)
    yield "structure: import torch as th", torch_as_th
    yield "structure: parenthesised right sides", replaced(r"^(\s*)(\w+) = (.+[^\[({,])$", r"\1\2 = (\3)")
    yield "structure: semicolon pass", replaced(r"^(\s*)(\w+) = (.+[^\[({,:])$", r"\1\2 = \3; pass")
    yield "annotation: arguments annotated", arguments_annotated
    yield "annotation: return annotated", replaced(r"(def \w+\([^)]*\)):", r"\1 -> object:")
    yield "annotation: new tensors annotated", replaced(_NEW_TENSOR, r"\1\2: torch.Tensor = \3")
    yield "annotation: model annotated nn.Module", replaced(r"^(\s*)(model) = (nn\.)", r"\1\2: nn.Module = \3")
    yield "annotation: device annotated", replaced(r"^(\s*)(device) = (torch\.)", r"\1\2: torch.device = \3")
    for name, (path, text) in FILES.items():
        yield f"second file: {name}", placed("train.py", {path: text})


CHANGES: dict[str, Change] = dict(_changes())


def renamed(source: str, old: str, new: str) -> str:
    """The source with one bound name renamed. Keyword arguments and attributes of the same spelling stay."""
    rows = source.splitlines(keepends=True)
    spots = set()
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Name) and node.id == old) or (isinstance(node, ast.arg) and node.arg == old):
            spots.add((node.lineno, node.col_offset))
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == old:
            start = node.col_offset + (4 if isinstance(node, ast.FunctionDef) else 6)
            spots.add((node.lineno, rows[node.lineno - 1].index(old, start)))
    for line, column in sorted(spots, reverse=True):
        row = rows[line - 1]
        assert row[column : column + len(old)] == old, (row, column, old)
        rows[line - 1] = row[:column] + new + row[column + len(old) :]
    return "".join(rows)


def renamings(source: str) -> Iterator[tuple[str, Project]]:
    """Every bound name by itself under every other name, functions and classes too."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    arguments = [node.arg for node in nodes if isinstance(node, ast.arg) and node.arg != "self"]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    for old in dict.fromkeys((*stored, *arguments)):
        for new in NAMES:
            if new not in used:
                yield f"name: {new}", {"train.py": renamed(source, old, new)}
    for group, olds, news in (("function name", functions, FUNCTION_NAMES), ("class name", classes, CLASS_NAMES)):
        for old in olds:
            if not old.startswith("__") and old != "forward":
                for new in news:
                    if new != old:
                        yield f"{group}: {new}", {"train.py": renamed(source, old, new)}
