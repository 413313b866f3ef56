"""`devlint doctor`: what decides whether a program finds a GPU here, and what to do next.

Three steps, each of use alone: `gather` asks the machine through `Probes`, which a test replaces; `diagnose` turns the
answers into checks and knows nothing of the machine; the report shows them. torch is imported only in a child process,
since a broken installation may crash or hang there.

Exit code: 0 when torch uses an accelerator rightly, or when this machine has none; 1 when there is one that torch
cannot use, or that computes wrongly, or when torch is missing or broken; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import ast
import glob
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from devlint.commands.shell import parse
from devlint.errors import UsageError
from devlint.report import data
from devlint.terminal import printable_report

Status: TypeAlias = Literal["ok", "info", "warning", "problem"]

# Packages whose wheels hold code for a GPU, or that decide how it is used.
PACKAGES: Final = (
    "torchvision",
    "torchaudio",
    "triton",
    "pytorch-triton-rocm",
    "xformers",
    "flash-attn",
    "bitsandbytes",
    "apex",
    "deepspeed",
    "accelerate",
    "lightning",
    "transformers",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-nccl-cu12",
    "nvidia-nccl-cu13",
    "intel-extension-for-pytorch",
    "torch-xla",
    "torch-directml",
    "cupy-cuda12x",
    "numpy",
)
VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
# The oldest driver for each CUDA major version on Linux, by minor version compatibility: CUDA Toolkit release notes,
# table "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility".
OLDEST_DRIVER: Final = {11: (450, 80), 12: (525, 60), 13: (580, 0)}
_SECONDS = 120.0

# Runs in the child. `out` is filled as far as it comes, so that a crash in a late step keeps the early answers.
_ASK_TORCH: Final = """
import json, sys
out = {}
try:
    import torch
    out["version"] = torch.__version__
    places = {"cuda": torch.cuda, "xpu": getattr(torch, "xpu", None), "mps": torch.backends.mps}
    kind = next((k for k, place in places.items() if place is not None and place.is_available()), None)
    out["kind"] = kind
    out["built_for"] = {
        "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None), "xpu": getattr(torch.version, "xpu", None)
    }
    try:
        out["arch_list"] = torch.cuda.get_arch_list()
    except Exception:
        out["arch_list"] = []
    if kind is None and torch.version.cuda:
        try:
            torch.cuda.init()
        except Exception as error:
            out["why_not"] = f"{type(error).__name__}: {error}"
    cards = out["cards"] = []
    module = getattr(torch, kind) if kind else None
    for index in range(module.device_count() if module else 0):
        card = {"index": index, "name": kind}
        cards.append(card)
        if kind == "mps":
            card["total"] = module.recommended_max_memory() if hasattr(module, "recommended_max_memory") else 0
            card["free"] = card["total"] - module.driver_allocated_memory()
        else:
            properties = module.get_device_properties(index)
            card["name"], card["total"] = properties.name, properties.total_memory
            try:
                card["free"] = module.mem_get_info(index)[0]
            except Exception:
                pass
            if kind == "cuda":
                card["capability"] = list(module.get_device_capability(index))
        device = torch.device(kind, index)
        try:
            source = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64) % 7
            right = source @ source.T
            card["right"] = bool(torch.equal((source.to(device) @ source.to(device).T).cpu(), right))
            card["dtypes"] = []
            for dtype in (torch.float16, torch.bfloat16):
                try:
                    low = source.to(device, dtype)
                    if torch.allclose((low @ low.T).float().cpu(), right, rtol=0.02, atol=0.5):
                        card["dtypes"].append(str(dtype)[6:])
                except Exception:
                    pass
        except Exception as error:
            card["failed"] = f"{type(error).__name__}: {error}".splitlines()[0]
except BaseException as error:
    out["failed"] = f"{type(error).__name__}: {error}"
