"""Runs test suites of public packages as ever and with `--devlint-shadow`, and writes what fails on the card.

    python benchmarks/shadow_suites.py FOLDER [NAME ...]
    python benchmarks/shadow_suites.py --table

FOLDER holds a checkout of each repository under its NAME below; the interpreter has the packages and devlint. For each
suite, its tests are run twice in one thread, each test with the same random numbers in both runs (seeded.py), and
`shadow_suites.json` gets a row: commit, tests that passed, CPU seconds of both runs (of the process and its children),
repeats, torch, the tests that ended in another way or left other random numbers behind, and the places. A row that is
there already is replaced; what a reader has written beside a place of the same file and line is kept. `--table` prints
the rows as the table of docs/shadow-tests.md.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).with_suffix(".json")
LIMIT = 1500
_REPEATED = re.compile(r"repeated on the simulated GPU: (\d+) calls of (\d+) functions and modules")


class Suite(NamedTuple):
    """package: to shadow. source: folder of it in the checkout, "" for the installed one. environment: for its tests."""

    package: str
    source: str
    tests: list[str]
    environment: tuple[str, ...] = ()


SUITES: dict[str, Suite] = {
    "nflows": Suite("nflows", "", ["tests"]),
    "normflows": Suite("normflows", ".", ["normflows"]),
    "kornia": Suite("kornia", ".", ["tests/losses", "tests/metrics", "tests/geometry/liegroup"]),
    "kornia-geometry": Suite(
        "kornia",
        ".",
        [
            "tests/sensors",
            *(f"tests/geometry/test_{each}.py" for each in ("boxes", "line", "plane", "pose", "quaternion", "ray")),
        ],
    ),
    "pytorch-metric-learning": Suite(
        "pytorch_metric_learning",
        "src",
        ["tests/losses", "--ignore=tests/losses/test_cross_batch_memory.py", "tests/miners", "tests/reducers"],
        ("TEST_DEVICE=cpu", "TEST_DTYPES=float32"),
    ),
    "torch_geometric": Suite("torch_geometric", ".", ["test/nn/aggr", "test/nn/norm", "test/nn/pool", "test/nn/dense"]),
    "pytorch_optimizer": Suite("pytorch_optimizer", ".", ["--override-ini=addopts=", "tests"]),
    "botorch": Suite(
        "botorch",
        ".",
        [
            "test/sampling/pathwise",
            "test/utils/multi_objective/box_decompositions/test_box_decomposition_list.py",
            "test/utils/test_sampling.py",
        ],
    ),
    "smp-losses": Suite("segmentation_models_pytorch", ".", ["tests/test_losses.py"]),
    "torchmetrics": Suite("torchmetrics", "src", ["tests/unittests/bases"]),
    "timm-layers": Suite(
        "timm", ".", ["tests/test_layers.py", "tests/test_layers_drop.py", "tests/test_layers_pool.py"]
    ),
    "torchvision-ops": Suite("torchvision", "", ["test/test_ops.py"]),
    "gpytorch": Suite(
        "gpytorch", ".", ["test/kernels", "test/likelihoods", "test/distributions", "test/means", "test/priors"]
    ),
    "asteroid": Suite("asteroid", ".", ["tests/losses", "tests/masknn"]),
    "zuko": Suite("zuko", ".", ["tests"]),
    "lightly-losses": Suite("lightly", ".", ["tests/loss", "tests/models/modules"]),
    "auraloss": Suite("auraloss", ".", ["tests"]),
    "piq": Suite("piq", ".", ["tests"]),
    "pyqtorch": Suite("pyqtorch", ".", ["tests/noise"]),
    "ptwt": Suite("ptwt", "src", ["tests"]),
    "vector-quantize": Suite("vector_quantize_pytorch", ".", ["tests"]),
    "snntorch": Suite("snntorch", ".", ["tests"]),
    "torchsurv": Suite("torchsurv", "src", ["tests"]),
    "kymatio": Suite("kymatio", ".", ["tests/scattering1d/test_torch_scattering1d.py", "tests/scattering3d"]),
    "relie": Suite("relie", ".", ["relie/test"]),
    "pytorch-crf": Suite("torchcrf", ".", ["tests"]),
    "captum": Suite("captum", ".", ["tests/attr/test_saliency.py", "tests/attr/layer", "tests/attr/neuron"]),
    "pytorch-ood": Suite("pytorch_ood", "src", ["tests/loss", "tests/detectors"]),
    "pyro": Suite(
        "pyro",
        ".",
        ["tests/distributions/test_transforms.py", "-k", "Permute or Householder or LowerCholesky or Polynomial"],
    ),
    "spd_learn": Suite(
        "spd_learn", ".", ["tests/test_functional.py", "tests/test_modules.py", "tests/test_batchnorm.py"]
    ),
    "pygsd": Suite("torch_geometric_signed_directed", ".", ["test/signed_test.py", "test/directed_test.py"]),
    "e2cnn": Suite("e2cnn", ".", [f"test/nn/test_{each}.py" for each in ("batchnorm", "pooling", "geometrictensor")]),
    "FrEIA": Suite(
        "FrEIA",
        ".",
        [
            f"tests/test_{each}.py"
            for each in ("gaussian_mixture", "orthogonal_layer", "splines", "sequence", "conditioning")
        ],
    ),
    "geoopt": Suite(
        "geoopt", ".", [f"tests/test_{each}.py" for each in ("manifold_basic", "scaling", "random", "product_manifold")]
    ),
    "toolbelt": Suite(
        "pytorch_toolbelt", ".", ["tests/test_losses.py", "tests/test_activations.py", "tests/test_utils_functional.py"]
    ),
}
_PLACE = re.compile(r"  (?P<file>\S.*?):(?P<line>\d+): (?P<code>DEV\d+) (?P<message>.*)")


def main(folder: str, names: list[str]) -> None:
    """Run the suites and write the results after each."""
    rows: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in names or list(SUITES):
        package, source, tests, environment = SUITES[name]
        where = Path(folder, name)
        plain_seconds, plain, ended = run(where, source, tests, environment)
        options = ["--devlint-device=sim", f"--devlint-shadow={package}"]
        shadow_seconds, shadow, ended_too = run(where, source, [*options, *tests], environment)
        read = {(place["file"], place["line"]): place["real"] for place in known(rows, name) if place.get("real")}
        found = places(shadow, str(where))
        for place in found:
            if (place["file"], place["line"]) in read:
                place["real"] = read[place["file"], place["line"]]
        both = ended.keys() & ended_too.keys()
        rows[name] = {
            "commit": git(where),
            "torch": importlib.metadata.version("torch"),
            "package": package,
            "tests": tests,
            "plain": {"seconds": round(plain_seconds, 1), "ended": plain.splitlines()[-1:]},
            "shadow": {"seconds": round(shadow_seconds, 1), "ended": shadow.splitlines()[-1:]},
            "notes": [line for line in shadow.splitlines() if line.startswith(_NOTED)],
            "compared": len(both),
            "differ": sorted(test for test in both if ended[test] != ended_too[test]),
            "places": found,
        }
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        print(f"{name}: {plain_seconds:.1f} s, {shadow_seconds:.1f} s, {len(rows[name]['places'])} places", flush=True)


def known(rows: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The places of a row that is there already."""
    listed: list[dict[str, Any]] = rows.get(name, {}).get("places", [])
    return listed


