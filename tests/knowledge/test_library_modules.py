"""Which classes of other libraries hold tensors when they are new."""

import pytest

from devlint.knowledge.library_modules import holds_tensors, runs


@pytest.mark.parametrize(
    "name",
    [
        "torchaudio.transforms.MFCC",
        "torchaudio.transforms.Resample",
        "torch_geometric.nn.GCNConv",
        "torch_geometric.nn.conv.gcn_conv.GCNConv",
        "torch_geometric.nn.models.GraphSAGE",
        "torch_geometric.explain.PGExplainer",
        "torchmetrics.MeanMetric",
        "torchmetrics.classification.F1",
        "pytorch_lightning.metrics.ConfusionMatrix",
        "torchvision.models.resnet18",
        "torchvision.models.swin_transformer.SwinTransformer",
    ],
)
def test_holds_tensors(name: str) -> None:
    assert holds_tensors(name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "torchaudio.transforms.AmplitudeToDB",
        "torchaudio.functional.resample",
        "torch_geometric.nn.APPNP",
        "torch_geometric.nn.EdgeConv",
        "torch_geometric.explain.GNNExplainer",
        "torchmetrics.AUROC",
        "torchmetrics.functional.accuracy",
        "torchvision.transforms.Resize",
        "pytorch_metric_learning.losses.ArcFaceLoss",
        "torch.nn.Linear",
        "GCNConv",
    ],
)
def test_holds_none(name: str) -> None:
    assert holds_tensors(name) is None


def test_the_options_by_which_a_module_may_be_elsewhere() -> None:
    assert holds_tensors("torchaudio.transforms.Spectrogram") == frozenset({"window_fn", "wkwargs"})
    assert holds_tensors("torchmetrics.classification.BinaryAccuracy") == frozenset({"multidim_average"})


def test_methods_that_compute() -> None:
    assert runs("torchmetrics.Accuracy", "update")
    assert not runs("torchmetrics.Accuracy", "compute")
    assert not runs("torch_geometric.nn.GCNConv", "train")
