"""From configuration and command line to the settings of each file: which rules are on, by code, and what they may do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from devlint.config import SEVERITY_NAMES, Config
from devlint.ignore import Patterns
from devlint.model import ENGINE_RULES, UNREADABLE_FILE, RuleMeta, Severity
from devlint.selection import ALL, Layer, check_selectors, enabled, matches, specificity
from devlint.settings import Settings

if TYPE_CHECKING:
    from devlint.rule import Rule

PatternRows = tuple[tuple[str, tuple[str, ...]], ...]


class Memory(Protocol):
    """What remembers the metadata of rules between runs, so that a run may do without loading them."""

    def metas(self, plugins: tuple[str, ...]) -> tuple[RuleMeta, ...] | None: ...

    def keep_metas(self, plugins: tuple[str, ...], metas: tuple[RuleMeta, ...]) -> None: ...


@cache
def rules_of(plugins: tuple[str, ...]) -> tuple[Rule[Any], ...]:
    """The shipped rules and those of the named plugins, loaded once per process. Raises RuleLoadError."""
    from devlint.registry import load_rules

    return load_rules(plugins)


class Rulebook:
    """Resolves settings. The arguments are those of the command line; None where an option is not given.

    `per_file_ignores` of the command line come on top of those of the configuration, with patterns relative to the
    current directory. `fixable` replaces and `unfixable` extends those of the configuration.
    """

    def __init__(
        self,
        select: tuple[str, ...] | None = None,
        extend_select: tuple[str, ...] | None = None,
        ignore: tuple[str, ...] | None = None,
        *,
        per_file_ignores: PatternRows = (),
        min_severity: str | None = None,
        inference: str | None = None,
        fixable: tuple[str, ...] | None = None,
        unfixable: tuple[str, ...] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._command_line = Layer(select, extend_select or (), ignore or ())
        self._per_file_ignores = per_file_ignores
        self._min_severity = min_severity
        self._inference = inference
        self._fixable = fixable
        self._unfixable = unfixable or ()
        self._memory = memory
        self._metas: dict[tuple[str, ...], tuple[RuleMeta, ...]] = {}
        self._common: dict[int, tuple[Config, Settings]] = {}
        self._per_file: dict[int, list[tuple[Patterns, tuple[str, ...]]]] = {}

    def settings(self, config: Config, path: str) -> Settings:
        """The settings of a file. Raises UsageError for an unknown rule, RuleLoadError when rules do not load."""
        common = self._settings_of(config)
        metas = self.metas(config.plugins)
        ignored = self._ignored(config, path, metas)
        if not ignored:
            return common
        from dataclasses import replace

        kept = tuple(meta.code for meta in metas if meta.code in common.select and not matches(ignored, meta))
        return replace(common, select=kept, ignore=_off(kept))

    def metas(self, plugins: tuple[str, ...]) -> tuple[RuleMeta, ...]:
        """The metadata of all rules, the engine's own included, by code."""
        known = self._metas.get(plugins)
        if known is None:
            known = self._memory.metas(plugins) if self._memory is not None else None
            if known is None:
                own = [rule.meta for rule in rules_of(plugins)]
                known = tuple(sorted([*own, *ENGINE_RULES], key=lambda meta: meta.code))
                if self._memory is not None:
                    self._memory.keep_metas(plugins, known)
            self._metas[plugins] = known
        return known

    def _settings_of(self, config: Config) -> Settings:
        """The settings of the files under a configuration before `per-file-ignores`."""
        known = self._common.get(id(config))
        if known is None:
            metas = self.metas(config.plugins)
            severities = self._severities(config, metas)
            codes = enabled(metas, [*layers_of(config), self._command_line])
            least = self._min_severity or config.min_severity
            grave = SEVERITY_NAMES[: SEVERITY_NAMES.index(least) + 1] if least is not None else SEVERITY_NAMES
            by_code = dict(severities)
            codes = tuple(m.code for m in metas if m.code in codes and by_code.get(m.code, m.severity).value in grave)
            settings = Settings(
                select=codes,
                ignore=_off(codes),
                torch_version=config.lowest_torch,
                torch_stated=config.states_torch,
                torch_newest=config.torch_newest,
                assume_accelerator=config.assume_accelerator,
                targets=config.targets,
                inference=self._inference or config.inference,
                functions=config.functions,
                severities=severities,
                min_severity=Severity(least) if least is not None else None,
                fix_changes=self._fix_changes(config, metas),
            )
            known = self._common[id(config)] = (config, settings)
        return known[1]

    def _severities(self, config: Config, metas: Sequence[RuleMeta]) -> tuple[tuple[str, Severity], ...]:
        """The severities that the configuration gives, by code; the most specific selector decides."""
        for selector, _ in config.severity:
            check_selectors([selector], metas, _where(config, "severity"))
        rows = []
        for meta in metas:
            named = [(specificity(selector, meta), value) for selector, value in config.severity]
            rank, value = max(named, default=(-1, ""))
            if rank >= 0:
                rows.append((meta.code, Severity(value)))
        return tuple(rows)

    def _fix_changes(self, config: Config, metas: Sequence[RuleMeta]) -> tuple[tuple[str, str], ...]:
        """What the settings change about fixes, by code: `withhold`, `promote` to safe, `demote` to unsafe."""
        fixable = config.fixable if self._fixable is None else self._fixable
        unfixable = (*config.unfixable, *self._unfixable)
        for key, selectors in (
            ("fixable", config.fixable or ()),
            ("unfixable", config.unfixable),
            ("extend-safe-fixes", config.extend_safe_fixes),
            ("extend-unsafe-fixes", config.extend_unsafe_fixes),
        ):
            check_selectors(selectors, metas, _where(config, key))
        check_selectors((*(self._fixable or ()), *self._unfixable), metas, "")
        rows = []
        for meta in metas:
            allowed = max((specificity(s, meta) for s in fixable), default=-1) if fixable is not None else 0
            refused = max((specificity(s, meta) for s in unfixable), default=-1)
            safe = max((specificity(s, meta) for s in config.extend_safe_fixes), default=-1)
            unsafe = max((specificity(s, meta) for s in config.extend_unsafe_fixes), default=-1)
            if allowed <= refused or allowed < 0:
                rows.append((meta.code, "withhold"))
            elif safe >= 0 or unsafe >= 0:
                rows.append((meta.code, "promote" if safe > unsafe else "demote"))
        return tuple(rows)

    def _ignored(self, config: Config, path: str, metas: Sequence[RuleMeta]) -> tuple[str, ...]:
        if not config.per_file_ignores and not self._per_file_ignores:
            return ()
        rows = self._per_file.get(id(config))
        if rows is None:
            rows = [
                *_pattern_rows(config.per_file_ignores, str(config.root), metas, _where(config, "per-file-ignores")),
                *_pattern_rows(self._per_file_ignores, os.getcwd(), metas, "`--per-file-ignores`"),
            ]
            self._per_file[id(config)] = rows
        absolute = os.path.abspath(path)
        return tuple(selector for patterns, selectors in rows if patterns.has(absolute) for selector in selectors)


def layers_of(config: Config) -> list[Layer]:
    """The selectors of a configuration file and before them those of the files that it extends."""
    own = Layer(config.select, config.extend_select, (*config.ignore, *config.extend_ignore), str(config.path or ""))
    return [*(layers_of(config.extends) if config.extends is not None else ()), own]


def _off(codes: Sequence[str]) -> tuple[str, ...]:
    """What `Settings.ignore` says where these codes are on: nothing selected is not everything, and a file that cannot
    be read is a finding whatever is selected."""
    unreadable = () if UNREADABLE_FILE.code in codes else (UNREADABLE_FILE.code,)
    return unreadable if codes else (ALL, *unreadable)


def _where(config: Config, key: str) -> str:
    return f"{config.path or 'settings'}: `{key}`"


def _pattern_rows(
    given: PatternRows, root: str, metas: Sequence[RuleMeta], where: str
) -> Iterable[tuple[Patterns, tuple[str, ...]]]:
    for pattern, selectors in given:
        check_selectors(selectors, metas, where)
        yield Patterns(root, [pattern]), selectors
