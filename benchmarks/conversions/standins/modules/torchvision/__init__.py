"""Stand-in for torchvision: a few synthetic images, and transforms that keep sizes and ranges right."""

from . import datasets, models, transforms, utils

__all__ = ["datasets", "models", "transforms", "utils"]
