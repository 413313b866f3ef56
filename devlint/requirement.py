"""The versions of torch that a project asks for, from its own packaging files.

Read are, in the nearest directory upwards whose files say it: `pyproject.toml` (PEP 621 and Poetry; an extra where the
dependencies do not name torch), `setup.cfg`, `setup.py` (strings that read like a requirement), `requirements.txt`, conda's
`environment.yml` and what stands for it, a `Pipfile`, and the lists for kinds of machines, `requirements_cuda.txt`;
where none of them says it, a `README` that
names a torch before 1.0. A list that pins torchvision admits no later torch than that goes with. The search ends at the root
of the repository.
A program in a folder of its own, with a list of requirements that leaves torch open, is not bound by the package around it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from devlint.errors import UsageError
from devlint.reading import LARGEST_SETTINGS, read_regular

Version = tuple[int, int]
LAST = 99  # stands for the last minor of a major version


class Required(NamedTuple):
    """The lowest and the newest version that a project admits, each None when it does not say.

    `beside`: the lowest that its extras and dependency groups for examples, benchmarks, tests or documents ask for.
    `stated`: it is said of the code in the directory; not for a program with requirements of its own that leave torch open.
    """

    lowest: Version | None
    newest: Version | None
    beside: Version | None = None
    stated: bool = True


_FILES = (
    "pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", os.path.join("requirements", "base.txt"), "reqs.txt",
    "environment.yml", "environment.yaml", "conda.yml", "conda.yaml", "Pipfile",
)  # fmt: skip
#: Folders beside an installed package, and the extras and groups that are for what stands there.
_BESIDE = re.compile(
    r"(examples?|bench(mark)?s?|benchmarking|tests?|fixtures|test_?data|docs?|tutorials?|notebooks|demos?|dev)\Z",
    re.IGNORECASE,
)
#: Lists of requirements for one kind of machine, of which an installation takes one.
_VARIANT = re.compile(
    r"requirements?[-_.](?!(?:dev|lint|format|style|type|ci)\b)(?P<kind>[\w.-]+)\.txt\Z", re.IGNORECASE
)
#: The list of requirements of one program, and folders whose lists are for what works on the package around them.
_LIST = re.compile(
    r"requirements?([-_.](?!(?:dev|lint|format|style|type|ci|docs?|tests?)\b)[\w.-]+)?\.txt\Z", re.IGNORECASE
)
_OF_PACKAGE = re.compile(r"(tests?|docs?|ci)\Z", re.IGNORECASE)
#: Blanks within a row. None of the patterns goes over a row, and none repeats what may be empty or long: a text of a
#: million characters is read in one pass.
_GAP = r"[ \t]{0,80}"
#: A row that installs the project itself, or what another list says: `-e .`, `..[all]`, `-r ../requirements.txt`.
_INSTALLS_PROJECT = re.compile(r"^[ \t]*(?:-e\b|--editable\b|-r\b|--requirement\b|\.{1,2}(?:[\[/\s]|$))", re.MULTILINE)
#: A requirement as PEP 508 writes it, from the name on: extras, then the versions up to a marker or the end.
_REQUIREMENT = re.compile(
    rf"torch{_GAP}(?:\[[^\]\n]{{0,200}}\])?{_GAP}\(?{_GAP}((?:[<>=!~^]=?=?{_GAP}[\w.*+-]{{1,80}}{_GAP},?{_GAP})+)"
)
#: Where one may start: a row of a list of requirements, or a string.
_ROW = re.compile(rf"^[ \t]*(?:-{_GAP})?{_REQUIREMENT.pattern}", re.MULTILINE)
_STRING = re.compile(rf"[\"']{_REQUIREMENT.pattern}")
#: A row that pins a torchvision. Its wheels require one torch each since 0.5: 1.4 for 0.5, up to 1.13 for 0.14, and 2.0 for
#: 0.15 [the table in torchvision's README].
_VISION = re.compile(rf"^[ \t]*(?:-{_GAP})?torchvision{_GAP}={{2,3}}{_GAP}0\.(\d{{1,6}})(?![\d*])", re.MULTILINE)
_FIRST_VISION, _VISION_OF_2 = 5, 15
#: A row that includes another list, or names one of constraints [pip's documentation, "Requirements File Format"].
_INCLUDED = re.compile(r"^[ \t]*(?:-r|-c|--requirement|--constraint)[ =]+([^\s#]+)", re.MULTILINE)
_INCLUDES = 3  # lists that include one another
#: Other names of lists of requirements, and of environments of conda.
_OTHER_LISTS = re.compile(r"requirements?\.txt\Z", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"(?:[\w-]*[-_])?(?:env|environment|conda)(?:[-_.][\w.-]*)?\.ya?ml\Z", re.IGNORECASE)
_FOLDER = "requirements"  # whose lists are for kinds of machines, like those beside it
_FOR_WORK = re.compile(r"(dev|develop|development|lint|format|style|types?|typing|ci|build|tools?)\Z", re.IGNORECASE)
#: A row of an environment of conda, where the package has two names and one `=` means equal.
_CONDA = re.compile(
    rf"^[ \t]*-{_GAP}[\"']?(?:[\w.-]{{1,80}}::)?(?:py)?torch{_GAP}(=[^\n#]*|[<>~!][^\n#]*)", re.MULTILINE
)
#: A row of a Pipfile.
_PIPFILE = re.compile(r"^[ \t]*torch[ \t]*=[ \t]*(?:\{[^}\n]*version[ \t]*=[ \t]*)?[\"']([^\"'\n]+)[\"']", re.MULTILINE)
#: The version in the name of a wheel [packaging.python.org, binary distribution format].
_WHEEL = re.compile(r"/torch-(\d+\.\d+)[\w.%+]*-\w+-\w+-\w+\.whl")
#: A torch before 1.0, 0.1 to 0.4, that a text for readers names: `PyTorch 0.4.1`, `pytorch=0.3`, `PyTorch (0.3 or 0.4)`.
_OLD = re.compile(
    r"(?i)(?<![\w.])(?:py)?torch(?: version)?[ :=`*_()\[\]v]{1,6}0\.(?P<first>[1-4])(?![\d%])(?:\.\d)?"
    r"(?!\d|\.\d|[ \t]*(?:[%*+x]|[a-z]{1,2}\b(?<!or)))"  # a share, or a number of seconds
    r"(?:(?: or |/|, ?)0\.(?P<last>[1-4])(?![\d%])(?:\.\d)?)?"
)
#: What says that others are admitted, in a row that names one of them; and a later torch anywhere.
_OTHERS = re.compile(
    r"(?i)>|≥|\+|%2B|at least|minimum|later|above|newer|higher|greater|better|dropped|or up|no longer|~|→|[0-9]\.x"
)
_STABLE = re.compile(
    r"(?i)torch(?: version)?[ :=`*_()\[\]v-]{0,6}(?:0\.\d[.\d]*(?:[ ,/&-]|and|or|to){1,6}){0,3}(?<![\d.])[1-9]\d?(?:\.\d|\b)"
)
_BOUND = re.compile(r"(?<![<>=!~^\w.])(>=|~=|={1,3}|>|\^|~)\s*(\d{1,6})(?:\.(\d{1,6}))?(?!\d)")
_UPPER = re.compile(r"(?<![<>=!~^\w.])(<=|<|~=|={1,3}|\^|~)\s*(\d{1,6})(?:\.(\d{1,6}))?(?!\d)((?:\.\d+)*)")


def lowest_in(specifiers: str) -> Version | None:
    """The lowest version that specifiers such as `>=2.4,<3` or Poetry's `^2.1` admit; None when they have no lower bound."""
    bounds = [(int(major), int(minor or 0)) for _, major, minor in _BOUND.findall(specifiers)]
    return max(bounds, default=None)


