"""Calls that a library or an object makes on the program's behalf: optimizers, autograd functions, hooks, `**batch`, splits.

The program never spells out where the tensors of such a call come from. The protocol does, so that the failure is proved.
"""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, halves, reported

CASES = cases(
    """
## result_of_a_module_that_is_given
class Pair(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
    def forward(self, a):
        return self.encoder(a)

def main():
    model = Pair(nn.Sequential(nn.Linear(2, 2), nn.ReLU())).cuda()
    out = model(torch.rand(3, 2).cuda())
    print(out + torch.rand(3, 2))  # wrong
    print(out + torch.rand(3, 2, device=out.device))  # right
main()

## result_of_a_function_that_is_given
class Evaluator:
    def __init__(self, draw):
        self.draw = draw
    def collect(self):
        return torch.cat([self.draw(4), self.draw(4)])

def main():
    scale = torch.rand(4, device="cuda")
    evaluator = Evaluator(lambda n: torch.rand(n, device="cuda") * scale)
    evaluator.collect().numpy()  # wrong
    evaluator.collect().cpu().numpy()  # right
main()

## result_of_a_class_that_is_given
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
    def forward(self, x):
        return self.layer(x)

def evaluate(model, x):
    out = model(x)
    return out - torch.zeros(3, 2)  # wrong
    return out - torch.zeros_like(out)  # right

def main():
    model = Net().cuda()
    evaluate(model, torch.rand(3, 2).cuda())
main()

## number_beside_a_tensor
class Counter:
    def __init__(self, classes):
        self.classes = classes
        self.seen = torch.zeros(4)  # wrong
        self.seen = torch.zeros(4, device="cuda")  # right
    def update(self, target):
        self.seen += torch.bincount(self.classes * target, minlength=4)

def main():
    counter = Counter(2)
    counter.update(torch.ones(3, dtype=torch.long).cuda())
main()

## groups_of_an_optimizer
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["average"] = torch.zeros(p.shape)  # wrong
                    state["average"] = torch.zeros_like(p)  # right
                state["average"].mul_(0.9).add_(p.grad)

def main():
    model = nn.Linear(2, 2).cuda()
    optimizer = Lion(model.parameters())
    optimizer.step()
main()

## buffers_of_an_optimizer
from torch.optim import Optimizer

class Momentum(Optimizer):
    def __init__(self, params, lr):
        super(Momentum, self).__init__(params, {"lr": lr})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                noise = torch.randn(weight.size())  # wrong
                noise = torch.randn(weight.size(), device=weight.device)  # right
                weight.add_(noise, alpha=group["lr"])

net = nn.Linear(2, 2).to("cuda")
Momentum(net.parameters(), 0.1).step()

## backward_of_a_function
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x)
        return x.sign()
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        window = torch.zeros(x.size())  # wrong
        window = torch.zeros_like(x)  # right
        return grad * window, None

sign = Sign.apply
def main():
    x = torch.rand(3, requires_grad=True, device="cuda")
    sign(x, 1.0).sum().backward()
main()

## backward_that_uses_an_attribute
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.factor = torch.rand(3)  # wrong
        ctx.factor = torch.rand(3, device=x.device)  # right
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3))
    def forward(self, x):
        return Scale.apply(x * self.weight)

def main():
    layer = Layer().cuda()
    layer(torch.rand(3).cuda()).sum().backward()
main()

## batch_as_keywords
from torch.utils.data import DataLoader, Dataset

class Pairs(Dataset):
    def __getitem__(self, index):
        return {"ids": torch.arange(3), "mask": torch.ones(3)}
    def __len__(self):
        return 4

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(4, 2)
    def forward(self, ids, mask, labels=None):
        return self.words(ids) * mask.unsqueeze(-1)

def main():
    model = Net().cuda()
    for batch in DataLoader(Pairs()):
        for tensor in batch.values():  # wrong
            tensor = tensor.cuda()  # wrong
        batch = {key: value.cuda() for key, value in batch.items()}  # right
        model(**batch)
main()

## shadow_of_parameters
class Average:
    def __init__(self, model):
        self.shadow = {}
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                self.shadow[name] = parameter.data.clone()
    def update(self, model):
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                mean = 0.1 * parameter.data + 0.9 * self.shadow[name]
                self.shadow[name] = mean.clone()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    def forward(self, x):
        return self.body(x)

model = Net()
model.cuda()  # right
average = Average(model)
model.cuda()  # wrong
for step in range(3):
    average.update(model)

## parts_of_a_split
from torch.utils.data import DataLoader, TensorDataset, random_split

class Trainer:
    def __init__(self, model, loader):
        self.model = model.cuda()
        self.loader = loader
    def validate(self):
        for x, y in self.loader:
            x = x.cuda()  # right
            self.model(x)

data = TensorDataset(torch.rand(9, 2), torch.rand(9))
train, val = random_split(data, [6, 3])
Trainer(nn.Linear(2, 2), DataLoader(val, 3)).validate()

## subset
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset

def main():
    data = Subset(ConcatDataset([TensorDataset(torch.rand(9, 2))]), [0, 1])
    model = nn.Linear(2, 2).cuda()
    for x, in DataLoader(data):
        x = x.cuda()  # right
        model(x)
main()

## gradients_and_vectors
def product(xs, ys):
    return sum(torch.sum(x * y) for x, y in zip(xs, ys))

class Spectrum:
    def __init__(self, model, loss):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.grads = torch.autograd.grad(loss, self.params, create_graph=True)
    def largest(self):
        v = [torch.randn(p.size()) for p in self.params]  # wrong
        v = [torch.randn_like(p) for p in self.params]  # right
        return product(self.grads, v)

model = nn.Linear(2, 2).cuda()
loss = model(torch.rand(3, 2, device="cuda")).sum()
Spectrum(model, loss).largest()

## items_of_two_paths
class Pool:
    def __init__(self):
        self.images = []
    def query(self, images):
        found = []
        for image in images:
            if len(self.images) < 4:
                self.images.append(image.cpu())  # wrong
                self.images.append(image)  # right
                found.append(image)
            else:
                found.append(self.images[0].clone())
        return torch.cat(found, 0)

def main():
    pool = Pool()
    for step in range(9):
        pool.query(torch.rand(2, 3, device="cuda"))
main()

## features_of_a_hook
class Features:
    def __init__(self, layer):
        self.found = []
        layer.register_forward_hook(self.hook)
    def hook(self, module, inputs, output):
        self.found.append(output.detach().cpu())  # wrong
        self.found.append(output.detach())  # right
    def collect(self):
        return torch.cat(self.found)

def main():
    model = nn.Linear(2, 2).cuda()
    features = Features(model)
    labels = model(torch.rand(3, 2).cuda())
    print(features.collect() + labels)
main()

## functional_call
from torch.func import functional_call

def main():
    model = nn.Linear(1, 1).cuda()
    weights = dict(model.named_parameters())
    x, y = torch.rand(3, 1), torch.rand(3, 1)
    x = x.cuda()
    y = y.cuda()  # right
    nn.functional.mse_loss(functional_call(model, weights, (x,)), y)
main()

## module_that_applies_a_function
def initialise(m):
    if isinstance(m, nn.Linear):
        nn.init.zeros_(m.weight)

net = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).to("cuda")
net.apply(initialise)
noise = torch.randn(3, 2)
noise = noise.to("cuda")  # right
net(noise)
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_failure_behind_a_protocol_is_proved(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_repaired_twin_is_silent(text: str) -> None:
    assert not reported(text)
