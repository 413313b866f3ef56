"""Nested tensors of both layouts."""

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
parts = [torch.randn(2, 3), torch.randn(4, 3)]
layer = torch.nn.Linear(3, 2).to(device)
for layout in (torch.strided, torch.jagged):
    nested = torch.nested.nested_tensor([part.to(device) for part in parts], layout=layout)
    padded = (layer(nested) * 2).to_padded_tensor(0.0)
    assert padded.device.type == device
    print("=", layout, [round(float(each), 4) for each in padded.flatten().cpu()])
