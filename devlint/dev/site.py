"""Builds the documentation as a static site: `python -m devlint.dev.site build/site` (needs `pip install zensical`).

The pages are README.md, what lies in docs/, and one page per rule from its docstring; none of the generated ones is kept in
the repository, so none can be out of date.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from devlint.commands.rule import Explained, explained_rules

ROOT = Path(__file__).parents[2]
GUIDES = (
    ("My script fails", "my-script-fails.md"),
    ("A library that must run everywhere", "portable-library.md"),
    ("Notebooks", "notebooks.md"),
    ("Report a false positive or a missed bug", "reporting.md"),
    ("Adopting devlint on a large code base", "adopting.md"),
    ("Device-agnostic PyTorch in 2026", "device-agnostic.md"),
    ("Explaining errors", "explaining-errors.md"),
    ("verify", "verify.md"),
    ("Testing for GPUs without one", "testing-without-a-gpu.md"),
    ("Shadow tests", "shadow-tests.md"),
    ("Writing a rule", "writing-a-rule.md"),
    ("How devlint decides", "how-it-decides.md"),
    ("How each fix was confirmed", "confirmed-by.md"),
    ("Conversions", "conversions.md"),
    ("Editors", "editors.md"),
    ("CI", "ci.md"),
    ("Changelog", "changelog.md"),
)

PICTURES = "pictures"  # the folder of the guides' pictures

FAMILIES = {
    "DEV1": "Values on different devices",
    "DEV2": "Code that only runs on one machine",
    "DEV3": "Calls that do not exist",
    "DEV4": "Timing",
    "DEV5": "Transfers and stalls",
    "DEV6": "Several devices and processes",
    "DEV9": "Comments and files",
}

_CODE_WITH_BAR = re.compile(r"`([^`]*\\\|[^`]*)`")
_CODE = re.compile(r"(?:^ {4}.*\n|^\n(?=\n* {4}))+", re.M)


def rule_page(rule: Explained) -> str:
    """The page of one rule in Markdown: what it is, its metadata as a table, the rest of its docstring, its settings."""
    meta = rule.meta
    opt_in = "only when selected" if meta.opt_in else "yes"
    opt_in += " (preview)" if meta.preview else ""
    first, _, rest = rule.text.partition("\n\n")
    return (
        f"# {meta.code} {meta.name}\n\n{first}\n\n"
        f"| on by default | how sure | fix | severity | since |\n|---|---|---|---|---|\n"
        f"| {opt_in} | {meta.level} | {meta.fix} | {meta.severity.value} | {meta.since} |\n\n"
        f"{_fenced(rest)}\n{_with_gaps(rule.options)}"
    )


def _fenced(text: str) -> str:
    """Indented code as fenced Python, which is coloured; a blank line before each list."""

    def fence(match: re.Match[str]) -> str:
        code = re.sub(r"^ {4}", "", match.group(), flags=re.M).strip("\n")
        return f"```python\n{code}\n```\n"

    return _with_gaps(_CODE.sub(fence, text))


def _with_gaps(text: str) -> str:
    text = re.sub(r"^(#+ .*)\n(?=\S)", r"\1\n\n", text, flags=re.M)
    return re.sub(r"^(?![*|]|[ ]{2}|$)(.*)\n(?=\* )", r"\1\n\n", text, flags=re.M)


def pages(rules: Sequence[Explained], root: Path = ROOT) -> dict[str, str]:
    """All pages by their path in the site's source: guides, rules, the table of rules, and the start page."""
    found = {"index.md": _relinked((root / "README.md").read_text(encoding="utf-8"))}
    for _, name in GUIDES:
        path = root / "docs" / name
        if path.is_file():
            found[name] = _relinked(path.read_text(encoding="utf-8"))
    table = [
        "# Rules",
        "",
        "*certain*: the findings follow from the code, without an assumption. *assume*: the findings assume that tensor",
    ]
    table += ["arguments, module parameters and `device` variables may be on an accelerator."]
    for family, title in FAMILIES.items():
        table += ["", f"## {title}", "", "| code | name | what it flags | how sure | fix |", "|---|---|---|---|---|"]
        for rule in (each for each in rules if each.meta.code.startswith(family)):
            meta = rule.meta
            found[f"rules/{meta.code}.md"] = rule_page(rule)
            table.append(
                f"| [{meta.code}]({meta.code}.md) | {meta.name} | {meta.summary} | {meta.level}{meta.mark} | {meta.fix} |"
            )
    found["rules/index.md"] = "\n".join(table) + "\n"
    return found


