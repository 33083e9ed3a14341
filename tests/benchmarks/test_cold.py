"""Cold changes and many views are measured on sides that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asv_benchmarks import cold, many_views, table
from asv_benchmarks.rows import Order
from asv_benchmarks.turns import Ear
from asv_benchmarks.workloads import distinct


def test_other_work_is_done_before_every_cold_change_and_before_no_warm_one() -> None:
    calls: list[int] = []
    found = cold.figures(distinct.WORKLOAD, 100, 10, lambda: calls.append(1))
    assert len(calls) == 2 * 10
    assert all(min(each.engine, each.twin) > 0 for each in found)


def test_cold_changes_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cold, "PAUSE", 0.0)
    cold.main(["--size", "100", "--changes", "4", "--only", "distinct", "top_ten"])
    *_, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("| distinct ")
    assert len(second.split("|")) == len(cold.HEADER) + 2


@pytest.mark.parametrize("title", many_views.ASKED)
def test_many_views_show_what_their_twin_shows(title: str) -> None:
    asked, above = many_views.ASKED[title]
    wanted, unwanted, more = many_views.figures(asked, above, 30, 300, chunks=3)
    assert min(wanted.engine, wanted.twin, unwanted.engine, unwanted.twin, more) > 0


def test_views_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(self: Any, row: Any) -> None:
        self._ear.change(None, row)

    monkeypatch.setattr(many_views.Twin, "add", forgets)
    monkeypatch.setattr(many_views.Twin, "remove", forgets)
    asked, above = many_views.ASKED["o.customer == c"]
    with pytest.raises(AssertionError, match="the views differ"):
        many_views.figures(asked, above, 30, 300, chunks=2)


def test_one_view_hears_of_a_change() -> None:
    asked, _ = many_views.ASKED["o.customer == c"]
    ear = Ear()
    side = many_views.Engine(asked, 20, ear)
    side.add(Order(1, 3, 1, 1, 1))
    side.add(Order(2, 99, 1, 1, 1))
    assert ear.calls == 1


def test_many_views_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    many_views.main(["--views", "5", "10", "--rows", "50"])
    assert capsys.readouterr().out.count("| 10 ") == len(many_views.ASKED)


def test_figures_are_put_into_the_docs_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("before\n<!-- cold: begin -->old<!-- cold: end -->\nafter\n")
    monkeypatch.setattr(table, "DOCS", page)
    table.publish("new", "cold", write=False)
    assert "old" in page.read_text()
    table.publish("new", "cold", write=True)
    marked = "<!-- cold: begin -->\n\nnew\n\n<!-- cold: end -->"
    assert page.read_text() == f"before\n{marked}\nafter\n"


@pytest.mark.parametrize("name", ["grid", "tpch", "nexmark", "cold", "many_views"])
def test_the_docs_have_a_place_for_the_figures(name: str) -> None:
    text = table.DOCS.read_text()
    assert text.count(f"<!-- {name}: begin -->") == text.count(f"<!-- {name}: end -->") == 1
