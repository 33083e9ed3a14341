"""Golden files of the rules: each has the result of a rule for a query, which is tested.

Beside the text of the plan, the rows: every plan is evaluated over all contents of its tables with
at most two different rows, each at most twice, before the rule and after it.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import optimizer.rules
from tests.budget import share_of
from tests.golden.cases import FOLDER, RULES, Case, cases, shown
from tests.golden.contents import differences

FILES = sorted(
    path for path in Path(optimizer.rules.__path__[0]).glob("*.py") if path.stem != "__init__"
)
CASES = [case for rule in RULES for case in cases(rule)]
POSITIVE = [case for case in CASES if case.is_positive]
HEADERS = ("Sound:", "Needs:", "Pays:", "Source:")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rule_is_a_function_of_the_name_of_its_file_and_says_why_it_may(path: Path) -> None:
    module = importlib.import_module(f"optimizer.rules.{path.stem}")
    assert callable(getattr(module, path.stem))
    assert RULES[path.stem] is getattr(module, path.stem)
    lines = (inspect.getdoc(module) or "").splitlines()
    found = [line.partition(" ")[0] for line in lines if line.startswith(HEADERS)]
    assert found == list(HEADERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rule_has_cases_that_it_applies_to_and_others(path: Path) -> None:
    kinds = {case.is_positive for case in CASES if case.rule == path.stem}
    assert kinds == {True, False}


def test_every_golden_file_belongs_to_a_rule() -> None:
    assert {path.stem for path in FOLDER.glob("*")} == {path.stem for path in FILES}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_makes_the_plan_of_its_golden_file(case: Case) -> None:
    before = case.before()
    after = case.apply(before)
    if case.is_positive:
        assert shown(after) == case.expected
    else:
        assert after == before, shown(after)


@pytest.mark.long
@pytest.mark.parametrize("case", POSITIVE, ids=str)
def test_a_rule_has_nothing_to_do_where_it_has_been(case: Case) -> None:
    once = case.apply(case.before())
    assert case.apply(once) == once


@pytest.mark.long
@pytest.mark.parametrize("case", share_of(CASES, "rules", 3), ids=str)
def test_all_small_contents_give_the_same_rows_before_and_after(case: Case) -> None:
    before = case.before()
    plans = dict.fromkeys([before, case.apply(before)])
    assert differences(case.written(), list(plans)) == []
