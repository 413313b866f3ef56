"""Plants device faults in copies of public training programs and asks `devlint verify` about each.

    git clone https://github.com/pytorch/examples
    git clone https://github.com/karpathy/minGPT
    python benchmarks/verify_planted.py --examples examples --mingpt minGPT

The programs are pytorch/examples' `regression` and `time_sequence_prediction` and minGPT's `adder`; none downloads
anything. Each copy is first put on the accelerator where the original stays on the CPU, and made small enough to run in
seconds; then the faults are put in. An edit whose anchor is not in the file ends the script with an error, so that a
changed program is noticed. Prints one row for each planted fault, and exits with 1 unless every one is confirmed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEVICE = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'


@dataclass(frozen=True)
class Edit:
    """Put `new` where `old` stands, which must be there exactly once."""

    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """An edit that plants a fault, the rules that may find it, and text of the line where finding or error must be."""

    codes: tuple[str, ...]
    line: str
    edit: Edit | None = None  # None: the program has it as soon as it runs on an accelerator


@dataclass(frozen=True)
class Program:
    """A program in a clone: what to copy, how to make it run here, and which faults to plant."""

    name: str
    folder: str
    script: str
    edits: tuple[Edit, ...]
    faults: tuple[Fault, ...]
    arguments: tuple[str, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()  # commands run in the copy first
    files: dict[str, str] = field(default_factory=dict)  # small stand-ins put beside the program


REGRESSION = Program(
    name="examples/regression",
    folder="regression",
    script="main.py",
    edits=(
        Edit("POLY_DEGREE = 4\n", "torch.manual_seed(0)\n" + DEVICE + "POLY_DEGREE = 4\n"),
        Edit("for batch_idx in count(1):", "for batch_idx in range(1, 20):"),
    ),
    faults=(
        Fault(
            ("DEV101", "DEV102", "DEV103"),
            "F.smooth_l1_loss(fc(batch_x)",
            Edit(
                "fc = torch.nn.Linear(W_target.size(0), 1)\n", "fc = torch.nn.Linear(W_target.size(0), 1).to(device)\n"
            ),
        ),
        Fault(
            ("DEV301",),
            "optimizer.to(device)",
            Edit(
                "\nfor batch_idx in",
                "optimizer = torch.optim.SGD(fc.parameters(), lr=0.1)\noptimizer.to(device)\n\nfor batch_idx in",
            ),
        ),
        Fault(
            ("DEV102", "DEV101"),
            "penalty = torch.zeros",
            Edit(
                "    loss = output.item()\n",
                "    penalty = torch.zeros(4)\n"
                "    output = output + (fc.weight * penalty).sum()\n"
                "    loss = output.item()\n",
            ),
        ),
        Fault(
            ("DEV401",),
            "time.time() - started",
            Edit(
                "print('Loss: {:.6f} after {} batches'",
                "print('seconds', time.time() - started)\nprint('Loss: {:.6f} after {} batches'",
            ),
        ),
        Fault(
            ("DEV109",),
            "fc.weight.detach().numpy()",
            Edit("print('==> Actual", "print(fc.weight.detach().numpy())\nprint('==> Actual"),
        ),
        Fault(
            ("DEV501",),
            "torch.zeros(20).to(device)",
            Edit("# Define model\n", "history = torch.zeros(20).to(device)\n# Define model\nstarted = time.time()\n"),
        ),
    ),
)

SEQUENCE = Program(
    name="examples/time_sequence_prediction",
    folder="time_sequence_prediction",
    script="train.py",
    before=(("generate_sine_wave.py",),),
    files={
        "matplotlib/__init__.py": "def use(name):\n    pass\n",
        "matplotlib/pyplot.py": "def __getattr__(name):\n    return lambda *args, **kwargs: None\n",
    },
    edits=(
        Edit("import matplotlib\n", DEVICE + "import matplotlib\n"),
        Edit(
            "torch.load('traindata.pt')",
            "torch.load('traindata.pt', map_location='cpu', weights_only=False)[:9, :40]",
        ),
        Edit("future = 1000", "future = 10"),
        Edit("    seq.double()\n", "    seq.double()\n    seq.to(device)\n"),
        Edit("target = torch.from_numpy(data[3:, 1:])", "target = torch.from_numpy(data[3:, 1:]).to(device)"),
        Edit("torch.from_numpy(data[3:, :-1])", "torch.from_numpy(data[3:, :-1]).to(device)"),
        Edit("torch.from_numpy(data[:3, :-1])", "torch.from_numpy(data[:3, :-1]).to(device)"),
    ),
    arguments=("--steps", "1"),
    faults=(
        Fault(("DEV102",), "h_t = torch.zeros(input.size(0)"),
        Fault(("DEV102",), "c_t = torch.zeros(input.size(0)"),
        Fault(("DEV102",), "h_t2 = torch.zeros(input.size(0)"),
        Fault(("DEV102",), "c_t2 = torch.zeros(input.size(0)"),
        Fault(("DEV109",), "y = pred.detach().numpy()"),
        Fault(("DEV101", "DEV102", "DEV103"), "loss = criterion(pred[:, :-future], test_target)"),
    ),
)

ADDER = Program(
    name="minGPT/projects/adder",
    folder=".",
    script="projects/adder/adder.py",
    edits=(Edit("    # run the optimization\n", "    # a short run\n    config.trainer.max_iters = 2\n"),),
    arguments=("--data.ndigit=1", "--trainer.num_workers=0"),
    faults=(
        Fault(
            ("DEV202",),
            "model.cuda()",
            Edit("    model = GPT(config.model)\n", "    model = GPT(config.model)\n    model.cuda()\n"),
        ),
        Fault(
            ("DEV109",),
            "(d3i_pred == d3i_gt).numpy()",
            Edit("(d3i_pred == d3i_gt).cpu()", "(d3i_pred == d3i_gt).numpy()"),
        ),
        Fault(
            ("DEV105",),
            "            x.to(trainer.device)",
            Edit("            x = x.to(trainer.device)\n", "            x.to(trainer.device)\n"),
        ),
    ),
)


def plant(program: Program, clone: Path, folder: Path) -> Path:
    """Copy a program and edit the copy; returns the script. Exits naming an anchor that is not there."""
    shutil.copytree(clone / program.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    for name, text in program.files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    script = folder / program.script
    text = script.read_text(encoding="utf-8")
    if any("time.time()" in fault.line for fault in program.faults):
        text = text.replace("import torch\n", "import time\nimport torch\n", 1)
    edits = [*program.edits, *(fault.edit for fault in program.faults if fault.edit is not None)]
    for edit in edits:
        if text.count(edit.old) != 1:
            sys.exit(f"{program.name}/{program.script}: {edit.old!r} is there {text.count(edit.old)} times, not once")
        text = text.replace(edit.old, edit.new)
    script.write_text(text, encoding="utf-8")
    for command in program.before:
        subprocess.run([sys.executable, *command], cwd=folder, check=True)
    return script


def verify(program: Program, folder: Path, device: str) -> dict[str, Any]:
    """The JSON report of `devlint verify` on the copy."""
    command = [sys.executable, "-m", "devlint", "verify", program.script, "--device", device, "--json"]
    done = subprocess.run(
        [*command, "--timeout", "120", "--", *program.arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{program.name}: no report\n{done.stdout}{done.stderr}")
    return report


def judge(program: Program, clone: Path, device: str) -> list[tuple[str, str, str]]:
    """Plant and verify; one row for each fault: where, rule, verdict."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "copy"
        lines = plant(program, clone, folder).read_text(encoding="utf-8").splitlines()
        report = verify(program, folder, device)
    for run in report["runs"]:
        print(f"  {program.name}: {run['run']}: {run['text'][:150]}", file=sys.stderr)
    rows = []
    left = list(report["fixes"])
    for fault in program.faults:
        number = next(n for n, line in enumerate(lines, 1) if fault.line in line)
        found = next((f for f in left if f["code"] in fault.codes and _is_at(f, number)), None)
        if found is not None:
            left.remove(found)
        where = f"{program.name}/{program.script}:{number}"
        rows.append((where, found["code"] if found else fault.codes[0], found["verdict"] if found else "not found"))
    rows += [(f"{program.name}:{f['location']['row']} (not planted)", f["code"], f["verdict"]) for f in left]
    return rows


