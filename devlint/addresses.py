"""The addresses of the project. This is the one place that has them: reports, the server, the package's metadata and the
README of the package read them here. They are empty until the project has an address; then nothing shows a link.

It imports nothing: the build reads it alone.
"""

from __future__ import annotations

#: Where the source is, as `https://host/owner/devlint`, and the files of a version below `/blob/v0.2.0/`.
REPOSITORY = ""
#: Where the site of `python -m devlint.dev.site` is, as `https://host/devlint`.
SITE = ""
#: Who publishes the extension for VS Code (`editors/vscode`), as the marketplaces know the owner.
VSCODE_PUBLISHER = ""
#: Codes of the rules that devlint has pages for. Rules of plugins have codes of their own.
OWN_CODES = "DEV"


def rule_url(code: str) -> str | None:
    """The page of a rule, or None where it has none: for plugins' rules, and while the site has no address."""
    return f"{SITE.rstrip('/')}/rules/{code}/" if SITE and code.startswith(OWN_CODES) else None


def file_url(path: str, version: str) -> str | None:
    """A file or folder of the repository as it was in a version, or None while the repository has no address."""
    return f"{REPOSITORY.rstrip('/')}/blob/v{version}/{path}" if REPOSITORY else None


def project_urls(version: str) -> dict[str, str]:
    """The links of the package by the labels of the package index, without those that have no address."""
    changes = file_url("CHANGELOG.md", version)
    found = {
        "Documentation": SITE,
        "Source": REPOSITORY,
        "Issues": f"{REPOSITORY.rstrip('/')}/issues" if REPOSITORY else "",
        "Changelog": changes or "",
    }
    return {label: url for label, url in found.items() if url}


def readme_anywhere(text: str, version: str) -> str:
    """The README with links that work outside the repository.

    Its relative links lead to files of the repository. They become links into the repository of that version, or plain
    text while it has no address.
    """
    import re

    def relinked(match: re.Match[str]) -> str:
        url = file_url(match["target"], version)
        return f"[{match['text']}]({url})" if url else match["text"]

    return re.sub(r"\[(?P<text>[^]]*)\]\((?!https?://|#)(?P<target>[^)\s]+)\)", relinked, text)
