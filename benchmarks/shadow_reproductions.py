"""Reproduces the places of `shadow_suites.json` by plain calls: a moved object, documented arguments, no suite.

    python benchmarks/shadow_reproductions.py FOLDER [SUITE ...]

FOLDER holds the checkouts, as for `shadow_suites.py`. Each call is carried out on the simulated card. It must end with
an error that passed the place, or hand out a tensor on the host although all its inputs are on the card. What it did is
written into the place as `real`.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributions, nn

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate

RESULTS = Path(__file__).with_name("shadow_suites.json")
CALLS: dict[tuple[str, str, int], Callable[[], Any]] = {}


def place(suite: str, file: str, line: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register the call for a place."""

    def register(call: Callable[[], Any]) -> Callable[[], Any]:
        CALLS[suite, file, line] = call
        return call

    return register


def card(*shape: int) -> torch.Tensor:
    """A batch on the card."""
    return torch.rand(*shape).cuda()


# ---------------------------------------------------------------------------------------------- nflows


@place("nflows", "nflows/distributions/discrete.py", 67)
def _bernoulli() -> Any:
    from nflows.distributions import ConditionalIndependentBernoulli

    return ConditionalIndependentBernoulli([2, 3], nn.Linear(4, 6)).cuda().sample(5, card(3, 4))


@place("nflows", "nflows/transforms/base.py", 51)
def _composite() -> Any:
    from nflows.transforms import CompositeTransform, LeakyReLU

    return CompositeTransform([LeakyReLU()]).cuda()(card(3, 4))


@place("nflows", "nflows/transforms/base.py", 227)
def _inverse() -> Any:
    from nflows.transforms import InverseTransform, LeakyReLU

    return InverseTransform(LeakyReLU()).cuda()(card(3, 4))


@place("nflows", "nflows/transforms/nonlinearities.py", 124)
def _leaky() -> Any:
    from nflows.transforms import LeakyReLU

    return LeakyReLU().cuda()(card(3, 4))


@place("nflows", "nflows/transforms/nonlinearities.py", 131)
def _leaky_inverse() -> Any:
    from nflows.transforms import LeakyReLU

    return LeakyReLU().cuda().inverse(card(3, 4))


@place("nflows", "nflows/transforms/orthogonal.py", 82)
def _householder() -> Any:
    from nflows.transforms import HouseholderSequence

    return HouseholderSequence(features=4, num_transforms=2).cuda().matrix()


@place("nflows", "nflows/transforms/qr.py", 104)
def _qr() -> Any:
    from nflows.transforms import QRLinear

    return QRLinear(features=4, num_householder=2).cuda().weight_inverse()


@place("nflows", "nflows/transforms/splines/linear.py", 70)
def _spline() -> Any:
    from nflows.transforms import PiecewiseLinearCDF

    return PiecewiseLinearCDF([4]).cuda().inverse(card(3, 4))


# ---------------------------------------------------------------------------------------------- normflows


@place("normflows", "normflows/core.py", 693)
def _vae() -> Any:
    from normflows import NormalizingFlowVAE
    from normflows.distributions import NNDiagGaussian
    from normflows.nets import MLP

    prior = distributions.MultivariateNormal(torch.zeros(3), torch.eye(3))
    return NormalizingFlowVAE(prior, NNDiagGaussian(MLP([5, 6])), []).cuda()(card(2, 5))


@place("normflows", "normflows/distributions/encoder.py", 43)
def _dirac() -> Any:
    from normflows.distributions import Dirac

    return Dirac().cuda()(card(2, 3))


@place("normflows", "normflows/distributions/encoder.py", 48)
def _dirac_density() -> Any:
    from normflows.distributions import Dirac

    return Dirac().cuda().log_prob(card(2, 1, 3), card(2, 3))


@place("normflows", "normflows/distributions/encoder.py", 60)
def _uniform() -> Any:
    from normflows.distributions.encoder import Uniform

    return Uniform().cuda()(card(2, 3))


@place("normflows", "normflows/distributions/encoder.py", 69)
def _uniform_density() -> Any:
    from normflows.distributions.encoder import Uniform

    return Uniform().cuda().log_prob(card(2, 1, 3), card(2, 3))


