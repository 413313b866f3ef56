"""Transforms on image tensors: sizes and statistics are changed as their names say, everything random is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Transform = Callable[[torch.Tensor], torch.Tensor]


class Compose:
    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for transform in self.transforms:
            image = transform(image)
        return image


class Lambda:
    def __init__(self, function: Transform) -> None:
        self.function = function

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return self.function(image)


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self.mean, self.std = torch.tensor(mean), torch.tensor(std)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return (image - self.mean[:, None, None]) / self.std[:, None, None]


class Resize:
    def __init__(self, size: int | Sequence[int], **_: Any) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        if tuple(image.shape[-2:]) == self.size:
            return image
        return torch.nn.functional.interpolate(image[None], size=self.size)[0]


CenterCrop = RandomResizedCrop = Scale = Resize


class _Same:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image


class RandomCrop(Resize):
    def __init__(self, size: int, padding: int = 0, **_: Any) -> None:
        super().__init__(size)


RandomHorizontalFlip = ToTensor = ToPILImage = ColorJitter = _Same
