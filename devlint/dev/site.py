"""Builds the documentation as a static site: `python -m devlint.dev.site build/site` (needs `pip install zensical`).

The pages are README.md, what lies in docs/, and one page per rule from its docstring; none of the generated ones is kept in
the repository, so none can be out of date.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from devlint.model import RuleMeta

ROOT = Path(__file__).parents[2]
GUIDES = (
    ("Adopting devlint on a large code base", "adopting.md"),
    ("Device-agnostic PyTorch", "device-agnostic.md"),
    ("verify", "verify.md"),
    ("Testing for GPUs without one", "testing-without-a-gpu.md"),
    ("Writing a rule", "writing-a-rule.md"),
    ("How devlint decides", "how-it-decides.md"),
    ("How each fix was confirmed", "confirmed-by.md"),
    ("Editors", "editors.md"),
    ("CI", "ci.md"),
    ("Changelog", "changelog.md"),
)


def rule_page(meta: RuleMeta, text: str) -> str:
    """The page of one rule in Markdown: its metadata as a table, then its docstring."""
    opt_in = "only when selected" if meta.opt_in else "yes"
    return (
        f"# {meta.code} {meta.name}\n\n{meta.summary.capitalize()}.\n\n"
        f"| on by default | how sure | fix | severity | since |\n|---|---|---|---|---|\n"
        f"| {opt_in} | {meta.level} | {meta.fix} | {meta.severity.value} | {meta.since} |\n\n{text}\n"
    )


def pages(rules: list[Any], root: Path = ROOT) -> dict[str, str]:
    """All pages by their path in the site's source: guides, rules, the table of rules, and the start page."""
    found = {"index.md": _relinked((root / "README.md").read_text(encoding="utf-8"))}
    for _, name in GUIDES:
        path = root / "docs" / name
        if path.is_file():
            found[name] = _relinked(path.read_text(encoding="utf-8"))
    rows = ["# Rules", "", "| code | name | what it flags |", "|---|---|---|"]
    for rule in sorted(rules, key=lambda rule: rule.meta.code):
        meta = rule.meta
        text = inspect.getdoc(sys.modules[type(rule).__module__]) or ""
        found[f"rules/{meta.code}.md"] = rule_page(meta, text)
        rows.append(f"| [{meta.code}]({meta.code}.md) | {meta.name} | {meta.summary} |")
    found["rules/index.md"] = "\n".join(rows) + "\n"
    return found


def _relinked(text: str) -> str:
    """Links of the repository as links of the site."""
    text = text.replace("](docs/", "](").replace("](rules/README.md)", "](rules/index.md)")
    text = text.replace("](../rules/README.md)", "](rules/index.md)")
    return re.sub(r"\]\((benchmarks/[^)]*)\)", "](https://github.com/devlint/devlint/blob/main/\\1)", text)


def configuration(found: dict[str, str]) -> str:
    """`mkdocs.yml`, which zensical reads."""
    lines = ["site_name: devlint", "docs_dir: docs", "site_dir: site", "use_directory_urls: true"]
    lines += [
        "theme:",
        "  features: [navigation.sections, content.code.copy]",
        "nav:",
        "  - Start: index.md",
        "  - Guides:",
    ]
    lines += [f'    - "{title}": {name}' for title, name in GUIDES if name in found]
    lines += ["  - Rules:", "    - All rules: rules/index.md"]
    lines += [f"    - {Path(name).stem}: {name}" for name in sorted(found) if re.match(r"rules/DEV\d+", name)]
    return "\n".join(lines) + "\n"


def build(target: Path) -> int:
    """Write the pages and build the site under `target/site`. Exit code of the builder; 2 when it is not installed."""
    from devlint.registry import load_rules

    found = pages(list(load_rules()))
    shutil.rmtree(target, ignore_errors=True)
    for name, text in found.items():
        path = target / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (target / "mkdocs.yml").write_text(configuration(found), encoding="utf-8")
    builder = shutil.which("zensical") or str(Path(sys.executable).with_name("zensical"))
    if not Path(builder).exists():
        sys.stderr.write(f"{len(found)} pages written to {target}; `pip install zensical` builds them\n")
        return 2
    return subprocess.run([builder, "build"], cwd=target, check=False).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve()))