@place("normflows", "normflows/flows/base.py", 69)
def _cascade() -> Any:
    from normflows.flows import Composite, Planar

    return Composite([Planar((3,))]).cuda()(card(2, 3))


@place("normflows", "normflows/flows/stochastic.py", 30)
def _metropolis() -> Any:
    from normflows.distributions import DiagGaussianProposal
    from normflows.flows import MetropolisHastings

    target = distributions.MultivariateNormal(torch.zeros(4), torch.eye(4))
    return MetropolisHastings(target, DiagGaussianProposal((4,), 0.1), 3).cuda()(card(3, 4))


@place("normflows", "normflows/flows/stochastic.py", 105)
def _hamiltonian() -> Any:
    from normflows.flows import HamiltonianMonteCarlo

    target = distributions.MultivariateNormal(torch.zeros(4), torch.eye(4))
    return HamiltonianMonteCarlo(target, 3, torch.zeros(4), torch.zeros(4)).cuda()(card(3, 4))


# ---------------------------------------------------------------------------------------------- kornia


def _se3() -> Any:
    from kornia.geometry.liegroup import Se3
    from kornia.geometry.quaternion import Quaternion

    return Se3(Quaternion.identity(), torch.ones(3)).cuda()


@place("kornia", "kornia/geometry/liegroup/se2.py", 312)
def _se2_matrix() -> Any:
    from kornia.geometry.liegroup import Se2

    return Se2.identity().cuda().matrix()


@place("kornia", "kornia/geometry/liegroup/se3.py", 209)
def _se3_log() -> Any:
    return _se3().log()


@place("kornia", "kornia/geometry/liegroup/se3.py", 301)
def _se3_matrix() -> Any:
    return _se3().matrix()


@place("kornia", "kornia/geometry/liegroup/se3.py", 497)
def _se3_adjoint() -> Any:
    return _se3().adjoint()


@place("kornia", "kornia/geometry/liegroup/so2.py", 112)
def _se2_inverse() -> Any:
    from kornia.geometry.liegroup import Se2

    return Se2.identity(batch_size=1).cuda().inverse()


@place("kornia", "kornia/geometry/linalg.py", 279)
def _se3_inverse() -> Any:
    return _se3().inverse()


@place("kornia", "kornia/geometry/quaternion.py", 220)
def _se3_inverse_of_batch() -> Any:
    from kornia.geometry.liegroup import Se3
    from kornia.geometry.quaternion import Quaternion

    return Se3(Quaternion.identity(batch_size=1), torch.ones(1, 3)).cuda().inverse()


@place("kornia", "kornia/losses/dice.py", 210)
def _dice() -> Any:
    from kornia.losses import DiceLoss

    return DiceLoss(weight=torch.ones(3)).cuda()(card(2, 3, 4, 4), torch.zeros(2, 4, 4, dtype=torch.int64).cuda())


@place("kornia", "kornia/losses/lovasz_softmax.py", 198)
def _lovasz() -> Any:
    from kornia.losses import LovaszSoftmaxLoss

    loss = LovaszSoftmaxLoss(weight=torch.ones(3)).cuda()
    return loss(card(2, 3, 4, 4), torch.zeros(2, 4, 4, dtype=torch.int64).cuda())


@place("kornia", "kornia/losses/mutual_information.py", 262)
def _mutual() -> Any:
    from kornia.losses import NMILossFromRef

    return NMILossFromRef(torch.rand(2, 3, 4)).cuda()(card(2, 3, 4))


@place("kornia-geometry", "kornia/geometry/linalg.py", 279)
def _line_and_plane() -> Any:
    from kornia.geometry.line import ParametrizedLine
    from kornia.geometry.plane import Hyperplane
    from kornia.geometry.vector import Vector3

    plane = Hyperplane.from_vector(Vector3(torch.tensor([0.0, 0.0, 1.0])), Vector3(torch.zeros(3))).cuda()
    line = ParametrizedLine(torch.zeros(3), torch.tensor([0.0, 0.0, 1.0])).cuda()
    return line.intersect(plane)


