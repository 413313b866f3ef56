"""`devlint doctor`: each situation as answers to its probes, and what it says about it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from devlint.errors import UsageError
from devlint.runtime.doctor import Check, Facts, Probes, diagnose, gather, main

pytestmark = pytest.mark.runtime

A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "driver_version": "550.54.15",
    "memory.total": "40960",
    "memory.free": "40000",
    "compute_cap": "8.0",
}
CUDA_12 = {"cuda": "12.8"}
ARCHS = ["sm_75", "sm_80", "sm_90", "compute_90"]


def works(kind: str = "cuda", **changes: Any) -> dict[str, Any]:
    """What torch says on a machine where all is well."""
    card = {
        "index": 0,
        "name": "NVIDIA A100-SXM4-40GB",
        "total": 40 << 30,
        "free": 39 << 30,
        "capability": [8, 0],
        "right": True,
        "dtypes": ["float16", "bfloat16"],
    }
    return {"version": "2.13.0", "kind": kind, "arch_list": ARCHS, "cards": [{**card, **changes}]}


def fails(why: str = "", **changes: Any) -> dict[str, Any]:
    """What torch says where it finds no accelerator."""
    return {"version": "2.13.0", "kind": None, "arch_list": ARCHS, "cards": [], "why_not": why, **changes}


GOOD = Facts(
    python="3.11.7",
    platform="linux x86_64",
    torch_version="2.13.0",
    torch_folder="/site/torch",
    build=CUDA_12,
    torch=works(),
    device_files=["/dev/nvidia0"],
    kernel_driver="550.54.15",
    smi="",
    cards=[A100],
    libraries=["/usr/lib/x86_64-linux-gnu/libcuda.so.1"],
)
NO_GPU = replace(GOOD, torch=fails(), device_files=[], kernel_driver=None, smi=None, cards=[], libraries=[])


def problems(facts: Facts) -> dict[str, Check]:
    return {check.name: check for check in diagnose(facts) if check.status == "problem" and check.name != "next"}


def last(facts: Facts) -> Check:
    return diagnose(facts)[-1]


def test_all_well() -> None:
    assert problems(GOOD) == {}
    assert 'torch.device("cuda")' in last(GOOD).text
    (used,) = [check for check in diagnose(GOOD) if check.name == "cuda:0"]
    assert (
        used.text
        == "NVIDIA A100-SXM4-40GB, 39.0 of 40.0 GiB free; computes right results in float32, float16, bfloat16, tf32"
    )


def test_machine_without_gpu_is_no_problem_and_points_to_the_simulation() -> None:
    assert problems(NO_GPU) == {}
    assert "--device sim" in last(NO_GPU).text


def test_no_torch() -> None:
    facts = replace(NO_GPU, torch_version=None, torch_folder=None, build={}, torch={})
    assert "not installed" in problems(facts)["torch"].text
    assert "pip install torch" in last(facts).text


def test_torch_that_cannot_be_imported() -> None:
    facts = replace(GOOD, torch={"failed": "ImportError: libcudnn.so.9: cannot open shared object file"})
    assert "libcudnn.so.9" in problems(facts)["torch"].text


def test_cpu_wheel_beside_a_card() -> None:
    facts = replace(GOOD, build={}, torch_version="2.13.0+cpu", torch=fails(version="2.13.0+cpu", arch_list=[]))
    assert "built for the CPU only" in problems(facts)["torch"].text
    assert "install a build for your driver" in last(facts).text


def test_cpu_wheel_without_a_card_is_no_problem() -> None:
    assert problems(replace(NO_GPU, build={}, torch=fails(version="2.13.0+cpu"))) == {}


def test_two_installations_of_torch() -> None:
    facts = replace(GOOD, torch_version="2.4.0")
    (check,) = [check for check in diagnose(facts) if check.name == "torch metadata"]
    assert check.status == "warning" and "2.4.0" in check.text and "2.13.0" in check.text


def test_card_without_driver() -> None:
    facts = replace(NO_GPU, pci=["/sys/bus/pci/devices/0000:01:00.0/vendor"])
    assert "no driver is loaded" in problems(facts)["hardware"].text
    assert "install NVIDIA's driver" in last(facts).text


def test_driver_too_old_for_the_build() -> None:
    facts = replace(GOOD, build={"cuda": "13.0"}, torch=fails("The NVIDIA driver on your system is too old"))
    assert "550.54.15 is too old for CUDA 13.0" in problems(facts)["driver"].text
    assert "580.0 or newer" in problems(facts)["driver"].text


def test_driver_new_enough_by_minor_version_compatibility() -> None:
    facts = replace(GOOD, cards=[{**A100, "driver_version": "525.60.13"}])
    assert problems(facts) == {}


def test_libraries_of_another_driver_than_the_loaded_one() -> None:
    facts = replace(
        GOOD, cards=[], smi="Failed to initialize NVML: Driver/library version mismatch", torch=fails("no driver")
    )
    assert "restart" in problems(facts)["nvidia-smi"].advice


@pytest.mark.parametrize(("capability", "advice"), [("12.0", "newer torch"), ("6.1", "older torch")])
def test_card_the_build_has_no_code_for(capability: str, advice: str) -> None:
    facts = replace(GOOD, cards=[{**A100, "compute_cap": capability}], torch=fails(arch_list=["sm_75", "sm_90"]))
    check = problems(facts)["compute capability"]
    assert f"the GPU has {capability}" in check.text
    assert advice in check.advice


@pytest.mark.parametrize("capability", ["8.6", "9.0", "12.0"])
def test_card_served_by_an_older_minor_version_or_by_ptx(capability: str) -> None:
    facts = replace(GOOD, cards=[{**A100, "compute_cap": capability}], torch=fails(arch_list=ARCHS))
    assert "compute capability" not in problems(facts)


@pytest.mark.parametrize("value", ["", "-1"])
def test_cards_hidden_by_the_environment(value: str) -> None:
    facts = replace(GOOD, visible={"CUDA_VISIBLE_DEVICES": value}, torch=fails())
    assert "hides every GPU" in problems(facts)["CUDA_VISIBLE_DEVICES"].text
    assert "unset it" in last(facts).text


def test_environment_that_names_a_card_that_is_not_there() -> None:
    facts = replace(GOOD, visible={"CUDA_VISIBLE_DEVICES": "1"}, torch=fails())
    assert "names GPU 1, but the machine has 1" in problems(facts)["CUDA_VISIBLE_DEVICES"].text


def test_environment_that_names_a_card_by_uuid() -> None:
    assert problems(replace(GOOD, visible={"CUDA_VISIBLE_DEVICES": "GPU-8932f937"})) == {}


def test_container_without_the_device() -> None:
    facts = replace(GOOD, container=True, device_files=[], cards=[], smi=None, torch=fails())
    assert "not given the device" in problems(facts)["container"].text
    assert "--gpus all" in problems(facts)["container"].advice


def test_container_without_the_drivers_library() -> None:
    facts = replace(GOOD, container=True, libraries=[], cards=[], smi=None, torch=fails())
    assert "libcuda.so" in problems(facts)["libcuda"].text


def test_memory_taken_by_others() -> None:
    facts = replace(GOOD, cards=[{**A100, "memory.free": "500"}])
    (check,) = [check for check in diagnose(facts) if check.name == "card"]
    assert check.status == "warning" and "500 of 40960 MiB free" in check.text


def test_card_that_computes_wrongly() -> None:
    assert "computes wrong results" in problems(replace(GOOD, torch=works(right=False)))["cuda:0"].text


def test_card_that_fails_to_compute() -> None:
    facts = replace(GOOD, torch=works(failed="RuntimeError: CUDA error: no kernel image is available"))
    assert "no kernel image" in problems(facts)["cuda:0"].text


def test_old_card_without_tf32_and_bfloat16() -> None:
    facts = replace(GOOD, torch=works(capability=[7, 5], dtypes=["float16"]))
    (used,) = [check for check in diagnose(facts) if check.name == "cuda:0"]
    assert used.text.endswith("computes right results in float32, float16")


def test_mac() -> None:
    torch = {
        "version": "2.13.0",
        "kind": "mps",
        "cards": [{"index": 0, "name": "mps", "total": 8 << 30, "right": True}],
    }
    facts = Facts("3.12.1", "darwin arm64", "2.13.0", "/site/torch", torch=torch)
    assert problems(facts) == {}


def test_every_problem_comes_with_advice() -> None:
    for facts in (
        replace(GOOD, build={"cuda": "13.0"}, torch=fails("too old")),
        replace(GOOD, torch=fails()),
        replace(NO_GPU, pci=["x"]),
        replace(NO_GPU, torch_folder=None),
    ):
        for check in diagnose(facts):
            assert check.status != "problem" or check.advice or check.name == "next"
        assert last(facts).text


# ------------------------------------------------------------------------------------------------------- the probes


class Fake(Probes):
    """A machine in a dictionary."""

    def __init__(self, files: dict[str, str] | None = None, smi: tuple[int, str] | None = None, **environment: str):
        self._files = files or {}
        self._smi = smi
        self._environment = environment

    def version(self, package: str) -> str | None:
        return {"torch": "2.13.0+cu128", "triton": "3.5.0"}.get(package)

    def torch_folder(self) -> str | None:
        return "/site/torch"

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def files(self, pattern: str) -> list[str]:
        from fnmatch import fnmatch

        return sorted(path for path in self._files if fnmatch(path, pattern))

    def environ(self, name: str) -> str | None:
        return self._environment.get(name)

    def command(self, *words: str) -> tuple[int, str] | None:
        return self._smi

    def ask_torch(self) -> dict[str, Any]:
        return fails()


def test_facts_of_a_machine_with_a_card() -> None:
    facts = gather(
        Fake(
            {
                "/site/torch/version.py": "from typing import Optional\ncuda: Optional[str] = '12.8'\nhip = None\n",
                "/dev/nvidia0": "",
                "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5",
                "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
                "/sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
                "/.dockerenv": "",
            },
            smi=(0, "NVIDIA A100-SXM4-40GB, 550.54.15, 40960, 40000, 8.0\n"),
            CUDA_VISIBLE_DEVICES="0",
        )
    )
    assert facts.build == CUDA_12
    assert facts.cards == [A100]
    assert facts.kernel_driver == "550.54.15"
    assert facts.pci == ["/sys/bus/pci/devices/0000:01:00.0/vendor"]
    assert facts.visible == {"CUDA_VISIBLE_DEVICES": "0"}
    assert facts.container
    assert facts.packages == {"triton": "3.5.0"}


def test_open_kernel_module_has_its_version_read() -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build"
    assert gather(Fake({"/proc/driver/nvidia/version": text})).kernel_driver == "570.86.15"


def test_audio_part_of_a_card_is_no_card() -> None:
    files = {"/sys/bus/pci/devices/1/vendor": "0x10de", "/sys/bus/pci/devices/1/class": "0x040300"}
    assert gather(Fake(files)).pci == []


def test_json_has_checks_and_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"], Fake()) == 0
    row = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in row["checks"]][:2] == ["Python", "torch"]
    assert row["facts"]["torch_folder"] == "/site/torch"


def test_problem_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    files = {"/sys/bus/pci/devices/1/vendor": "0x10de", "/sys/bus/pci/devices/1/class": "0x030000"}
    assert main([], Fake(files)) == 1
    assert "-> install NVIDIA's driver" in capsys.readouterr().out


def test_unknown_option() -> None:
    with pytest.raises(UsageError, match="--nothing"):
        main(["--nothing"], Fake())


def test_this_machine_is_asked_without_importing_torch_here() -> None:
    code = (
        "import sys; from devlint.runtime.doctor import Probes, gather\n"
        "class Quick(Probes):\n"
        "    def ask_torch(self): return {}\n"
        "facts = gather(Quick())\n"
        "assert facts.torch_folder, facts\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_torch_of_this_machine_answers() -> None:
    pytest.importorskip("torch")
    answer = Probes().ask_torch()
    assert "failed" not in answer
    assert answer["version"].startswith("2.")
