"""The comparison of two engines: what counts as found, what is printed of labels nobody read, and what stops a change."""

from __future__ import annotations

import io
import json
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import compare_engines as compare
from growth import FORMS, largest_growth
from sides import Finding, Side, SideError, finding_of, keep, read_kept

ROOT = Path(__file__).parents[1]


def finding(
    row: int, code: str = "DEV102", severity: str = "warning", path: str = "a.py", evidence: str = "-"
) -> Finding:
    return Finding(path, row, row, code, evidence, severity, "")


def judged(read: bool, a: list[Finding], b: list[Finding]) -> compare.Judged:
    return compare.Judged({"read": read, "kind": "host-conversion"}, "somebody/secret.py", a, b)


def told(capsys: pytest.CaptureFixture[str], *labels: compare.Judged) -> tuple[str, compare.Report]:
    report = compare.Report()
    compare.tell_labels(report, "blind", labels, {"all kinds": lambda _: True})
    return capsys.readouterr().out, report


def test_a_label_is_found_by_a_finding_that_spans_its_line() -> None:
    wide = Finding("a.py", 3, 6, "DEV102", "-", "warning", "")
    assert compare.hits([wide], [5], ("DEV10",)) == [wide]
    assert compare.hits([wide], [7], ("DEV10",)) == []
    assert compare.hits([wide], [7], ("DEV10",), slack=1) == [wide]


def test_a_label_is_not_found_by_a_rule_of_another_kind() -> None:
    assert compare.hits([finding(5, "DEV501")], [5], ("DEV102", "DEV103")) == []


def test_a_read_label_that_is_lost_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    out, report = told(capsys, judged(True, [finding(5)], []))
    assert "lost somebody/secret.py" in out
    assert [row["change"] for row in report.rows] == ["lost"]


def test_a_read_label_that_is_won_has_its_evidence_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    out, report = told(capsys, judged(True, [], [finding(5, evidence="named proved")]))
    assert "won  somebody/secret.py" in out
    assert report.rows[0]["evidence"] == "named proved"


def test_an_unread_label_is_counted_and_never_named(capsys: pytest.CaptureFixture[str]) -> None:
    out, report = told(capsys, judged(False, [finding(5)], []), judged(False, [], [finding(5)]))
    assert "unread" in out
    assert "won   1  lost   1" in out
    assert "secret" not in out
    assert report.rows == []


def test_a_finding_of_severity_info_is_counted_apart(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, judged(False, [], [finding(5, severity="info")]))
    assert "B    1 (above info    0)" in out


def test_a_finding_at_another_row_is_new_and_the_old_one_gone() -> None:
    a, b = [finding(3), finding(9)], [finding(4), finding(9)]
    assert compare.only_here(b, a, ("DEV",)) == [finding(4)]
    assert compare.only_here(a, b, ("DEV",)) == [finding(3)]


def test_a_finding_whose_message_or_severity_changed_is_not_new() -> None:
    assert compare.only_here([finding(3, severity="info")], [finding(3)], ("DEV",)) == []


def many(count: int) -> list[Finding]:
    return [finding(row) for row in range(1, count + 1)]


def readings(count: int) -> list[dict[str, Any]]:
    return [{"tree": "t 1.0", "code": "DEV102", "path": "a.py", "line": row} for row in range(1, count + 1)]


def test_many_findings_of_a_rule_stop_a_change_until_twenty_were_read() -> None:
    assert compare.unread_rules("t 1.0", [], many(21), ("DEV102",), [])
    assert compare.unread_rules("t 1.0", [], many(21), ("DEV102",), readings(19))
    assert not compare.unread_rules("t 1.0", [], many(21), ("DEV102",), readings(20))


def test_twenty_findings_of_a_rule_stop_nothing() -> None:
    assert not compare.unread_rules("t 1.0", [], many(20), ("DEV102",), [])


def test_many_findings_that_were_there_before_stop_nothing() -> None:
    assert not compare.unread_rules("t 1.0", many(30), many(30), ("DEV102",), [])


def test_readings_of_another_version_of_the_tree_do_not_count() -> None:
    assert compare.unread_rules("t 2.0", [], many(21), ("DEV102",), readings(21))


