"""Descriptions of the state of a fragment, its merge and its answer: golden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from optimizer.traverse import without_iterations
from reactive import Avg, Count, CountDistinct, Database, Max, Min, Sum, fixpoint, iterate
from reactive.engine.remote.fragments import is_kept_loop, whole_fragment
from spark_backend.fragments.remote import split_of
from tests.golden import cases
from tests.spark.fragments import Customer, Order
from tests.written import evaluated

FILE = Path(cases.__file__).parent / "splits.txt"
NAMES: dict[str, Any] = {
    of.__name__: of for of in (Avg, Count, CountDistinct, Max, Min, Sum, fixpoint, iterate, Order)
}


def golden() -> Iterator[tuple[str, list[str]]]:
    """Queries, and the lines of their splits."""
    for case in FILE.read_text().strip().split("\n\n"):
        query, _, lines = case.partition("\n=>\n")
        yield query, lines.splitlines()


@pytest.mark.quick
@pytest.mark.parametrize(("query", "wanted"), list(golden()))
def test_a_query_splits_into_what_is_held_how_it_is_merged_and_the_answer(
    query: str, wanted: list[str]
) -> None:
    db = Database()
    tables = {"orders": db.table(Order), "customers": db.table(Customer)}
    written = evaluated(f"({query})", {**NAMES, **tables}).plan
    fragment = whole_fragment(
        without_iterations(db._engine.queries.optimize(written).plan, is_kept_loop),
        lambda node: False,
    )
    assert fragment is not None
    assert split_of(fragment.node).lines() == wanted
