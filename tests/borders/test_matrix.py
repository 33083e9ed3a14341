"""Each kind of value survives each border unchanged, or is refused; docs say which."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.borders import matrix
from tests.postgres_server import why_none

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
BEGIN, END = "<!-- generated: python -m tests.borders -->\n", "<!-- end -->"


def with_table(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{matrix.page()}\n{END}{rest.partition(END)[2]}"


def skip_without_postgres() -> None:
    """Skip the test where no server can be started; in CI it fails."""
    if why := why_none():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)


@pytest.mark.long
@pytest.mark.parametrize("border", matrix.BORDERS)
def test_a_value_comes_back_as_it_was_or_is_refused(border: str) -> None:
    if border == "Postgres":
        skip_without_postgres()
    wrong = {
        name: cell.text
        for name in matrix.CASES
        if not (cell := matrix.crossed(name, border)).is_exact
        and not cell.text.startswith(("refused: ", "pickled: "))
    }
    assert wrong == {}


@pytest.mark.long
@pytest.mark.parametrize("name", matrix.SCALARS)
@pytest.mark.parametrize("border", ["JSON", "Arrow", "Parquet", "durable file", "SQL"])
def test_a_single_value_is_exact(border: str, name: str) -> None:
    assert matrix.crossed(name, border).text == "exact"


@pytest.mark.long
def test_the_table_of_docs_is_up_to_date() -> None:
    skip_without_postgres()
    assert with_table(PAGE.read_text()) == PAGE.read_text()
