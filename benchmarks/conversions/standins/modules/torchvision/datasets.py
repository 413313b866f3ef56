"""Datasets of synthetic images: float tensors of shape (channels, size, size) in [0, 1], with a label of ten.

COUNT is how many there are; a stand-in of one program may set it before the program starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

COUNT = 8


class _Images(torch.utils.data.Dataset[Any]):
    channels, size = 3, 32

    def __init__(
        self, root: str = "", train: Any = True, transform: Callable[..., Any] | None = None, *_: Any, **__: Any
    ) -> None:
        self.transform = transform if callable(transform) else train if callable(train) else None
        self.target_transform = None
        made = torch.Generator().manual_seed(COUNT + self.size)
        images = torch.rand(COUNT, self.size, self.size, self.channels, generator=made)
        self.data = (images * 255).byte().numpy()
        self.targets = np.arange(COUNT) % 10
        self.classes = [str(i) for i in range(10)]

    @property
    def test_data(self) -> torch.Tensor:
        """The images under the name that old torchvision gave them; of one channel without that axis."""
        return torch.from_numpy(self.data).squeeze(-1)

    @property
    def test_labels(self) -> torch.Tensor:
        return torch.from_numpy(self.targets)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image: Any = torch.from_numpy(self.data[index]).permute(2, 0, 1).float() / 255
        if self.transform is not None:
            image = self.transform(image)
        return image, int(self.targets[index])


class CIFAR10(_Images):
    pass


class CIFAR100(_Images):
    pass


class ImageFolder(_Images):
    size = 64


class MNIST(_Images):
    channels, size = 1, 28
