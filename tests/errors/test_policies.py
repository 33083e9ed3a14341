"""By "drop" and "null" no row stops those who write, whatever raises; docs say what becomes of it.

python -m tests.errors.test_policies        writes the table into the docs
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.errors.policies import (
    FAILURES,
    OF_KEYS,
    OPERATORS,
    POLICIES,
    REFUSED,
    cells,
    page,
    played,
)

PAGE = Path(__file__).parents[2] / "docs" / "guide.md"
BEGIN, END = "<!-- generated: python -m tests.errors.test_policies -->\n", "<!-- end -->"


def with_table(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{page()}\n{END}{rest.partition(END)[2]}"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("failure", [name for name in FAILURES if name != OF_KEYS])
def test_no_row_stops_a_writer(operator: str, failure: str) -> None:
    for policy in POLICIES[1:]:
        assert played(operator, failure, policy) != REFUSED


@pytest.mark.parametrize("operator", OPERATORS)
def test_raise_refuses_the_commit_that_the_others_leave_a_row_out_of(operator: str) -> None:
    assert played(operator, "the callable raises", "raise") == REFUSED


@pytest.mark.sampled
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_table_of_docs_is_up_to_date(operator: str) -> None:
    assert f"| {operator} | {' | '.join(cells(operator))} |\n" in PAGE.read_text()


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