def _is_at(fix: dict[str, Any], line: int) -> bool:
    """Whether a fix has its finding on a line, or is confirmed by an error there."""
    return fix["location"]["row"] == line or any(f"without the fix, line {line}:" in each for each in fix["evidence"])


def main() -> int:
    """Run the programs whose clones are given and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=Path, help="a clone of pytorch/examples")
    parser.add_argument("--mingpt", type=Path, help="a clone of karpathy/minGPT")
    parser.add_argument("--device", default="auto", help="as for devlint verify (default: auto)")
    options = parser.parse_args()
    programs = [(REGRESSION, options.examples), (SEQUENCE, options.examples), (ADDER, options.mingpt)]
    rows = [row for program, clone in programs if clone for row in judge(program, clone, options.device)]
    if not rows:
        parser.error("give at least one clone")
    width = max(len(where) for where, _, _ in rows)
    for where, code, verdict in rows:
        print(f"{where:<{width}}  {code}  {verdict}")
    planted = [verdict for where, _, verdict in rows if "(not planted)" not in where]
    rules = {code for where, code, verdict in rows if "(not planted)" not in where and verdict == "confirmed"}
    print(f"{planted.count('confirmed')} of {len(planted)} planted faults confirmed, by {len(rules)} rules")
    return 0 if planted.count("confirmed") == len(planted) else 1


if __name__ == "__main__":
    sys.exit(main())