_NOTED = ("chose the GPU themselves", "repeated on the simulated GPU", "not repeated", "failed for other reasons")


def run(
    where: Path, source: str, arguments: list[str], extra: tuple[str, ...]
) -> tuple[float, str, dict[str, list[str]]]:
    """CPU seconds and output of one run of pytest, and how each test ended."""
    paths = [*([str(where / source)] if source else []), str(Path(__file__).parent)]
    outcomes = Path(tempfile.gettempdir(), f"shadow_suites_{os.getpid()}.json")
    outcomes.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        "PYTHONPATH": os.pathsep.join(paths),
        "DEVLINT_SEED": "0",
        "DEVLINT_OUTCOMES": str(outcomes),
    }
    for setting in extra:
        name, _, environment[name] = setting.partition("=")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "seeded",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-W",
        "ignore",
        "--tb=line",
        "--continue-on-collection-errors",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=where,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace") + f"\nended after {LIMIT} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = json.loads(outcomes.read_text(encoding="utf-8")) if outcomes.exists() else {}
    outcomes.unlink(missing_ok=True)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, output.strip(), ended


def git(where: Path) -> str:
    """The commit that a checkout was made from, as the file COMMIT in it says; else what git says."""
    note = where / "COMMIT"
    if note.exists():
        return note.read_text(encoding="utf-8").strip()
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=where, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def table(rows: dict[str, Any]) -> str:
    """The rows in Markdown, with their sums."""
    lines = [
        "| suite and part | test results | plain | shadow | ratio | repeated calls | callables | failing lines | reproduced |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    plain = shadow = found = real = 0.0
    for name, row in rows.items():
        seconds = row["plain"]["seconds"], row["shadow"]["seconds"]
        ended = re.sub(r"\x1b\[\d+m|=", "", "".join(row["plain"]["ended"])).partition(" in ")[0].strip()
        repeated = _REPEATED.match(next((note for note in row["notes"] if note.startswith("repeated")), ""))
        good = sum(bool(place.get("real")) for place in row["places"])
        cells = [
            f"{name} {row['commit'][:9]}, {', '.join(row['tests'])}",
            ended,
            f"{seconds[0]} s",
            f"{seconds[1]} s",
            f"{seconds[1] / seconds[0]:.1f}",
            *(repeated.groups() if repeated else ("", "")),
            str(len(row["places"])),
            str(good),
        ]
        lines.append(f"| {' | '.join(cells)} |")
        plain, shadow, found, real = plain + seconds[0], shadow + seconds[1], found + len(row["places"]), real + good
    sums = f"{plain:.1f} s | {shadow:.1f} s | {shadow / plain:.1f}"
    lines.append(f"| total | | {sums} | | | {found:.0f} | {real:.0f} |")
    return "\n".join(lines)


def places(output: str, where: str) -> list[dict[str, Any]]:
    """The rows below "fails on the card", up to the next heading."""
    _, _, listed = output.partition("\nfails on the simulated GPU, on ")
    rows = itertools.takewhile(lambda line: line.startswith("  "), listed.splitlines()[1:])
    return [
        {**match.groupdict(), "line": int(match["line"]), "file": match["file"].replace(where + os.sep, "")}
        for line in rows
        if (match := _PLACE.fullmatch(line))
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))
    else:
        main(sys.argv[1], sys.argv[2:])
