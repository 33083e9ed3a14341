"""The queries of the benchmark of neighbours: spellings agree, and views follow their changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from asv_benchmarks.neighbours.__main__ import main
from asv_benchmarks.neighbours.costs import Cost, Costs, values_of
from asv_benchmarks.neighbours.judged import different, pairs_of, report, told, ways_of
from asv_benchmarks.neighbours.query import Query, difference
from asv_benchmarks.neighbours.variations import families, spelled
from asv_benchmarks.neighbours.world import World
from tests.budget import share_of

FAMILIES = families()
QUERIES = {query.name: query for family in FAMILIES for query in (family.first, *family.others)}
SIZE, CHANGES = 60, 4


def followed(query: Query) -> Any:
    """Return the view's rows, after rows came and went and the view was verified."""
    if query.rows in ("attrs", "msgspec", "pydantic"):
        pytest.importorskip(query.rows, reason=f"rows of {query.rows} need the package")
    world = World(query, SIZE)
    view = world.relation().materialize(on_error=query.policy)
    for name in ("o", "c", "e"):
        table, rows = world.tables[name], world.rows[name]
        for new, old in zip(rows.fresh[:CHANGES], rows.first, strict=False):
            table.add(new)
            table.remove(old)
            view.verify()
        table.add_all(rows.fresh[CHANGES:20])
        view.verify()
    return values_of(view)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.first.family)
def test_spellings_of_a_query_agree(family: Any) -> None:
    first = Costs(family.first, result=followed(family.first))
    words = [query for query in family.others if spelled(family.first, query)]
    assert (
        words
        or family.first.result in ("running sum", "share", "rank")
        or (family.first.result.startswith("depth"))
    )
    others = [Costs(query, result=followed(query)) for query in words]
    assert [other.query.name for other in different(first, others)] == []


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*QUERIES], "neighbours", 4))
def test_views_follow_their_changes(name: str) -> None:
    followed(QUERIES[name])


def test_there_are_some_six_hundred_queries_and_names_tell_them_apart() -> None:
    queries = [query for family in FAMILIES for query in (family.first, *family.others)]
    assert len(queries) >= 600
    assert [
        name for name, count in Counter(query.name for query in queries).items() if count > 1
    ] == []


def test_a_neighbour_that_tells_of_more_rows_may_cost_as_much_more() -> None:
    first, other = Query("q"), Query("q", hot=True)
    one = Costs(first, {"add o": Cost(95.0, told=1.0)})
    ten = Costs(other, {"add o": Cost(1_995.0, told=10.0)})
    (pair,) = pairs_of(one, [ten])
    assert pair.times == pytest.approx(2.0)
    assert pair.asked == 3.0
    assert "0 cost more than 3 times: met" in report([pair], 5)


def test_a_spelling_that_costs_twice_as_much_misses() -> None:
    first, other = Query("q"), Query("q", spelling="sql")
    (pair,) = pairs_of(
        Costs(first, {"add o": Cost(95.0, 1.0)}), [Costs(other, {"add o": Cost(195.0, 1.0)})]
    )
    assert pair.beyond == pytest.approx(2.0 / 1.5)
    assert "1 cost more than 1.5 times: **missed**" in report([pair], 5)


def test_an_update_that_costs_far_more_than_to_remove_and_add_is_told() -> None:
    costs = Costs(
        Query("q", hot=True), {"move o": Cost(10.0, told=1.0), "update o": Cost(95.0, told=2.0)}
    )
    (pair,) = ways_of(costs)
    assert pair.times == pytest.approx(4.0)
    assert told(pair) == "4.0x update o: move o -> update o (hot: False -> True) (10.0 -> 95.0 us)"


def test_a_difference_is_told_by_its_fields() -> None:
    assert difference(Query("q"), Query("q", hot=True)) == "hot: False -> True"


def test_a_family_is_measured_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--only", "depth of", "--size", "40", "--worst", "2"])
    assert "| depth of all |" in capsys.readouterr().out
