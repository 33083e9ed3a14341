"""Figures of Spark, and their verdicts, on made-up figures, without Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from asv_benchmarks.offload import figures, report
from asv_benchmarks.offload.cases import CASES, FLUSHED, Changes, Client, Order
from asv_benchmarks.offload.draw import draw
from asv_benchmarks.offload.measure import NAMES, OF, offload_figures
from asv_benchmarks.offload.report import offload
from asv_benchmarks.offload.sides import Side
from reactive import OffloadError

SIZE = 1_000_000
CHANGED = ("1", "100", "10000")


def made_up(*words: Any, slow: bool = False) -> dict[str, Any]:
    """Figures of any measurement, that meet all targets or miss them."""
    growing = [1.0] * 10 + [2.0 if slow else 1.1] * 10
    memory = {"empty": 0, "full": 100, "moved": 50 if slow else 10, "peak": 5, "recall": 1.0}
    objects = {"objects empty": 0, "objects full": 10, "objects moved": 1}
    times = {"flush": [3.0 if slow else 0.5], "commit": [0.1], "process": [0.2]}
    match words[0]:
        case "flush":
            return dict.fromkeys(CHANGED, times)
        case "growth":
            sides = {str(SIZE): [1.0], str(5 * SIZE): [2.0 if slow else 1.1]}
            return dict.fromkeys(CHANGED, sides)
        case "long":
            return {"any": growing, "same": growing}
        case "handover":
            return {"seconds": 61.0 if slow else 29.0, **memory, **objects}
        case "scratch":
            return {"flush": [1.0], "scratch": [2.0 if slow else 6.0]}
        case "increments":
            came = [1.0] * 6 + [2.0 if slow else 1.0] * 3
            return {"10000": {"spark": [*came, *came], "process": [0.1] * 18}}
        case "predicate":
            return {"lifted": 2e6, "opaque": 1e6}
    raise AssertionError(words)


def slow(*words: Any) -> dict[str, Any]:
    return made_up(*words, slow=True)


@pytest.fixture(autouse=True)
def spark_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "check_spark", lambda: None)


def test_figures_that_meet_all_targets_are_not_marked() -> None:
    text = offload(made_up, size=SIZE, runs=1)
    assert "**missed**" not in text
    assert text.count("| met |") + text.count(" met | ") >= 20


def test_what_misses_its_target_is_marked() -> None:
    text = offload(slow, size=SIZE, runs=1)
    of_part = {part.splitlines()[0]: part.count("**missed**") for part in text.split("### ")}
    assert [*of_part.values()] == [0, 6, 6, 2, 8, 2, 2, 0]


def test_only_what_has_a_target_at_this_size_is_judged_there() -> None:
    text = offload(slow, names=["handover"], size=1_000, runs=1)
    assert "**missed**" not in text


def test_the_section_has_a_part_for_each_measurement_and_measures_each_case() -> None:
    asked: list[tuple[Any, ...]] = []

    def run(*words: Any) -> dict[str, Any]:
        asked.append(words)
        return made_up(*words)

    text = offload(run, size=SIZE, runs=2)
    assert sum(line.startswith("### ") for line in text.splitlines()) == len(NAMES)
    cases = {name: [w[1] for w in asked if w[0] == name] for name in OF}
    assert cases == {name: [case.name for case in of] * 2 for name, of in OF.items()}
    assert [w[2] for w in asked if w[0] == "scratch"] == [5 * SIZE] * 4


def test_parts_can_be_asked_for_alone() -> None:
    text = offload(made_up, names=["predicate"], size=SIZE, runs=1)
    titles = [line for line in text.splitlines() if line.startswith("###")]
    assert titles == ["### Lifted and opaque"]


def test_runs_are_merged_to_medians_of_the_same_place() -> None:
    runs = [{"a": [1.0, 9.0], "b": 2.0}, {"a": [3.0, 7.0], "b": 4.0}, {"a": [2.0, 8.0], "b": 9.0}]
    assert figures.merged(runs) == {"a": [2.0, 8.0], "b": 4.0}


def test_without_spark_the_section_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OffloadError("pyspark is missing")

    monkeypatch.setattr(report, "check_spark", missing)
    text = offload(made_up, size=SIZE, runs=1)
    assert text == "## Spark\n\nNot measured: pyspark is missing"


def test_increments_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "figures" / "increments.png"
    text = offload(made_up, names=["increments"], size=SIZE, runs=1, figure=file)
    assert file.read_bytes().startswith(b"\x89PNG")
    assert "(figures/increments.png)" in text


def test_each_query_has_its_own_axes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = [tmp_path / "one.png", tmp_path / "two.png"]
    draw(drawn[0], {"average": made_up("increments")}, SIZE)
    draw(drawn[1], {name: made_up("increments") for name in ("average", "join_average")}, SIZE)
    assert drawn[0].stat().st_size < drawn[1].stat().st_size


@pytest.mark.parametrize("case", FLUSHED, ids=lambda case: case.name)
def test_changes_come_and_go_and_no_two_rows_are_equal(case: Any) -> None:
    changes, rows = Changes(case, 50), Counter[Any]()
    for table, first in case.rows(50):
        rows.update((table, row) for row in first)
    for _ in range(4):
        came, went = changes.pair(20)
        assert (came.table, came.rows, -came.weight) == (went.table, went.rows, went.weight)
        rows.update((came.table, row) for row in came.rows)
    assert set(rows.values()) == {1}
    assert len(rows) == 50 * len(case.shares) + 4 * 20


def test_changes_are_in_few_groups_where_that_is_asked_for() -> None:
    changes = Changes(CASES["join"], 1_000, groups=3)
    rows = [row for _ in range(2) for row in changes.pair(100)[0].rows]
    assert {row.customer for row in rows if isinstance(row, Order)} == {0, 1, 2}
    assert {row.id for row in rows if isinstance(row, Client)} == {0, 1, 2}


@pytest.mark.parametrize("name", CASES)
def test_every_change_changes_the_view_of_a_case(name: str) -> None:
    case = CASES[name]
    side, changes = Side(case), Changes(case, 40, groups=20)
    side.load(case, 40)
    came, went = changes.pair(30)
    side.commit(came)
    told = side.heard()
    side.commit(went)
    back = side.heard()
    assert told
    assert back == {row: -weight for row, weight in told.items()}
    side.view.verify()
    side.close()


@pytest.mark.parametrize("words", [["nothing"], ["flush"], ["handover", "group"], ["predicate"]])
def test_an_unknown_measurement_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match=f"no measurement: {words[0]}"):
        offload_figures(*words)
