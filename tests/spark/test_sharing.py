"""Views over the same tables: one state, one job per flush, and each what its query gives."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, Max, OffloadError, Sum
from spark_backend import SparkOffload
from spark_backend.cluster.session import PARTITIONS, Session
from spark_backend.fragments.shared import SharedState
from spark_backend.state.tables import StateTables
from tests.spark.fragments import Customer, Order

pytestmark = pytest.mark.usefixtures("either_way")

Views = dict[str, Callable[[Any, Any], Any]]


def joined(o: Any, c: Any) -> Any:
    return o.join(c, on=lambda o, c: o.customer == c.id)


VIEWS: Views = {
    "by town": lambda o, c: (
        joined(o, c).group_by(lambda o, c: c.town).aggregate(Count(), Sum(lambda o, c: o.amount))
    ),
    "by tag": lambda o, c: (
        joined(o, c).group_by(lambda o, c: o.tag).aggregate(Max(lambda o, c: o.id))
    ),
    "of all": lambda o, c: joined(o, c).aggregate(Count()),
    "tags": lambda o, c: joined(o, c).select(lambda o, c: (o.tag, c.town)).distinct(),
    "dear": lambda o, c: (
        o.where(lambda o: o.amount > 0.2)
        .join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: o.id)
        .aggregate(Count())
    ),
}


class History:
    """Two tables of a database, whose rows come and go."""

    def __init__(self, db: Database, seed: int) -> None:
        self._random = Random(seed)
        self.orders = db.table(Order, name="orders")
        self.customers = db.table(Customer, name="customers")
        self.rows: tuple[list[Any], list[Any]] = ([], [])

    def commit(self, changes: int = 3) -> None:
        for _ in range(changes):
            place = self._random.randrange(2)
            table, rows = (self.orders, self.customers)[place], self.rows[place]
            if rows and self._random.random() < 0.3:
                table.remove(rows.pop(self._random.randrange(len(rows))))
            else:
                rows.append(self._row(place))
                table.add(rows[-1])

    def _row(self, place: int) -> Any:
        draw = self._random
        tag = draw.choice(["x", None])
        if place == 0:
            return Order(draw.randrange(6), draw.randrange(4), draw.choice([0.1, 0.5, -3.0]), tag)
        return Customer(draw.randrange(4), draw.choice("ab"), 1.0, tag)

    def view(self, name: str) -> Any:
        return VIEWS[name](self.orders, self.customers).materialize(name)


def check(*views: Any) -> None:
    for view in views:
        view.verify()


def states(db: Database) -> list[SharedState]:
    """Return the distinct states of the parts of a database."""
    remotes = [node.operator.remote for node in db._engine.graph.remotes]
    return list(dict.fromkeys(remote.shared for remote in remotes))


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the flushes that wrote anything."""
    numbers: list[int] = []
    real = StateTables._add

    def add(self: StateTables, number: int, *others: Any) -> None:
        numbers.append(number)
        real(self, number, *others)

    monkeypatch.setattr(StateTables, "_add", add)
    return numbers


def test_views_that_move_one_after_the_other_share_what_they_have_in_common(
    offload: SparkOffload, flushes: list[int]
) -> None:
    with Database(offload=offload) as db:
        history, views = History(db, 1), list[Any]()
        history.commit(20)
        for name in VIEWS:
            views.append(history.view(name))
            views[-1].offload()
            history.commit()
            check(*views)
        (state,) = states(db)
        kinds = Counter(name.rstrip("0123456789abcdef") for name in state.tables.manifest.tables)
        assert kinds["by"] == 3  # orders and customers by their key, and the dear orders
        seen, told = Counter(views[0]), Counter[Any]()
        with views[0].subscribe(lambda delta: told.update(dict(delta.items()))):
            flushes.clear()
            for _ in range(3):
                history.commit()
                check(*views)
            assert len(flushes) == 3
        assert {r: n for r, n in (seen + told).items() if n} == Counter(views[0])


