"""Folds over inner rows are computed without these, with the result of the bags."""

from __future__ import annotations

import pytest

from optimizer.plans.properties import tables
from tests.golden.contents import all_contents, from_scratch
from tests.golden.folds_inside import Case, cases
from tests.golden.tables import CALM

CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fold_of_rows_inside_has_the_plan_of_its_golden_text(case: Case) -> None:
    assert case.shown() == case.expected
    assert "Collect" not in case.expected


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_that_of_the_bags_on_all_small_tables(case: Case) -> None:
    nest, folded = case.plans()
    for walk in all_contents(tables(nest), CALM):
        for contents in walk:
            assert from_scratch(folded, contents) == case.of_bags(nest, contents)
