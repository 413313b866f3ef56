"""Outcomes of runs and verdicts on fixes, decided from what the runs observed. Pure: no torch, no files, no processes.

Three kinds of run are compared: the original, the corrected program, and the corrected program without one fix. Two
runs that differ by one fix and behave differently do so because of it; everything here follows from that.

Places are statements, named by the same key in every run (`correction.Variant.keys`); lines are those of the original.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from devlint.runtime.measures import changes_as_a_whole, measured, starts_to_train, takes_up_work, worsened
from devlint.runtime.runs import Claim, Judgement, Outcome, Run, Stop, Verdict


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When two losses count as equal: relative difference, and how many from the start are compared (None: all)."""

    relative: float = 1e-5
    first: int | None = None


SAME_KERNELS = Tolerance()
REAL_CARD = Tolerance(relative=1e-2, first=5)
NOT_COMPARED = Tolerance(first=0)


# ---------------------------------------------------------------------------------------------- device faults

_DEVICE_TEXT = re.compile(
    r"on the same device"
    r"|not at the same device"
    r"|the same device type"
    r"|device type tensor to numpy"
    r"|not compiled with (CUDA|MPS|XPU)|compiled without (CUDA|MPS|XPU) support"
    r"|not linked with support for \w+ devices|Distributed package doesn't have (NCCL|XCCL|HCCL|CNCL) built in"
    r"|No (CUDA|XPU|HIP) (GPUs|devices) are available"
    r"|Found no NVIDIA driver"
    r"|accelerator device when none is available"
    r"|Attempting to deserialize object on"
    r"|don't know how to restore data location"
    r"|Cannot re-initialize CUDA"
    r"|\b(CUDA|XPU|HIP|MPS)( driver)? error"
    r"|invalid device ordinal|Invalid device id"
    r"|Both events must be"
    r"|device type for generator"
    r"|assign a gradient with device type|invalid gradient at index \d+ - expected device"
    r"|should be a 1D CPU int64 tensor"
    r"|too many CPU scalars"
    r"|to be on same device|to have the same device|on different devices"
    r"|(tensor|out tensor) to have (device )?\S+ ?(Device|DeviceType)?, but got"
    r"|CPU Scalar support for \w+ argument|expected a \w+ device but found \w+"
    r"|with arguments from the '(CUDA|XPU|MPS)' backend|No backend type associated with device type"
    r"|get_device\(\) == \w+\.get_device\(\)|to be on cpu, but it's on|RNG state must be a torch\.ByteTensor"
    r"|module 'torch\._C' has no attribute '_(cuda|xpu|mps)"
    r"|Tried to instantiate dummy base class"
    r"|either on cpu or on the same device"
    r"|module must have its parameters and buffers on device"
    r"|device_ids and output_device arguments only work with"
    r"|[Ee]xpected (object of )?device (type )?\S+ but got"
    r"|device type at start of device string"
    r"|[Dd]evice index must (not be negative|be)|device must be"
)
_NO_SUCH_MEMBER = re.compile(r"has no attribute '(to|cuda|cpu|xpu|mps|npu|device|get_device)'")
_GET_DEVICE = re.compile(r"\bget_device\(\)")
_CONVOLUTION = re.compile(r"Input type \((?P<input>[\w.]+)\) and (weight|bias) type \((?P<other>[\w.]+)\) should be")


def is_device_fault(kind: str, message: str) -> bool:
    """Whether an exception, by its type's name and message, is about devices rather than about anything else.

    The texts are torch's own: aten/src/ATen/TensorIterator.cpp, aten/src/ATen/native/{RNN,Convolution}.cpp,
    torchgen/dest/register_dispatch_key.py, torch/csrc/utils/tensor_numpy.cpp, torch/serialization.py,
    torch/cuda/__init__.py, torch/_utils.py, torch/nn/parallel/distributed.py.
    """
    if kind == "AttributeError":
        return bool(_NO_SUCH_MEMBER.search(message) or _DEVICE_TEXT.search(message))
    if kind == "TypeError" and _GET_DEVICE.search(message):
        return True
    mixed = _CONVOLUTION.search(message)
    if mixed:
        return _place_of_type(mixed["input"]) != _place_of_type(mixed["other"])
    return bool(_DEVICE_TEXT.search(message))


def _place_of_type(name: str) -> str:
    """`cuda` of `torch.cuda.FloatTensor`, "" of `torch.FloatTensor`."""
    return ".".join(name.split(".")[1:-1])


