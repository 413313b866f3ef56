"""Generates `devlint/knowledge/torch_api.json` from unpacked torch wheels.

    python -m devlint.dev.knowledge DIR...          one folder per torch minor, each an unpacked wheel
    python -m devlint.dev.knowledge --installed     the torch that is installed here, alone

How to get the wheels (the macOS ones are the smallest, and hold the same Python files, stubs and operator tables):

    pip download --no-deps --only-binary=:all: --platform macosx_11_0_arm64 --python-version 3.11 -d wheels
    "torch==2.8.*" unzip -q wheels/torch-2.8*.whl '*.py' '*.pyi' '*.yaml' '*/METADATA' -d 2.8

From 2.12 on the platform is `macosx_14_0_arm64`. No wheel is executed or imported. The output depends on the wheels
alone: no date, no path, sorted keys, one name per line.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from devlint.dev.torchapi.extract import Extractor, Facts
from devlint.dev.torchapi.source import Wheel
from devlint.knowledge.records import Class, Function, Version, encode_class, encode_function, format_version

TARGET = Path(__file__).resolve().parent.parent / "knowledge" / "torch_api.json"


def span(present: Sequence[bool], versions: Sequence[Version]) -> tuple[Version | None, Version | None]:
    """First minor with a name (None for the oldest known) and first minor without it (None if it is still there).

    A gap in the middle counts as presence: names that vanish for one minor are moved, not removed.
    """
    first = present.index(True)
    last = len(present) - 1 - list(reversed(present)).index(True)
    since = versions[first] if first else None
    removed = versions[last + 1] if last + 1 < len(versions) else None
    return since, removed


def deprecated_from(flags: Sequence[bool | None], versions: Sequence[Version]) -> Version | None:
    """First minor of the last unbroken run of warnings; None if the newest minor that has the name does not warn."""
    known = [(f, v) for f, v in zip(flags, versions, strict=True) if f is not None]
    if not known or not known[-1][0]:
        return None
    start = known[-1][1]
    for flag, version in reversed(known):
        if not flag:
            break
        start = version
    return start


class Merge:
    """All wheels together: the newest record of each name, with the minors in which it exists."""

    def __init__(self, facts: Iterable[Facts]) -> None:
        self.facts = sorted(facts, key=lambda f: f.version)
        self.versions = [f.version for f in self.facts]
        if len(set(self.versions)) != len(self.versions):
            raise ValueError(f"two folders hold the same torch minor: {[format_version(v) for v in self.versions]}")

    def _span(self, present: Callable[[Facts], bool]) -> tuple[Version | None, Version | None]:
        return span([present(f) for f in self.facts], self.versions)

    def _deprecation(self, key: str, present: Callable[[Facts], bool]) -> tuple[Version | None, str | None]:
        flags = [key in f.deprecated if present(f) else None for f in self.facts]
        since = deprecated_from(flags, self.versions)
        instead = next((f.deprecated[key] for f in reversed(self.facts) if f.deprecated.get(key)), None)
        return since, instead if since else None

    def _keyword_since(self, key: str, since: Version | None) -> tuple[tuple[str, Version], ...]:
        first: dict[str, Version] = {}
        have = [f for f in self.facts if key in f.keywords]
        for facts in have:
            for name in facts.keywords[key]:
                first.setdefault(name, facts.version)
        start = since or self.versions[0]
        newest = have[-1].keywords[key] if have else frozenset()
        return tuple(sorted((n, v) for n, v in first.items() if v > start and n in newest))

    def names(self) -> dict[str, str]:
        result = {}
        for namespace in sorted({n for f in self.facts for n in f.names}):
            have = sorted({n for f in self.facts for n in f.names.get(namespace, ())})
            words = []
            for name in have:
                present = [name in f.names.get(namespace, ()) for f in self.facts]
                words.append(_dated(name, *span(present, self.versions)))
            result[namespace] = " ".join(words)
        return result

    def functions(self) -> dict[str, str]:
        result = {}
        for key in sorted({k for f in self.facts for k in f.functions}):
            holder = next(f for f in reversed(self.facts) if key in f.functions)
            namespace, _, name = key.rpartition(".")

            def present(f: Facts, ns: str = namespace, n: str = name, k: str = key) -> bool:
                return k in f.functions or n in f.names.get(ns, ())

            result[key] = encode_function(self._dated_function(holder.functions[key], key, present))
        return result

    def _dated_function(self, record: Function, key: str, present: Callable[[Facts], bool]) -> Function:
        since, removed = self._span(present)
        deprecated, instead = self._deprecation(key, present)
        return record._replace(
            since=since,
            removed=removed,
            deprecated=deprecated,
            replacement=instead,
            keyword_since=self._keyword_since(key, since),
        )

    def methods(self) -> dict[str, dict[str, str]]:
        result: dict[str, dict[str, str]] = {}
        for family in sorted({k for f in self.facts for k in f.methods}):
            table = {}
            for name in sorted({n for f in self.facts for n in f.methods.get(family, ())}):
                holder = next(f for f in reversed(self.facts) if name in f.methods.get(family, ()))

                def present(f: Facts, fam: str = family, n: str = name) -> bool:
                    return n in f.methods.get(fam, ())

                record = self._dated_function(holder.methods[family][name], f"{family}::{name}", present)
                table[name] = encode_function(record)
            result[family] = table
        return result

    def attributes(self) -> dict[str, dict[str, str]]:
        newest = self.facts[-1].attributes
        return {family: dict(sorted(table.items())) for family, table in sorted(newest.items())}

    def classes(self) -> dict[str, str]:
        result = {}
        for key in sorted({k for f in self.facts for k in f.classes}):
            holder = next(f for f in reversed(self.facts) if key in f.classes)
            namespace, _, name = key.rpartition(".")

            def present(f: Facts, ns: str = namespace, n: str = name, k: str = key) -> bool:
                return k in f.classes or n in f.names.get(ns, ())

            since, removed = self._span(present)
            deprecated, instead = self._deprecation(key, present)
            # Members that only older minors have still exist for somebody who supports those.
            methods = frozenset(m for f in self.facts if key in f.classes for m in f.classes[key].methods)
            attributes = frozenset(a for f in self.facts if key in f.classes for a in f.classes[key].attributes)
            record: Class = holder.classes[key]._replace(
                methods=methods,
                attributes=attributes - methods,
                since=since,
                removed=removed,
                deprecated=deprecated,
                replacement=instead,
            )
            result[key] = encode_class(record)
        return result

    def aliases(self) -> dict[str, str]:
        newest: dict[str, str] = {}
        for facts in self.facts:
            newest.update(facts.aliases)
        held = {k for f in self.facts for k in (*f.functions, *f.classes)}
        return {k: v for k, v in sorted(newest.items()) if k not in held and v in held}

    def data(self) -> dict[str, object]:
        return {
            "versions": [format_version(v) for v in self.versions],
            "open": sorted({n for f in self.facts for n in f.open_namespaces}),
            "names": self.names(),
            "functions": self.functions(),
            "methods": self.methods(),
            "attributes": self.attributes(),
            "classes": self.classes(),
            "aliases": self.aliases(),
        }


def _dated(name: str, since: Version | None, removed: Version | None) -> str:
    text = name
    if since:
        text += f"+{format_version(since)}"
    if removed:
        text += f"-{format_version(removed)}"
    return text


def dump(data: Mapping[str, object]) -> str:
    """JSON with one entry per line: small to load, readable in a diff."""
    parts = []
    for key, value in data.items():
        if isinstance(value, dict):
            rows = [f"{json.dumps(k)}:{_row(v)}" for k, v in value.items()]
            parts.append(f"{json.dumps(key)}:{{\n" + ",\n".join(rows) + "\n}")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _row(value: object) -> str:
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in value.items()) + "\n}"
    return json.dumps(value, ensure_ascii=False)


def read(folder: Path) -> Facts:
    """All facts of one unpacked wheel. Raises FileNotFoundError for a folder that is not one."""
    gc.disable()
    try:
        return Extractor(Wheel(folder)).run()
    finally:
        gc.enable()


def generate(folders: Sequence[Path], jobs: int = 1) -> str:
    """The text of the data file. Raises FileNotFoundError for a folder that is not an unpacked torch wheel."""
    if jobs > 1 and len(folders) > 1:
        with ProcessPoolExecutor(jobs) as pool:
            return dump(Merge(pool.map(read, folders)).data())
    return dump(Merge(map(read, folders)).data())


def installed() -> Path:
    """The folder of the installed torch, found without importing it. Raises ModuleNotFoundError without torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("torch is not installed here; give folders of unpacked wheels instead")
    return Path(spec.origin).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devlint.dev.knowledge", description="Regenerate torch's API data.")
    parser.add_argument("folders", nargs="*", type=Path, help="unpacked wheels, one torch minor each")
    parser.add_argument("--installed", action="store_true", help="also read the installed torch")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="wheels read at the same time")
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    options = parser.parse_args(arguments)
    folders = [*options.folders, *([installed()] if options.installed else [])]
    if not folders:
        parser.error("give folders of unpacked wheels, or --installed")
    try:
        text = generate(folders, options.jobs)
    except (OSError, ValueError, SyntaxError, ModuleNotFoundError) as error:
        print(f"devlint.dev.knowledge: {error}", file=sys.stderr)
        return 2
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: {len(text) // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
