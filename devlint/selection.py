"""Which rules are on: selectors (code, prefix, name, ALL) from the configuration and the command line, in layers.

In each layer the longest matching selector decides and `ignore` wins a tie. A layer with `select` starts afresh, one
without builds on the layer before it, so `--select DEV101` brings a rule back that the configuration ignores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from devlint.errors import UsageError
from devlint.model import UNREADABLE_FILE, RuleMeta
from devlint.names import did_you_mean

ALL = "ALL"
_NAMED = 1000  # a name is as specific as can be


@dataclass(frozen=True, slots=True)
class Layer:
    """The selectors of one place. `where` opens the message about an unknown one: a file, or the option itself."""

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    where: str = ""


def specificity(selector: str, meta: RuleMeta) -> int:
    """How specifically a selector names a rule; -1 when it does not."""
    if selector == meta.name:
        return _NAMED
    if selector == ALL:
        return 0
    return len(selector) if selector and meta.code.startswith(selector) else -1


def matches(selectors: Iterable[str], meta: RuleMeta) -> bool:
    """Whether any of the selectors names the rule."""
    return any(specificity(selector, meta) >= 0 for selector in selectors)


def check_selectors(selectors: Iterable[str], metas: Sequence[RuleMeta], where: str) -> None:
    """Raise UsageError for a selector that names no rule, with the nearest one that does."""
    for selector in selectors:
        if selector == ALL or any(specificity(selector, meta) >= 0 for meta in metas):
            continue
        known = [ALL, *(meta.code for meta in metas), *(meta.name for meta in metas)]
        opening = f"{where}: " if where else ""
        raise UsageError(f"{opening}unknown rule `{selector}`{did_you_mean(selector, known)}")


def _best(selectors: Iterable[str], meta: RuleMeta) -> int:
    return max((specificity(selector, meta) for selector in selectors), default=-1)


def enabled(metas: Sequence[RuleMeta], layers: Sequence[Layer]) -> tuple[str, ...]:
    """The codes that are on after all layers, in the order of `metas`. Raises UsageError for an unknown selector.

    A file that cannot be read is reported whatever is selected; only an `ignore` of that very rule silences it.
    """
    for layer in layers:
        check_selectors((*(layer.select or ()), *layer.extend_select, *layer.ignore), metas, layer.where)
    return tuple(meta.code for meta in metas if _is_on(meta, layers))


def _is_on(meta: RuleMeta, layers: Sequence[Layer]) -> bool:
    on = not meta.opt_in
    for layer in layers:
        if meta.code == UNREADABLE_FILE.code:
            on = on and not (meta.code in layer.ignore or meta.name in layer.ignore)
            continue
        wanted = _best((*(layer.select or ()), *layer.extend_select), meta)
        unwanted = _best(layer.ignore, meta)
        if layer.select is not None:
            on = False
        if wanted > unwanted:
            on = True
        elif unwanted >= 0:
            on = False
    return on