# ------------------------------------------------------------------------------------------------- judgement


def judge(
    claim: Claim,
    without: Run,
    with_fix: Run,
    original: Run | None = None,
    tolerance: Tolerance = SAME_KERNELS,
) -> Judgement:
    """The verdict on one fix on one device, from the corrected run and the one without this fix."""
    then = next(iter(with_fix.failures), None) if with_fix.complete else with_fix.stop

    def say(verdict: Verdict, *evidence: str, later: Stop | None = then) -> Judgement:
        return Judgement(verdict, tuple(e for e in evidence if e), later, with_fix.device)

    blocked = next((r for r in (without, with_fix) if r.outcome is Outcome.CANNOT_SIMULATE), None)
    trouble = (
        _trouble_with_fix(claim, without, with_fix, original)
        or _merely_caught(claim, without, with_fix)
        or worsened(claim, without, with_fix)
    )
    if trouble:
        return say(Verdict.REFUTED, *trouble, later=None)
    if starts_to_train(without, with_fix):  # from the first step on it computes something else, which is the purpose
        tolerance = replace(tolerance, first=1 if tolerance.first is None else min(tolerance.first, 1))
    if takes_up_work(without, with_fix):  # random numbers of another device
        tolerance = NOT_COMPARED
    differ = differing_losses(without, with_fix, tolerance)
    if differ:
        return say(Verdict.REFUTED, f"the fix changes the results of the program: {differ}")
    gone = _faults_gone(claim, without, with_fix)
    if gone:
        return say(Verdict.CONFIRMED, *gone)
    seen = measured(claim, without, with_fix)
    if seen is not None:
        return say(*seen)
    if blocked is not None:
        return say(Verdict.COULD_NOT_JUDGE, f"cannot be simulated: {blocked.detail}", later=None)
    return say(*_nothing_seen(claim, without, with_fix, original), later=None)


def _faults(run: Run) -> list[Stop]:
    """The stop, what tests failed by, and the caught device faults of a run, alike."""
    found = [Stop(c.text, "", c.key, c.line, c.where or f"line {c.line}", True, 1) for c in run.caught]
    found += run.failures
    if run.stop is not None and run.outcome in (Outcome.DEVICE_FAULT, Outcome.OTHER_STOP):
        found.insert(0, run.stop)
    return found


def _same_place(a: Stop, b: Stop) -> bool:
    if a.test != b.test:
        return False
    return a.key == b.key if a.key is not None else b.key is None and a.where == b.where


def _went_further(with_fix: Run, without: Run) -> bool:
    """Whether a run executed more of the program than another that it otherwise repeats."""
    further = (sum(with_fix.counts.values()), with_fix.kernels)
    return further > (sum(without.counts.values()), without.kernels)


def _trouble_with_fix(claim: Claim, without: Run, with_fix: Run, original: Run | None) -> list[str]:
    """What speaks against the fix: a fault that stays at its place, or one that it brings."""
    before = _faults(without)
    found: list[str] = []
    if claim.loses and any(fault.key == claim.finding for fault in before):
        found.append(f"the fix removes the call of `{claim.loses}` around the fault at {claim.at}")
    for fault in _faults(with_fix):
        same = [f for f in before if _same_place(f, fault)]
        if fault.device and any(f.device for f in same):
            if fault.key not in claim.own | claim.watch:
                continue  # as it was; no business of this fix
            stays = any(f.inside == fault.inside or f.text == fault.text for f in same)
            if stays or not _went_further(with_fix, without):
                found.append(f"the fault stays with the fix, at {fault.where}: {fault.text}")
            continue
        if any(f.text == fault.text for f in same):
            if claim.own_stop and fault.key in claim.own | claim.watch:
                found.append(f"the fault stays with the fix, at {fault.where}: {fault.text}")
            continue
        if _ran_before(fault, without) or (original is not None and _ran_before(fault, original)):
            found.append(f"the fix causes a fault at {fault.where}, which ran without the fix: {fault.text}")
        elif fault.kind in ("NameError", "UnboundLocalError") and not same and claim.own - with_fix.counts.keys():
            found.append(f"the fix removes a name that {fault.where} needs: {fault.text}")
        elif claim.index in fault.written_by and (_is_misnamed(fault) or (not same and _is_new_code(fault))):
            found.append(f"the fix itself fails at {fault.where}: {fault.text}")
        elif fault.device and not same and fault.key is not None and fault.key in claim.own | claim.watch:
            found.append(f"the fix causes a fault at {fault.where}: {fault.text}")
    return found