def test_cases_of_explain_are_told_by_rank_and_unread_ones_never_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        {"url": "the/read/one", "repository": "a/b", "commit": "c", "read": True, "causes": [["x.py", 5]]},
        {"url": "the/unread/one", "repository": "a/b", "commit": "c", "read": False, "causes": [["x.py", 5]]},
    ]
    (tmp_path / "explained_errors.json").write_text(json.dumps(cases), encoding="utf-8")
    monkeypatch.setattr(compare, "HERE", tmp_path)
    monkeypatch.setattr(compare, "has_commit", lambda *_: True)
    monkeypatch.setattr(compare, "explain", lambda clones, case, side: [[("x.py", 5 if side == "A" else 50)]])
    with ThreadPoolExecutor(1) as pool:
        run = compare.Comparison("A", "B", pool, ("DEV",))  # type: ignore[arg-type]
        compare.compare_explained(run, tmp_path)
    out = capsys.readouterr().out
    assert "lost the/read/one rank 1 None" in out
    assert "the/unread/one" not in out
    assert "explained, unread" in out
    assert [row["place"] for row in run.report.rows] == ["the/read/one"]


def test_evidence_is_written_with_its_proof() -> None:
    row = {"filename": "a.py", "code": "DEV102", "location": {"row": 3}, "end_location": {"row": 30}}
    assert finding_of({**row, "evidence": "called", "proof": "soft"}, ".").evidence == "called soft"
    assert finding_of({**row, "evidence": "named"}, ".").evidence == "named"
    assert finding_of(row, ".").evidence == "-"
    assert finding_of(row, ".").last == 8


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    keep(tmp_path / "a" / "b.json", [1, 2])
    assert read_kept(tmp_path / "a" / "b.json") == [1, 2]
    assert read_kept(tmp_path / "none.json") is None


def test_the_archive_of_a_pin_is_found_however_it_spells_its_name(tmp_path: Path) -> None:
    (tmp_path / "torch_geometric-2.8.1-py3-none-any.whl").touch()
    (tmp_path / "nflows-0.14.tar.gz").touch()
    assert (
        compare.archive_of(tmp_path, "torch-geometric", "2.8.1") == tmp_path / "torch_geometric-2.8.1-py3-none-any.whl"
    )
    assert compare.archive_of(tmp_path, "nflows", "0.14") == tmp_path / "nflows-0.14.tar.gz"
    assert compare.archive_of(tmp_path, "nflows", "0.1") is None


def test_wheels_and_source_archives_give_their_python_files(tmp_path: Path) -> None:
    wheel, source = tmp_path / "a.whl", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(wheel, "w") as opened:
        opened.writestr("a/b.py", "x = 1\n")
        opened.writestr("a/METADATA", "")
    with tarfile.open(source, "w:gz") as packed:
        member = tarfile.TarInfo("a-1.0/a/b.py")
        member.size = 6
        packed.addfile(member, io.BytesIO(b"x = 1\n"))
    assert list(compare.Tree("a", archive=wheel).files()) == [("a/b.py", b"x = 1\n")]
    assert list(compare.Tree("a", archive=source).files()) == [("a/b.py", b"x = 1\n")]


def test_at_least_forty_trees_are_pinned_and_none_has_a_label_that_nobody_read() -> None:
    pins = json.loads((ROOT / "benchmarks" / "pinned_trees.json").read_text(encoding="utf-8"))
    unread = {
        label["repo"]
        for name in compare.LABELLED.values()
        for label in json.loads((ROOT / "benchmarks" / name).read_text(encoding="utf-8"))
        if not label["read"]
    }
    cases = json.loads((ROOT / "benchmarks" / "explained_errors.json").read_text(encoding="utf-8"))
    unread |= {case["repository"] for case in cases if not case["read"]}
    assert sum("version" in pin for pin in pins) >= 25
    assert sum("commit" in pin for pin in pins) >= 15
    assert not unread & {pin["name"] for pin in pins}


def test_a_variable_that_nothing_reads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SideError, match="no option and no setting `no-such-thing`"):
        Side("B", sys.executable, "", ["DEVLINT_NO_SUCH_THING=1"], tmp_path, 60)


def test_a_side_checks_a_project_and_says_it_again_from_what_it_kept(tmp_path: Path) -> None:
    side = Side("A", sys.executable, "--select DEV102", [], tmp_path / "kept", 120)
    files = {"a.py": b"import torch\n\n\ndef f(x):\n    x = x.cuda()\n    return x + torch.zeros(3)\n"}
    try:
        found = compare.check_files(files, side)
        assert [(f.path, f.first, f.code) for f in found] == [("a.py", 6, "DEV102")]
        assert not (tmp_path / "a.py").exists()
    finally:
        side.close()
    assert compare.check_files(files, side) == found
    assert side.workers == []


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_growth_is_python_in_every_size(name: str) -> None:
    make, smallest = FORMS[name]
    for text in (text for size in (2, smallest, smallest * 4) for text in make(size).values()):
        compile(text, name, "exec")


def test_growth_is_the_largest_step_and_noise_is_none() -> None:
    assert largest_growth([0.01, 0.02, 0.1]) == 1.0
    assert largest_growth([1.0, 4.0, 28.0]) == 7.0
    assert largest_growth([1.0, None, None]) is None
