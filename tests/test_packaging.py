"""What the package promises: its types, its addresses and where they show, its README elsewhere, its metadata."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import devlint
from devlint import addresses, api
from devlint.commands.rule import explained_rules
from devlint.config import toml_reader
from devlint.model import Diagnostic, FileResult, Position, Severity, Span
from devlint.report import FileReport, Run, load_format
from devlint.terminal import PLAIN

ROOT = Path(__file__).parents[1]
SITE = "https://devlint.example/docs"
REPOSITORY = "https://code.example/owner/devlint"
TEXT = "import torch\nx = 1\n"


@pytest.fixture
def addressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project with addresses."""
    monkeypatch.setattr(addresses, "SITE", SITE)
    monkeypatch.setattr(addresses, "REPOSITORY", REPOSITORY)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project without addresses."""
    monkeypatch.setattr(addresses, "SITE", "")
    monkeypatch.setattr(addresses, "REPOSITORY", "")


def project() -> dict[str, Any]:
    table: dict[str, Any] = toml_reader().loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def report(name: str, code: str = "DEV501") -> Any:
    found = Diagnostic(
        "a.py", code, "create-then-move", Severity.WARNING, "m", Span(13, 14), Position(2, 1), Position(2, 2)
    )
    return json.loads(
        "\n".join(load_format(name).render(Run([FileReport(FileResult("a.py", [found]), TEXT)], errors=0), PLAIN))
    )


# Types


@pytest.mark.parametrize("package", ["devlint", "rules/devlint_rules"])
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


def test_the_api_exports_what_it_has() -> None:
    assert [name for name in api.__all__ if not hasattr(api, name)] == []


# Addresses


@pytest.mark.parametrize("name", ["json", "json-lines"])
@pytest.mark.usefixtures("addressed")
def test_a_finding_has_the_address_of_its_rule(name: str) -> None:
    found = report(name)
    row = found[0] if isinstance(found, list) else found
    assert row["url"] == f"{SITE}/rules/DEV501/"


@pytest.mark.usefixtures("addressed")
def test_a_rule_of_a_plugin_has_no_page_there() -> None:
    assert report("json", "ACM101")[0]["url"] is None


@pytest.mark.usefixtures("addressed")
def test_every_rule_has_a_help_uri_in_sarif() -> None:
    driver = report("sarif")["runs"][0]["tool"]["driver"]
    assert [rule["helpUri"] for rule in driver["rules"]] == [f"{SITE}/rules/{rule['id']}/" for rule in driver["rules"]]
    assert driver["informationUri"] == SITE


@pytest.mark.usefixtures("addressed")
def test_reviewdog_gets_the_address() -> None:
    assert report("rdjson")["diagnostics"][0]["code"] == {"value": "DEV501", "url": f"{SITE}/rules/DEV501/"}


@pytest.mark.usefixtures("addressed")
def test_a_rule_as_json_has_its_address() -> None:
    rule = next(each for each in explained_rules() if each.meta.code == "DEV501")
    assert rule.row()["url"] == f"{SITE}/rules/DEV501/"


@pytest.mark.usefixtures("addressed")
def test_the_server_describes_the_code_of_a_finding() -> None:
    pytest.importorskip("pygls")
    from devlint.editor import server, session

    document = session.open_document("a.py", 'import torch\nx = torch.zeros(3).to("cuda")\n')
    shown = [server._diagnostic(document, each, "file:///a.py") for each in document.diagnostics]
    described = {each.code: each.code_description.href for each in shown if each.code_description is not None}
    assert described["DEV501"] == f"{SITE}/rules/DEV501/"


@pytest.mark.usefixtures("nowhere")
def test_without_an_address_the_server_describes_no_code() -> None:
    pytest.importorskip("pygls")
    from devlint.editor import server, session

    document = session.open_document("a.py", 'import torch\nx = torch.zeros(3).to("cuda")\n')
    shown = [server._diagnostic(document, each, "file:///a.py") for each in document.diagnostics]
    assert shown and all(each.code_description is None for each in shown)


@pytest.mark.parametrize("name", ["json", "json-lines", "sarif", "rdjson", "gitlab"])
@pytest.mark.usefixtures("nowhere")
def test_without_an_address_no_report_has_one(name: str) -> None:
    text = json.dumps(report(name))
    links = [each for each in re.findall(r'"https?://[^"]*"', text) if "schema" not in each]
    assert links == []


@pytest.mark.usefixtures("nowhere")
def test_without_an_address_sarif_has_no_help_uri() -> None:
    driver = report("sarif")["runs"][0]["tool"]["driver"]
    assert not [rule for rule in driver["rules"] if "helpUri" in rule] and "informationUri" not in driver


def test_the_site_has_a_page_at_the_address_of_each_rule(addressed: None) -> None:
    from devlint.dev.site import configuration, pages

    rules = explained_rules()
    found = pages(rules, ROOT)
    assert "use_directory_urls: true" in configuration(rules, found)
    for rule in rules:
        url = addresses.rule_url(rule.meta.code)
        assert url is not None and url.removeprefix(f"{SITE}/").rstrip("/") + ".md" in found


# Metadata


@pytest.mark.usefixtures("nowhere")
def test_without_an_address_the_package_has_no_links() -> None:
    assert addresses.project_urls("1.0.0") == {}


@pytest.mark.usefixtures("addressed")
def test_the_links_of_the_package_come_from_one_place() -> None:
    urls = addresses.project_urls("1.0.0")
    assert urls == {
        "Documentation": SITE,
        "Source": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{REPOSITORY}/blob/v1.0.0/CHANGELOG.md",
    }
    assert {"urls", "readme", "version"} <= set(project()["dynamic"])


def test_the_classifiers_name_every_supported_python() -> None:
    named = re.findall(r"Python :: 3\.(\d+)$", "\n".join(project()["classifiers"]), re.MULTILINE)
    assert [int(minor) for minor in named] == [10, 11, 12, 13, 14]
    assert project()["requires-python"] == ">=3.10"


def test_the_base_needs_no_rich() -> None:
    names = {re.match(r"[\w-]+", each)[0] for each in project()["dependencies"]}  # type: ignore[index]
    assert names == {"libcst", "markdown-it-py", "tomli"}


def test_the_changelog_has_this_version() -> None:
    heads = re.findall(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads[0] == devlint.__version__


# The README elsewhere


@pytest.mark.usefixtures("nowhere")
def test_without_an_address_a_link_to_a_file_is_plain_text() -> None:
    text = "[rules](rules/README.md), [hooks](https://pre-commit.com), [below](#limits)"
    assert addresses.readme_anywhere(text, "1.0.0") == "rules, [hooks](https://pre-commit.com), [below](#limits)"


@pytest.mark.usefixtures("addressed")
def test_a_link_to_a_file_leads_to_that_version() -> None:
    text = addresses.readme_anywhere("see [`verify`](docs/verify.md#what)", "1.0.0")
    assert text == f"see [`verify`]({REPOSITORY}/blob/v1.0.0/docs/verify.md#what)"


@pytest.mark.usefixtures("nowhere")
def test_the_readme_of_the_package_has_no_relative_link() -> None:
    text = addresses.readme_anywhere((ROOT / "README.md").read_text(encoding="utf-8"), devlint.__version__)
    assert [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith(("https://", "#"))] == []


@pytest.mark.usefixtures("addressed")
def test_every_link_of_the_packages_readme_leads_to_a_file_of_that_version() -> None:
    text = addresses.readme_anywhere((ROOT / "README.md").read_text(encoding="utf-8"), devlint.__version__)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    start = f"{REPOSITORY}/blob/v{devlint.__version__}/"
    assert targets and [each for each in targets if not each.startswith(start)] == []
    assert [each for each in targets if not (ROOT / each.removeprefix(start)).exists()] == []


def test_ruff_keeps_our_noqa_with_the_setting_that_the_readme_names(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    setting = re.search(r"`(lint\.external = [^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert setting is not None
    (tmp_path / "a.py").write_text("x = 1  # noqa: DEV101\n")

    def codes(*options: str) -> int:
        command = [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--no-cache",
            "--select=RUF100,RUF102",
            *options,
            "a.py",
        ]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode

    assert (codes(), codes("--config", setting[1])) == (1, 0)


# The pages of the project


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_of_the_projects_own_pages_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        assert target.startswith("https://") or (ROOT / target).exists(), target
