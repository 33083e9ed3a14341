"""No row stops a writer under "drop" and "null", whatever raises; docs state the outcome.

python -m tests.errors.test_policies        writes the table into the docs
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.errors import refused_rows
from tests.errors.policies import (
    FAILURES,
    OPERATORS,
    REFUSED,
    cell,
    page,
    played,
)

PAGE = Path(__file__).parents[2] / "docs" / "guide.md"
BEGIN, END = "<!-- generated: python -m tests.errors.test_policies -->\n", "<!-- end -->"


BEGIN_SOURCES = (
    "<!-- generated: python -m tests.errors.test_policies, rows that sources bring -->\n"
)
END_SOURCES = "<!-- end of rows that sources bring -->\n"


def with_table(text: str) -> str:
    """Return the page with the tables as they are now; the column of Spark stays."""
    before, _, rest = text.partition(BEGIN)
    text = f"{before}{BEGIN}\n{page()}\n{END}{rest.partition(END)[2]}"
    before, _, rest = text.partition(BEGIN_SOURCES)
    old, _, after = rest.partition(END_SOURCES)
    rows = [line.split(" | ") for line in old.splitlines() if line.startswith("|")]
    of_spark = {row[0].removeprefix("| "): row[-1].removesuffix(" |") for row in rows}
    column = [of_spark.get(failure, "not known") for failure in refused_rows.FAILURES]
    return f"{before}{BEGIN_SOURCES}\n{refused_rows.page(column)}\n{END_SOURCES}{after}"


@pytest.mark.long
@pytest.mark.sampled
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("failure", FAILURES)
def test_no_row_stops_a_writer_and_docs_say_what_becomes_of_it(operator: str, failure: str) -> None:
    line = next(x for x in PAGE.read_text().splitlines() if x.startswith(f"| {operator} | "))
    found = cell(operator, failure)
    assert REFUSED not in found
    assert line.removesuffix(" |").split(" | ")[1 + list(FAILURES).index(failure)] == found


@pytest.mark.parametrize("operator", OPERATORS)
def test_raise_refuses_the_commit_that_the_others_leave_a_row_out_of(operator: str) -> None:
    assert played(operator, "the callable raises", "raise") == REFUSED


@pytest.mark.parametrize("way", refused_rows.WAYS)
@pytest.mark.parametrize("failure", refused_rows.FAILURES)
def test_the_table_of_rows_that_sources_bring_is_up_to_date(failure: str, way: str) -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {failure} |"))
    place = 1 + list(refused_rows.WAYS).index(way)
    assert row.split(" | ")[place] == refused_rows.cell(refused_rows.WAYS[way], failure)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