def _relinked(text: str) -> str:
    """Links of the repository as links of the site."""
    text = text.replace("](docs/", "](").replace("](rules/README.md)", "](rules/index.md)")
    text = text.replace("](../rules/README.md)", "](rules/index.md)").replace("](CHANGELOG.md)", "](changelog.md)")
    no_page = r"\[([^]]*)\]\((?:\.\./)*(?:benchmarks|fixtures|devlint|tests|rules/devlint_rules|CONTRIBUTING|SECURITY)\b[^)]*\)"
    text = re.sub(r"^\|.*", lambda row: _CODE_WITH_BAR.sub(_as_html, row[0]), text, flags=re.M)
    return _with_gaps(re.sub(no_page, r"\1", text))


def _as_html(code: re.Match[str]) -> str:
    """Code of a table with a bar in it: Markdown for Python shows the backslash that keeps the bar from ending the cell."""
    return f"<code>{html.escape(code[1]).replace(chr(92) + '|', '&#124;')}</code>"


#: On a phone a table shows more of itself.
_CSS = """\
@media screen and (max-width: 44.98em) {
  .md-typeset table:not([class]) th, .md-typeset table:not([class]) td { min-width: 0; padding: 0.5em 0.6em; }
  .md-typeset table:not([class]) code { white-space: normal; overflow-wrap: anywhere; }
}
"""
#: `font: false`: readers' browsers ask no other server for fonts.
_THEME = """\
theme:
  font: false
  features: [navigation.indexes, navigation.top, navigation.footer, content.code.copy, search.highlight]
  palette:
    - media: "(prefers-color-scheme)"
      toggle: { icon: lucide/sun-moon, name: Switch to light mode }
    - media: "(prefers-color-scheme: light)"
      scheme: default
      toggle: { icon: lucide/sun, name: Switch to dark mode }
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      toggle: { icon: lucide/moon, name: Switch to system preference }
markdown_extensions:
  - tables
  - toc: { permalink: true }
  - pymdownx.highlight
  - pymdownx.superfences
  - pymdownx.inlinehilite
extra_css: [extra.css]"""


def configuration(rules: Sequence[Explained], found: dict[str, str]) -> str:
    """`mkdocs.yml`, which zensical reads."""
    lines = ["site_name: devlint", "site_description: The linter for PyTorch device bugs"]
    lines += ["docs_dir: docs", "site_dir: site", "use_directory_urls: true", _THEME, "nav:", "  - Start: index.md"]
    lines += ["  - Guides:", *(f'    - "{title}": {name}' for title, name in GUIDES if name in found)]
    lines += ["  - Rules:", "    - rules/index.md"]
    for family, title in FAMILIES.items():
        lines.append(f'    - "{title}":')
        for meta in (rule.meta for rule in rules if rule.meta.code.startswith(family)):
            lines.append(f'      - "{meta.code} {meta.name}": rules/{meta.code}.md')
    return "\n".join(lines) + "\n"


def build(target: Path) -> int:
    """Write the pages and build the site under `target/site`. Exit code of the builder; 2 when it is not installed."""
    rules = explained_rules()
    found = pages(rules)
    shutil.rmtree(target, ignore_errors=True)
    for name, text in found.items():
        path = target / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / PICTURES, target / "docs" / PICTURES)
    (target / "docs" / "extra.css").write_text(_CSS, encoding="utf-8")
    (target / "mkdocs.yml").write_text(configuration(rules, found), encoding="utf-8")
    if importlib.util.find_spec("zensical") is None:
        sys.stderr.write(f"{len(found)} pages written to {target}; `pip install zensical` builds them\n")
        return 2
    return subprocess.run([sys.executable, "-m", "zensical", "build"], cwd=target, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    description = "Write the pages of the site, and build it."
    parser = argparse.ArgumentParser(prog="python -m devlint.dev.site", description=description)
    parser.add_argument("target", nargs="?", type=Path, default=Path("build/site"), help="a folder, which is replaced")
    return build(parser.parse_args(arguments).target.resolve())


if __name__ == "__main__":
    sys.exit(main())
