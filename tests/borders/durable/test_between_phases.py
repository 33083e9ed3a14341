"""Failures while a commit is written: the statement that caused the commit is undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database
from reactive.borders.durable.store import MemoryStore, Record


class Order(NamedTuple):
    """A row with a key."""

    id: int
    town: str


class Failing(MemoryStore):
    """A store that calls something before it writes."""

    act: Callable[[], None] | None = None

    def write(self, records: Sequence[Record]) -> None:
        if self.act is not None:
            self.act()
        super().write(records)


def _in_town(town: str) -> Callable[[Order], bool]:
    return lambda o: o.town == town


@pytest.mark.parametrize("kind", ["one", "both", "many"])
@pytest.mark.parametrize("routed", [False, True])
def test_what_the_store_raises_undoes_the_step_and_is_not_told_as_of_a_query(
    kind: str, routed: bool
) -> None:
    store, heard = Failing(), list[Any]()
    with Database(store=store) as db:
        orders = db.table(Order, key="id", name="orders")
        words = db.table(str, name="words")
        counts = orders.group_by(lambda o: o.town).aggregate(Count()).materialize()
        towns = [f"town {n}" for n in range(40 * routed)]
        views = [orders.where(_in_town(town)).materialize() for town in towns]
        joined = words.join(orders, on=lambda w, o: w == o.town).materialize()
        held = counts.subscribe(heard.append)

        def change(n: int) -> None:
            rows = [Order(100 * n + each, f"town {each % 3}") for each in range(30)]
            if kind == "one":
                orders.add(rows[0])
            elif kind == "many":
                orders.add_all(rows)
            else:
                with db.transaction():
                    orders.add(rows[0])
                    words.add(f"word {n}")

        def state() -> Any:
            return (set(orders), list(words), dict(counts), [*map(set, views)], set(joined))

        for n in range(20):
            change(n)
        for n in range(20, 24):
            before, version, told = state(), db.version, len(heard)

            def fail(version: int = version, told: int = told) -> None:
                assert db._engine.graph.version == version, "it is published before it is written"
                assert len(heard) == told
                raise RuntimeError("the store fails")

            store.act = fail
            with pytest.raises(RuntimeError, match="the store fails") as caught:
                change(n)
            assert not getattr(caught.value, "__notes__", [])
            assert (state(), db.version, len(heard)) == (before, version, told)
            store.act = None
            change(n)
            assert (db.version, len(heard)) == (version + 1, told + 1)
            assert len(orders) == sum(dict(counts).values())
            assert len(orders) == len(before[0]) + (30 if kind == "many" else 1)
            assert store.version() == db.version
        held.close()
