"""Where the shipped rules are. This is the one place of devlint that names their package.

A wheel has one package at its top, so the rules lie inside devlint there. In a checkout they lie in `rules/`, beside it.
"""

from __future__ import annotations

from importlib.util import find_spec

INSTALLED = "devlint._rules"  # as pyproject.toml maps it into the wheel
CHECKOUT = "devlint_rules"


def package() -> str:
    """The name of the package of the shipped rules, which is not imported."""
    return INSTALLED if find_spec(INSTALLED) is not None else CHECKOUT
