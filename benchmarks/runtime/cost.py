"""What the simulation costs: small training loops against plain CPU and against an empty dispatch mode.

Each figure is the least CPU time of several alternating runs in one process, on one thread.  The MLP loop is
compared with an *empty* TorchDispatchMode, which is what any observer of operators pays; the CNN with
plain CPU.  Start-up is measured in fresh processes, beyond importing torch.

    python benchmarks/runtime/cost.py [--repeat 7]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import simulate

Loop = Callable[[str], None]


class EmptyMode(TorchDispatchMode):
    """Passes every operator on."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def mlp(optimizer_of: Callable[[Any], Any]) -> Loop:
    """One epoch of a three-layer classifier over 4,000 samples in batches of 64, with accuracy per batch."""
    inputs = torch.randn(4000, 20)
    loader = DataLoader(TensorDataset(inputs, (inputs[:, :5].sum(1) > 0).long()), batch_size=64, shuffle=True)

    def run(device: str) -> None:
        torch.manual_seed(0)
        layers = (nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
        model = nn.Sequential(*layers).to(device)
        optimizer = optimizer_of(model.parameters())
        correct = 0
        for batch, labels in loader:
            batch, labels = batch.to(device), labels.to(device)
            optimizer.zero_grad()
            scores = model(batch)
            F.cross_entropy(scores, labels).backward()
            optimizer.step()
            correct += int((scores.argmax(1) == labels).sum().item())

    return run


class SmallCNN(nn.Module):
    """Two convolutions with batch norm, dropout and one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.second, self.second_norm = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(32 * 8 * 8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = F.max_pool2d(F.relu(self.first_norm(self.first(images))), 2)
        hidden = F.max_pool2d(F.relu(self.second_norm(self.second(hidden))), 2)
        return self.head(self.dropout(hidden.flatten(1)))


def cnn(batch_size: int) -> Loop:
    """Sixteen steps on 32x32 images, with gradient clipping."""
    images = torch.randn(batch_size * 8, 3, 32, 32)
    labels = torch.randint(0, 10, (batch_size * 8,))

    def run(device: str) -> None:
        torch.manual_seed(0)
        model = SmallCNN().to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
        for step in range(16):
            part = slice(step % 8 * batch_size, (step % 8 + 1) * batch_size)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[part].to(device)), labels[part].to(device))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        loss.item()

    return run


def least(loop: Loop, device: str, context: Callable[[], AbstractContextManager[Any]]) -> float:
    with context():
        started = time.thread_time()
        loop(device)
        return time.thread_time() - started


def simulation(kernel_lines: bool) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: simulate(recorder=Recorder([Path(__file__).parent], kernel_lines=kernel_lines))


@contextmanager
def with_unwritten_memory() -> Iterator[None]:
    """Simulated, while something on the card is allocated and not written, so that every operator is looked at."""
    with simulation(True)():
        kept = torch.empty(1, device="cuda")
        yield
        del kept


def compare(name: str, loop: Loop, repeat: int) -> None:
    ways: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
        "plain": ("cpu", nullcontext),
        "empty mode": ("cpu", EmptyMode),
        "simulated": ("cuda", simulation(False)),
        "simulated with lines": ("cuda", simulation(True)),
        "with unwritten memory": ("cuda", with_unwritten_memory),
    }
    times = dict.fromkeys(ways, float("inf"))
    for _ in range(repeat):
        for way, (device, context) in ways.items():
            times[way] = min(times[way], least(loop, device, context))
    plain, empty = times["plain"], times["empty mode"]
    print(f"{name}: " + ", ".join(f"{way} {1e3 * seconds:.1f} ms" for way, seconds in times.items()))
    for way in ("simulated", "simulated with lines"):
        print(f"    {way}: {times[way] / plain:.2f} x plain, {times[way] / empty:.2f} x empty mode")
    print(
        f"    looking for unwritten memory: {times['with unwritten memory'] / times['simulated with lines']:.2f} x without"
    )


def start_up(repeat: int) -> None:
    only_torch = "import torch"
    simulated = "import torch; from devlint.runtime.simulator import simulate; simulate().__enter__()"
    times = {only_torch: float("inf"), simulated: float("inf")}
    for _ in range(repeat):
        for program in times:
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times[program] = min(times[program], time.perf_counter() - started)
    print(
        f"start-up over importing torch: {times[simulated] - times[only_torch]:.2f} s "
        f"(torch alone {times[only_torch]:.2f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    repeat = parser.parse_args().repeat
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, one thread, least of {repeat}")
    compare("MLP, Adam", mlp(lambda parameters: torch.optim.Adam(parameters, lr=1e-3)), repeat)
    compare("MLP, SGD", mlp(lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9)), repeat)
    compare("CNN, batch 32", cnn(32), repeat)
    compare("CNN, batch 8", cnn(8), repeat)
    start_up(min(repeat, 3))


if __name__ == "__main__":
    main()
