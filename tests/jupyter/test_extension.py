"""`%load_ext devlint` in a real kernel: what stands under a cell, what a cell is checked for, and what is left after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="needs ipykernel")
manager = pytest.importorskip("jupyter_client.manager", reason="needs jupyter_client")

pytestmark = pytest.mark.slow
LONGEST = 120  # seconds for one cell
LOAD = "%load_ext devlint"
#: Raises what torch raises on a machine with a card, without one: the kernel of the tests has no torch.
TORCH = """
class Parameter:
    def __init__(self, device): self.device = device
class Tensor:
    def __init__(self, *size, device="cpu"): self.device = device
    def __add__(self, other):
        if self.device != other.device:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                               f"{self.device}:0 and {other.device}!")
        return self
zeros = ones = randn = Tensor
"""


@dataclass
class Said:
    """What a cell printed, what it showed, and its error."""

    printed: str = ""
    shown: list[dict[str, str]] = field(default_factory=list)
    error: str = ""
    order: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(each["text/plain"] for each in self.shown)

    @property
    def markdown(self) -> str:
        return "\n".join(each["text/markdown"] for each in self.shown)


class Kernel:
    """A kernel of its own, and the client that talks to it."""

    def __init__(self, folder: Path) -> None:
        self._manager, self._client = manager.start_new_kernel(kernel_name="python3", cwd=str(folder))

    def run(self, code: str, cell_id: str | None = None) -> Said:
        """Run a cell as a notebook does."""
        metadata = {"cellId": cell_id} if cell_id else {}
        message = self._client.session.msg("execute_request", self._content(code), metadata=metadata)
        self._client.shell_channel.send(message)
        said, end = Said(), time.monotonic() + LONGEST
        while time.monotonic() < end:
            reply = self._client.get_iopub_msg(timeout=LONGEST)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            kind, content = reply["msg_type"], reply["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return said
            self._take(said, kind, content)
        raise TimeoutError(code)

    @staticmethod
    def _content(code: str) -> dict[str, Any]:
        return {
            "code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False,
        }  # fmt: skip

    @staticmethod
    def _take(said: Said, kind: str, content: dict[str, Any]) -> None:
        if kind in ("stream", "display_data", "error"):
            said.order.append(kind)
        if kind == "stream":
            said.printed += content["text"]
        elif kind == "display_data":
            said.shown.append(content["data"])
        elif kind == "error":
            said.error = f"{content['ename']}: {content['evalue']}"

    def end(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "site-packages" / "torch").mkdir(parents=True)
    (folder / "site-packages" / "torch" / "__init__.py").write_text(TORCH, encoding="utf-8")
    (folder / "steps.py").write_text(
        "import torch\n\n\ndef shift(x):\n    noise = torch.zeros(3)\n    return x + noise\n", encoding="utf-8"
    )
    kernel = Kernel(folder)
    kernel.run(f"import sys\nsys.path.insert(0, {str(folder / 'site-packages')!r})")
    yield kernel
    kernel.end()


@pytest.fixture
def kernel(own: Kernel) -> Iterator[Kernel]:
    """The kernel with the extension loaded and nothing else of earlier tests."""
    own.run(f"%unload_ext devlint\n%reset -f in out\n%reset -f\n{LOAD}")
    yield own


def test_a_device_error_is_explained_under_the_traceback(kernel: Kernel) -> None:
    kernel.run("import torch\nx = torch.ones(3, device='cuda')")
    said = kernel.run("h = torch.zeros(3)\ny = x + h")
    assert said.error.startswith("RuntimeError: Expected all tensors")
    assert said.order == ["error", "display_data"]
    assert "cause:  the operands of the operation are on cuda:0 and on the CPU" in said.text
    assert "DEV102 `torch.zeros` makes a CPU tensor" in said.text


def test_the_fix_is_a_diff(kernel: Kernel) -> None:
    kernel.run("import torch\nx = torch.ones(3, device='cuda')")
    said = kernel.run("h = torch.zeros(3)\ny = x + h")
    assert "```diff\n" in said.markdown
    assert "\n-h = torch.zeros(3)\n+h = torch.zeros(3, device=" in said.markdown


def test_the_cause_in_an_earlier_cell(kernel: Kernel) -> None:
    kernel.run("import torch\nx = torch.ones(3, device='cuda')\nh = torch.zeros(3)")
    said = kernel.run("%xmode Minimal\ny = x + h")
    assert "h = torch.zeros(3)" in said.text
    kernel.run("%xmode Context")


def test_a_function_of_an_earlier_cell(kernel: Kernel) -> None:
    kernel.run("import torch\ndef shift(x):\n    noise = torch.zeros(3)\n    return x + noise")
    said = kernel.run("shift(torch.ones(3, device='cuda'))")
    assert "in shift" in said.text
    assert "noise = torch.zeros(3)" in said.text


def test_a_module_of_the_folder(kernel: Kernel) -> None:
    said = kernel.run("import torch\nfrom steps import shift\nshift(torch.ones(3, device='cuda'))")
    assert "where:  steps.py:6 in shift" in said.text
    assert "--- a/steps.py" in said.markdown
    assert '+    noise = noise.to("cuda")' in said.markdown


def test_a_cell_that_runs_again_counts_as_it_is_now(kernel: Kernel) -> None:
    kernel.run("import torch\nx = torch.ones(3, device='cuda')", "one")
    kernel.run("h = torch.zeros(3)\ny = x + h", "two")
    said = kernel.run("h = torch.zeros(4)\ny = x + h", "two")
    assert "torch.zeros(4)" in said.text
    assert "torch.zeros(3)" not in said.text


@pytest.mark.parametrize("cell", ["1 / 0", "raise RuntimeError('no')", "def f(:", "x = 1", "%nothing", "!true"])
def test_nothing_under_other_cells(kernel: Kernel, cell: str) -> None:
    assert kernel.run(cell).shown == []


def test_the_lint_of_a_cell_that_is_not_run(kernel: Kernel) -> None:
    kernel.run("import torch")
    said = kernel.run("%%devlint\nran = torch.zeros(3).to('cuda')")
    assert "line 2: DEV501" in said.text
    assert "+ran = torch.zeros(3, device='cuda')" in said.markdown
    assert kernel.run("'ran' in dir()").error == ""
    assert "NameError" in kernel.run("ran").error


def test_the_lint_of_the_cells_that_ran(kernel: Kernel) -> None:
    kernel.run("import torch")
    kernel.run("a = torch.zeros(3).to('cuda')")
    kernel.run("b = 1")
    assert "DEV501" in kernel.run("%devlint").text


def test_the_lint_of_one_cell_by_its_number(kernel: Kernel) -> None:
    kernel.run("import torch\nb = 1")
    number = int(kernel.run("print(get_ipython().execution_count)").printed)
    kernel.run("a = torch.zeros(3).to('cuda')")
    assert kernel.run(f"%devlint {number - 1}-{number}").text == "devlint finds nothing."
    assert "DEV501" in kernel.run(f"%devlint {number + 1}").text


def test_a_word_that_names_no_cell(kernel: Kernel) -> None:
    assert "`%devlint` takes numbers of cells" in kernel.run("%devlint now").printed


def test_nothing_is_left_after_unload(kernel: Kernel) -> None:
    kernel.run("import torch")
    kernel.run("%unload_ext devlint")
    said = kernel.run("torch.ones(3, device='cuda') + torch.zeros(3)")
    assert (said.shown, said.order) == ([], ["error"])
    assert "not found" in kernel.run("%devlint").printed
    left = kernel.run(
        "shell = get_ipython()\n"
        "print([f for fs in shell.events.callbacks.values() for f in fs if 'devlint' in repr(f)],\n"
        "      [n for n in (*vars(shell), *vars(shell.magics_manager.user_magics)) if 'devlint' in n])"
    )
    assert left.printed.strip() == "[] []"


def test_loaded_again_it_answers_once(kernel: Kernel) -> None:
    kernel.run(LOAD)
    kernel.run("%reload_ext devlint")
    assert len(kernel.run("import torch\ntorch.ones(3, device='cuda') + torch.zeros(3)").shown) == 1
