"""Objects of other libraries that have no device method, though one may expect it of them: tokenizers, data sets, data frames.

The classes are told by the names that make them. None of them has `to`, `cuda` or `cpu` in any release.
"""

from __future__ import annotations

import re
from functools import cache

# (family, source, pattern of the qualified name that is called)
_GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        "Tokenizer",
        "transformers/tokenization_utils_base.py: `to` is a method of BatchEncoding, which a tokenizer returns",
        r"(pytorch_)?transformers\.(\w+\.)*\w*Tokenizer(Fast)?(\.from_pretrained)?",
    ),
    (
        "Processor",
        "transformers/processing_utils.py, image_processing_base.py, feature_extraction_utils.py: `to` is one of BatchFeature",
        r"transformers\.(\w+\.)*(\w*(ImageProcessor(Fast)?|FeatureExtractor)(\.from_pretrained)?|\w*Processor\.from_pretrained)",
    ),
    (
        "LRScheduler",
        "transformers/optimization.py: all of them return torch.optim.lr_scheduler.LambdaLR or a class beside it",
        r"transformers\.(optimization\.)?get_(\w+_)?sched\w+",
    ),
    (
        "NoiseScheduler",
        "diffusers/schedulers/scheduling_utils.py, SchedulerMixin",
        r"diffusers\.(\w+\.)*(?!Flax)\w+Scheduler(\.from_(pretrained|config))?",
    ),
    (
        "Dataset",
        "torchvision/datasets/vision.py, VisionDataset: a torch.utils.data.Dataset",
        r"torchvision\.datasets\.[A-Z]\w+",
    ),
    (
        "Transform",
        "torchvision/transforms/transforms.py: plain classes, as others there are modules; those of `v2` are modules",
        r"torchvision\.transforms\.(transforms\.)?(Compose|ToTensor|PILToTensor|ToPILImage|Lambda|RandomOrder|RandomChoice)",
    ),
    (
        "DataFrame",
        "pandas documentation, DataFrame and Series",
        r"pandas\.(DataFrame|Series|concat|merge|read_(csv|parquet|pickle|excel|feather|table))",
    ),
    ("Image", "Pillow documentation, Image", r"PIL\.Image\.(open|fromarray|new)"),
    ("Estimator", "scikit-learn documentation: estimators compute on the host", r"sklearn\.(\w+\.)*[A-Z]\w+"),
    (
        "Trainer",
        "documentation of transformers and lightning: a trainer places the model itself",
        r"transformers\.(Seq2Seq)?(Trainer|TrainingArguments)|(pytorch_lightning|lightning(\.pytorch)?)\.Trainer",
    ),
)
_PATTERNS = tuple((family, re.compile(pattern)) for family, _, pattern in _GROUPS)
_PACKAGES = re.compile(r"(pytorch_)?transformers|diffusers|torchvision|pandas|PIL|sklearn|\w*lightning")


@cache
def immovable(qualname: str) -> str | None:
    """The family of the object that a call gives which has no device method; None where nothing is known of it."""
    if _PACKAGES.match(qualname) is None:
        return None
    return next((family for family, pattern in _PATTERNS if pattern.fullmatch(qualname) is not None), None)
