"""Configuration files: the settings they may hold, where they are found, and how they are read.

The dataclass `Config` is the one declaration of every setting: name, kind, default and documentation. Reading,
validation, `--show-settings` and did-you-mean are derived from it. The nearest `.devlint.toml`, `devlint.toml` or
`pyproject.toml` with a `[tool.devlint]` table wins for each file; files are never merged.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from devlint.errors import UsageError
from devlint.names import did_you_mean
from devlint.reading import LARGEST_SETTINGS, is_regular, read_regular
from devlint.settings import MovingFunction

if TYPE_CHECKING:
    from devlint.requirement import Required

DEFAULT_EXCLUDE = (
    ".bzr", ".devlint_cache", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__",
    "_build", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip

DEFAULT_INCLUDE = ("*.py", "*.pyi", "*.pyw", "*.ipynb")
OUTPUT_FORMATS = (
    "full", "concise", "grouped", "json", "json-lines", "github", "gitlab", "junit", "rdjson", "sarif", "azure", "pylint",
)  # fmt: skip
FILE_NAMES = (".devlint.toml", "devlint.toml", "pyproject.toml")

#: A type of device. torch lets a backend have any name.
_DEVICE = re.compile(r"^[a-z][a-z0-9_]*$")
_VERSION = re.compile(r"([1-9][0-9]*)\.([0-9]+)(?:\.[0-9]+)?\Z")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of setting: how it reads in a message, how to read a TOML value (ValueError: what is wrong), and what a
    JSON schema says about it."""

    text: str
    read: Callable[[object], object]
    schema: Mapping[str, object]


