"""devlint: a linter for PyTorch device bugs. The package itself imports nothing.

`%load_ext devlint` in IPython, Jupyter or Colab explains device errors under the cell that raised them: IPython calls the
two functions below (https://ipython.readthedocs.io/en/stable/config/extensions/).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.2.0"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext devlint` runs."""
    from devlint.jupyter.extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What `%unload_ext devlint` runs. It leaves nothing behind."""
    from devlint.jupyter.extension import unload

    unload(shell)
