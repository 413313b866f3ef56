"""What a generator without a seed decides is the same in every run, so that no agreement by chance is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.runtime.compare import Manner, unsteady
from devlint.runtime.correction import Edition
from devlint.runtime.places import Places
from devlint.runtime.processes import Launcher
from devlint.runtime.verify import Request, Runner

pytestmark = pytest.mark.runtime

DRAWS = [
    "random.Random().getrandbits(64)",
    "[random.Random().getrandbits(64), random.Random().getrandbits(64)]",
    "(random.seed(), random.getrandbits(64))[1]",
    "Own().getrandbits(64)",
    "numpy.random.default_rng().integers(0, 2**40)",
    "default_rng().random()",
    "numpy.random.RandomState().randint(0, 2**30)",
    "numpy.random.Generator(numpy.random.PCG64()).random()",
]
HEAD = "import random, secrets, tempfile, uuid\nimport numpy\nfrom numpy.random import default_rng\n\n\n"
HEAD += "class Own(random.Random):\n    pass\n\n\n"
OF_THE_SYSTEM = ["secrets.token_hex()", "uuid.uuid4()", "random.SystemRandom().random()", "tempfile.mktemp()"]


@pytest.mark.parametrize("command", [False, True])
def test_draws_without_a_seed_are_alike_in_all_runs(command: bool, launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = HEAD + "".join(f"print({each!r}, {each})\n" for each in DRAWS)
    path.write_text(text, encoding="utf-8")
    call = ("python", str(path)) if command else ()
    runner = Runner(Request("" if command else str(path), device="cpu", timeout=60.0, command=call), launcher)
    edition = Edition({str(path): Places(text)}, [])
    one, again = (runner.run(edition, "cpu", "original", again=again) for again in (False, True))
    assert len(one.out.splitlines()) == len(DRAWS), one.text
    assert one.out == again.out
    assert unsteady(one, again, Manner()) == frozenset()


def test_two_generators_without_a_seed_are_no_twins(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = HEAD + f"print({DRAWS[0]} != {DRAWS[0]}, {DRAWS[5]} != {DRAWS[5]}, random.Random(3).random())\n"
    path.write_text(text, encoding="utf-8")
    runner = Runner(Request(str(path), device="cpu", timeout=60.0), launcher)
    run = runner.run(Edition({str(path): Places(text)}, []), "cpu", "original")
    assert run.out == "True True 0.23796462709189137\n"


def test_what_the_system_draws_stays_as_it_is(launcher: Launcher, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = HEAD + "".join(f"print({each!r}, {each})\n" for each in OF_THE_SYSTEM)
    path.write_text(text, encoding="utf-8")
    runner = Runner(Request(str(path), device="cpu", timeout=60.0), launcher)
    edition = Edition({str(path): Places(text)}, [])
    one, again = (runner.run(edition, "cpu", "original", again=again) for again in (False, True))
    assert len(one.out.splitlines()) == len(OF_THE_SYSTEM)
    assert not set(one.out.splitlines()) & set(again.out.splitlines())