def newest_in(specifiers: str) -> Version | None:
    """The newest version that specifiers such as `>=2.4,<3` or `==1.8.0` admit; None when they have no upper bound."""
    return min((_newest(*found) for found in _UPPER.findall(specifiers)), default=None)


def _newest(operator: str, major: str, minor: str, rest: str) -> Version:
    first, second = int(major), int(minor) if minor else None
    if operator == "<":
        if rest.strip(".0"):
            return (first, second or 0)
        return (first, second - 1) if second else (first - 1, LAST)
    if operator == "^" or (operator == "~=" and not rest) or second is None:
        return (first, LAST)
    return (first, second)


class Requirements:
    """What the packaging files around directories ask of torch. Files are read once; what cannot be read says nothing."""

    def __init__(self) -> None:
        self._known: dict[str, Required | None] = {}

    def of(self, directory: str) -> Required | None:
        """The versions for the project that holds a directory (absolute path); None when it does not say."""
        below: list[str] = []  # directories that say nothing themselves; there may be thousands, one in the other
        while directory not in self._known:
            found = required_in(directory)
            parent = os.path.dirname(directory)
            if found is None and parent != directory and not os.path.exists(os.path.join(directory, ".git")):
                below.append(directory)
                directory = parent
                continue
            self._known[directory] = found or _of_readme(directory)
        found = self._known[directory]
        for directory in reversed(below):
            found = self._known[directory] = _from_above(found, directory) or _of_readme(directory)
        return found