print("devlint:" + json.dumps(out))
"""


class Probes:
    """Every question to the machine. A test overrides the answers."""

    def version(self, package: str) -> str | None:
        """The installed version of a distribution, from its metadata."""
        import importlib.metadata

        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def torch_folder(self) -> str | None:
        """Where torch is installed; nothing of it is imported."""
        try:
            spec = importlib.util.find_spec("torch")
        except (ImportError, ValueError):
            return None
        return os.path.dirname(spec.origin) if spec is not None and spec.origin else None

    def read(self, path: str) -> str | None:
        """The text of a file, None where it cannot be read."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def files(self, pattern: str) -> list[str]:
        """Paths that match, sorted."""
        return sorted(glob.glob(pattern))

    def environ(self, name: str) -> str | None:
        """An environment variable."""
        return os.environ.get(name)

    def command(self, *words: str) -> tuple[int, str] | None:
        """Exit status and output of a command; None when there is no such command or it does not end."""
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.returncode, done.stdout + done.stderr

    def ask_torch(self) -> dict[str, Any]:
        """What torch itself says, in a child process; ``failed`` when it crashes, hangs or cannot be imported."""
        try:
            done = subprocess.run(
                [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"failed": f"the import of torch or a small computation did not end: {error}"}
        for line in reversed(done.stdout.splitlines()):
            if line.startswith("devlint:"):
                answer: dict[str, Any] = json.loads(line.removeprefix("devlint:"))
                return answer
        return {"failed": f"the process ended with status {done.returncode}: {done.stderr.strip()[-300:]}"}

    def python(self) -> tuple[str, str]:
        """Python's version and the platform: ``linux``, ``darwin``, ``win32``; the machine follows after a space."""
        return platform.python_version(), f"{sys.platform} {platform.machine()}"


@dataclass(slots=True)
class Facts:
    """The answers. None, or empty, where there was none.

    build: what torch's own version file says it was built for, such as ``{"cuda": "12.8"}``; empty for CPU wheels.
    torch: what `Probes.ask_torch` returns. cards: rows of nvidia-smi: name, driver, total and free MiB, capability.
    """

    python: str = ""
    platform: str = "linux"
    torch_version: str | None = None
    torch_folder: str | None = None
    build: dict[str, str] = field(default_factory=dict)
    torch: dict[str, Any] = field(default_factory=dict)
    visible: dict[str, str] = field(default_factory=dict)
    device_files: list[str] = field(default_factory=list)
    kernel_driver: str | None = None
    smi: str | None = None
    cards: list[dict[str, str]] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    pci: list[str] = field(default_factory=list)
    container: bool = False
    packages: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what it is, how it stands, and what to do if it stands badly."""

    name: str
    status: Status
    text: str
    advice: str = ""


def gather(probes: Probes) -> Facts:
    """Ask everything. Never raises: a question without an answer is left open."""
    facts = Facts()
    facts.python, facts.platform = probes.python()
    facts.torch_version, facts.torch_folder = probes.version("torch"), probes.torch_folder()
    if facts.torch_folder is not None:
        facts.build = _build(probes.read(os.path.join(facts.torch_folder, "version.py")) or "")
        facts.torch = probes.ask_torch()
    facts.visible = {name: value for name in VISIBLE if (value := probes.environ(name)) is not None}
    facts.device_files = [
        *probes.files("/dev/nvidia[0-9]*"),
        *probes.files("/dev/nvidiactl"),
        *probes.files("/dev/dxg"),
        *probes.files("/dev/kfd"),
    ]
    match = re.search(r"Kernel Module.*?\s(\d{3,}\.[\d.]+)", probes.read("/proc/driver/nvidia/version") or "")
    facts.kernel_driver = match.group(1) if match else None
    _ask_smi(facts, probes)
    facts.libraries = [
        path
        for pattern in (
            "/usr/lib/x86_64-linux-gnu/libcuda.so*",
            "/usr/lib/wsl/lib/libcuda.so*",
            "/usr/lib*/libcuda.so*",
        )
        for path in probes.files(pattern)
    ]
    facts.pci = [path for path in probes.files("/sys/bus/pci/devices/*/vendor") if _is_nvidia_display(path, probes)]
    cgroup = probes.read("/proc/1/cgroup") or ""
    facts.container = bool(probes.files("/.dockerenv") or probes.files("/run/.containerenv")) or any(
        word in cgroup for word in ("docker", "kubepods", "containerd", "libpod", "lxc")
    )
    facts.packages = {name: version for name in PACKAGES if (version := probes.version(name)) is not None}
    return facts


def _build(text: str) -> dict[str, str]:
    """The assignments of torch/version.py that name a platform, read without running it."""
    found: dict[str, str] = {}
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return found
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for target in targets:
            if (
                isinstance(target, ast.Name)
                and target.id in ("cuda", "hip", "rocm", "xpu")
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                found[target.id] = value.value
    return found


def _ask_smi(facts: Facts, probes: Probes) -> None:
    fields = ("name", "driver_version", "memory.total", "memory.free", "compute_cap")
    answer = probes.command("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    if answer is None:
        return
    status, text = answer
    facts.smi = text.strip() if status else ""
    for line in text.splitlines() if status == 0 else ():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(fields):
            facts.cards.append(dict(zip(fields, values, strict=True)))


def _is_nvidia_display(path: str, probes: Probes) -> bool:
    vendor = (probes.read(path) or "").strip()
    kind = (probes.read(path.removesuffix("vendor") + "class") or "").strip()
    return vendor == "0x10de" and kind.startswith("0x03")


# ------------------------------------------------------------------------------------------------------ the diagnosis


def diagnose(facts: Facts) -> list[Check]:
    """The checks, in the order in which one thing depends on another."""
    checks = [Check("Python", "info", f"{facts.python} on {facts.platform}")]
    checks += _torch_checks(facts)
    checks += _hardware_checks(facts)
    checks += _visibility_checks(facts)
    checks += _driver_checks(facts)
    checks += _use_checks(facts)
    if facts.packages:
        shown = ", ".join(f"{name} {version}" for name, version in facts.packages.items())
        checks.append(Check("packages", "info", shown))
    checks.append(_next_step(facts, checks))
    return checks


def has_hardware(facts: Facts) -> bool:
    """Whether anything shows that this machine has an accelerator."""
    return bool(facts.device_files or facts.cards or facts.pci or facts.kernel_driver or facts.torch.get("kind"))


def _is_cpu_build(facts: Facts) -> bool:
    return not facts.build and not facts.platform.startswith("darwin")


def _torch_checks(facts: Facts) -> list[Check]:
    if facts.torch_folder is None:
        return [
            Check(
                "torch",
                "problem",
                "not installed in this Python",
                "install it with the selector on https://pytorch.org/get-started/locally, in this environment: "
                "`python -m pip install torch`",
            )
        ]
    version = facts.torch.get("version") or facts.torch_version or "unknown version"
    built = ", ".join(f"{name} {value}" for name, value in facts.build.items())
    checks = []
    if "failed" in facts.torch:
        checks.append(
            Check(
                "torch",
                "problem",
                f"{version} is installed but cannot be used: {facts.torch['failed']}",
                "reinstall it in a fresh environment; if a lib*.so is missing, a package is missing that torch needs",
            )
        )
    elif _is_cpu_build(facts):
        status: Status = "problem" if has_hardware(facts) else "info"
        checks.append(
            Check(
                "torch",
                status,
                f"{version}, built for the CPU only: this build cannot use a GPU, even if the machine has one",
                "install a build for your driver from https://pytorch.org/get-started/locally"
                if status != "info"
                else "",
            )
        )
    else:
        checks.append(Check("torch", "ok", f"{version}, built for {built or 'mps'}"))
    meta = facts.torch_version
    imported = facts.torch.get("version")
    if meta and imported and meta.split("+")[0] != imported.split("+")[0]:
        checks.append(
            Check(
                "torch metadata",
                "warning",
                f"pip knows torch {meta}, but {imported} is imported from {facts.torch_folder}",
                "two installations overlap: uninstall torch until pip finds none, then install it once",
            )
        )
    return checks


def _hardware_checks(facts: Facts) -> list[Check]:
    checks = []
    for card in facts.cards:
        text = (
            f"{card['name']}, {card['memory.free']} of {card['memory.total']} MiB free, compute capability "
            f"{card['compute_cap']}, driver {card['driver_version']}"
        )
        low = _number(card["memory.free"]) < 0.1 * _number(card["memory.total"])
        advice = "other processes hold most of its memory: `nvidia-smi` lists them" if low else ""
        checks.append(Check("card", "warning" if low else "info", text, advice))
    if not has_hardware(facts):
        where = " (in a container; the host may have one)" if facts.container else ""
        checks.append(Check("hardware", "info", f"no accelerator is visible here{where}"))
    elif facts.pci and not facts.device_files and not facts.kernel_driver:
        checks.append(
            Check(
                "hardware",
                "problem",
                f"the machine has {len(facts.pci)} NVIDIA GPU(s), but no driver is loaded and there is no /dev/nvidia0",
                "install NVIDIA's driver and restart; with secure boot, the kernel module of the driver must be signed",
            )
        )
    if facts.container and facts.kernel_driver and not any("nvidia" in path for path in facts.device_files):
        checks.append(
            Check(
                "container",
                "problem",
                f"the host has NVIDIA driver {facts.kernel_driver}, but this container was not given the device",
                "start it with `docker run --gpus all` (NVIDIA Container Toolkit on the host), or ask Kubernetes for "
                "`nvidia.com/gpu`",
            )
        )
    return checks


def _visibility_checks(facts: Facts) -> list[Check]:
    checks = []
    for name, value in facts.visible.items():
        if value.strip() in ("", "-1", "NoDevFiles", "none", "void"):
            checks.append(
                Check(
                    name,
                    "problem" if has_hardware(facts) else "warning",
                    f"is set to {value!r}, which hides every GPU",
                    f"unset it, or name the GPUs: `{name}=0`",
                )
            )
            continue
        wanted = [part.strip() for part in value.split(",")]
        count = len(facts.cards)
        missing = [part for part in wanted if part.isdecimal() and count and int(part) >= count]
        if missing:
            checks.append(
                Check(
                    name,
                    "problem",
                    f"names GPU {missing[0]}, but the machine has {count}; CUDA hides this GPU and all GPUs after it",
                    f"use numbers from 0 to {count - 1}",
                )
            )
        else:
            checks.append(Check(name, "info", f"is {value!r}; programs number these GPUs from 0"))
    return checks


def _driver_checks(facts: Facts) -> list[Check]:
    checks = []
    driver = facts.cards[0]["driver_version"] if facts.cards else facts.kernel_driver
    if facts.smi:
        advice = "restart the machine: the loaded kernel module and the installed libraries differ"
        mismatch = "version mismatch" in facts.smi
        first = facts.smi.splitlines()[0]
        checks.append(Check("nvidia-smi", "problem", first, advice if mismatch else "reinstall NVIDIA's driver"))
    cuda = facts.build.get("cuda")
    if cuda is None:
        return checks
    if driver is None:
        if has_hardware(facts) and not facts.pci and facts.torch.get("kind") is None:
            checks.append(
                Check(
                    "driver",
                    "problem",
                    "the NVIDIA driver does not answer",
                    "install NVIDIA's driver; `nvidia-smi` must work",
                )
            )
        return checks
    oldest = OLDEST_DRIVER.get(int(cuda.split(".")[0]))
    if oldest is not None and _version(driver) < oldest:
        needed = ".".join(map(str, oldest))
        checks.append(
            Check(
                "driver",
                "problem",
                f"{driver} is too old for CUDA {cuda}, which this torch is built for; it needs {needed} or newer",
                "update the driver, or install a torch built for an older CUDA",
            )
        )
    else:
        checks.append(Check("driver", "ok", f"{driver} supports CUDA {cuda}"))
    if not facts.libraries and facts.container and facts.torch.get("kind") is None:
        checks.append(
            Check(
                "libcuda",
                "problem",
                "the driver's library libcuda.so is not in this container",
                "set NVIDIA_DRIVER_CAPABILITIES=compute,utility and use the NVIDIA container runtime",
            )
        )
    return checks


def _use_checks(facts: Facts) -> list[Check]:
    answer = facts.torch
    checks = [*_capability_checks(facts)]
    for card in answer.get("cards", ()):
        where = f"{answer['kind']}:{card['index']}"
        memory = f", {_gib(card.get('free'))} of {_gib(card.get('total'))} GiB free" if card.get("total") else ""
        numbers = ", ".join(["float32", *card.get("dtypes", ())])
        if answer["kind"] == "cuda" and card.get("capability", [0])[0] >= 8:
            numbers += ", tf32"
        if "failed" in card:
            checks.append(
                Check(
                    where,
                    "problem",
                    f"{card['name']}: {card['failed']}",
                    "run the program again with CUDA_LAUNCH_BLOCKING=1, and see the checks above",
                )
            )
        elif not card.get("right", True):
            checks.append(
                Check(
                    where,
                    "problem",
                    f"{card['name']} computes wrong results: the product of two small matrices is not the same as on the CPU",
                    "the GPU, its memory or its driver is broken: try another GPU, and `nvidia-smi -q -d ECC`",
                )
            )
        else:
            checks.append(Check(where, "ok", f"{card['name']}{memory}; computes right results in {numbers}"))
    return checks


def _capability_checks(facts: Facts) -> list[Check]:
    """Whether the build has code for each card: its own, of the same major version, or PTX to translate."""
    listed = facts.torch.get("arch_list") or []
    if not listed or facts.build.get("hip"):
        return []
    cards = [tuple(card["capability"]) for card in facts.torch.get("cards", ()) if "capability" in card]
    cards = cards or [_version(card["compute_cap"]) for card in facts.cards if card["compute_cap"][:1].isdecimal()]
    checks = []
    for major, minor in sorted({(each[0], each[1]) for each in cards if len(each) > 1}):
        own = [_arch(name) for name in listed if name.startswith("sm_")]
        ptx = [_arch(name) for name in listed if name.startswith("compute_")]
        same = any(m == major and n <= minor for m, n in own)
        if not same and not any(each <= (major, minor) for each in ptx):
            newer = all(each < (major, minor) for each in own)
            checks.append(
                Check(
                    "compute capability",
                    "problem",
                    f"the GPU has {major}.{minor}, but this torch has code for {', '.join(listed)}",
                    "install a newer torch" if newer else "install an older torch that still supports this GPU",
                )
            )
    return checks


def _next_step(facts: Facts, checks: Sequence[Check]) -> Check:
    problems = [check for check in checks if check.status == "problem"]
    if problems:
        return Check("next", "problem", problems[0].advice)
    kind = facts.torch.get("kind")
    if kind is not None:
        return Check("next", "ok", f'programs find {kind}: `torch.device("{kind}")`')
    why = facts.torch.get("why_not")
    if has_hardware(facts):
        return Check("next", "problem", f"torch finds no accelerator{f': {why}' if why else ''}", "")
    return Check(
        "next",
        "info",
        "no GPU here. `devlint run --device sim SCRIPT` runs a program on a simulated GPU, and "
        "`pytest --devlint-device=sim` a test suite",
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return 0.0


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _arch(name: str) -> tuple[int, int]:
    """``sm_90a`` as (9, 0), ``sm_120`` as (12, 0)."""
    digits = re.sub(r"\D", "", name.partition("_")[2])
    return int(digits[:-1] or 0), int(digits[-1:] or 0)


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / 2**30:.1f}"


# ----------------------------------------------------------------------------------------------------------- command


def main(argv: Sequence[str], probes: Probes | None = None) -> int:
    """Run the command and print the report; see the module for the exit codes. Raises UsageError."""
    options = parse(parser(), list(argv))
    facts = gather(probes or Probes())
    checks = diagnose(facts)
    if options.json:
        print(data.as_json({"checks": [asdict(check) for check in checks], "facts": asdict(facts)}))
    else:
        print(printable_report(as_text(checks)))
    return int(any(check.status == "problem" for check in checks))


def parser() -> argparse.ArgumentParser:
    """The parser of `devlint doctor`."""
    result = _Parser(
        prog="devlint doctor",
        description="Explain whether torch can use a GPU on this machine, and what to do next.",
        epilog="Exit codes: 0 if torch can use the accelerator or there is none, 1 for a problem, 2 for wrong usage.",
    )
    result.add_argument("--json", action="store_true", help="print one JSON object")
    return result


def as_text(checks: Sequence[Check]) -> str:
    """The report for people: a mark, the name, what was found, and below it what to do, unless the last line says it."""
    marks = {"ok": "+", "info": " ", "warning": "!", "problem": "x"}
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{marks[check.status]} {check.name:<{width}}  {check.text}")
        if check.advice and check.advice != checks[-1].text:
            lines.append(f"  {'':<{width}}  -> {check.advice}")
    return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"devlint doctor: {message}")
