"""Whole training programs: they run on the simulated card and compute what plain CPU computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate

pytestmark = pytest.mark.runtime

Program = Callable[[str], list[float]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small programs gain nothing from more, and sums stay in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(
    model: nn.Module, batch: Callable[[], tuple[torch.Tensor, torch.Tensor]], device: str, name: str = "SGD"
) -> list[float]:
    """Three steps of cross entropy; the losses."""
    model.to(device)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        inputs, labels = (tensor.to(device) for tensor in batch())
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def mlp(device: str) -> list[float]:
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
    return train(model, lambda: (torch.randn(16, 20), torch.randint(0, 4, (16,))), device, "Adam")


def mlp_adamw_one_by_one(device: str) -> list[float]:
    model = nn.Linear(20, 4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    losses = []
    for _ in range(3):
        loss = model(torch.randn(8, 20).to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def cnn(device: str) -> list[float]:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)]
    return train(nn.Sequential(*layers), lambda: (torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))), device)


class Recurrent(nn.Module):  # type: ignore[misc]
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.core = kind(16, 24, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(24, 30)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        output, _ = self.core(self.embed(tokens))
        return self.head(output[:, -1])


def recurrent(kind: type[nn.RNNBase]) -> Program:
    def run(device: str) -> list[float]:
        return train(Recurrent(kind), lambda: (torch.randint(0, 30, (5, 7)), torch.randint(0, 30, (5,))), device)

    return run


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.core = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 30)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1), device=tokens.device)
        return self.head(self.core(self.embed(tokens), mask=mask).mean(1))


def attention(device: str) -> list[float]:
    return train(Attention(), lambda: (torch.randint(0, 30, (4, 6)), torch.randint(0, 30, (4,))), device, "AdamW")


def packed_sequences(device: str) -> list[float]:
    core = nn.LSTM(8, 6, batch_first=True).to(device)
    packed = nn.utils.rnn.pack_padded_sequence(
        torch.randn(3, 6, 8).to(device), torch.tensor([6, 4, 2]), batch_first=True
    )
    output, lengths = nn.utils.rnn.pad_packed_sequence(core(packed)[0], batch_first=True)
    assert str(lengths.device) == "cpu"
    output.sum().backward()
    assert core.weight_ih_l0.grad is not None
    return [output.sum().item(), core.weight_ih_l0.grad.sum().item()]


def loader_and_evaluation(device: str) -> list[float]:
    inputs = torch.randn(64, 10)
    loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=16, shuffle=True)
    model = nn.Linear(10, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    total = 0.0
    for batch, labels in loader:
        batch, labels = batch.to(device, non_blocking=True), labels.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(batch), labels, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.inference_mode():
        scores = model(inputs.to(device)).softmax(1)
    return [total, (scores.argmax(1).cpu() == (inputs.sum(1) > 0)).float().mean().item()]


PROGRAMS: dict[str, Program] = {
    "mlp with adam": mlp,
    "mlp with adamw, one by one": mlp_adamw_one_by_one,
    "cnn": cnn,
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "rnn": recurrent(nn.RNN),
    "attention": attention,
    "packed sequences": packed_sequences,
    "loader and evaluation": loader_and_evaluation,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("spec", [DeviceSpec("cuda", 1), DeviceSpec("xpu", 2), DeviceSpec("mps", 1)], ids=str)
def test_program_computes_the_same(name: str, spec: DeviceSpec) -> None:
    program = PROGRAMS[name]
    torch.manual_seed(0)
    expected = program("cpu")
    recorder = Recorder([__file__])
    with simulate(spec, recorder):
        torch.manual_seed(0)
        losses = program(spec.kind)

    assert losses == pytest.approx(expected, rel=1e-5)
    assert [event for event in recorder.events() if event.kind == "fault"] == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mixed_precision_with_scaling(dtype: torch.dtype) -> None:
    with simulate():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda")
        losses = []
        for _ in range(4):
            images, labels = torch.ones(8, 3, 8, 8, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda")
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=dtype):
                scores = model(images)
                loss = F.cross_entropy(scores, labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        assert (scores.dtype, loss.dtype) == (dtype, torch.float32)
        assert losses[-1] < losses[0]
        assert str(loss.device) == "cuda:0"


def autocast_dtypes(device: str) -> dict[str, torch.dtype]:
    x = torch.randn(4, 8, device=device)
    with torch.autocast(device, dtype=torch.float16):
        low = x @ x.t()
        return {
            "matmul": low.dtype,
            "linear": nn.Linear(8, 2).to(device)(x).dtype,
            "einsum": torch.einsum("ij,kj->ik", x, x).dtype,
            "lstm cell": nn.LSTMCell(8, 8).to(device)(x)[0].dtype,
            "softmax": low.softmax(1).dtype,
            "softmax asked for": low.softmax(1, dtype=torch.float16).dtype,
            "layer norm": F.layer_norm(low, (4,)).dtype,
            "sum": low.sum().dtype,
            "exp": low.exp().dtype,
            "power": (low**2).dtype,
            "loss": F.mse_loss(low, low).dtype,
            "relu": low.relu().dtype,
            "mean": low.mean().dtype,
            "stack": torch.stack([low, torch.ones(4, 4, device=device)]).dtype,
        }


def test_autocast_follows_the_policy_of_cuda() -> None:
    with simulate():
        dtypes = autocast_dtypes("cuda")

    half = {name for name, dtype in dtypes.items() if dtype == torch.float16}
    assert half == {"matmul", "linear", "einsum", "lstm cell", "softmax asked for", "relu", "mean"}
    assert set(dtypes.values()) == {torch.float16, torch.float32}


def test_loss_that_autocast_forbids() -> None:
    with simulate():
        probabilities = torch.rand(3, device="cuda")
        with torch.autocast("cuda"), pytest.raises(RuntimeError, match="BCELoss are unsafe to autocast"):
            F.binary_cross_entropy(probabilities, probabilities)
        F.binary_cross_entropy(probabilities, probabilities)


def test_autocast_of_the_cpu_is_its_own_again() -> None:
    def probe() -> torch.dtype:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (torch.randn(4, 4) @ torch.randn(4, 4)).softmax(1).dtype

    before = probe()
    with simulate():
        autocast_dtypes("cuda")
        inside = probe()
    assert not torch.is_autocast_enabled("cpu")
    assert probe() == before == inside


def test_nested_region_switched_off() -> None:
    with simulate():
        x = torch.randn(4, 4, device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            with torch.autocast("cuda", enabled=False):
                assert (x @ x).dtype == torch.float32
            assert (x @ x).dtype == torch.float16
        assert (x @ x).dtype == torch.float32


def test_checkpoint_and_resume(tmp_path: Path) -> None:
    with simulate(DeviceSpec("cuda", 2)):
        model = nn.Linear(4, 4).cuda()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "state.pt")

        state = torch.load(tmp_path / "state.pt", map_location="cpu")
        resumed = nn.Linear(4, 4).to("cuda:1")
        resumed.load_state_dict(state["model"])
        again = torch.optim.Adam(resumed.parameters())
        again.load_state_dict(state["optimizer"])
        resumed(torch.randn(2, 4, device="cuda:1")).sum().backward()
        again.step()

        assert str(state["model"]["weight"].device) == "cpu"
        assert str(again.state[resumed.weight]["exp_avg"].device) == "cuda:1"


def test_model_over_two_cards() -> None:
    with simulate(DeviceSpec("cuda", 2)):
        first, second = nn.Linear(8, 8).to("cuda:0"), nn.Linear(8, 2).to("cuda:1")
        optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters()])
        loss = second(first(torch.randn(4, 8, device="cuda:0")).to("cuda:1")).sum()
        loss.backward()
        optimizer.step()

        assert [str(layer.weight.grad.device) for layer in (first, second)] == ["cuda:0", "cuda:1"]
