"""Where reports go: which formats were asked for, and the files that they are written to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from devlint.errors import UsageError
from devlint.report import FORMATS, Output, Run, load_format
from devlint.terminal import PLAIN, printable_lines


def outputs(given: Sequence[Output], file: str | None, default: str) -> list[Output]:
    """What to write. `file`: where the format without a path of its own goes. Raises UsageError."""
    wanted = list(given) or [Output(default)]
    shared = [each for each in wanted if each.path is None]
    if len(shared) > 1:
        names = " and ".join(f"`{each.format}`" for each in shared)
        raise UsageError(f"--output-format: {names} cannot both be written to one place; name a file, as in json:FILE")
    if file is not None and not shared:
        raise UsageError("--output-file: every --output-format names a file of its own")
    paths = [each.path for each in wanted if each.path is not None] + ([file] if file is not None else [])
    if len(set(paths)) < len(paths):
        raise UsageError("--output-format: two formats would be written to one file")
    return [each._replace(path=file) if each.path is None else each for each in wanted]


def write_report(output: Output, run: Run, statistics: bool) -> None:
    """Write a report to its file, without colours. Raises UsageError when that fails."""
    module = load_format(output.format)
    assert output.path is not None
    blocks = (module.render_statistics if statistics else module.render)(run, PLAIN)
    write_text(Path(output.path), printable_lines(lines(blocks), commands=FORMATS[output.format].commands))


def lines(blocks: Iterable[str]) -> str:
    return "".join(f"{block}\n" for block in blocks)


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8: the old content or the new one is there at any moment.

    Raises UsageError naming the file when that fails. A path that is no regular file, as /dev/stderr, is written to.
    """
    import tempfile

    data = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".devlint", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
            os.chmod(name, mode)
            os.replace(name, target)
        except BaseException:
            _forget(name)
            raise
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def _forget(name: str) -> None:
    try:
        os.unlink(name)
    except OSError:
        return


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
