"""Calls the functions and modules of torchvision.ops with documented arguments, for shadow tests: its wheel has no tests.

    pytest --devlint-device=sim --devlint-shadow=torchvision benchmarks/torchvision_ops.py

Needs torchvision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch

ops: Any = pytest.importorskip("torchvision").ops


def boxes(number: int = 4) -> torch.Tensor:
    """Boxes of shape (number, 4), as two corners."""
    found = torch.rand(number, 4) * 10
    found[:, 2:] += found[:, :2] + 1
    return found


def features() -> torch.Tensor:
    """A batch of one picture with eight channels, (1, 8, 16, 16)."""
    return torch.rand(1, 8, 16, 16, requires_grad=True)


def regions() -> torch.Tensor:
    """Three boxes of the first picture, (3, 5)."""
    return torch.cat([torch.zeros(3, 1), boxes(3)], 1)


LEVELS: Final = {"a": (1, 8, 16, 16), "b": (1, 8, 8, 8)}
CALLS: Final[dict[str, Callable[[], object]]] = {
    "nms": lambda: ops.nms(boxes(), torch.rand(4), 0.5),
    "batched_nms": lambda: ops.batched_nms(boxes(), torch.rand(4), torch.tensor([0, 0, 1, 1]), 0.5),
    "box_area": lambda: ops.box_area(boxes()),
    "box_convert": lambda: ops.box_convert(boxes(), "xyxy", "cxcywh"),
    "box_iou": lambda: ops.box_iou(boxes(), boxes(3)),
    "generalized_box_iou": lambda: ops.generalized_box_iou(boxes(), boxes(3)),
    "distance_box_iou": lambda: ops.distance_box_iou(boxes(), boxes(3)),
    "complete_box_iou": lambda: ops.complete_box_iou(boxes(), boxes(3)),
    "clip_boxes_to_image": lambda: ops.clip_boxes_to_image(boxes(), (8, 8)),
    "remove_small_boxes": lambda: ops.remove_small_boxes(boxes(), 1.0),
    "masks_to_boxes": lambda: ops.masks_to_boxes(torch.ones(2, 5, 5)),
    "generalized_box_iou_loss": lambda: ops.generalized_box_iou_loss(
        boxes().requires_grad_(), boxes(), reduction="mean"
    ),
    "distance_box_iou_loss": lambda: ops.distance_box_iou_loss(boxes().requires_grad_(), boxes(), reduction="mean"),
    "complete_box_iou_loss": lambda: ops.complete_box_iou_loss(boxes().requires_grad_(), boxes(), reduction="mean"),
    "sigmoid_focal_loss": lambda: ops.sigmoid_focal_loss(
        torch.rand(3, 2, requires_grad=True), torch.ones(3, 2), reduction="mean"
    ),
    "roi_align": lambda: ops.roi_align(features(), regions(), 4),
    "roi_align_of_a_list": lambda: ops.roi_align(features(), [boxes(3)], 4),
    "roi_pool": lambda: ops.roi_pool(features(), regions(), 4),
    "ps_roi_align": lambda: ops.ps_roi_align(features(), regions(), 2),
    "ps_roi_pool": lambda: ops.ps_roi_pool(features(), regions(), 2),
    "RoIAlign": lambda: ops.RoIAlign(4, 1.0, 2)(features(), regions()),
    "RoIPool": lambda: ops.RoIPool(4, 1.0)(features(), regions()),
    "PSRoIAlign": lambda: ops.PSRoIAlign(2, 1.0, 2)(features(), regions()),
    "PSRoIPool": lambda: ops.PSRoIPool(2, 1.0)(features(), regions()),
    "MultiScaleRoIAlign": lambda: ops.MultiScaleRoIAlign(["a", "b"], 3, 2)(
        {name: torch.rand(shape) for name, shape in LEVELS.items()}, [boxes(3)], [(32, 32)]
    ),
    "deform_conv2d": lambda: ops.deform_conv2d(features(), torch.rand(1, 18, 14, 14), torch.rand(4, 8, 3, 3)),
    "DeformConv2d": lambda: ops.DeformConv2d(8, 4, 3)(features(), torch.rand(1, 18, 14, 14)),
    "FeaturePyramidNetwork": lambda: ops.FeaturePyramidNetwork([8, 8], 4)(
        {name: torch.rand(shape) for name, shape in LEVELS.items()}
    ),
    "StochasticDepth": lambda: ops.StochasticDepth(0.5, "row")(features()),
    "DropBlock2d": lambda: ops.DropBlock2d(0.3, 3)(features()),
    "DropBlock3d": lambda: ops.DropBlock3d(0.3, 3)(torch.rand(1, 2, 6, 6, 6)),
    "SqueezeExcitation": lambda: ops.SqueezeExcitation(8, 2)(features()),
    "MLP": lambda: ops.MLP(8, [4, 2])(torch.rand(3, 8)),
    "Conv2dNormActivation": lambda: ops.Conv2dNormActivation(8, 4)(features()),
    "Conv3dNormActivation": lambda: ops.Conv3dNormActivation(2, 4)(torch.rand(2, 2, 6, 6, 6)),
    "FrozenBatchNorm2d": lambda: ops.FrozenBatchNorm2d(8)(features()),
    "Permute": lambda: ops.Permute([0, 2, 3, 1])(features()),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    torch.manual_seed(0)
    CALLS[name]()