def _merely_caught(claim: Claim, without: Run, with_fix: Run) -> list[str]:
    """Statements of the fix that still end in an exception, which the fix only keeps from ending the program."""
    ends = [stop for stop in (without.stop, *without.failures) if stop is not None]
    shown = {stop.key: stop for stop in ends if stop.key in claim.own | claim.watch}
    still = [stop.key for stop in (with_fix.stop, *with_fix.failures) if stop is not None]
    caught = {each.key for each in with_fix.caught} - {each.key for each in without.caught}
    found: list[str] = []
    for key in sorted(claim.own | claim.watch | claim.written):
        new = key.rpartition("/")[2].startswith("+")
        if key not in shown and not new:
            continue
        if with_fix.cut.get(key, 0) > still.count(key) or (key in caught and key not in still):
            what = shown[key].text if key in shown else "an exception"
            where = shown[key].where if key in shown else with_fix.lines.get(key, claim.at)
            found.append(f"the fix only catches the fault at {where}: {what}")
    return found


def _is_new_code(fault: Stop) -> bool:
    """Whether the statement as a whole was put in by a fix."""
    return fault.key is not None and fault.key.rpartition("/")[2].startswith("+")


def _is_misnamed(fault: Stop) -> bool:
    """Whether the program's own frame failed on a name, as code does that uses what does not exist."""
    if fault.inside:
        return False
    return fault.kind in ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError") or (
        fault.kind == "TypeError" and "argument" in fault.text
    )


def _ran_before(fault: Stop, run: Run) -> bool:
    """Whether a run passed this statement as often as it had begun when the fault came, or this test."""
    if fault.test:
        return fault.test in run.passed
    if fault.key is None or any(_same_place(f, fault) for f in _faults(run)):
        return False
    return run.counts.get(fault.key, 0) >= max(fault.count, 1)


def _faults_gone(claim: Claim, without: Run, with_fix: Run) -> list[str]:
    """The faults of the run without the fix that the fix takes away."""
    after = _faults(with_fix)
    gone: list[str] = []
    for fault in _faults(without):
        if not fault.device and fault.key not in claim.own | claim.watch:
            continue
        same = [f for f in after if _same_place(f, fault)]
        if any(f.device == fault.device for f in same) and not (
            fault.device and all(f.inside != fault.inside for f in same) and _went_further(with_fix, without)
        ):
            continue
        if not same and not _passed(fault, claim, with_fix):
            continue
        again = sum(with_fix.counts.get(k, 0) for k in [fault.key] if k is not None)
        ran = "" if same or not again else f"; with it, that line ran {_times(again)}"
        gone.append(f"without the fix, {fault.where}: {fault.text}{ran}")
    return gone


def _passed(fault: Stop, claim: Claim, run: Run) -> bool:
    """Whether a run got past the statement where another had this fault, or passed the test."""
    if fault.test and fault.test in run.passed:
        return True
    if fault.key is None:
        return run.complete
    if fault.key in run.counts or fault.key not in claim.beside:
        return run.counts.get(fault.key, 0) >= max(fault.count, 1) or fault.key in run.elsewhere
    after, previous = claim.beside[fault.key]  # the fix takes the statement away
    if after is not None and run.counts.get(after, 0) >= fault.count:
        return True
    stopped_at = run.stop.key if run.stop is not None else None
    return previous is not None and run.counts.get(previous, 0) >= fault.count and stopped_at != previous


def brought(fault: Stop, claim: Claim, with_fix: Run, forgiven: Run) -> bool:
    """Whether a device fault that follows a fix is the fix's doing.

    `forgiven`: the run without the fix in which mixed devices are recorded and let through. A fault that is in the
    program shows there too. One that does not show there came with the fix if the fix takes values off their card; if
    it takes them to the card, what they meet there was left behind before.
    """
    if fault.key is None or not forgiven.ran(fault.key):
        return False
    takes = any(with_fix.taken.get(key, 0) > forgiven.taken.get(key, 0) for key in claim.own)
    return takes and not any(_same_place(each, fault) for each in _faults(forgiven))


