"""Figures slower than in the last run are reported; two such runs in a row fail `make bench`."""

from __future__ import annotations

from pathlib import Path

import pytest

from asv_benchmarks import regressions
from asv_benchmarks.regressions import KEPT, Run, accept, compared, judged, kept, main, text
from asv_benchmarks.regressions import workload_ratios as ratios_of
from asv_benchmarks.workloads import distinct

A, B = "a: one change", "b: load"


def runs(file: Path, *ratios: float) -> list[list[tuple[float, float, bool]]]:
    """Return the verdicts of several runs on one figure, beside one that does not change."""
    found = [judged(file, {A: ratio, B: 1.0}, f"day {ratio}") for ratio in ratios]
    assert all(each.name == A for one in found for each in one)
    return [[(each.base, each.ratio, each.again) for each in one] for one in found]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "asv" / "ratios.json"


def test_a_first_run_has_nothing_to_be_compared_with(file: Path) -> None:
    assert runs(file, 9.0) == [[]]
    assert text([]).startswith("No ratio")


def test_up_to_the_limit_nothing_is_told(file: Path) -> None:
    assert runs(file, 2.0, 2.6, 3.3, 1.0) == [[]] * 4


def test_what_is_slower_once_is_told_and_does_not_fail(file: Path) -> None:
    assert runs(file, 2.0, 3.0, 2.1, 2.0) == [[], [(2.0, 3.0, False)], [], []]


def test_what_is_slower_in_two_runs_running_is_a_regression(file: Path) -> None:
    assert runs(file, 2.0, 3.0, 2.9) == [[], [(2.0, 3.0, False)], [(2.0, 2.9, True)]]


def test_a_regression_fails_until_it_is_mended(file: Path) -> None:
    found = runs(file, 2.0, 3.0, 3.0, 3.0, 2.2, 2.9)
    assert found[3:] == [[(2.0, 3.0, True)], [], [(2.2, 2.9, False)]]  # 2.2 * 1.3 is 2.86


def test_a_regression_can_be_accepted(file: Path) -> None:
    runs(file, 2.0, 3.0, 3.0)
    accept(file)
    assert runs(file, 3.1) == [[]]


def test_a_run_that_was_lucky_is_no_measure(file: Path) -> None:
    assert runs(file, 2.0, 1.0, 2.1, 2.1) == [[]] * 4


def test_a_figure_that_is_new_or_gone_is_not_compared() -> None:
    assert compared([Run("yesterday", {A: 1.0})], {B: 9.0}) == []


def test_the_worst_is_told_first() -> None:
    found = compared([Run("yesterday", {A: 1.0, B: 1.0}, {B: 0.5})], {A: 2.0, B: 2.0})
    assert [each.name for each in found] == [B, A]
    _, _, first, second = text(found).splitlines()
    assert [cell.strip() for cell in first.strip("|").split("|")] == [
        *(B, "0.50", "2.00", "4.00", "**regression**")
    ]
    assert "once" in second


def test_old_runs_are_forgotten(file: Path) -> None:
    runs(file, *[1.0] * (KEPT + 5))
    assert len(kept(file)) == KEPT


def test_the_command_fails_at_the_second_run(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = {A: 1.0, B: 1.0}
    monkeypatch.setattr(regressions, "current", lambda: dict(now))
    options = ["--file", str(file)]
    main(options)
    now[A] = 2.0
    main(options)
    assert "once" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=f"slower in two runs running: {A}"):
        main(options)
    main([*options, "--accept"])
    main(options)


def test_ratios_are_measured_of_changes_and_of_batches() -> None:
    ratios = ratios_of(distinct.WORKLOAD, 200)
    assert [*ratios] == ["distinct: one change", "distinct: a batch"]
    assert min(ratios.values()) > 0
