"""Obviously faulty snippets by name: the rule that must name the bug, and the source, a program of about ten lines."""

from __future__ import annotations

SNIPPETS: dict[str, tuple[str, str]] = {
    "mixed_add": (
        "DEV101",
        """\
import torch

device = torch.device("cuda")
weights = torch.randn(4, 8, device=device)
bias = torch.zeros(8)
total = weights + bias
print(total.sum())
""",
    ),
    "mixed_matmul_fn": (
        "DEV101",
        """\
import torch


def project(n):
    left = torch.randn(n, 8).cuda()
    right = torch.randn(8, n)
    return torch.matmul(left, right)


print(project(4).shape)
""",
    ),
    "new_tensor_arg": (
        "DEV102",
        """\
import torch


def add_noise(x):
    noise = torch.randn(x.shape)
    return x + noise
""",
    ),
    "new_tensor_forward": (
        "DEV102",
        """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        h = torch.zeros(x.size(0), 8)
        return self.fc(x) + h
""",
    ),
    "input_left_behind": (
        "DEV103",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
x = torch.randn(4, 8)
out = model(x)
print(out)
""",
    ),
    "loader_left_behind": (
        "DEV103",
        """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), batch_size=8)
model = nn.Linear(8, 2).to(device)
criterion = nn.CrossEntropyLoss()
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
""",
    ),
    "index_mismatch": (
        "DEV104",
        """\
import torch

scores = torch.randn(10, 5)
order = torch.randperm(10, device="cuda")
shuffled = scores[order]
print(shuffled)
""",
    ),
    "discarded_to": (
        "DEV105",
        """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(4, 8)
x.to(device)
print(x.sum())
""",
    ),
    "unregistered_tensor": (
        "DEV106",
        """\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.ones(8)

    def forward(self, x):
        return x * self.scale
""",
    ),
    "unregistered_module": (
        "DEV107",
        """\
import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8) for _ in range(3)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
""",
    ),
    "transferred_parameter": (
        "DEV108",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
w = torch.randn(8, 2, requires_grad=True).to(device)
optimizer = torch.optim.SGD([w], lr=0.1)
loss = (torch.randn(4, 8, device=device) @ w).sum()
loss.backward()
optimizer.step()
""",
    ),
    "host_conversion": (
        "DEV109",
        """\
import torch

device = torch.device("cuda")
x = torch.randn(4, 8, device=device)
array = x.numpy()
print(array.mean())
""",
    ),
    "host_plot": (
        "DEV109",
        """\
import matplotlib.pyplot as plt
import torch

losses = torch.rand(100, device="cuda")
plt.plot(losses)
plt.show()
""",
    ),
    "generator": (
        "DEV110",
        """\
import torch

generator = torch.Generator()
generator.manual_seed(0)
noise = torch.randn(4, 8, generator=generator, device="cuda")
print(noise)
""",
    ),
    "optimizer_before_move": (
        "DEV111",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2)
optimizer = torch.optim.Adam(model.parameters())
optimizer.load_state_dict(torch.load("opt.pt", map_location="cpu"))
model.to(device)
optimizer.step()
""",
    ),
    "lengths": (
        "DEV112",
        """\
import torch
from torch.nn.utils.rnn import pack_padded_sequence

device = torch.device("cuda")
x = torch.randn(4, 10, 8, device=device)
lengths = torch.tensor([10, 8, 6, 4], device=device)
packed = pack_padded_sequence(x, lengths, batch_first=True)
print(packed.data.shape)
""",
    ),
    "stale_alias": (
        "DEV113",
        """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.center = self.mean

    def forward(self, x):
        return x - self.center
""",
    ),
    "hardcoded_device": (
        "DEV201",
        """\
import torch
from torch import nn

model = nn.Linear(8, 2).to("cuda:0")
x = torch.randn(4, 8, device="cuda:0")
print(model(x).shape)
""",
    ),
    "hardcoded_torch_device": (
        "DEV201",
        """\
import torch

device = torch.device("cuda:0")
x = torch.ones(5, device=device)
print(x)
""",
    ),
    "cuda_method": (
        "DEV202",
        """\
