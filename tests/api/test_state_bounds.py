"""Bounds of state: what `explain().bounded` says, beside the rows that operators hold."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import (
    Avg,
    Count,
    Database,
    Max,
    PlanError,
    Sum,
    UnboundedStateWarning,
    hopping,
    session,
    tumbling,
)
from tests.budget import SEED, share_of


class Event(NamedTuple):
    key: int
    at: int


class Tables:
    """Two streams and a table."""

    def __init__(self) -> None:
        self.db = Database()
        self.a, self.b = (self.db.stream(Event, at="at", lateness=20, name=n) for n in ("a", "b"))
        self.table = self.db.table(Event, name="table")
        self.table.add_all(Event(n, n) for n in range(5))


Query = Callable[[Any], Any]
BOUNDED: dict[str, Query] = {
    "where": lambda t: t.a.where(lambda e: e.key > 2).select(lambda e: (e.at, e.key)),
    "lookup": lambda t: t.a.lookup(t.table, on="key"),
    "windows": lambda t: (
        t.a.window(tumbling(10), at="at").group_by(lambda e, w: (e.key, w)).aggregate(Count())
    ),
    "starts of windows": lambda t: (
        t.a.window(hopping(10, every=5), at=lambda e: e.at)
        .select(lambda e, w: (w.start, e.key))
        .group_by(lambda r: r[0])
        .aggregate(Max(lambda r: r[1]))
    ),
    "times": lambda t: t.a.group_by("at").aggregate(Count()),
    "groups of groups": lambda t: (
        t.a.group_by(lambda e: (e.key, e.at))
        .aggregate(Count())
        .group_by(lambda k, n: k[1] + 3)
        .aggregate(Count())
    ),
    "sessions": lambda t: (
        t.a.window(session(3, by="key"), at="at").group_by(lambda e, w: w.end).aggregate(Count())
    ),
    "whole": lambda t: t.a.aggregate(Count(), Sum("key"), Avg("at")),
    "union": lambda t: t.a.union_all(t.b).group_by(lambda e: e.at).aggregate(Count()),
    "interval": lambda t: t.a.join(t.b, on=lambda a, b: a.key == b.key and abs(a.at - b.at) < 5),
    "three": lambda t: t.a.join(t.b, on=lambda a, b: a.at == b.at).join(
        t.a, on=lambda a, b, c: b.at == c.at
    ),
    "left": lambda t: t.a.left_join(t.b, on=lambda a, b: b.at <= a.at < b.at + 9, emit="closed"),
    "distinct": lambda t: t.a.distinct(),
    "distinct windows": lambda t: (
        t.a.window(tumbling(9), at="at").select(lambda e, w: (e.key, w)).distinct()
    ),
    "distinct pairs": lambda t: t.a.select(lambda e: (e.key, e.at + 3)).distinct(),
    "set union": lambda t: t.a.union(t.b),
    "difference": lambda t: t.a.difference(t.b),
    "bag difference": lambda t: t.a.difference_all(t.b).select(lambda e: e.key),
    "intersection": lambda t: t.a.select(lambda e: (e.at, e.key)).intersection(
        t.b.select(lambda e: (e.at, e.key))
    ),
    "bag intersection": lambda t: t.a.intersection_all(t.b),
    "asof": lambda t: t.a.asof_join(t.b, on="key", at="at", of=lambda b: b.at),
    "asof ahead": lambda t: t.a.left_asof_join(
        t.b, on="key", at="at", of=lambda b: b.at, direction="nearest", tolerance=9
    ),
    "final": lambda t: t.a.group_by("at").aggregate(Count()).when_closed(lambda at, n: at),
    "union of pairs": lambda t: (
        t.a.semi_join(t.b, on="at")
        .window(tumbling(7), at=lambda e: e.at)
        .anti_join(
            t.b.window(tumbling(7), at=lambda e: e.at).where(lambda e, w: e.key == 9),
            on=lambda e, w, other: w == other[1],
        )
    ),
}
UNBOUNDED: dict[str, tuple[Query, str]] = {
    "keys": (lambda t: t.a.group_by(lambda e: e.at // 2).aggregate(Count()), "into the key"),
    "values": (lambda t: t.a.aggregate(Max("at")), "put a window"),
    "table": (lambda t: t.a.join(t.table, on="key"), "lookup"),
    "no interval": (lambda t: t.a.join(t.b, on="key"), "bound the times"),
    "one bound": (lambda t: t.a.join(t.b, on=lambda a, b: a.at <= b.at - 90), "bound the times"),
    "distinct": (lambda t: t.a.select(lambda e: e.at * 2).distinct(), "keep the time"),
    "order": (lambda t: t.a.order_by("at").limit(5), "aggregate windows"),
    "asof": (
        lambda t: t.a.asof_join(t.b, on="key", at="at", of="at", direction="forward"),
        "tolerance=",
    ),
    "asof of a table": (
        lambda t: t.a.left_asof_join(t.table, on="key", at="at", of="at"),
        "lookup",
    ),
    "difference": (
        lambda t: t.a.select(lambda e: e.at * 2).difference(t.b.select(lambda e: -e.at)),
        "keep the time",
    ),
    "watermark": (
        lambda t: (
            t.a.group_by("at")
            .aggregate(Count())
            .join(t.a.watermark, on=lambda at, n, mark: at < mark)
        ),
        "when_closed",
    ),
}


def _held(query: Query, counts: tuple[int, ...], *, in_bytes: bool = False) -> list[int]:
    """Return the rows that operators hold after some numbers of events, of which some are late."""
    tables, rnd = Tables(), random.Random(SEED)
    told = query(tables).subscribe(lambda delta: None)
    graph = tables.db._engine.graph
    held, done = list[int](), 0
    for count in counts:
        for now in range(done, count, 10):
            for stream in (tables.a, tables.b):
                stream.add_all(Event(rnd.randrange(9), now - rnd.randrange(25)) for _ in range(5))
        done = count
        held.append(
            sum(
                node.operator.footprint()[in_bytes]
                for node in graph._nodes.values()
                if hasattr(node.operator, "footprint")
            )
        )
    told.close()
    return held


@pytest.mark.parametrize("name", BOUNDED)
def test_bounded_state_is_constant(name: str) -> None:
    assert BOUNDED[name](Tables()).explain().bounded
    early, late = _held(BOUNDED[name], (1_000, 4_000))
    assert late < 1.4 * early + 20, name


@pytest.mark.long
@pytest.mark.parametrize("name", share_of([*BOUNDED], "bounds", 2))
def test_bounded_state_is_constant_over_many_events(name: str) -> None:
    early, late = _held(BOUNDED[name], (10_000, 40_000))
    assert late < 1.1 * early + 20, name


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
@pytest.mark.parametrize("name", UNBOUNDED)
def test_state_that_is_not_bounded_grows_and_is_named(name: str) -> None:
    query, remedy = UNBOUNDED[name]
    explained = query(Tables()).explain()
    ((operator, found),) = explained.bounded.unbounded
    assert remedy in found
    assert not explained.bounded
    assert f"not bounded: {operator}\n  {found}" in explained
    assert (
        operator in ("distinct", "difference")
        or "asof" in operator
        or "test_state_bounds.py:" in operator
    )
    early, late = _held(query, (400, 3_200), in_bytes=name == "values")
    assert late > 2 * early, name


def test_a_query_whose_state_grows_warns_once_where_it_is_made() -> None:
    tables = Tables()
    grows = tables.a.group_by("key").aggregate(Count())
    with pytest.warns(UnboundedStateWarning, match="grows with the events") as found:
        kept = [grows.materialize(), grows.subscribe(print)]
    assert [each.filename == __file__ for each in found] == [True, True]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        kept += [grows.materialize() for _ in range(3)]
    assert len(told) == 1
    with pytest.warns(UnboundedStateWarning):
        view = grows.order_by(lambda key, n: key).materialize()
    assert not view.explain().bounded
    kept += [tables.table.group_by("key").aggregate(Count()).materialize(), view]
    assert tables.table.distinct().explain().bounded


def test_rows_of_a_query_are_emitted_when_they_change_no_more() -> None:
    tables, rnd = Tables(), random.Random(SEED)
    both = tables.a.union_all(tables.b).window(tumbling(10), at=lambda e: e.at)
    final = both.group_by(lambda e, w: (e.key, w)).aggregate(Count()).when_closed(lambda k, n: k[1])
    rows, removed = final.materialize(), list[Any]()
    told = rows.subscribe(lambda delta: removed.extend(delta.removed))
    seen: list[Event] = []
    for now in range(0, 600, 7):
        for stream, behind in ((tables.a, 0), (tables.b, 30)):
            batch = [Event(rnd.randrange(3), now - behind - rnd.randrange(30)) for _ in range(3)]
            mark = stream.watermark.first()
            seen += [event for event in batch if mark is None or event.at >= mark]
            stream.add_all(batch)
        marks: list[Any] = [stream.watermark.first() for stream in (tables.a, tables.b)]
        counts = Counter((e.key, e.at // 10 * 10) for e in seen)
        closed = {key: n for key, n in counts.items() if key[1] + 10 <= min(marks)}
        assert {(key, w.start): n for (key, w), n in rows} == closed
    assert not removed and len(rows) > 100
    told.close()


def test_rows_that_nothing_closes_are_refused() -> None:
    tables = Tables()
    with pytest.raises(PlanError, match="nothing says when rows of stream 'a' change no more"):
        tables.a.when_closed("key")
    with pytest.raises(PlanError, match="when_closed: nothing says"):
        tables.table.when_closed(lambda e: e.at)