def _nothing_seen(claim: Claim, without: Run, with_fix: Run, original: Run | None) -> tuple[Verdict, str]:
    runs = [without, *([original] if original else []), with_fix]
    here = claim.at
    if claim.finding is None or not any(run.ran(claim.finding) for run in runs):
        if without.complete:
            return Verdict.NOT_REACHED, f"no run reached {here} ({without.text})"
        return Verdict.COULD_NOT_JUDGE, f"the runs ended before {here}: {without.text}"
    if not without.complete and without.stop is not None and without.stop.key in claim.own:
        return Verdict.COULD_NOT_JUDGE, f"the runs ended at {here}, with and without the fix: {without.text}"
    unseen = [key for key in claim.watch if not without.ran(key)]
    if not without.complete and unseen:
        return Verdict.COULD_NOT_JUDGE, f"{here} ran, but the runs ended before its fault could appear: {without.text}"
    if not with_fix.complete and without.complete:
        return Verdict.COULD_NOT_JUDGE, f"the corrected run: {with_fix.text}"
    most = max(run.counts.get(claim.finding, 0) for run in runs)
    return Verdict.NOT_REPRODUCED, f"{here} ran {_times(max(most, 1))} without the fix, and no fault appeared"


# ---------------------------------------------------------------------------------------------------- losses


def differing_losses(a: Run, b: Run, tolerance: Tolerance = SAME_KERNELS) -> str:
    """How the losses of two runs under one seed differ, as far as both have them; "" when they do not."""
    if tolerance.first == 0 or a.failures or b.failures:  # a test that fails leaves some out
        return ""
    for step, (x, y) in enumerate(zip(a.losses[: tolerance.first], b.losses[: tolerance.first], strict=False), 1):
        if (math.isnan(x) and math.isnan(y)) or x == y:
            continue
        if not math.isclose(x, y, rel_tol=tolerance.relative, abs_tol=1e-7):
            return f"with the same seed, the loss at backward pass {step} changes from {x:.6g} to {y:.6g}"
    if a.outcome is b.outcome is Outcome.FINISHED and len(a.losses) != len(b.losses):
        return f"the number of backward passes changes from {len(a.losses)} to {len(b.losses)}"
    return ""


def differ(original: Run, corrected: Run, tolerance: Tolerance = SAME_KERNELS) -> bool:
    """Whether a corrected run has a fault where the original has none, other losses, or another sum of its doings."""
    before = _faults(original)
    new = [fault for fault in _faults(corrected) if not any(_same_place(fault, each) for each in before)]
    return bool(new or differing_losses(original, corrected, tolerance) or changes_as_a_whole(original, corrected))


# ------------------------------------------------------------------------------------------------- combining

_RANK: Sequence[Verdict] = (
    Verdict.REFUTED,
    Verdict.CONFIRMED,
    Verdict.NOT_REPRODUCED,
    Verdict.COULD_NOT_JUDGE,
    Verdict.NOT_REACHED,
)


def combine(judgements: Sequence[Judgement]) -> Judgement:
    """One verdict from those on several devices: the one that says most, with the name of its device."""
    return min(judgements, key=lambda judgement: _RANK.index(judgement.verdict))


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """1 if any fix is refuted; else 3 if there were fixes and none could be judged; else 0."""
    verdicts = list(verdicts)
    if Verdict.REFUTED in verdicts:
        return 1
    judged = {Verdict.CONFIRMED, Verdict.NOT_REPRODUCED}
    return 3 if verdicts and not judged.intersection(verdicts) else 0


def falls_short(run: Run, references: Sequence[Run]) -> str:
    """Why a corrected program does not run as far as the original was meant to; "" when it does.

    references: runs of the original. An end that one of them has, too, and that is no device fault, is meant.
    """
    if run.outcome is Outcome.CANNOT_SIMULATE:
        return run.text
    meant = [fault for reference in references for fault in _ends(reference)]
    for fault in _ends(run):
        if fault.device or not any(_same_place(each, fault) and each.text == fault.text for each in meant):
            return f"{fault.where}: {fault.text}" if fault.test else f"it stops at {fault.where}: {fault.text}"
    return ""


def _ends(run: Run) -> list[Stop]:
    """What ended a run, and its tests, early."""
    stopped = run.stop is not None and run.outcome in (Outcome.DEVICE_FAULT, Outcome.OTHER_STOP)
    return [*([run.stop] if stopped and run.stop is not None else []), *run.failures]


def same_end(one: Run, other: Run) -> bool:
    """Whether two runs end with one exception that has nothing to do with devices, such as a missing module."""
    a, b = one.stop, other.stop
    if a is None or b is None or a.device or b.device or not a.kind:
        return False
    return one.outcome is other.outcome is Outcome.OTHER_STOP and (a.where, a.text) == (b.where, b.text)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