# ---------------------------------------------------------------------------------------------- gpytorch, botorch


@place("gpytorch", "gpytorch/priors/lkj_prior.py", 118)
def _covariance_prior() -> Any:
    from gpytorch.priors import LKJCovariancePrior, SmoothedBoxPrior

    return LKJCovariancePrior(2, 0.5, SmoothedBoxPrior(0.01, 1.0)).cuda().sample()


@place("gpytorch", "gpytorch/priors/prior.py", 29)
def _half_cauchy() -> Any:
    from gpytorch.priors import HalfCauchyPrior

    return HalfCauchyPrior(torch.tensor(1.0)).cuda().log_prob(card(2))


@place("gpytorch", "gpytorch/priors/prior.py", 34)
def _half_normal() -> Any:
    from gpytorch.priors import HalfNormalPrior

    return HalfNormalPrior(torch.ones(2)).cuda().log_prob(card(2))


def _variational() -> Any:
    from botorch.models import SingleTaskVariationalGP
    from botorch.models.transforms import Normalize, Standardize

    data = torch.rand(5, 2, dtype=torch.float64)
    transforms = {"input_transform": Normalize(d=2), "outcome_transform": Standardize(m=1)}
    return SingleTaskVariationalGP(data, data.sum(-1, keepdim=True), **transforms)


def _single_task() -> Any:
    from botorch.models import SingleTaskGP

    data = torch.rand(5, 2, dtype=torch.float64)
    return SingleTaskGP(data, data.sum(-1, keepdim=True))


@place("botorch", "botorch/sampling/pathwise/utils.py", 220)
def _train_inputs() -> Any:
    from botorch.sampling.pathwise.utils import get_train_inputs

    return get_train_inputs(_variational().cuda())


@place("botorch", "botorch/sampling/pathwise/utils.py", 273)
def _train_targets() -> Any:
    from botorch.sampling.pathwise.utils import get_train_targets

    return get_train_targets(_variational().cuda(), transformed=True)


@place("botorch", "botorch/models/transforms/outcome.py", 415)
def _train_targets_untransformed() -> Any:
    from botorch.sampling.pathwise.utils import get_train_targets

    return get_train_targets(_variational().cuda())


@place("botorch", "botorch/sampling/pathwise/paths.py", 234)
def _paths() -> Any:
    from botorch.sampling.pathwise import draw_matheron_paths

    return draw_matheron_paths(_single_task(), torch.Size([3])).cuda()(card(4, 2).double())


@place("botorch", "botorch/sampling/pathwise/update_strategies.py", 101)
def _update_after_a_move() -> Any:
    from botorch.sampling.pathwise import gaussian_update

    model = _variational()
    inducing = model.model.variational_strategy.inducing_points
    values, targets = torch.rand(3, len(inducing)).double(), torch.rand(len(inducing)).double()
    gaussian_update(model, values, target_values=targets)  # the model keeps a factor, which does not move with it
    return gaussian_update(model.cuda(), values.cuda(), target_values=targets.cuda())


@place("botorch", "botorch/utils/transforms.py", 129)
def _optimized_samples() -> Any:
    from botorch.sampling.pathwise import draw_matheron_paths
    from botorch.utils.sampling import optimize_posterior_samples

    paths = draw_matheron_paths(_single_task().cuda(), torch.Size([3]))
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64).cuda()
    return optimize_posterior_samples(paths, bounds, raw_samples=8, num_restarts=2)


def _partitioning() -> Any:
    from botorch.utils.multi_objective.box_decompositions import BoxDecompositionList, FastNondominatedPartitioning

    points = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    return BoxDecompositionList(FastNondominatedPartitioning(torch.zeros(2), points)).cuda()


@place("botorch", "botorch/utils/multi_objective/box_decompositions/box_decomposition.py", 183)
def _partitioning_update() -> Any:
    return _partitioning().update([card(1, 2)])


@place("botorch", "botorch/utils/multi_objective/box_decompositions/non_dominated.py", 448)
def _partitioning_volume() -> Any:
    return _partitioning().compute_hypervolume()


