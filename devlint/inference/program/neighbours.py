"""The files of a project that import a file and mention a name of it: where its callers may stand.

Their texts are searched, and the search is remembered, so that an answer of the cache can be checked against it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from devlint.project_files import IMPORT, Files, ProjectFiles, Search
from devlint.source import Source

#: Files with callers that are read for one checked file.
CALLERS = 6


class Neighbours:
    """The project around one checked file.

    `reached`: the files in which calls of the checked file make something fail. `is_cut`: there are more files with callers
    than are read.
    """

    def __init__(self, path: str, files: ProjectFiles, source: Callable[[str], Source | None]) -> None:
        """`source` gives the text of another file; None where it cannot be read."""
        self.path = path
        self.source = source
        self.reached: set[str] = set()
        self.is_cut = False
        self._files = files
        self._listed: Files | None = None
        self._words: dict[str, list[str]] = {}

    def callers(self, names: Iterable[str]) -> list[str]:
        """The first files of the project, by their paths, that import the checked file and mention one of these names."""
        if self._listed is None:
            self._listed = self._files.around(os.path.dirname(self.path))
        if self._listed is None:
            return []
        root = self._listed.root
        module = os.path.splitext(os.path.relpath(self.path, root))[0].replace(os.sep, ".").removesuffix(".__init__")
        importing = set(self._mentioning(self._listed, IMPORT + module))
        calling = (
            {way for name in sorted(names) for way in self._mentioning(self._listed, name)} if importing else set()
        )
        paths = [os.path.normpath(os.path.join(root, way)) for way in sorted(importing & calling)]
        found = [path for path in paths if path != self.path]
        self.is_cut = len(found) > CALLERS
        return found[:CALLERS]

    def search(self) -> Search | None:
        """What was looked for; None when nothing was."""
        if self._listed is None or not self._words:
            return None
        return Search(os.path.relpath(self._listed.root, os.path.dirname(self.path)), self._listed.listing, self._words)

    def _mentioning(self, files: Files, word: str) -> list[str]:
        if word not in self._words:
            self._words[word] = files.mentioning(word)
        return self._words[word]
