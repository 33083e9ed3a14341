"""Former faults of the engine, each as the program that found it."""

from __future__ import annotations

import asyncio
import gc
import pickle
import re
import weakref
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from optimizer.callables.captures import freeze
from optimizer.callables.opaque import impurity
from reactive import (
    Count,
    Database,
    Multiset,
    StaleCaptureWarning,
    Sum,
    TableError,
    TransactionError,
)
from tests.moody import Moods


@dataclass(frozen=True)
class Row:
    key: int
    value: Any = ()


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("method", ["upsert", "upsert_all"])
def test_an_upsert_that_is_refused_changes_nothing(method: str, inside: bool) -> None:
    db = Database()
    table: Any = db.table(Row, key="key")
    view = table.materialize()
    table.add(Row(1))
    bad = Row(1, [])
    with pytest.raises(TableError, match="its field 'value' is a list"):
        if inside:
            with db.transaction():
                getattr(table, method)([bad] if method == "upsert_all" else bad)
        else:
            getattr(table, method)([bad] if method == "upsert_all" else bad)
    assert list(table) == list(view) == [Row(1)]


def test_a_relation_that_is_made_again_sees_the_container_of_now() -> None:
    table = Database().table(int)
    table.add_all([1, 4, 6])
    allowed = [1]

    def make() -> Any:
        return table.where(lambda r: r in allowed).materialize()

    first = make()
    allowed.append(4)
    second = make()
    assert (sorted(first), sorted(second)) == ([1], [1, 4])


def test_a_relation_that_is_made_again_sees_the_attribute_of_now() -> None:
    table = Database().table(int)
    table.add_all([1, 4, 6])

    class Slider:
        limit = 0
        view: Any = None

        def show(self, limit: int) -> None:
            self.limit = limit
            self.view = table.where(lambda r: r > self.limit).distinct().materialize()

        def passes(self, row: int) -> bool:
            return row > self.limit

    slider = Slider()
    slider.show(3)
    slider.show(5)
    assert list(slider.view) == [6]
    by_method = table.where(slider.passes).distinct().materialize()
    slider.limit = 0
    again = table.where(slider.passes).distinct().materialize()
    assert (sorted(by_method), sorted(again)) == ([6], [1, 4, 6])


def test_an_equal_total_of_another_form_is_not_given_out_twice() -> None:
    table = Database().table(tuple)
    totals = table.group_by(lambda r: r[0]).aggregate(Sum(lambda r: r[1]))
    view = totals.select(lambda key, total: f"{key}: {total}").materialize()
    for value in ("1.0", "0.00", "2"):
        table.add(("a", Decimal(value)))
    assert view.items() == [("a: 3.00", 1)]
    table.clear()
    assert view.items() == []


def test_a_view_of_an_unstored_table_made_in_a_transaction_gets_all_of_it() -> None:
    db = Database()
    table = db.table(int, stored=False)
    with db.transaction():
        table.add(1)
        view = table.materialize()
        table.add(2)
    assert sorted(view) == [1, 2]


NOTHING: list[int] = []


def find(row: int) -> Any:
    return NOTHING if row > 1 else row


def test_an_empty_container_may_be_a_sentinel() -> None:
    table = Database().table(int)
    table.add_all([1, 2])
    assert list(table.where(lambda r: find(r) is NOTHING).materialize()) == [2]


def test_an_equal_new_container_is_no_change() -> None:
    table = Database().table(int)
    allowed = [1]

    def rebind() -> None:
        nonlocal allowed
        allowed = [1]

    view = table.where(lambda r: r in allowed).materialize()
    rebind()
    table.add(1)
    assert list(view) == [1]


def test_an_empty_container_that_is_filled_is_reported() -> None:
    table = Database().table(int)
    allowed: set[int] = set()
    view = table.where(lambda r: r in allowed).materialize()
    allowed.add(1)
    with pytest.warns(StaleCaptureWarning, match="changed in place"):
        table.add(1)
    assert view.closed is False


def test_an_interrupt_in_one_subscriber_does_not_take_the_delta_from_others() -> None:
    table = Database().table(int)
    heard: list[int] = []

    def interrupt(delta: Any) -> None:
        if delta.version == 1:
            raise KeyboardInterrupt

    first = table.subscribe(interrupt)
    second = table.subscribe(lambda delta: heard.append(delta.version))
    with pytest.raises(KeyboardInterrupt):
        table.add(1)
    table.add(2)
    assert heard == [1, 2]
    first.close()
    second.close()


def test_closing_after_the_event_loop_has_ended_closes() -> None:
    db = Database()
    table = db.table(int)
    changes = table.changes()

    async def wait() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(changes.__anext__(), 0.01)

    asyncio.run(wait())
    table.add(1)
    db.close()
    assert "closed" in repr(db)


def test_two_tasks_may_wait_for_the_same_changes() -> None:
    table = Database().table(int)

    async def main() -> list[Any]:
        changes = table.changes()
        waiting = [asyncio.create_task(changes.__anext__()) for _ in range(2)]
        await asyncio.sleep(0)
        table.add(1)
        table.add(2)
        return [delta.added for delta in await asyncio.gather(*waiting)]

    assert sorted(asyncio.run(asyncio.wait_for(main(), 10))) == [(1,), (2,)]


class Moody(Moods):
    """All of them have the same hash."""

    def __hash__(self) -> int:
        self.mood()
        return 1