import torch
from torch import nn

model = nn.Linear(8, 2).cuda()
x = torch.randn(4, 8).cuda()
print(model(x).shape)
""",
    ),
    "legacy_type": (
        "DEV203",
        """\
import torch

x = torch.cuda.FloatTensor(4, 8).fill_(0)
y = x * 2
print(y.sum())
""",
    ),
    "default_type": (
        "DEV204",
        """\
import torch

torch.set_default_tensor_type("torch.cuda.FloatTensor")
x = torch.randn(4, 8)
print(x.sum())
""",
    ),
    "cuda_api_unguarded": (
        "DEV205",
        """\
import torch

print(torch.cuda.get_device_name(0))
torch.cuda.synchronize()
x = torch.randn(4, 8)
print(x.sum())
""",
    ),
    "cuda_only_api": (
        "DEV206",
        """\
import torch

if torch.cuda.is_available():
    torch.cuda.synchronize()
    print(torch.cuda.memory_allocated())
""",
    ),
    "device_comparison": (
        "DEV207",
        """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(4, 8, device=device)
if x.device == "cuda":
    print("on the GPU")
""",
    ),
    "load_no_map": (
        "DEV208",
        """\
import torch
from torch import nn

model = nn.Linear(8, 2)
model.load_state_dict(torch.load("model.pt"))
model.eval()
""",
    ),
    "amp": (
        "DEV209",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
scaler = torch.cuda.amp.GradScaler()
with torch.cuda.amp.autocast():
    out = model(torch.randn(4, 8, device=device))
print(out)
""",
    ),
    "nccl": (
        "DEV210",
        """\
import torch
import torch.distributed as dist

dist.init_process_group(backend="nccl")
rank = dist.get_rank()
print(rank)
""",
    ),
    "cuda_only_selection": (
        "DEV211",
        """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(4, 8, device=device)
print(x)
""",
    ),
    "accelerator_unguarded": (
        "DEV212",
        """\
import torch

device = torch.accelerator.current_accelerator()
x = torch.randn(4, 8, device=device.type)
torch.accelerator.synchronize()
print(x)
""",
    ),
    "default_param": (
        "DEV213",
        """\
import torch


def make_mask(n, device="cuda"):
    return torch.ones(n, n, device=device).tril()


print(make_mask(4))
""",
    ),
    "float64_mps": (
        "DEV214",
        """\
import torch

device = torch.device("mps" if torch.backends.mps.is_available() else "cpu")
x = torch.randn(4, 8, dtype=torch.float64, device=device)
print(x)
""",
    ),
    "cuda_required": (
        "DEV215",
        """\
import torch

if not torch.cuda.is_available():
    raise RuntimeError("CUDA is required")
x = torch.randn(4, 8)
print(x)
""",
    ),
    "optimizer_to": (
        "DEV301",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.to(device)
""",
    ),
    "loader_to": (
        "DEV301",
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8)
loader = loader.to(device)
for (x,) in loader:
    print(x.sum())
""",
    ),
    "no_such_function": (
        "DEV302",
        """\
import torch

if torch.cuda.available():
    device = torch.device("cuda")
else:
    device = torch.device("cpu")
print(device)
""",
    ),
    "wrong_device_arg": (
        "DEV303",
        """\
import torch
from torch import nn

model = nn.Linear(8, 2)
model.to(device="gpu")
x = torch.randn(4, 8, device=torch.cuda.is_available())
print(model(x))
""",
    ),
    "index_as_device": (
        "DEV305",
        """\
import torch

x = torch.randn(4, 8)
y = torch.zeros(4, 8, device=x.get_device())
print(x + y)
""",
    ),
    "deprecated_api": (
        "DEV306",
        """\
import torch

if torch.cuda.is_available():
    torch.cuda.reset_max_memory_allocated()
    x = torch.randn(4, 8, device="cuda")
    print(torch.cuda.memory_cached())
""",
    ),
    "ignored_device": (
        "DEV307",
        """\
import torch


def make_mask(n, device):
    mask = torch.ones(n, n, device="cuda")
    return mask.tril()
""",
    ),
    "timing": (
        "DEV401",
        """\
import time
import torch

device = torch.device("cuda")
a = torch.randn(4096, 4096, device=device)
start = time.time()
b = a @ a
print(time.time() - start)
""",
    ),
    "event": (
        "DEV402",
        """\
import torch

start = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
a = torch.randn(4096, 4096, device="cuda")
start.record()
b = a @ a
end.record()
print(start.elapsed_time(end))
""",
    ),
    "cold_timing": (
        "DEV403",
        """\
import time
import torch

start = time.time()
a = torch.randn(4096, 4096, device="cuda")
b = a @ a
torch.cuda.synchronize()
print(time.time() - start)
""",
    ),
    "create_then_move": (
        "DEV501",
        """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
mask = torch.ones(512, 512).to(device)
print(mask.sum())
""",
    ),
    "sync_in_loop": (
        "DEV502",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
""",
    ),
    "transfer_in_loop": (
        "DEV503",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 8).to(device)
table = torch.randn(8, 8)
x = torch.randn(4, 8, device=device)
for step in range(100):
    x = model(x) @ table.to(device)
print(x)
""",
    ),
    "non_blocking_unpinned": (
        "DEV504",
        """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8)
model = nn.Linear(8, 2).to(device)
for (x,) in loader:
    x = x.to(device, non_blocking=True)
    print(model(x).sum())
""",
    ),
    "non_blocking_host": (
        "DEV505",
        """\
import torch

device = torch.device("cuda")
x = torch.randn(4, 8, device=device)
host = x.to("cpu", non_blocking=True)
print(host.numpy())
""",
    ),
    "empty_cache": (
        "DEV506",
        """\
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Linear(8, 8).to(device)
x = torch.randn(4, 8, device=device)
for step in range(100):
    x = model(x).detach()
    torch.cuda.empty_cache()
""",
    ),
    "round_trip": (
        "DEV507",
        """\
import torch

device = torch.device("cuda")
x = torch.randn(4, 8, device=device)
y = torch.from_numpy(x.cpu().numpy()).to(device)
print(y.sum())
""",
    ),
    "graph_retained": (
        "DEV508",
        """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss)
print(sum(losses) / len(losses))
""",
    ),
    "pin_misuse": (
        "DEV509",
        """\
import torch

device = torch.device("cuda")
x = torch.randn(4, 8, device=device)
x = x.pin_memory()
print(x.sum())
""",
    ),
    "stream": (
        "DEV510",
        """\
import torch

a = torch.randn(1024, 1024, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    b = a @ a
c = b + 1
print(c.sum())
""",
    ),
    "data_parallel": (
        "DEV601",
        """\
import torch
from torch import nn

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
model = nn.DataParallel(model, device_ids=[0, 1])
out = model(torch.randn(4, 8, device=device))
print(out)
""",
    ),
    "ddp_ids": (
        "DEV602",
        """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(8, 2).to(rank)
model = DistributedDataParallel(model, device_ids=[0, 1])
""",
    ),
    "rank_index": (
        "DEV603",
        """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(8, 2).to(f"cuda:{rank}")
model = DistributedDataParallel(model, device_ids=[rank])
print(model)
""",
    ),
    "visible_late": (
        "DEV604",
        """\
import os
import torch

print(torch.cuda.is_available(), torch.cuda.device_count())
x = torch.zeros(1, device="cuda")
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
y = torch.ones(1, device="cuda")
""",
    ),
    "worker_device": (
        "DEV605",
        """\
import torch
from torch.utils.data import Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i]).to(device)
""",
    ),
    "current_card": (
        "DEV606",
        """\
import torch


def totals(x: torch.Tensor):
    if x.is_cuda:
        return x.cpu().cumsum(0).cuda()
    return x.cumsum(0)
""",
    ),
    "card_not_visible": (
        "DEV607",
        """\
import os

os.environ["CUDA_VISIBLE_DEVICES"] = "1"

import torch

device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
print(torch.ones(3, device=device))
""",
    ),
}
