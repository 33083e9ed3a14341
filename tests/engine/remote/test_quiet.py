"""The results of a remote part are fetched only if a subscriber in the process needs them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from reactive import Count, Database, Sum
from reactive.engine.collections.zset import Pairs
from reactive.engine.remote.fragments import Fragment
from reactive.engine.remote.remote import Entry, ExternalInput, Remote
from tests.borders.offload.elsewhere import Elsewhere, Failing
from tests.budget import cases

NO_VIEWS: Mapping[str, str] = MappingProxyType({})


class Telling(Failing):
    """Can tell afterwards how the last `apply` has changed the output, and not that before it."""

    def __init__(self, part: Fragment, of: Elsewhere) -> None:
        super().__init__(part, of)
        self.asked: list[int] = []
        self._last: tuple[int, Pairs] = (-1, ())

    def apply(
        self,
        number: int,
        entries: Sequence[Entry],
        fed: Sequence[ExternalInput] = (),
        *,
        quiet: bool = False,
    ) -> Pairs:
        pairs = super().apply(number, entries, fed, quiet=quiet)
        self._last = (number, pairs)
        return () if quiet else pairs

    def told(self, number: int) -> Pairs:
        assert number == self._last[0], "an earlier one, of which nothing is known any more"
        self.asked.append(number)
        return self._last[1]

    def size(self) -> int:
        return sum(weight for _, weight in self.contents())


class Later(Elsewhere):
    """Move parts into remotes that report changes later."""

    def begin(
        self, fragment: Fragment, name: str, views: Mapping[str, str] = NO_VIEWS, of: object = None
    ) -> Remote:
        remote = Telling(fragment, self)
        self.begun.append(remote)
        return remote


def moved() -> tuple[Later, Database, Any, Any]:
    offload = Later()
    db = Database(offload=offload)
    table: Any = db.table(tuple, name="orders")
    view = table.group_by(lambda o: o[0]).aggregate(Count(), Sum(lambda o: o[1])).materialize()
    view.offload()
    return offload, db, table, view


def test_nothing_is_fetched_where_nobody_listens() -> None:
    _, db, table, view = moved()
    operator = view._node.inputs[0].operator
    for n in range(20):
        table.add((n % 3, n))
        db.flush()
        assert len(view) == min(n + 1, 3)
    assert operator.fetched == 0 and operator.flushes == 20
    with view.subscribe(lambda delta: None):
        table.add((0, 1))
        db.flush()
    assert operator.fetched == 2
    table.add((0, 1))
    db.flush()
    assert operator.fetched == 2
    view.verify()


def test_who_subscribes_while_a_flush_is_under_way_misses_nothing() -> None:
    offload, db, table, view = moved()
    table.add(("ann", 1))
    db.flush()
    offload.let.clear()
    offload.applying.clear()
    table.add(("ann", 2))
    flushing = threading.Thread(target=db.flush)
    flushing.start()
    assert offload.applying.wait(30)
    heard: list[Any] = []
    subscription = view.subscribe(heard.append)
    offload.let.set()
    flushing.join()
    assert [sorted(delta.items()) for delta in heard] == [[(("ann", 1, 1), -1), (("ann", 2, 3), 1)]]
    assert sorted(view) == [("ann", 2, 3)]
    subscription.close()


def test_a_flush_that_fails_after_a_quiet_part_loses_nothing_of_it() -> None:
    _, db, table, view = moved()
    halves = view.relation.select(lambda customer, n, total: 12 / (44 - total)).materialize()
    table.add((1, 4))
    assert list(halves) == [0.3]
    table.add((1, 40))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            db.flush()
        assert view.read(stale_ok=True) == [(1, 1, 4)]
        assert len(view._contents) == 1
    table.add((1, -16))
    assert sorted(halves) == [0.75]
    assert sorted(view) == [(1, 3, 28)]


def test_who_listens_now_and_then_hears_what_the_view_has_become() -> None:
    for seed in cases(*range(4)):
        draw = Random(seed)
        _, db, table, view = moved()
        rows: Counter[Any] = Counter()
        subscription: Any = None
        heard: Counter[Any] = Counter()
        for _ in range(40):
            row = (draw.randrange(4), draw.randrange(3))
            if rows[row] and draw.random() < 0.5:
                table.remove(row)
                rows[row] -= 1
            else:
                table.add(row)
                rows[row] += 1
            if draw.random() < 0.3 and subscription is None:
                heard.clear()
                subscription = view.subscribe(
                    lambda delta, heard=heard: heard.update(dict(delta.items())), snapshot=True
                )
            elif draw.random() < 0.3 and subscription is not None:
                subscription.close()
                subscription = None
            db.flush()
            wanted = Counter(
                (key, sum(n for (k, _), n in rows.items() if k == key), total)
                for key in {k for (k, _), n in rows.items() if n}
                for total in [sum(v * n for (k, v), n in rows.items() if k == key)]
            )
            assert Counter(view) == wanted
            assert len(view) == wanted.total()
            if subscription is not None:
                assert {row: n for row, n in heard.items() if n} == wanted
