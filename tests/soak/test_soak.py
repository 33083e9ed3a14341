"""Some seconds of random histories; a difference is found, made small, and can be repeated."""

from __future__ import annotations

import gc
import json
import linecache
import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.operators.set_operators import Distinct
from reactive.engine.runtime.boundary import GENERATED
from tests.random_queries.nodes import every
from tests.soak import __main__ as command
from tests.soak import work
from tests.soak.cases import Case, case_of
from tests.soak.hearing import WAYS
from tests.soak.play import play
from tests.soak.report import described
from tests.soak.shrink import failure, shrunk
from tests.thresholds import LOWEST, SHIPPED, WALKED

pytestmark = pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")

SECONDS = 5
FIRST = 1 if os.environ.get("CI") else int(time.time()) * 1_000


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_some_seconds_of_random_histories() -> None:
    """Play the same histories if tests must be repeatable, else others in each run."""
    end, seed, commits = time.monotonic() + SECONDS, FIRST, 0
    while time.monotonic() < end:
        made, told = work.played_one(seed)
        assert told is None, f"{told}\nagain: python -m tests.soak --one {seed}"
        commits, seed = commits + made, seed + 1
    assert commits > 20


def test_a_seed_is_a_history() -> None:
    for seed in range(20):
        one, other = case_of(seed), case_of(seed)
        assert (one.source, one.tables) == (other.source, other.tables)
        assert repr((one.steps, one.settings)) == repr((other.steps, other.settings))


@pytest.mark.long
def test_histories_are_of_all_kinds() -> None:
    cases = [case_of(seed) for seed in range(200)]
    nodes = [node for case in cases for life in case.lives.values() for node in every(life.node)]
    steps = [step for case in cases for step in case.steps.values()]
    assert len({node.op for node in nodes}) == 37
    assert {node.kinds[0] for node in nodes if node.op == "table"} == set("PNDSAMVE")
    assert {verb for step in steps for verb, *_ in step.statements} == {
        *("add", "add_all", "remove", "remove_all", "discard", "update", "upsert", "delete"),
        *("clear", "replace_all", "replace_where", "owe", "advance", "set"),
    }
    tables = [table for case in cases for table in case.tables]
    assert all(any(getattr(t, has) for t in tables) for has in ("expires", "lateness", "late"))
    text = "\n".join(case.source for case in cases)
    assert all(each in text for each in ("now() - x.at < ", "+ timedelta(", "p0()", ", o: ("))
    assert {case.now.tzinfo for case in cases if case.now} == {None, UTC}
    for has in ("aborts", "nests", "single"):
        assert any(getattr(step, has) for step in steps)
    assert any(step.interrupt for step in steps) and any(step.refused for step in steps)
    assert {step.where for step in steps} == {"here", "thread", "task"}
    assert any(step.where == "thread" and step.interrupt is not None for step in steps)
    lives = [life for case in cases for life in case.lives.values()]
    assert {life.hears for life in lives} == {*WAYS} and any(life.interrupt for life in lives)
    for settings in (SHIPPED, LOWEST, WALKED):
        assert sum(case.settings == settings for case in cases) > 10
    assert any(case.strict for case in cases) and any(case.raising for case in cases)


def differing(cases: range) -> Case:
    return next(case for case in map(case_of, cases) if failure(case))


def no_row_twice(step: Callable[..., Any]) -> Callable[..., Any]:
    """An operator that forgets one change of several."""

    def wrong(self: Any, delta: Any) -> Any:
        return step(self, delta)[:1]

    return wrong


@pytest.mark.long
@pytest.mark.parametrize("operator", [Distinct, GroupAggregates])
def test_an_operator_that_forgets_is_found(operator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "step", no_row_twice(operator.step))
    found = differing(range(100))
    assert failure(found)


@pytest.mark.long
def test_a_difference_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Distinct, "step", no_row_twice(Distinct.step))
    case = differing(range(100))
    smaller = shrunk(case, 5)
    assert failure(smaller)
    assert len(smaller.steps) < len(case.steps) and len(smaller.lives) <= len(case.lives)
    told = described(smaller, "wrong")
    assert f"python -m tests.soak --one {case.seed}" in told


def test_a_case_without_commits_is_no_difference() -> None:
    assert failure(replace(case_of(1), steps={})) is None


@pytest.mark.long
def test_nothing_is_left_of_a_history() -> None:
    def kept() -> int:
        gc.collect()
        play(case_of(3))  # making the next function drops the text of freed ones
        return sum(file.startswith(GENERATED) for file in linecache.cache)

    before = kept()
    for seed in range(5, 10):
        play(case_of(seed))
    assert kept() <= before + 40  # of generated code, some of which is kept


def test_a_run_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[int] = []

    def one(seed: int) -> tuple[int, str | None]:
        played.append(seed)
        return 7, "something differs" if seed == 23 else None

    monkeypatch.setattr(work, "played_one", one)
    monkeypatch.setattr(command, "quiet", int)
    state = tmp_path / "state.json"
    arguments = ["--histories", "30", "--state", str(state)]
    assert command.main([*arguments, "--seconds", "-1"]) == 0
    assert played == []
    assert command.main(arguments) == 1
    assert played == [*range(1, 31)]
    assert json.loads(state.read_text()) == {"next": 31, "differences": [23]}
    told = capsys.readouterr().out
    assert "python -m tests.soak --one 23" in told and "30 histories, 210 commits" in told
    assert command.main(["--histories", "40", "--state", str(state)]) == 1
    assert played == [*range(1, 41)]


@pytest.mark.long
def test_two_processes_play_as_many_histories(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--histories", "5", "--workers", "2"]) == 0
    assert "5 histories" in capsys.readouterr().out
