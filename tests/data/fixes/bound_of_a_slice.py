# Lengths on the CPU that only bound slices of a card's tensor: no error, and moving them makes every bound a read of the card.
import torch
from torch import nn


class Means(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, wave: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        wave = wave * self.gain
        ends = lengths.cumsum(0)
        starts = ends - lengths
        return torch.stack([wave[a:b].mean() for a, b in zip(starts, ends, strict=True)])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
means = Means().to(device)
print("ok", means(torch.ones(5).to(device), torch.LongTensor([2, 3])))