def test_a_key_or_row_that_raises_at_any_comparison_leaves_table_and_views_agreed() -> None:
    for at in range(1, 120):
        Moody.at = 0
        db = Database()
        table = db.table(Moody, identity=True)
        counts = table.group_by(lambda m: m).aggregate(Count()).materialize()
        views = [table.materialize(), counts, table.order_by(lambda m: m.value).materialize()]
        table.add(Moody(1))
        Moody.calls, Moody.at = 0, at
        try:
            with db.transaction():
                table.add(Moody(2))
                table.add(Moody(3))
        except ValueError:
            pass
        Moody.at = 0
        table.add(Moody(4))
        for view in views:
            view.verify()


def test_a_view_in_its_own_callables_reach_goes_with_its_database() -> None:
    class App:
        limit = 3
        view: Any = None

    def run() -> weakref.ref[Database]:
        db, app = Database(), App()
        app.view = db.table(int).where(lambda r: r > app.limit).materialize()
        return weakref.ref(db)

    gone = run()
    gc.collect()
    assert gone() is None


def test_a_closed_view_gives_up_its_rows() -> None:
    table = Database().table(Row)
    view = table.materialize()
    table.add(Row(1))
    rows = [weakref.ref(row) for row in table]
    view.close()
    table.clear()
    gc.collect()
    assert [row() for row in rows] == [None]


def test_a_delivered_delta_is_not_kept() -> None:
    table = Database().table(Row)
    views = [table.materialize(), table.order_by(lambda r: r.key).limit(1).materialize()]
    table.add(Row(1))
    rows = [weakref.ref(row) for row in table]
    table.clear()
    gc.collect()
    assert [row() for row in rows] == [None]
    assert all(len(view) == 0 for view in views)


def test_the_order_of_tables_in_transactions_does_not_pile_up() -> None:
    db = Database()
    tables = [db.table(int) for _ in range(3)]
    views = [table.materialize() for table in tables]
    for shift in range(3):
        with db.transaction():
            for table in tables[shift:] + tables[:shift]:
                table.add(shift)
    assert len(db._engine.graph._schedules) == 1
    assert len(views) == 3


def test_the_collector_is_back_on_while_subscribers_run() -> None:
    table = Database().table(int)
    seen: list[bool] = []
    with table.subscribe(lambda delta: seen.append(gc.isenabled())):
        table.add_all([1, 2])
    assert seen == [True]


def test_rows_that_only_have_equality_stand_in_order_of_arrival() -> None:
    table = Database().table(object)
    view = table.order_by(lambda r: 0).materialize()
    rows: list[Any] = [range(3), range(1, 4), re.compile("a"), list[int], (range(2), 1)]
    for row in rows:
        table.add(row)
    assert len(view) == 5
    assert next(iter(view)) == (range(2), 1)
    table.clear()
    assert len(view) == 0


def test_local_names_of_impure_functions_are_only_names() -> None:
    words = ("a", "b")

    def gap(row: Any) -> int:
        open = len(row)
        return max(open - p for p in (1, 2))

    assert impurity(lambda input: any(w in input for w in words)) is None
    assert impurity(gap) is None


def test_a_frozen_function_still_knows_its_package() -> None:
    space: dict[str, Any] = {"__package__": "email", "__name__": "email.fake", "LIMIT": 1}
    exec("def f(row):\n    from .charset import SHORTEST\n    return SHORTEST + LIMIT", space)
    frozen, captures = freeze(space["f"])
    assert [c.name for c in captures] == ["LIMIT"]
    assert isinstance(frozen(None), int)


def test_a_function_that_looks_at_its_globals_keeps_them() -> None:
    space: dict[str, Any] = {"LIMIT": 1, "OTHER": 2}
    exec("def f(row):\n    return globals()['OTHER'] + LIMIT", space)
    assert freeze(space["f"])[0](None) == 3


def test_a_child_task_cannot_wait_for_the_transaction_that_waits_for_it() -> None:
    db = Database()
    table = db.table(int)

    async def child() -> None:
        async with db.transaction():
            table.add(1)

    async def main() -> None:
        async with db.transaction():
            await asyncio.create_task(child())

    with pytest.raises(TransactionError, match="waits for this task"):
        asyncio.run(asyncio.wait_for(main(), 10))
    assert len(table) == 0
    table.add(2)


def test_an_unhashable_row_in_a_transaction_is_named_too() -> None:
    db = Database()
    table = db.table(tuple)
    with db.transaction(), pytest.raises(TableError, match="its element 1 is a list"):
        table.add((1, []))


def test_a_multiset_hashes_anew_in_another_process() -> None:
    bag = Multiset({"a": 2})
    hash(bag)
    assert pickle.loads(pickle.dumps(bag))._hash is None


def test_a_deep_query_is_made_explained_and_dropped() -> None:
    table = Database().table(int)
    relation: Any = table
    for _ in range(1500):
        relation = relation.where(lambda n: n > 0)
    view = relation.materialize()
    table.add_all([0, 1])
    assert list(view) == [1]
    assert relation.explain(optimized=False).count("\n") == 1500
    view.verify()


def test_a_relation_that_reads_another_twice_does_not_double_with_each_level() -> None:
    table = Database().table(int)
    asked: list[int] = []

    class Ask:
        def __call__(self, n: int) -> int:
            asked.append(n)
            return n

    relation: Any = table
    for _ in range(16):
        relation = relation.union_all(relation.where(lambda n: n < 0)).select(Ask())
    table.add(1)
    view = relation.materialize()
    assert len(asked) == 16
    assert relation.explain(optimized=False).count("\n") < 100
    view.verify()
