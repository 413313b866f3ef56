# The finding is right, but a model's output record has no `.device`: a fix takes a tensor of it, or the model's device.
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Output:
    scores: torch.Tensor


class Scorer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> Output:
        return Output(self.fc(x))


class Ranker:
    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.model = Scorer().to(device)

    def rank(self, rows: list[list[float]]) -> torch.Tensor:
        x = torch.tensor(rows)
        keep = torch.ones(len(rows), 1)
        found = self.model(x.to(self.device))
        return found.scores * keep


print("ok", Ranker().rank([[1.0, 2.0, 3.0]]).shape)
