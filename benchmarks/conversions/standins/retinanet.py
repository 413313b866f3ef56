"""Stand-in for the labelled images of retinanet, encoded by the program's own encoder, and a checkpoint to start from."""

import os
import sys
import types

import torch


class ListDataset(torch.utils.data.Dataset):
    def __init__(self, **_) -> None:
        from encoder import DataEncoder

        made = torch.Generator().manual_seed(1)
        self.images = torch.rand(2, 3, 64, 64, generator=made)
        self.boxes = torch.tensor([[8.0, 8.0, 40.0, 40.0], [20.0, 10.0, 60.0, 50.0]])
        self.encoder = DataEncoder()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int):
        return self.images[index]

    def collate_fn(self, images):
        pairs = [self.encoder.encode(self.boxes, torch.tensor([0, 3]), (64, 64)) for _ in images]
        return torch.stack(images), torch.stack([loc for loc, _ in pairs]), torch.stack([cls for _, cls in pairs])


module = types.ModuleType("datagen")
module.ListDataset = ListDataset
sys.modules["datagen"] = module
from retinanet import RetinaNet  # noqa: E402, it is the program's

os.makedirs("model", exist_ok=True)
torch.save(RetinaNet().state_dict(), "model/net.pth")
torch.manual_seed(0)
