"""Zoned datetimes are instants: the hour that a clock change repeats is two hours everywhere.

Five zones, and the instants around their clock changes: each quarter of an hour of four hours.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pyarrow as pa
import pytest

from optimizer.kinds.instants import instant
from reactive import Bag, Count, CountDistinct, Database, col, tracked
from reactive import Max as Largest
from reactive.engine.collections.instants import in_zone, local_time, of_local_time
from reactive.engine.collections.zset import canonical
from reactive.errors import PlanError, TableError

CHANGES = {
    "Europe/Berlin": (datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1)),
    "America/New_York": (datetime(2024, 3, 10, 7), datetime(2024, 11, 3, 6)),
    "Australia/Lord_Howe": (datetime(2024, 4, 6, 15), datetime(2024, 10, 5, 15, 30)),
    "Africa/Casablanca": (datetime(2024, 3, 10, 2), datetime(2024, 4, 14, 2)),
    "America/St_Johns": (datetime(2024, 3, 10, 5, 30), datetime(2024, 11, 3, 4, 30)),
}
"""The clock changes of a year, in UTC."""
BERLIN = ZoneInfo("Europe/Berlin")
FIRST, SECOND = (datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1))


def around(zone: str) -> list[datetime]:
    """The instants around the changes of a zone, as datetimes of this zone."""
    quarters = [timedelta(minutes=15 * n) for n in range(-8, 9)]
    return [
        (change.replace(tzinfo=UTC) + quarter).astimezone(ZoneInfo(zone))
        for change in CHANGES[zone]
        for quarter in quarters
    ]


@dataclass(frozen=True, slots=True)
class Plain:
    id: int
    t: datetime


class Named(NamedTuple):
    id: int
    t: datetime


class Struct(msgspec.Struct, frozen=True):
    id: int
    t: datetime


@attrs.frozen
class Slotted:
    id: int
    t: datetime | None


class Untyped(NamedTuple):
    id: Any
    t: Any


CLASSES: list[Callable[[int, datetime], Any]] = [Plain, Named, Struct, Slotted, Untyped]


@pytest.mark.parametrize("zone", CHANGES)
def test_canonical_datetimes_are_equal_ordered_and_hashed_as_instants(zone: str) -> None:
    local = [canonical(t) for t in around(zone)]
    in_utc = [t.astimezone(UTC) for t in around(zone)]
    for one, its in zip(local, in_utc, strict=True):
        for other, others in zip(local, in_utc, strict=True):
            assert (one == other) is (its == others)
            assert (one < other) is (its < others)
        assert one == its
        assert hash(one) == hash(its)
        assert one.isoformat() == its.astimezone(ZoneInfo(zone)).isoformat()
    assert len(set(local) | set(in_utc)) == len(in_utc)


@pytest.mark.parametrize("zone", CHANGES)
def test_local_times_come_back_but_those_that_repeat(zone: str) -> None:
    for t in around(zone):
        back = of_local_time(local_time(t, zone), zone)
        twice = canonical(t).tzinfo.__class__ is timezone
        assert in_zone(t, zone) == canonical(t)
        assert back == canonical(t) or (twice and back - canonical(t) <= timedelta(hours=1))


def test_what_is_sure_stays_the_same_object() -> None:
    sure = [
        datetime(2024, 10, 27, 2, 30, fold=1),
        datetime(2024, 10, 27, 2, 30, tzinfo=UTC),
        datetime(2024, 10, 27, 4, 30, tzinfo=BERLIN),
        datetime(2024, 10, 27, 4, 30, fold=1, tzinfo=BERLIN),
        datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Asia/Tokyo")),
    ]
    for value in sure:
        assert canonical(value) is value
    assert canonical((1, FIRST)) == (1, instant(FIRST))
    assert canonical(Plain(1, sure[2])).t is sure[2]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_table_tells_the_two_hours_apart(kind: Callable[[int, datetime], Any]) -> None:
    db = Database()
    table = db.table(kind, name="t")  # type: ignore[call-overload]
    by_time = table.group_by(lambda r: r.t).aggregate(Count()).materialize()
    last = table.aggregate(Largest(lambda r: r.t), CountDistinct(lambda r: r.t)).materialize()
    later = table.select(lambda r: r.t + timedelta(days=1)).distinct().materialize()
    table.add_all([kind(1, FIRST), kind(1, SECOND)])
    table.add(kind(1, SECOND.astimezone(UTC)))
    assert sorted((t.astimezone(UTC).hour, n) for t, n in by_time) == [(0, 1), (1, 2)]
    assert last.value[0] == SECOND.astimezone(UTC)
    assert last.value[1] == 2
    assert len(later) == 2
    assert kind(1, SECOND) in table
    assert table.count(kind(1, SECOND)) == 2
    table.remove(kind(1, FIRST))
    assert [t.astimezone(UTC).hour for t, _ in by_time] == [1]
    for view in (by_time, last, later):
        view.verify()


@pytest.mark.parametrize("kind", CLASSES[:2])
def test_a_key_takes_both_hours_and_finds_them(kind: Callable[[int, datetime], Any]) -> None:
    table = Database().table(kind, name="t", key="t")  # type: ignore[call-overload]
    table.add_all([kind(1, FIRST), kind(2, SECOND)])
    assert [table[FIRST].id, table[SECOND].id, table[SECOND.astimezone(UTC)].id] == [1, 2, 2]
    assert SECOND in table
    table.upsert(kind(3, SECOND))
    table.delete(FIRST)
    assert [row.id for row in table] == [3]


def test_times_of_different_zones_are_joined_as_instants() -> None:
    db = Database()
    ours, theirs = db.table(Plain, name="ours"), db.table(Named, name="theirs")
    joined = ours.join(theirs, on=lambda a, b: a.t == b.t).select(lambda a, b: (a.id, b.id))
    view = joined.materialize()
    instants = [t for zone in CHANGES for t in around(zone)]
    ours.add_all([Plain(n, t) for n, t in enumerate(instants)])
    theirs.add_all([Named(n, t.astimezone(ZoneInfo("Asia/Tokyo"))) for n, t in enumerate(instants)])
    utc = [t.astimezone(UTC) for t in instants]
    pairs = Counter((n, m) for n, a in enumerate(utc) for m, b in enumerate(utc) if a == b)
    assert Counter(view) == pairs
    view.verify()


def test_an_order_is_that_of_instants() -> None:
    table = Database().table(Plain, name="t")
    view = table.order_by(lambda r: r.t).materialize()
    for n, t in reversed(list(enumerate(around("Europe/Berlin")))):
        table.add(Plain(n, t))
    assert all(a < b for a, b in pairwise(row.id for row in view))


def test_rows_of_bare_datetimes_and_of_tuples() -> None:
    db = Database()
    bare, tuples = db.table(datetime, name="bare"), db.table(tuple[int, datetime], name="tuples")
    bare.add_all([FIRST, SECOND])
    tuples.add_all([(1, FIRST), (1, SECOND)])
    bags = db.table(tuple, name="bags")
    bags.add((Bag([FIRST, SECOND]),))
    assert len({*bare}) == len({*tuples}) == 2
    assert len(bags.unnest(lambda b: b[0]).select(lambda _, t: t).distinct().materialize()) == 2


def test_a_tracked_object_that_moves_to_the_second_hour() -> None:
    @tracked
    class Meeting:
        t: datetime

        def __init__(self, t: datetime) -> None:
            self.t = t

    table = Database().table(Meeting, name="meetings")
    view = table.group_by(lambda m: m.t).aggregate(Count()).materialize()
    one, two = Meeting(FIRST), Meeting(FIRST)
    table.add_all([one, two])
    assert [n for _, n in view] == [2]
    two.t = SECOND
    assert sorted((t.isoformat(), n) for t, n in view) == [
        ("2024-10-27T02:30:00+01:00", 1),
        ("2024-10-27T02:30:00+02:00", 1),
    ]


def test_a_durable_table_has_both_again(tmp_path: Path) -> None:
    for again in (False, True):
        with Database(tmp_path / "db") as db:
            table = db.table(Plain, name="t", key="t")
            if not again:
                table.add_all([Plain(1, FIRST), Plain(2, SECOND)])
            assert sorted(row.id for row in table) == [1, 2]
            assert table[SECOND].id == 2


def test_deltas_can_be_pickled() -> None:
    table = Database().table(Plain, name="t")
    deltas: list[Any] = []
    subscription = table.subscribe(deltas.append)
    table.add_all([Plain(1, FIRST), Plain(1, SECOND)])
    assert len({*pickle.loads(pickle.dumps(deltas[0])).added}) == 2
    subscription.close()


def test_a_frame_keeps_both_hours_and_syncs() -> None:
    both = pa.array([FIRST, SECOND], pa.timestamp("us", "Europe/Berlin"))
    frame = pa.table({"id": [1, 2], "t": both, "v": [1, 2]})
    table = Database().table_from(frame, key="t")
    assert table.sync(frame) == (0, 0, 0)
    assert table.sync(frame.set_column(2, "v", pa.array([1, 5]))) == (0, 0, 1)
    assert [table[t].v for t in (FIRST, SECOND)] == [1, 5]
    assert table.to_arrow()["t"].equals(frame["t"])  # with the zone that the frame had
    in_utc = frame.set_column(1, "t", frame["t"].cast(pa.timestamp("us", "UTC")))
    assert table.sync(in_utc.set_column(2, "v", pa.array([1, 5]))) == (0, 0, 0)


@pytest.mark.parametrize("zones", [("Europe/Berlin", None), (None, "UTC")])
def test_a_frame_with_zones_is_refused_by_a_table_without_and_the_reverse(
    zones: tuple[str | None, str | None],
) -> None:
    one, other = (pa.table({"t": pa.array([0], pa.timestamp("us", zone))}) for zone in zones)
    table = Database().table_from(one)
    with pytest.raises(TableError, match="column 't' is of timestamp"):
        table.sync(other)
    with pytest.raises(TableError, match="column 't' is of timestamp"):
        table.add_arrow(other)
    assert len(table) == 1


def test_a_view_of_a_field_with_a_zone_has_it_as_arrow() -> None:
    @dataclass(frozen=True)
    class Call:
        begins: Annotated[datetime, BERLIN]
        ends: Annotated[datetime, timezone(timedelta(hours=-3))] | None

    table = Database().table(Call, name="calls")
    table.add(Call(SECOND, None))
    types = table.where(lambda c: c.ends is None).materialize().to_arrow().schema.types
    assert types == [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "-03:00")]


@dataclass(frozen=True)
class Call:
    id: int
    begins: Annotated[datetime, UTC]


NAIVE, ZONED = datetime(2024, 10, 27), datetime(2024, 10, 27, tzinfo=UTC)


class Naive:
    at = NAIVE

    def is_after(self, time: datetime) -> bool:
        return time > NAIVE

    def is_after_own(self, time: datetime) -> bool:
        return self.at < time


naive = Naive()


def is_after(call: Call) -> bool:
    return call.begins > NAIVE


def is_after_in_loop(time: datetime) -> bool:
    found = False
    for limit in (1, 2):
        found |= limit > 1 and time > NAIVE
    return found


def is_after_default(time: datetime, limit: datetime = NAIVE) -> bool:
    found = False
    for _ in (1, 2):
        found |= time > limit
    return found


def calls_after(call: Call) -> bool:
    found = False
    for _ in (1, 2):
        found |= is_after_in_loop(call.begins)
    return found


def is_zoned_after(time: datetime) -> bool:
    found = False
    for _ in (1, 2):
        found |= time.tzinfo is None and time > NAIVE
    return found


def is_after_or_none(time: datetime) -> bool:
    try:
        return time > NAIVE
    except TypeError:
        return False


@pytest.mark.parametrize(
    "test",
    [
        is_after,
        calls_after,
        lambda c: is_after(c),
        lambda c: is_after_in_loop(c.begins),
        lambda c: calls_after(c),
        lambda c: is_after_default(c.begins, NAIVE),
        lambda c: c.id > 3 and is_after_in_loop(c.begins),
        lambda c: c.begins > Naive.at,
        lambda c: naive.is_after(c.begins),
        lambda c: naive.is_after_own(c.begins),
        lambda c: c.begins > NAIVE,
        lambda c: NAIVE <= c.begins < ZONED,
        lambda c: c.id > 3 and c.begins == NAIVE,
    ],
)
def test_a_naive_constant_beside_an_instant_is_told_when_the_query_is_made(test: Any) -> None:
    calls = Database().table(Call, name="calls")
    with pytest.raises(PlanError, match=r"row\.begins is an instant, and .* has no time zone"):
        calls.where(test)


@pytest.mark.parametrize(
    "test",
    [
        lambda c: is_zoned_after(c.begins),
        lambda c: is_after_or_none(c.begins),
        lambda c: is_after_in_loop(c.begins.replace(tzinfo=None)),
    ],
)
def test_a_function_that_expects_times_without_a_zone_is_taken(test: Any) -> None:
    calls = Database().table(Call, name="calls")
    view = calls.where(test).materialize()
    calls.add(Call(1, ZONED - timedelta(days=1)))
    assert not view


def test_a_zoned_constant_beside_an_instant_is_none() -> None:
    calls = Database().table(Call, name="calls")
    view = calls.where(lambda c: c.begins >= ZONED and c.id > 0).materialize()
    calls.add_all([Call(1, ZONED), Call(2, ZONED - timedelta(hours=1))])
    assert [call.id for call in view] == [1]


class Held(NamedTuple):
    id: int
    times: frozenset[datetime]
    pairs: frozenset[tuple[datetime, int]] = frozenset()


def test_frozen_sets_hold_instants() -> None:
    """Test sets in rows, and sets that a callable makes."""
    held = Database().table(Held, name="held", key="id")
    sizes = held.group_by("times").aggregate(Count()).materialize()
    pairs = held.select(lambda h: h.pairs).distinct().materialize()
    late = held.where(lambda h: SECOND in h.times).select(lambda h: h.id).materialize()
    made = held.unnest(lambda h: h.times).select(
        lambda h, t: frozenset([t.astimezone(BERLIN)])
    )  # two sets
    sets = made.distinct().materialize()
    early_utc, late_utc = FIRST.astimezone(UTC), SECOND.astimezone(UTC)
    held.add_all(
        [
            Held(1, frozenset([FIRST]), frozenset([(FIRST, 1)])),
            Held(2, frozenset([early_utc]), frozenset([(early_utc, 1)])),
            Held(3, frozenset([SECOND]), frozenset([(late_utc, 1)])),
        ]
    )
    assert dict(sizes) == {frozenset([early_utc]): 2, frozenset([late_utc]): 1}
    assert set(pairs) == {frozenset([(early_utc, 1)]), frozenset([(late_utc, 1)])}
    assert list(late) == [3] and len(sets) == 2
    held.remove(Held(3, frozenset([late_utc]), frozenset([(SECOND, 1)])))
    assert len(sizes) == 1 and not late and len(sets) == 1
    nan = Database().table(frozenset, name="numbers")
    alike = nan.distinct().materialize()
    nan.add_all([frozenset([float("nan")]), frozenset([float("nan")])])
    assert len(alike) == 1


CAPTURED: Any = {"list": [SECOND], "set": {SECOND}, "dict": {SECOND: 1}, "pair": (1, (SECOND,))}
CONSTANTS: dict[str, Callable[[Any], Any]] = {
    "lambda": lambda calls: calls.where(lambda c: c.t == SECOND),
    "order": lambda calls: calls.where(lambda c: c.t >= SECOND),
    "default": lambda calls: calls.where(lambda c, late=SECOND: c.t == late),
    "local": lambda calls: (lambda late: calls.where(lambda c: late == c.t))(SECOND),
    "field": lambda calls: calls.where(t=SECOND),
    "column": lambda calls: calls.where(col("t") == SECOND),
    "in a list": lambda calls: (lambda some: calls.where(lambda c: c.t in some))(CAPTURED["list"]),
    "in a set": lambda calls: (lambda some: calls.where(lambda c: c.t in some))(CAPTURED["set"]),
    "a key": lambda calls: (lambda some: calls.where(lambda c: c.t in some))(CAPTURED["dict"]),
    "nested": lambda calls: (lambda some: calls.where(lambda c: (1, (c.t,)) == some))(
        CAPTURED["pair"]
    ),
}


class Late:
    at = SECOND

    def __init__(self) -> None:
        self.own = SECOND

    def is_late(self, time: datetime) -> bool:
        return time == SECOND

    def is_own(self, time: datetime) -> bool:
        return time == self.own

    def is_one(self, time: datetime) -> bool:
        return time in CAPTURED["set"] or time in SOME

    def __call__(self, call: Named) -> bool:
        return call.t == SECOND


LATE = Late()
SOME = {SECOND}


def is_late(call: Named) -> bool:
    return call.t == SECOND


def is_one_of_loop(time: datetime) -> bool:
    found = False
    for each in (SECOND, NAIVE):
        found |= each is SECOND and time == SECOND
    return found


def is_in_set(time: datetime) -> bool:
    return time in SOME


def is_default(time: datetime, late: datetime = SECOND, *, other: datetime = SECOND) -> bool:
    return time == late and time == other


def calls_another(time: datetime) -> bool:
    return is_one_of_loop(time)


def calls_itself(time: datetime, depth: int = 2) -> bool:
    if depth:
        return calls_itself(time, depth - 1)
    return time == SECOND


def of_closure() -> Callable[[datetime], bool]:
    late = SECOND

    def compare(time: datetime) -> bool:
        try:
            return time == late
        except TypeError:
            return False

    return compare


compare = of_closure()
CALLED: dict[str, Callable[[Any], Any]] = {
    "lifted": lambda call: is_late(call),
    "a loop": lambda call: is_one_of_loop(call.t),
    "a set": lambda call: is_in_set(call.t),
    "a default": lambda call: is_default(call.t),
    "two levels": lambda call: calls_another(call.t),
    "itself": lambda call: calls_itself(call.t),
    "a closure": lambda call: compare(call.t),
    "a partial": partial(lambda late, call: call.t == late, SECOND),
    "a partial by name": partial(lambda call, late: call.t == late, late=SECOND),
}
UNREAD: dict[str, Callable[[Any], Any]] = {
    "an attribute of a class": lambda call: call.t == Late.at,
    "an attribute": lambda call: call.t == LATE.own,
    "a method": lambda call: LATE.is_late(call.t),
    "a method of an attribute": lambda call: LATE.is_own(call.t),
    "a method of a set": lambda call: LATE.is_one(call.t),
    "an object": LATE,
    "an object that is called": lambda call: LATE(call),
}


@pytest.mark.parametrize("name", list(CALLED))
def test_what_a_called_function_captures_is_an_instant(name: str) -> None:
    calls = Database().table(Named, name="calls", key="id")
    view = calls.where(CALLED[name]).select(lambda c: c.id).materialize()
    calls.add_all([Named(1, FIRST), Named(2, SECOND), Named(3, FIRST.astimezone(UTC))])
    assert list(view) == [2]
    view.verify()
    assert is_late(Named(1, FIRST))  # the user's function stays as it is


@pytest.mark.parametrize("name", list(UNREAD))
def test_what_cannot_be_taken_for_an_instant_is_told_when_the_query_is_made(name: str) -> None:
    calls = Database().table(Named, name="calls", key="id")
    with pytest.raises(PlanError, match="a time that clocks show twice"):
        calls.where(UNREAD[name])


@pytest.mark.parametrize("name", list(CONSTANTS))
def test_a_captured_constant_is_an_instant(name: str) -> None:
    calls = Database().table(Named, name="calls", key="id")
    view = CONSTANTS[name](calls).select(lambda c: c.id).materialize()
    calls.add_all([Named(1, FIRST), Named(2, SECOND), Named(3, FIRST.astimezone(UTC))])
    assert list(view) == [2]
    view.verify()
