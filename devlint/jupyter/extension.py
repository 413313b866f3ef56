"""`%load_ext devlint`: device errors are explained under their cell, and `%devlint` checks cells.

It uses what IPython documents for extensions: the events `pre_run_cell` and `post_run_cell`, and magics. It sees the text
of the cells and the error, and touches nothing of the program.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.errors import DevlintError
from devlint.jupyter.cells import Answer, Session, checked, explained

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

MAGIC = "devlint"
_ATTRIBUTE = "_devlint_extension"


def load(shell: InteractiveShell) -> None:
    """Switch it on. A second time changes nothing."""
    if getattr(shell, _ATTRIBUTE, None) is None:
        extension = Extension(shell)
        extension.register()
        setattr(shell, _ATTRIBUTE, extension)


def unload(shell: InteractiveShell) -> None:
    """Switch it off, and leave the shell as it was."""
    extension: Extension | None = getattr(shell, _ATTRIBUTE, None)
    if extension is not None:
        extension.unregister()
        delattr(shell, _ATTRIBUTE)


class Extension:
    """What stands between a shell and devlint."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._session = Session()
        for number, text in enumerate(shell.user_ns.get("In", [])):  # what ran before it was loaded
            if number and text:
                self._session.ran(number, text, None)

    def register(self) -> None:
        """Add the events and the magic."""
        self._shell.events.register("pre_run_cell", self.before)
        self._shell.events.register("post_run_cell", self.after)
        self._shell.register_magic_function(self.check, "line_cell", MAGIC)

    def unregister(self) -> None:
        """Take them away again."""
        self._shell.events.unregister("pre_run_cell", self.before)
        self._shell.events.unregister("post_run_cell", self.after)
        manager = self._shell.magics_manager
        for kind in manager.magics.values():
            kind.pop(MAGIC, None)
        vars(manager.user_magics).pop(MAGIC, None)

    def before(self, info: ExecutionInfo) -> None:
        """Remember the cell that is about to run: an error in it may be asked about while it runs."""
        self._remember(info)

    def after(self, result: ExecutionResult) -> None:
        """Explain the error of the cell that ran, where it is a device error."""
        error = result.error_in_exec
        if error is not None and _may_be_told(error):
            self._answer(lambda: explained(_as_text(error), self._session, Path()))

    def check(self, line: str, cell: str | None = None) -> None:
        """`%devlint` checks the cells that ran, `%devlint 3 5-7` some of them, `%%devlint` the cell itself, not run.

        The other cells that ran tell what the names in it stand for.
        """
        if cell is None:
            self._answer(lambda: checked(self._session, _numbers(line), Path()))
            return
        number = self._shell.execution_count
        self._session.ran(number, f"%%{MAGIC} {line}\n{cell}", f"{MAGIC} {number}")
        self._answer(lambda: checked(self._session, {number}, Path()))
        self._session.forget(number)

    def _remember(self, info: ExecutionInfo) -> None:
        if info.raw_cell and info.store_history:
            number = self._shell.execution_count
            self._session.ran(number, info.raw_cell, getattr(info, "cell_id", None))

    def _answer(self, ask: Any) -> None:
        """Show what is said. A fault of devlint must not look like one of the cell."""
        try:
            answer: Answer | None = ask()
        except DevlintError as error:
            sys.stderr.write(f"devlint: {error}\n")
        except Exception as error:
            sys.stderr.write(f"devlint: no answer: {type(error).__name__}: {error}\n")
        else:
            if answer is not None:
                _show(answer)


def _show(answer: Answer) -> None:
    from IPython.display import display

    display(answer.bundle(), raw=True)


def _may_be_told(error: BaseException) -> bool:
    """Whether the text of an error, or of one that it came from, is that of a device error."""
    from devlint.explain.errors import recognise

    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if recognise(f"{type(error).__name__}: {error}") is not None:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return False


def _as_text(error: BaseException) -> str:
    """The traceback as IPython prints it, whatever `%xmode` and `%colors` say."""
    from IPython.core.ultratb import FormattedTB

    return str(FormattedTB(mode="Context").text(type(error), error, error.__traceback__))


def _numbers(line: str) -> set[int] | None:
    """The numbers that `%devlint 3 5-7` names; None where it names none. Raises DevlintError for other words."""
    found: set[int] = set()
    for word in line.replace(",", " ").split():
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", word)
        if match is None:
            raise DevlintError(f"`%devlint` takes numbers of cells, such as `3` or `5-7`, not `{word}`")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found or None
