"""The golden files of the ways to run a query: each says how queries run, and they are tried."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reactive.engine.compiler.choices
from optimizer.plans.explain import headline
from reactive.engine.compiler.choices import CHOICES
from tests.golden.choices import FOLDER, NAMES_OF_CHOICES, Case, cases
from tests.golden.contents import run_differences
from tests.thresholds import thresholds

FILES = sorted(
    path
    for path in Path(reactive.engine.compiler.choices.__path__[0]).glob("*.py")
    if path.stem != "__init__"
)
CASES = [case for choice in NAMES_OF_CHOICES for case in cases(choice)]
AS_OF_COMMITS = {"look_up_events"}
"""Ways whose rows are as of each commit: `tests/api/test_event_lookups.py` compares them."""
OF_A_JOIN, OF_GROUPS = 6, 6
"""Ways that there may be at most."""


@pytest.fixture(autouse=True)
def kept_as_shipped() -> Iterator[None]:
    """Set the number that golden files show, whatever earlier tests of the process have left."""
    with thresholds({"optimizer.plans.shredding.LARGE": 128}):
        yield


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_way_is_a_function_of_the_name_of_its_file_and_says_what_it_needs(path: Path) -> None:
    module = importlib.import_module(f"reactive.engine.compiler.choices.{path.stem}")
    assert getattr(module, path.stem) in CHOICES
    lines = (inspect.getdoc(module) or "").splitlines()
    found = [line.partition(" ")[0] for line in lines if line.startswith(("Needs:", "Pays:"))]
    assert found == ["Needs:", "Pays:"]


def test_every_golden_file_belongs_to_a_way() -> None:
    assert {path.stem for path in FOLDER.glob("*")} == {path.stem for path in FILES}


@pytest.mark.parametrize("choice", NAMES_OF_CHOICES)
def test_a_way_has_cases_in_which_it_is_chosen_and_others(choice: str) -> None:
    assert {case.is_chosen for case in CASES if case.choice == choice} == {True, False}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_query_runs_as_its_golden_file_says(case: Case) -> None:
    assert case.shown() == case.expected


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.given and case.choice not in AS_OF_COMMITS], ids=str
)
def test_it_has_the_rows_that_it_has_from_scratch(case: Case) -> None:
    kept: list[Any] = []
    assert run_differences(case.relation(kept)[0].plan) == []


def test_a_join_runs_in_few_ways_and_so_do_groups() -> None:
    """Count the choices that a join may take, and an aggregate over rows or over a join."""
    chosen = {"join": set[str](), "aggregate": set[str]()}
    for case in CASES:
        top = headline(case.relation([])[0].plan).split()[0]
        for kind in chosen:
            if top.startswith(kind) and case.is_chosen:
                chosen[kind].add(case.choice)
    assert 2 <= len(chosen["join"]) <= OF_A_JOIN
    assert 2 <= len(chosen["aggregate"]) <= OF_GROUPS