def _from_above(found: Required | None, directory: str) -> Required | None:
    """What the project around a directory that says nothing itself asks for there."""
    if found is not None and found.beside is not None and _BESIDE.match(os.path.basename(directory)):
        found = Required(max(found.lowest or found.beside, found.beside), found.newest, stated=found.stated)
    if found is not None and is_program(directory):
        found = found._replace(stated=False)
    return found


def _of_readme(directory: str) -> Required | None:
    newest = named_in_readme(directory)
    return Required(None, newest) if newest is not None else None


def is_program(directory: str) -> bool:
    """Whether a directory holds a program with a list of requirements of its own, in which the project around it is not.

    A package, and the lists for its tests and documents, are the project's.
    """
    if _OF_PACKAGE.match(os.path.basename(directory)) or os.path.exists(os.path.join(directory, "__init__.py")):
        return False
    texts = [_text(os.path.join(directory, name)) for name in _names(directory) if _LIST.match(name)]
    return any(texts) and not any(map(_INSTALLS_PROJECT.search, texts))


def required_in(directory: str) -> Required | None:
    """What the packaging files of one directory say; the first that has a bound decides."""
    for name in (*_FILES, *_further(directory)):
        path = os.path.join(directory, name)
        found = _required(list(_specifiers(path)))
        if found.newest is None and path.endswith(".txt"):
            pinned = beside_torchvision(_text(path))
            if pinned is not None and (found.lowest is None or pinned >= found.lowest):
                found = found._replace(newest=pinned)
        if found.lowest or found.newest:
            beside = map(lowest_in, _of_groups(_document(_read(path)), beside=True)) if path.endswith(".toml") else ()
            return found._replace(beside=max(filter(None, beside), default=None))
    found = _required([each for path in _variants(directory) for each in _specifiers(path)])
    return found if found.lowest or found.newest else None


def beside_torchvision(text: str) -> Version | None:
    """The only torch that goes with the torchvision which a list of requirements pins, for what leaves torch open above."""
    pinned = [int(minor) for minor in _VISION.findall(text)]
    if not pinned or min(pinned) < _FIRST_VISION:
        return None
    minor = max(pinned)
    return (2, minor - _VISION_OF_2) if minor >= _VISION_OF_2 else (1, minor - 1)


def named_in_readme(directory: str) -> Version | None:
    """The newest torch that the README of a directory names, where that is one before 1.0 and later ones are not admitted."""
    for name in _names(directory):
        if name.upper().split(".")[0] == "README":
            text = _text(os.path.join(directory, name))
            rows = [row for row in text.splitlines() if _OLD.search(row)]
            if not rows or _STABLE.search(text) or any(map(_OTHERS.search, rows)):
                return None
            named = [each["last"] or each["first"] for row in rows for each in _OLD.finditer(row)]
            return 0, max(map(int, named))
    return None


def _required(said: list[str]) -> Required:
    """What several mentions of torch admit together."""
    newest = [newest_in(each) for each in said]
    return Required(
        min(filter(None, map(lowest_in, said)), default=None),
        max(filter(None, newest)) if newest and all(newest) else None,
    )