@pytest.mark.quick
def test_what_is_committed_and_flushed_while_a_view_is_loaded_is_taken_in_once(
    offload: SparkOffload, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(offload=offload) as db:
        history = History(db, 8)
        views = [history.view(name) for name in ("by town", "dear", "tags")]
        history.commit(20)
        views[0].offload()
        flushes: list[threading.Thread] = []
        real = SharedState._load

        def load(self: SharedState, member: Any, part: Any) -> None:
            for act in (history.commit, db.flush):  # the flush waits for what is being loaded
                flushes.append(threading.Thread(target=act))
                flushes[-1].start()
                flushes[-1].join(0.2 if act == db.flush else 30)
            history.commit()
            real(self, member, part)

        monkeypatch.setattr(SharedState, "_load", load)
        for view in views[1:]:
            view.offload()
        for thread in flushes:
            thread.join(60)
            assert not thread.is_alive()
        check(*views)
        history.commit()
        check(*views)


@pytest.mark.usefixtures("by_jobs")
def test_flushes_follow_the_tasks_that_run_at_a_time(
    offload: SparkOffload, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = SparkOffload(session=offload.session.spark)
    with Database(offload=own) as db:
        history = History(db, 9)
        view = history.view("by town")
        history.commit()
        view.offload()
        assert own.session.spark.conf.get(PARTITIONS) == "2"
        monkeypatch.setattr(Session, "_tasks_of", lambda self, session: 5)
        history.commit()
        check(view)
        assert own.session.spark.conf.get(PARTITIONS) == "5"


def test_a_view_that_closes_takes_along_what_no_other_needs(offload: SparkOffload) -> None:
    with Database(offload=offload) as db:
        history = History(db, 2)
        views = [history.view(name) for name in ("by town", "by tag", "tags")]
        for view in views:
            view.offload()
        history.commit(30)
        check(*views)
        (state,) = states(db)
        whole = set(state.tables.manifest.tables)
        views[1].recall()
        views[2].close()
        history.commit()
        check(*views[:2])
        left = set(state.tables.manifest.tables)
        assert left < whole
        assert left == {name for name in left if not name.startswith(("values", "rows"))}
        views[1].offload()
        history.commit()
        check(*views[:2])
        assert states(db) == [state]


def test_after_a_restart_views_go_on_together_with_more_or_fewer(
    offload: SparkOffload, tmp_path: Path
) -> None:
    def opened() -> SparkOffload:
        return SparkOffload(session=offload.session.spark, checkpoint=tmp_path)

    def again(seed: int, names: list[str], rows: Any) -> tuple[list[bool], Any]:
        with Database(offload=opened()) as db:
            history = History(db, seed)
            tables: tuple[Any, Any] = (history.orders, history.customers)
            for table, kept in zip(tables, rows, strict=True):
                table.add_all(kept)
            history.rows = rows
            views, resumed = list[Any](), list[bool]()
            for name in names:
                views.append(history.view(name))
                views[-1].offload()
                remote = db._engine.graph.remotes[-1].operator.remote
                resumed.append(remote.resumed is not None)
            check(*views)
            history.commit()
            check(*views)
            return resumed, history.rows

    first, rows = again(3, ["by town", "tags"], ([], []))
    assert first == [False, False]
    more, rows = again(4, ["tags", "by town", "of all"], rows)
    assert more == [True, True, False]
    fewer, rows = again(5, ["of all"], rows)
    assert fewer == [True]
    last, rows = again(6, ["by town", "of all"], rows)
    assert last == [False, True]


def test_a_callable_that_raises_holds_those_up_that_share_until_its_view_leaves(
    offload: SparkOffload,
) -> None:
    def halves(order: Order) -> int:
        return 10 // order.id

    with Database(offload=offload) as db:
        history = History(db, 7)
        history.customers.add(Customer(1, "a", 1.0, None))
        history.orders.add(Order(5, 1, 0.5, None))
        good = history.view("by town")
        odd = joined(history.orders, history.customers).select(lambda o, c: halves(o)).distinct()
        bad = odd.materialize("bad")
        good.offload()
        bad.offload()
        assert len(states(db)) == 1
        zero = Order(0, 1, 0.5, None)
        history.orders.add(zero)
        with pytest.raises(OffloadError, match="ZeroDivisionError"):
            list(good)
        history.orders.add(Order(2, 1, 2.0, None))
        history.orders.remove(zero)
        check(good, bad)
        history.orders.add(zero)
        with pytest.raises(OffloadError, match="ZeroDivisionError"):
            list(bad)
        bad.close()
        check(good)
        assert good["a"][1] == 3
