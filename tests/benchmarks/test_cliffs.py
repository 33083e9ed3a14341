"""Every cliff has two sides with equal results, and the table matches the measurements."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from asv_benchmarks import table
from asv_benchmarks.cliffs.__main__ import HEADER, cells, chosen, main
from asv_benchmarks.cliffs.cliff import Cliff, Timed, measured
from asv_benchmarks.cliffs.cyclic import QUERIES, Edge, workload
from asv_benchmarks.cliffs.orders import load
from asv_benchmarks.cliffs.rows import CLIFFS, FAMILIES, WATCHED, cliff_of
from asv_benchmarks.cliffs.starting import OURS, THEIRS
from asv_benchmarks.shapes import check, made
from asv_benchmarks.turns import Beside
from asv_benchmarks.workload import batch_of
from asv_benchmarks.workload import load as fill
from tests.budget import share_of

TINY = 60


@pytest.mark.long
@pytest.mark.parametrize("cliff", share_of(CLIFFS, "cliffs", 3), ids=lambda cliff: cliff.name)
def test_a_cliff_is_measured_on_sides_that_are_equal(cliff: Cliff) -> None:
    found = measured(cliff, size=min(TINY, cliff.size), runs=1)
    assert min(found.engine, found.twin, found.ratio) > 0


def test_sides_that_differ_are_an_error() -> None:
    def sides(size: int) -> tuple[Timed, Timed]:
        one, other = load(size)
        return one, replace(other, result=lambda state: state[1:])

    with pytest.raises(AssertionError, match="falls: the sides differ"):
        measured(Cliff("falls", "twin", sides, TINY), runs=1)


def test_what_each_side_does_is_counted_for_itself() -> None:
    def side(count: int) -> Timed:
        return Timed(lambda state: 12.0, count, lambda: None, lambda state: None)

    cliff = Cliff("a number", "another", lambda size: (side(2), side(6)), 1, unit="B")
    found = measured(cliff, runs=3)
    assert (found.engine, found.twin, found.ratio) == pytest.approx((6, 2, 3))


def test_all_that_is_not_timed_is_made_ready_before_each_run() -> None:
    calls: list[str] = []

    def side(name: str) -> Timed:
        return Timed(
            lambda state: calls.append(f"do {name}"),
            1,
            lambda: calls.append(f"ready {name}"),
            lambda state: None,
        )

    measured(Cliff("one", "other", lambda size: (side("a"), side("b")), 1), runs=1)
    assert calls[:2] == calls[4:6] == ["ready a", "ready b"]
    assert sorted(calls[2:4]) == sorted(calls[6:]) == ["do a", "do b"]
    assert calls[2:4] != calls[6:]


@pytest.mark.parametrize("name", QUERIES)
def test_cyclic_joins_and_their_twins_are_equal_after_every_change_and_batch(name: str) -> None:
    chosen = workload(name)
    ends = [(src, dst) for src in range(14) for dst in range(14) if src != dst]
    rows = ([Edge(src, dst, src * dst % 10) for src, dst in Random(3).sample(ends, 60)],)
    stream = chosen.stream(rows, Random(4))
    sides = made(chosen)
    for side in sides:
        fill(side, rows)
    check(sides)
    for _ in range(60):
        table_number, row, weight = stream.ordinary()
        for side in sides:
            side.verbs()[table_number][weight < 0](row)
        check(sides)
    for size in (5, 40):
        batch = batch_of(stream, size, 1)
        for side in sides:
            side.batch(*batch)
        check(sides)
    assert sides[0].result() != {0: 1}


def test_the_import_is_compared_with_the_modules_of_others_that_it_imports() -> None:
    def imported(program: str) -> set[str]:
        told = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
        done = subprocess.run([sys.executable, "-c", told], capture_output=True, check=True)
        return set(done.stdout.decode().split())

    ours = imported(OURS) - sys.stdlib_module_names - imported("pass")
    assert ours - {"reactive", "optimizer"} == imported(
        THEIRS
    ) - sys.stdlib_module_names - imported("pass")


def test_what_takes_more_than_is_asked_is_bold() -> None:
    cliff = Cliff("falls", "no ties", load, TINY, most=2.0, bare=40)
    assert cliff.asked == "2x, 40 µs"
    assert cells(cliff, Beside(39, 20, 1.95))[3:] == ["1.95x", "39 µs"]
    assert cells(cliff, Beside(4_100, 20, 205))[3:] == ["**205.00x**", "**4,100 µs**"]
    assert cells(replace(cliff, most=None, bare=None), Beside(41, 20, 2.05))[2:] == [
        *("-", "2.05x", "41 µs"),
    ]


def test_rows_are_chosen_by_family_and_by_words() -> None:
    assert chosen(None) == list(CLIFFS)
    assert chosen(["floats"]) == list(FAMILIES["floats"])
    assert [cliff.name for cliff in chosen(["update(x, x)"])] == ["`update(x, x)`"]


def test_rows_of_most_families_are_watched() -> None:
    watched = [cliff_of(name) for name in WATCHED]
    assert all({*family} & {*watched} for name, family in FAMILIES.items() if name != "starting")


def test_no_two_cliffs_have_the_same_name() -> None:
    assert len({cliff.name for cliff in CLIFFS}) == len(CLIFFS)


def test_the_table_is_printed_and_put_into_the_docs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("<!-- cliffs: begin -->before<!-- cliffs: end -->\n")
    monkeypatch.setattr(table, "DOCS", page)
    main(["--size", "60", "--runs", "1", "--only", "update(x, x)", "--write"])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("| `update(x, x)` ")
    assert len(row.split("|")) == len(HEADER) + 2
    assert row in page.read_text()
    assert "before" not in page.read_text()


def test_the_docs_have_a_place_for_the_table() -> None:
    text = table.DOCS.read_text()
    assert text.count("<!-- cliffs: begin -->") == text.count("<!-- cliffs: end -->") == 1