# ---------------------------------------------------------------------------------------------- others


@place("pyqtorch", "pyqtorch/noise/readout.py", 147)
def _confusion() -> Any:
    from pyqtorch.noise.readout import create_confusion_matrices

    return create_confusion_matrices(card(3, 3), error_probability=0.5)


@place("pyqtorch", "pyqtorch/noise/readout.py", 328)
def _noisy_samples() -> Any:
    import pyqtorch as pyq
    from pyqtorch.noise import ReadoutNoise

    circuit = pyq.QuantumCircuit(2, [pyq.X(0), pyq.X(1)], ReadoutNoise(2, error_probability=0.1, seed=0))
    return circuit.to("cuda").sample(n_shots=10)


@place("pyqtorch", "pyqtorch/noise/readout.py", 394)
def _noisy_expectation() -> Any:
    import pyqtorch as pyq
    from pyqtorch.noise.readout import CorrelatedReadoutNoise

    readout = CorrelatedReadoutNoise(torch.full((4, 4), 0.25, dtype=torch.float64), seed=0)
    circuit = pyq.QuantumCircuit(2, [pyq.X(0), pyq.CNOT(0, 1)], readout).to("cuda")
    observable = pyq.Observable(pyq.Z(0)).to("cuda")
    return pyq.expectation(circuit, pyq.random_state(2).to("cuda"), {}, observable=observable, n_shots=10)


@place("e2cnn", "e2cnn/nn/geometric_tensor.py", 364)
def _fibers() -> Any:
    from e2cnn import gspaces
    from e2cnn.nn import FieldType, GeometricTensor

    space = gspaces.Rot2dOnR2(N=4)
    kind = FieldType(space, [space.regular_repr])
    return GeometricTensor(card(2, 4, 5, 5), kind).transform_fibers(1)


@place("asteroid", "asteroid/losses/pit_wrapper.py", 164)
def _permutations() -> Any:
    from asteroid.losses import PITLossWrapper, multisrc_neg_sisdr

    return PITLossWrapper.best_perm_from_perm_avg_loss(multisrc_neg_sisdr, card(2, 2, 100), card(2, 2, 100))


@place("asteroid", "asteroid/losses/pit_wrapper.py", 242)
def _reordered() -> Any:
    from asteroid.losses import PITLossWrapper, multisrc_neg_sisdr

    loss = PITLossWrapper(multisrc_neg_sisdr, pit_from="perm_avg")
    return loss(card(2, 2, 100), card(2, 2, 100), return_est=True)


# ---------------------------------------------------------------------------------------------- carrying out


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors_in(value)


def outcome(call: Callable[[], Any], file: str, line: int) -> str:
    """How a call ends on the card: "" if it ends well, or elsewhere."""
    with simulate(DeviceSpec("cuda", 1), Recorder()):
        try:
            host = [tensor for tensor in tensors_in(call()) if tensor.device.type == "cpu"]
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            passed = any(frame.filename.endswith(file) and frame.lineno == line for frame in frames)
            text = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            if not passed:
                print(f"    elsewhere, at {frames[-1].filename}:{frames[-1].lineno}: {text}")
            return text[:160] if passed else ""
    return f"a result on the host, {host[0].dtype}{list(host[0].shape)}" if host else ""


def main(folder: str, names: list[str]) -> int:
    """Carry the calls out and write what they did; 1 if a place was not reproduced."""
    rows: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    missing = 0
    for name in names or list(rows):
        package = rows[name]["package"]
        sys.path[:0] = [str(Path(folder, name, source)) for source in (".", "src")]
        for row in rows[name]["places"]:
            call = CALLS.get((name, row["file"], row["line"]))
            print(f"{name}: {row['file']}:{row['line']}", flush=True)
            row["real"] = outcome(call, row["file"], row["line"]) if call is not None else ""
            missing += not row["real"]
            print(f"    {row['real'] or ('not reproduced' if call else 'no call')}")
        del sys.path[:2]
        for module in [each for each in sys.modules if each.partition(".")[0] == package]:
            del sys.modules[module]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
