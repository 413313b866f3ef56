"""Protocols that libraries document: which methods they call, and where what they hand over is.

Each row names its source. A name alone proves nothing: a row applies to a method of a class of that family only.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from devlint import knowledge

#: Base classes of other libraries that are modules [the class statement in each library's source].
MODULE_BASES: Final = frozenset(
    {
        "pytorch_lightning.LightningModule",
        "lightning.LightningModule",
        "lightning.pytorch.LightningModule",
        "pytorch_lightning.core.LightningModule",
        "lightning.pytorch.core.LightningModule",
        "transformers.PreTrainedModel",
        "transformers.modeling_utils.PreTrainedModel",
        "diffusers.ModelMixin",
        "diffusers.models.modeling_utils.ModelMixin",
        "torch_geometric.nn.MessagePassing",
        "torch_geometric.nn.conv.MessagePassing",
        "torch_geometric.nn.conv.message_passing.MessagePassing",
        "gpytorch.Module",
        "gpytorch.models.ExactGP",
        "gpytorch.kernels.Kernel",
        "gpytorch.likelihoods.Likelihood",
        "torchmetrics.Metric",
        "stable_baselines3.common.torch_layers.BaseFeaturesExtractor",
        "fairseq.models.FairseqEncoder",
        "fairseq.models.FairseqDecoder",
        "fairseq.models.BaseFairseqModel",
        "timm.models.layers.Mlp",
        "monai.networks.nets.UNet",
        "huggingface_hub.PyTorchModelHubMixin",
    }
)
#: Bases that say nothing of what an object is [Python's library reference].
PLAIN_BASES: Final = frozenset(
    {
        "object",
        "abc.ABC",
        "ABC",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Generic",
        "typing_extensions.Protocol",
        "Exception",
        "dict",
        "list",
        "tuple",
        "enum.Enum",
        "enum.IntEnum",
        "enum.StrEnum",
        "typing.NamedTuple",
        "typing.TypedDict",
        "collections.OrderedDict",
        "collections.abc.Iterator",
        "collections.abc.Iterable",
        "collections.abc.Sequence",
        "collections.abc.Mapping",
        "threading.Thread",
        "multiprocessing.Process",
        "unittest.TestCase",
        "gym.Env",
        "gymnasium.Env",
        "json.JSONEncoder",
        "argparse.Namespace",
        "argparse.Action",
        "nn.Module.__bases__",
    }
)
DATA_CLASS_DECORATORS: Final = frozenset(
    {"dataclasses.dataclass", "attr.s", "attr.dataclass", "attrs.define", "chex.dataclass"}
)
DATA_CLASS_BASES: Final = frozenset({"typing.NamedTuple", "NamedTuple"})

#: Methods that torch or a library calls beside the module, after it moved it and the batch
#: [torch.nn.Module; Lightning, "LightningModule API"].
BESIDE_MODULE: Final = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
#: Methods that are called with the parameters where the module is [torch.optim.Optimizer.step].
BESIDE_PARAMETERS: Final = frozenset({"step"})
#: Methods of data sets and samplers, which run before any transfer [torch.utils.data].
ON_HOST: Final = frozenset(
    {
        "__getitem__",
        "__getitems__",
        "__iter__",
        "__len__",
        "__next__",
        "collate_fn",
        "__call__",
        "get",
        "len",
        "process",
    }
)
#: Families whose methods run on the host.
HOST_FAMILIES: Final = frozenset({"Dataset", "Sampler", "HostDataset"})

#: Methods of a module that keep a function to call later, and what that function gets
#: [torch/nn/modules/module.py, `_call_impl`].
HOOKS: Final = {
    "register_forward_hook": ("module", "inputs", "output"),
    "register_forward_pre_hook": ("module", "inputs"),
    "register_full_backward_hook": ("module", "gradients", "gradients"),
    "register_full_backward_pre_hook": ("module", "gradients"),
}

_DATASET_BASES: Final = frozenset(
    {
        "torch_geometric.data.Dataset",
        "torch_geometric.data.InMemoryDataset",
        "torchvision.datasets.VisionDataset",
        "torchvision.datasets.ImageFolder",
        "torchvision.datasets.CIFAR10",
        "torchvision.datasets.MNIST",
        "fairseq.data.FairseqDataset",
        "pytorch_lightning.LightningDataModule",
        "lightning.LightningDataModule",
    }
)


@cache
def family_of_base(name: str) -> str:
    """The family of a base class that is not of the project: a word of `knowledge.Class.family`, "object", or "unread"."""
    if name in PLAIN_BASES:
        return "object"
    if name in MODULE_BASES or name.startswith(("torch_geometric.nn.", "transformers.modeling_", "timm.models.")):
        return "Module"
    if name in _DATASET_BASES:
        return "HostDataset"
    if name == "torch.autograd.Function" or name == "torch.autograd.function.Function":
        return "Function"
    record = knowledge.cls(name)
    if record is not None:
        return record.family
    return "unread"
