"""From configuration and command line to the settings of each file: which rules are on, by code."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from devlint.config import Config
from devlint.ignore import Patterns
from devlint.model import ENGINE_RULES, RuleMeta
from devlint.rule import Rule
from devlint.selection import ALL, Layer, check_selectors, enabled, matches
from devlint.settings import Settings


@cache
def rules_of(plugins: tuple[str, ...]) -> tuple[Rule[Any], ...]:
    """The shipped rules and those of the named plugins, loaded once per process. Raises RuleLoadError."""
    from devlint.registry import load_rules

    return load_rules(plugins)


class Rulebook:
    """Resolves settings. `select`, `extend_select` and `ignore` are those of the command line; None where not given."""

    def __init__(
        self,
        select: tuple[str, ...] | None = None,
        extend_select: tuple[str, ...] | None = None,
        ignore: tuple[str, ...] | None = None,
    ) -> None:
        self._command_line = Layer(select, extend_select or (), ignore or ())
        self._metas: dict[tuple[str, ...], tuple[RuleMeta, ...]] = {}
        self._enabled: dict[int, tuple[Config, tuple[str, ...]]] = {}
        self._per_file: dict[int, list[tuple[Patterns, tuple[str, ...]]]] = {}

    def settings(self, config: Config, path: str) -> Settings:
        """The settings of a file. Raises UsageError for an unknown rule, RuleLoadError when rules do not load."""
        metas = self.metas(config.plugins)
        codes = self._codes(config, metas)
        ignored = self._ignored(config, path, metas)
        if ignored:
            codes = tuple(meta.code for meta in metas if meta.code in codes and not matches(ignored, meta))
        return Settings(
            select=codes,
            ignore=() if codes else (ALL,),
            torch_version=config.torch_version,
            assume_accelerator=config.assume_accelerator,
            functions=config.functions,
        )

    def metas(self, plugins: tuple[str, ...]) -> tuple[RuleMeta, ...]:
        """The metadata of all rules, the engine's own included, by code."""
        known = self._metas.get(plugins)
        if known is None:
            own = [rule.meta for rule in rules_of(plugins)]
            known = self._metas[plugins] = tuple(sorted([*own, *ENGINE_RULES], key=lambda meta: meta.code))
        return known

    def _codes(self, config: Config, metas: tuple[RuleMeta, ...]) -> tuple[str, ...]:
        known = self._enabled.get(id(config))
        if known is None:
            layer = Layer(config.select, config.extend_select, config.ignore, str(config.path or ""))
            known = self._enabled[id(config)] = (config, enabled(metas, [layer, self._command_line]))
        return known[1]

    def _ignored(self, config: Config, path: str, metas: tuple[RuleMeta, ...]) -> tuple[str, ...]:
        if not config.per_file_ignores:
            return ()
        rows = self._per_file.get(id(config))
        if rows is None:
            where = str(config.path or "")
            rows = []
            for pattern, selectors in config.per_file_ignores:
                check_selectors(selectors, metas, f"{where}: `per-file-ignores`")
                rows.append((Patterns(str(config.root), [pattern]), selectors))
            self._per_file[id(config)] = rows
        absolute = os.path.abspath(path)
        return tuple(selector for patterns, selectors in rows if patterns.has(absolute) for selector in selectors)