def _further(directory: str) -> list[str]:
    """The files of a directory that are lists of requirements or environments by another name than the usual one."""
    names = _names(directory)
    return [name for form in (_OTHER_LISTS, _ENVIRONMENT) for name in names if form.match(name) and name not in _FILES]


def _variants(directory: str) -> list[str]:
    """The lists of requirements in a directory, or in its folder for them, that are for one kind of machine each."""
    matches = ((name, _VARIANT.match(name)) for name in _names(directory))
    found = [
        os.path.join(directory, n) for n, match in matches if match is not None and not _BESIDE.match(match["kind"])
    ]
    folder = os.path.join(directory, _FOLDER)
    for name in _names(folder):
        kind, end = os.path.splitext(name)
        if end == ".txt" and not _BESIDE.match(kind) and not _FOR_WORK.match(kind):
            found.append(os.path.join(folder, name))
    return found


def _names(directory: str) -> list[str]:
    """The names of what is in a directory."""
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _read(path: str) -> str:
    """The text of a packaging file that mentions torch; nothing of any other."""
    text = _text(path)
    return text if "torch" in text else ""


def _text(path: str) -> str:
    """The text of a packaging file; nothing of one that is too large or cannot be read."""
    try:
        return read_regular(path, LARGEST_SETTINGS).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError, ValueError):  # a name that a list includes may hold a NUL
        return ""


def _specifiers(path: str, depth: int = 0) -> Iterator[str]:
    """What a packaging file says of the versions of torch, one text a mention.

    A list of requirements says what the lists that it includes say, too, and the constraints that it names.
    """
    text = _read(path)
    if not text:
        return
    yield from (f"=={version}" for version in _WHEEL.findall(text))
    if path.endswith(".toml"):
        yield from _of_pyproject(text)
    elif path.endswith("Pipfile"):
        yield from _PIPFILE.findall(text)
    elif path.endswith(".py"):
        yield from _STRING.findall(text)
        yield from _ROW.findall(text)
    elif path.endswith((".yml", ".yaml")):
        yield from _CONDA.findall(text)
    else:
        yield from _ROW.findall(text)
        for name in _INCLUDED.findall(text) if depth < _INCLUDES else ():
            yield from _specifiers(os.path.normpath(os.path.join(os.path.dirname(path), name)), depth + 1)


def _document(text: str) -> Any:
    from devlint.config import parse_toml

    try:
        return parse_toml(text, "")
    except UsageError:
        return {}


def _of_groups(document: Any, beside: bool) -> Iterator[str]:
    """What the extras and dependency groups for examples, benchmarks, tests or documents say, or else the others.

    [PEP 621, PEP 735]
    """
    project = document.get("project", {})
    extras = project.get("optional-dependencies", {}) if isinstance(project, dict) else {}
    for groups in (extras, document.get("dependency-groups", {})):
        for name, listed in groups.items() if isinstance(groups, dict) else ():
            if (_BESIDE.match(name) is not None) is beside and isinstance(listed, list):
                for each in listed:
                    if isinstance(each, str):
                        yield from _ROW.findall(each)


def _of_pyproject(text: str) -> Iterator[str]:
    document = _document(text)
    said = list(_of_dependencies(document))
    yield from said or _of_groups(document, beside=False)


def _of_dependencies(document: Any) -> Iterator[str]:
    project = document.get("project", {})
    listed = project.get("dependencies", []) if isinstance(project, dict) else []
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, str):
            yield from _ROW.findall(each)
    tool = document.get("tool", {})
    uv = tool.get("uv", {}) if isinstance(tool, dict) else {}
    for name in ("constraint-dependencies", "override-dependencies") if isinstance(uv, dict) else ():
        bounds = uv.get(name, [])
        for each in bounds if isinstance(bounds, list) else []:
            if isinstance(each, str):
                yield from _ROW.findall(each)
    poetry = tool.get("poetry", {}) if isinstance(tool, dict) else {}
    needed = poetry.get("dependencies", {}) if isinstance(poetry, dict) else {}
    torch = needed.get("torch") if isinstance(needed, dict) else None
    for each in torch if isinstance(torch, list) else [torch]:
        version = each.get("version") if isinstance(each, dict) else each
        if isinstance(version, str):
            yield version if version[:1] in "<>=!~^" else f"=={version}"
