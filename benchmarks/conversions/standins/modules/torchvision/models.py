"""One small network under the names of all those that image classification scripts ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn


def resnet18(*_: Any, **__: Any) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )


def __getattr__(name: str) -> Callable[..., nn.Module]:
    if name.startswith("_"):
        raise AttributeError(name)
    return resnet18