def _quote(text: str) -> str:
    """A basic string of TOML, in which control characters are escaped [TOML 1.0, "String"], and all that is not seen."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        escaped = "".join(char if char.isprintable() else _as_number(char) for char in escaped)
    return f'"{escaped}"'


def _as_number(char: str) -> str:
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"


def _show(value: object) -> str:
    try:
        text = _quote(value) if isinstance(value, str) else repr(value)
    except RecursionError:  # keys with thousands of dots
        text = "tables in tables in tables"
    return text if len(text) <= 60 else text[:57] + "..."


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {_show(value)}")
    return value


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"expected a list of strings, not {_show(value)}")
    return tuple(value)


def _devices(value: object) -> tuple[str, ...]:
    """Types of devices: one word, or several in a list."""
    words = (value,) if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not all(isinstance(each, str) and _DEVICE.match(each) for each in words):
        raise ValueError(f'expected "any" or a list of types of devices such as ["cuda", "xpu"], not {_show(value)}')
    return tuple(words)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, not {_show(value)}")
    return value


def _version(value: object) -> tuple[int, int]:
    match = _VERSION.match(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'expected a version such as "2.7", not {_show(value)}')
    return int(match[1]), int(match[2])


def _table_of_strings(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a table of pattern = [rules], not {_show(value)}")
    rows = []
    for pattern, selectors in value.items():
        try:
            rows.append((pattern, _strings(selectors)))
        except ValueError as error:
            raise ValueError(f"{_quote(pattern)}: {error}") from None
    return tuple(rows)


def _one_of(choices: tuple[str, ...]) -> Kind:
    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            raise ValueError(f"expected one of {', '.join(choices)}, not {_show(value)}{hint}")
        return value

    return Kind(" or ".join(_quote(choice) for choice in choices), read, {"enum": list(choices)})


def _moving_functions(value: object) -> tuple[tuple[str, MovingFunction], ...]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a table of function = {{moves = 0, to = 1}}, not {_show(value)}")
    rows = []
    for name, given in value.items():
        numbers = isinstance(given, dict) and all(type(v) is int and v >= 0 for v in given.values())
        if not numbers or not {"moves"} <= given.keys() <= {"moves", "to"}:
            raise ValueError(
                f"{_quote(name)}: expected {{moves = 0, to = 1}}, positions of arguments, not {_show(given)}"
            )
        rows.append((name, MovingFunction(given["moves"], given.get("to"))))
    return tuple(rows)


def _severities(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a table of rule = severity, not {_show(value)}")
    rows = []
    for selector, severity in value.items():
        try:
            rows.append((selector, str(SEVERITY.read(severity))))
        except ValueError as error:
            raise ValueError(f"{_quote(selector)}: {error}") from None
    return tuple(rows)


_LIST_OF_STRINGS = {"type": "array", "items": {"type": "string"}}
_POSITION = {"type": "integer", "minimum": 0}

BOOLEAN = Kind("true or false", _boolean, {"type": "boolean"})
STRING = Kind("string", _string, {"type": "string"})
STRINGS = Kind("list of strings", _strings, _LIST_OF_STRINGS)
_TYPE = {"type": "string", "pattern": _DEVICE.pattern}
DEVICES = Kind("string or list of strings", _devices, {"anyOf": [_TYPE, {"type": "array", "items": _TYPE}]})
VERSION = Kind("version", _version, {"type": "string", "pattern": r"^[1-9][0-9]*\.[0-9]+(\.[0-9]+)?$"})
FUNCTIONS = Kind(
    "table of function = {moves = 0, to = 1}",
    _moving_functions,
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"moves": _POSITION, "to": _POSITION},
            "required": ["moves"],
            "additionalProperties": False,
        },
    },
)
PER_FILE = Kind(
    "table of pattern = [rules]", _table_of_strings, {"type": "object", "additionalProperties": _LIST_OF_STRINGS}
)
SEVERITY_NAMES = ("error", "warning", "info")  # the gravest first
SEVERITY = _one_of(SEVERITY_NAMES)
SEVERITIES = Kind("table of rule = severity", _severities, {"type": "object", "additionalProperties": SEVERITY.schema})


ASSUMED_TORCH = (2, 7)
EXTENDED = 20  # files that extend one another; each is read within the one before it


def _setting(default: Any, kind: Kind, doc: str) -> Any:
    return field(default=default, metadata={"kind": kind, "doc": doc})


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one configuration file, `path`. Its patterns are relative to `root`.

    What the file does not say comes from the one that it extends, `extends`, or is the default. The selectors of both
    stay apart: they count in turn, so that an own `select` starts afresh and all else adds up.
    """

    path: Path | None = None
    root: Path = field(default_factory=Path.cwd)
    extends: Config | None = None
    torch_required: tuple[int, int] | None = None  # the lowest that the project's packaging files ask for
    torch_newest: tuple[int, int] | None = None  # the newest that they admit
    torch_bound: bool = True  # what they ask for is said of the code under this configuration, too

    extend: str | None = _setting(
        None, STRING, "another configuration file. Its settings apply if this file does not set them"
    )
    required_version: str | None = _setting(None, STRING, 'the allowed versions of devlint, such as ">=0.2,<1"')
    select: tuple[str, ...] | None = _setting(None, STRINGS, "use only these rules: codes, prefixes, names or ALL")
    extend_select: tuple[str, ...] = _setting((), STRINGS, "also use these rules")
    ignore: tuple[str, ...] = _setting((), STRINGS, "do not use these rules")
    extend_ignore: tuple[str, ...] = _setting((), STRINGS, "also do not use these rules")
    severity: tuple[tuple[str, str], ...] = _setting((), SEVERITIES, "change the severity of these rules")
    min_severity: str | None = _setting(
        None,
        SEVERITY,
        "report only findings of this severity or higher. Default: report errors, warnings and a few infos",
    )
    functions: tuple[tuple[str, MovingFunction], ...] = _setting(
        (),
        FUNCTIONS,
        "functions of your project that move an argument to a device, with the positions of the two arguments",
    )
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = _setting(
        (), PER_FILE, "do not use these rules in files that match the pattern"
    )
    include: tuple[str, ...] = _setting(
        DEFAULT_INCLUDE,
        STRINGS,
        "the files to check in a directory, as patterns like those in .gitignore. A directory stands for its Python files",
    )
    extend_include: tuple[str, ...] = _setting((), STRINGS, "also check these files in a directory")
    exclude: tuple[str, ...] = _setting(
        DEFAULT_EXCLUDE, STRINGS, "exclude these files and directories, as patterns like those in .gitignore"
    )
    extend_exclude: tuple[str, ...] = _setting((), STRINGS, "also exclude these files and directories")
    force_exclude: bool = _setting(False, BOOLEAN, "exclude these files even if they are named on the command line")
    fixable: tuple[str, ...] | None = _setting(None, STRINGS, "apply only the fixes of these rules. Default: all rules")
    unfixable: tuple[str, ...] = _setting((), STRINGS, "do not apply the fixes of these rules")
    extend_safe_fixes: tuple[str, ...] = _setting((), STRINGS, "treat the unsafe fixes of these rules as safe")
    extend_unsafe_fixes: tuple[str, ...] = _setting((), STRINGS, "treat the safe fixes of these rules as unsafe")
    unsafe_fixes: bool = _setting(False, BOOLEAN, "let --fix apply unsafe fixes too")
    torch_version: tuple[int, int] | None = _setting(
        None,
        VERSION,
        "the lowest torch version that the code supports. Default: the version in the project's requirements, otherwise 2.7",
    )
    assume_accelerator: bool = _setting(
        True, BOOLEAN, "assume that modules and tensor arguments may be on an accelerator"
    )
    targets: tuple[str, ...] = _setting(
        (),
        DEVICES,
        'the devices that the project must support, such as `cuda` and `xpu`, or `any`. Used only with `inference = "new"`',
    )
    inference: str = _setting(
        "old",
        _one_of(("old", "new")),
        "the analysis that finds mixed devices. `new` is a preview",
    )
    plugins: tuple[str, ...] = _setting((), STRINGS, "also use the rules of these installed packages")
    cache_dir: str = _setting(".devlint_cache", STRING, "the directory of the cache")
    output_format: str = _setting("full", _one_of(OUTPUT_FORMATS), "the format of the report")
    baseline: str | None = _setting(None, STRING, "do not report the findings in this file")

    @property
    def lowest_torch(self) -> tuple[int, int]:
        """The lowest version of torch that fixes may rely on: no newer one than the project admits."""
        assumed = min(ASSUMED_TORCH, self.torch_newest or ASSUMED_TORCH)
        return self.torch_version or self.torch_required or assumed

    @property
    def states_torch(self) -> bool:
        """Whether the lowest version is stated, by a setting or by the project, and not assumed."""
        return bool(self.torch_version or (self.torch_required and self.torch_bound))

    def per_file(self) -> Mapping[str, tuple[str, ...]]:
        return dict(self.per_file_ignores)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the schema; `key` as it is written in TOML."""

    key: str
    attribute: str
    kind: Kind
    default: object
    doc: str


SCHEMA: tuple[Setting, ...] = tuple(
    Setting(item.name.replace("_", "-"), item.name, item.metadata["kind"], item.default, item.metadata["doc"])
    for item in fields(Config)
    if item.metadata
)


def load(path: Path, root: Path | None = None) -> Config:
    """Read one configuration file. Raises UsageError that names the file, the line and the nearest valid key."""
    table, text = _table(path)
    if table is None:
        raise UsageError(f"{path}: no [tool.devlint] table")
    return _config(path, root or path.parent, table, text)


def _config(
    path: Path, root: Path, table: Mapping[str, object], text: str, above: tuple[Path, ...] | None = None
) -> Config:
    """The configuration that a table says. `above`: the files whose `extend` led here."""
    by_key = {setting.key: setting for setting in SCHEMA}
    values: dict[str, Any] = {}
    for key, value in table.items():
        setting = by_key.get(key)
        if setting is None:
            hint = did_you_mean(key, by_key) or f"; valid keys: {', '.join(sorted(by_key))}"
            raise UsageError(f"{_place(path, text, key)}: unknown key `{key}`{hint}")
        try:
            values[setting.attribute] = setting.kind.read(value)
        except ValueError as error:
            raise UsageError(f"{_place(path, text, key)}: `{key}`: {error}") from None
    _check_version(values.get("required_version"), path, text)
    extended = values.get("extend")
    if extended is None:
        return Config(path=path, root=root, **values)
    return _extended(path, root, values, above or (), f"{_place(path, text, 'extend')}: `extend`")


def _check_version(required: str | None, path: Path, text: str) -> None:
    if required is None:
        return
    from devlint import __version__
    from devlint.versions import satisfies

    place = _place(path, text, "required-version")
    try:
        fits = satisfies(__version__, required)
    except ValueError as error:
        raise UsageError(f"{place}: `required-version`: {error}") from None
    if not fits:
        raise UsageError(f"{place}: devlint {required} is required, and this is {__version__}")


_IN_TURN = ("extend", "select", "extend_select", "ignore", "extend_ignore")


def _extended(path: Path, root: Path, values: dict[str, Any], above: tuple[Path, ...], where: str) -> Config:
    """The configuration with what the file that it extends says about the other settings."""
    target = Path(os.path.normpath(path.parent / os.path.expanduser(values["extend"])))
    if target in (*above, path):
        raise UsageError(f"{where}: {target} extends this file in turn")
    if len(above) >= EXTENDED:
        raise UsageError(f"{where}: more than {EXTENDED} files extend one another")
    if not is_regular(target):
        raise UsageError(f"{where}: no such file: {target}")
    table, text = _table(target)
    if table is None:
        raise UsageError(f"{where}: {target} has no [tool.devlint] table")
    base = _config(target, root, table, text, (*above, path))
    for setting in SCHEMA:
        if setting.attribute not in (*_IN_TURN, *values):
            values[setting.attribute] = getattr(base, setting.attribute)
    for each in ("extend_include", "extend_exclude"):
        if each in values:
            values[each] = tuple(dict.fromkeys((*getattr(base, each), *values[each])))
    return Config(path=path, root=root, extends=base, **values)


def _table(path: Path) -> tuple[Mapping[str, object] | None, str]:
    """The table of settings in a file (None when a pyproject.toml has none) and the text of the file."""
    try:
        raw = read_regular(path, LARGEST_SETTINGS)
    except OSError as error:
        raise UsageError(f"{path}: cannot read configuration: {error.strerror or error}") from None
    is_pyproject = path.name == "pyproject.toml"
    if is_pyproject and b"devlint" not in raw:
        return None, ""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    document = parse_toml(text, f"{path}: not valid TOML")
    if not is_pyproject:
        return document, text
    tool = document.get("tool", {})
    table = tool.get("devlint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{_place(path, text, 'devlint')}: `tool.devlint` is not a table")
    return table, text


#: A key with so many parts that `tomllib` would take the square of their number.
_LONG_KEY = re.compile(r"(?:\.[ \t]*[\w\"'-]+[ \t]*){100}")


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """A TOML document. Raises UsageError that begins with `where`."""
    if _LONG_KEY.search(text):
        raise UsageError(f"{where}: a key has more than 100 parts")
    try:
        document: dict[str, Any] = toml_reader().loads(text)
    except ValueError as error:  # of TOML, or of a number with thousands of digits
        raise UsageError(f"{where}: {error}") from None
    except RecursionError:
        raise UsageError(f"{where}: nested too deeply") from None
    return document


def toml_reader() -> ModuleType:
    """The module that reads TOML on this Python."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib


def _place(path: Path, text: str, key: str) -> str:
    """`path:line` of a key of our table, or the path alone when the line that sets it is not found."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"\s*\[\s*tool\s*\.\s*devlint\b", line)), 0)
    pattern = re.compile(rf"\s*(\[\s*(tool\s*\.\s*devlint\s*\.\s*)?)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
    row = next((i + 1 for i, line in enumerate(lines) if i >= start and pattern.match(line)), None)
    return f"{path}:{row}" if row else str(path)


class Resolver:
    """Finds the configuration of each directory: the nearest file upwards, or a given one, or none at all.

    `given` is the file of `--config`; its patterns are relative to the current directory. `isolated` reads no file.
    `overrides` are values by attribute that hold whatever the files say.
    """

    def __init__(
        self, given: Path | None = None, isolated: bool = False, overrides: Mapping[str, Any] | None = None
    ) -> None:
        self._by_directory: dict[str, Config] = {}
        self._overrides = overrides or {}
        self._default = self._overridden(Config())
        self._fixed: Config | None = None
        from devlint.requirement import Requirements

        self._requirements = None if isolated else Requirements()
        self._with_required: dict[tuple[int, Required], Config] = {}
        if isolated:
            self._fixed = self._default
        elif given is not None:
            self._fixed = self._overridden(load(given, root=Path.cwd()))

    def _overridden(self, config: Config) -> Config:
        return replace(config, **self._overrides) if self._overrides else config

    def for_directory(self, directory: str) -> Config:
        """The configuration in force in a directory (absolute path). Raises UsageError for a bad file."""
        return self._requiring(self._fixed if self._fixed is not None else self._nearest(directory), directory)

    def _requiring(self, config: Config, directory: str) -> Config:
        """A configuration with what the project around a directory asks of torch, where the settings do not say."""
        if config.torch_version is not None or self._requirements is None:
            return config
        required = self._requirements.of(directory)
        if required is None:
            return config
        key = (id(config), required)
        if key not in self._with_required:
            self._with_required[key] = replace(
                config,
                torch_required=required.lowest,
                torch_newest=required.newest,
                torch_bound=required.stated,
            )
        return self._with_required[key]

    def _nearest(self, directory: str) -> Config:
        below: list[str] = []  # directories that have no file of their own; there may be thousands, one in the other
        found = self._by_directory.get(directory)
        while found is None:
            below.append(directory)
            parent = os.path.dirname(directory)
            found = self._own(directory) or (self._default if parent == directory else self._by_directory.get(parent))
            directory = parent
        self._by_directory.update(dict.fromkeys(below, found))
        return found

    def _own(self, directory: str) -> Config | None:
        """What the configuration file of a directory says, if there is one."""
        for name in FILE_NAMES:
            path = os.path.join(directory, name)
            if is_regular(path):
                table, text = _table(Path(path))
                if table is not None:
                    return self._overridden(_config(Path(path), Path(directory), table, text))
        return None


def to_toml(setting: Setting, value: object) -> str:
    """A value of a setting as TOML."""
    if setting.kind is FUNCTIONS and isinstance(value, tuple):
        rows = []
        for name, helper in value:
            to = "" if helper.to is None else f", to = {helper.to}"
            rows.append(f"{_quote(name)} = {{ moves = {helper.moves}{to} }}")
        return "{ " + ", ".join(rows) + " }" if rows else "{}"
    if setting.kind is SEVERITIES and isinstance(value, tuple):
        rows = [f"{_quote(selector)} = {_quote(severity)}" for selector, severity in value]
        return "{ " + ", ".join(rows) + " }" if rows else "{}"
    if setting.kind is PER_FILE and isinstance(value, tuple):
        rows = [f"{_quote(pattern)} = {toml_list(selectors)}" for pattern, selectors in value]
        return "{ " + ", ".join(rows) + " }" if rows else "{}"
    if setting.kind is VERSION and isinstance(value, tuple):
        return _quote(".".join(str(part) for part in value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return toml_list(value) if isinstance(value, tuple) else _quote(str(value))


def toml_list(items: Iterable[str]) -> str:
    """Strings as a list in TOML."""
    return "[" + ", ".join(_quote(item) for item in items) + "]"
