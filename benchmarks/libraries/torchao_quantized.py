"""Weights in int8."""
# uses: torchao

import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).to(device)
quantize_(model, Int8WeightOnlyConfig())
result = model(torch.ones(4, 32, device=device))
assert result.device.type == device
print("= int8", [round(float(each), 3) for each in result.flatten()[:8].cpu()])
