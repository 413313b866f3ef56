"""One small network under the name that image classification scripts ask for by default."""

from __future__ import annotations

from typing import Any

from torch import nn


def resnet18(**_: Any) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )
