"""Tables whose rows are elsewhere from the start, and views over them."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, OffloadError, PlanError, TableError, TransactionError
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw
from tests.random_queries.rows import N, row_of
from tests.replica import Replica


class Numbers(NamedTuple):
    a: int
    b: int


def distant(db: Database, rows: list[Any], row_type: Any = tuple, **options: Any) -> Any:
    return db.spark_table(rows, row_type, name="bag", **options)


@pytest.mark.long
@examples(200)
@given(seed=SEEDS, optimize=st.booleans())
def test_random_queries_over_a_distant_table_and_one_in_the_process(
    seed: int, optimize: bool
) -> None:
    drawn, random = draw(seed, count=2), Random(seed)
    db = Database(offload=Elsewhere(), optimize=optimize)
    first, script = [row_of("P", random, drawn.mode) for _ in range(3)], drawn.script()
    script.model.tables[0] += first
    bag = distant(db, first)
    tables: list[Any] = [bag, db.table(N, name="keyed", key="id")]
    relations = drawn.relations(tables)
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for calls in script:
        commit(db, tables, calls)
        if random.random() < 0.5:
            more = [row for row, _ in list(bag.items())[:2]]
            bag.add_frame(more)
            script.model.tables[0] += more
        if random.random() < 0.5:
            for view, replica in zip(views, replicas, strict=True):
                view.verify()
                replica.check()
    for view in [*views, *(relation.materialize() for relation in relations)]:
        view.verify()


def test_a_view_of_the_rows_themselves_reads_them_where_they_are() -> None:
    db = Database(offload=Elsewhere())
    table = distant(db, [1, 2, 3], int)
    view = table.where(lambda n: n > 1).materialize("large")
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    assert sorted(view) == [2, 3] and len(view) == 2 and 3 in view
    table.add_all([1, 7])
    table.remove(2)
    table.add_frame([8, 0])
    assert sorted(view) == [3, 7, 8]
    assert [(sorted(d.added), d.removed) for d in heard] == [([7, 8], (2,))]
    assert view.stats().rows == 0 and not subscription.closed


def test_a_batch_of_a_query_is_taken_in_once_and_a_second_time_is_no_commit() -> None:
    db = Database(offload=Elsewhere())
    table = distant(db, [1], int)
    view = table.group_by(lambda n: n).aggregate(Count()).materialize()
    assert table.add_frame([2, 2], once=("q", 0))
    assert not table.add_frame([2, 2], once=("q", 0))
    assert table.add_frame([2], once=("other", 0))
    assert table.remove_frame([1], once=("q", 1))
    assert not table.add_frame([9], once=("q", 0))
    assert dict(view) == {2: 3}
    version = db.version
    assert not table.replace_frame([], once=("q", 1)) and db.version == version
    assert table.replace_frame([5, 2], once=("q", 2))
    assert dict(view) == {2: 1, 5: 1}


@pytest.mark.parametrize("once", [("q",), ("q", -1), ("q", True), (0, 1), "q"])
def test_what_is_no_batch_of_a_query_is_refused(once: Any) -> None:
    table = distant(Database(offload=Elsewhere()), [1], int)
    with pytest.raises(PlanError, match="is no batch of a query"):
        table.add_frame([2], once=once)
    assert list(table) == [1]


def test_a_transaction_that_fails_leaves_no_trace() -> None:
    db = Database(offload=Elsewhere())
    table = distant(db, [1], int)
    view = table.distinct().materialize()
    with pytest.raises(ZeroDivisionError), db.transaction():
        table.add(2)
        assert sorted(table) == [1, 2]
        assert sorted(view) == [1]
        raise ZeroDivisionError
    assert sorted(view) == [1] == sorted(table)
    with db.transaction():
        table.add(3)
    assert sorted(view) == [1, 3]


def test_a_keyed_distant_table_replaces_rows_by_scans() -> None:
    db = Database(offload=Elsewhere())
    table = distant(db, [Numbers(1, 10), Numbers(2, 20)], Numbers, key="a")
    count = table.group_by(lambda r: r.b).aggregate(Count()).materialize()
    table.upsert(Numbers(1, 20))
    assert dict(count) == {20: 2}
    table.upsert_frame([Numbers(2, 5), Numbers(3, 5)])
    assert table[3] == Numbers(3, 5) and 9 not in table
    table.delete(3)
    assert dict(count) == {20: 1, 5: 1}
    with pytest.raises(TransactionError, match="a commit of its own"), db.transaction():
        table.upsert(Numbers(1, 1))


def test_typical_mistakes_are_told() -> None:
    with pytest.raises(OffloadError, match="nowhere"):
        Database().spark_table([], int)
    table = distant(Database(offload=Elsewhere()), [1], int)
    with pytest.raises(TableError, match="no key"):
        table.upsert(1)
    with pytest.raises(TableError):
        table.add("one")
