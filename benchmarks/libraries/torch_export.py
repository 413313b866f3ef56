"""`torch.export`, `make_fx`, `torch.cond` and flex_attention."""

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

device = "cuda" if torch.cuda.is_available() else "cpu"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x).softmax(-1) + torch.ones(3, device=x.device)


def show(name, value):
    assert value.device.type == device, name
    print("=", name, [round(float(each), 4) for each in value.detach().flatten()[:8].cpu()])


torch.manual_seed(0)
model, x = Model().to(device), torch.randn(2, 3).to(device)
show("export", torch.export.export(model, (x,)).module()(x))
show("make_fx", make_fx(lambda t: t.sin() + torch.ones(3, device=t.device))(x)(x))
show("cond", torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,)))
q = torch.randn(1, 2, 128, 16).to(device)
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device=device)
show("flex_attention", flex_attention(q, q, q, block_mask=mask))
