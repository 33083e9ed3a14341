"""The clock: views are as from scratch after each tick, and a tick touches what it changes."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Delta, PlanError, TableError, now
from tests.budget import examples, sampled
from tests.thresholds import thresholds


@dataclass(frozen=True)
class Beat:
    id: int
    device: int
    at: datetime
    seconds: float
    day: date
    ended: datetime | None = None


@dataclass(frozen=True)
class Device:
    id: int


START = datetime(2024, 1, 1, tzinfo=UTC)
AGE = timedelta(minutes=5)
Make = Callable[[Any, Any, Any], Any]
QUERIES: dict[str, Make] = {
    "age": lambda db, b, d: b.where(lambda x: now() - x.at < AGE),
    "since": lambda db, b, d: b.where(lambda x: x.at > now() - AGE),
    "end": lambda db, b, d: b.where(lambda x: x.at + AGE >= now()),
    "between": lambda db, b, d: b.where(lambda x: now() - AGE <= x.at <= now()),
    "total seconds": lambda db, b, d: b.where(lambda x: (now() - x.at).total_seconds() < 300),
    "seconds": lambda db, b, d: b.where(lambda x: now().timestamp() - x.seconds < 300),
    "days": lambda db, b, d: b.where(lambda x: x.day >= now().date() - timedelta(days=1)),
    "expiring": lambda db, b, d: b.expire_after(AGE, at="at"),
    "expiring pairs": lambda db, b, d: b.join(d, on=lambda x, y: x.device == y.id).expire_after(
        AGE, at=lambda x, y: x.at if x.id % 5 else None
    ),
    "or always": lambda db, b, d: b.where(lambda x: x.device == 1 or now() - x.at < AGE),
    "always or": lambda db, b, d: db.query(
        lambda: [x.id for x in b if now() - x.at < AGE or x.device == 1]
    ),
    "or of another": lambda db, b, d: b.join(d, on=lambda x, y: x.device == y.id).where(
        lambda x, y: y.id == 2 or x.at > now() - AGE
    ),
    "comprehension": lambda db, b, d: db.query(lambda: [x.id for x in b if now() - x.at < AGE]),
    "count": lambda db, b, d: b.where(lambda x: now() - x.at < AGE).aggregate(Count()),
    "groups": lambda db, b, d: (
        b.where(lambda x: now() - x.at < AGE).group_by("device").aggregate(Count())
    ),
    "join": lambda db, b, d: b.join(d, on=lambda x, y: x.device == y.id).where(
        lambda x, y: now() - x.at < AGE
    ),
    "select": lambda db, b, d: b.select(lambda x: (x.id, "new" if now() - x.at < AGE else "old")),
    "silent": lambda db, b, d: d.anti_join(
        b.where(lambda x: now() - x.at < AGE), on=lambda y, x: y.id == x.device
    ),
    "overdue": lambda db, b, d: b.where(lambda x: now() - x.at >= AGE).anti_join(
        d, on=lambda x, y: x.device + 2 == y.id
    ),
    "failing": lambda db, b, d: (
        b.where(lambda x: now() - x.at < AGE)
        .group_by("device")
        .aggregate(Count())
        .where(lambda device, n: n >= 3)
    ),
    "exists": lambda db, b, d: db.query(
        lambda: [y.id for y in d if any(x.device == y.id and now() - x.at < AGE for x in b)]
    ),
    "absent": lambda db, b, d: db.query(
        lambda: [y.id for y in d if not any(x.device == y.id and x.at > now() - AGE for x in b)]
    ),
    "any": lambda db, b, d: d.where(
        lambda y: any(x.at + AGE > now() and x.device == y.id for x in b)
    ),
    "any, filtered": lambda db, b, d: d.where(
        lambda y: any(x.device == y.id for x in b if now() - x.at < AGE)
    ),
    "all": lambda db, b, d: d.where(
        lambda y: all(now() - x.at >= AGE for x in b if x.device == y.id)
    ),
    "all, or": lambda db, b, d: d.where(
        lambda y: all(x.device != y.id or now() - x.at > AGE for x in b)
    ),
    "in": lambda db, b, d: d.where(
        lambda y: y.id in [x.device for x in b if now().timestamp() - x.seconds < 300]
    ),
    "not in": lambda db, b, d: d.where(
        lambda y: y.id not in {x.device for x in b if now() - x.at < AGE}
    ),
    "two times": lambda db, b, d: d.where(
        lambda y: any(x.device == y.id and AGE / 2 < now() - x.at <= AGE for x in b)
    ),
    "two any": lambda db, b, d: d.where(
        lambda y: (
            any(x.device == y.id and now() - x.at < AGE for x in b)
            and not any(x.device == y.id and now() - x.at < AGE / 2 for x in b)
        )
    ),
    "any, selected": lambda db, b, d: d.select(
        lambda y: (y.id, any(x.device == y.id and x.at > now() - AGE for x in b))
    ),
    "any, both sides": lambda db, b, d: d.where(
        lambda y: any(x.device == y.id and (now() - x.at < AGE or x.id < y.id) for x in b)
    ),
    "any, behind a join": lambda db, b, d: d.join(d, on=lambda y, z: y.id == z.id).where(
        lambda y, z: not any(x.device == z.id and now() - x.at < AGE for x in b)
    ),
    "semi_join": lambda db, b, d: d.semi_join(
        b, on=lambda y, x: y.id == x.device and now() - x.at < AGE
    ),
    "anti_join": lambda db, b, d: d.anti_join(
        b, on=lambda y, x: x.at > now() - AGE and y.id == x.device
    ),
    "left_join": lambda db, b, d: d.left_join(
        b, on=lambda y, x: y.id == x.device and now() - x.at < AGE
    ),
    "last": lambda db, b, d: d.where(
        lambda y: now() - max((x.at for x in b if x.device == y.id), default=now()) > AGE
    ),
    "sums": lambda db, b, d: d.select(
        lambda y: (y.id, sum(x.id for x in b if x.device == y.id and now() - x.at < AGE))
    ),
    "SQL, not exists": lambda db, b, d: db.sql(
        "select id from d where not exists (select 1 from b where b.device = d.id"
        " and now() - b.at < interval '5 minutes')"
    ),
    "SQL, left join": lambda db, b, d: db.sql(
        "select d.id, b.id as other from d left join b on b.device = d.id"
        " and b.at > now() - interval '5 minutes'"
    ),
    "three": lambda db, b, d: db.query(
        lambda: [
            y.id for y in d if sum(1 for x in b if x.device == y.id and now() - x.at < AGE) > 2
        ]
    ),
}

GUARDED: dict[str, Make] = {
    "or none": lambda db, b, d: b.where(
        lambda x: (
            (x.ended is None or x.ended <= now())
            or (x.device >= 1 and (x.ended is not None and now() - x.ended < AGE))
        )
    ),
}
"""Queries in which one alternative guards the next ones; a tick may ask all rows."""


def beat(number: int, seconds: int, start: datetime = START) -> Beat:
    at = start + timedelta(seconds=seconds)
    return Beat(number, number % 3, at, at.timestamp(), at.date(), at if number % 4 else None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["tick", "add", "drop", "fail", "clear"]),
        st.integers(0, 9),
        st.integers(0, 12),
    ),
    min_size=2,
    max_size=10,
)


@pytest.mark.parametrize("name", [*QUERIES, *GUARDED])
@examples(20)
@given(STEPS, st.booleans())
def test_a_view_is_as_from_scratch(
    name: str, steps: list[tuple[str, int, int]], is_naive: bool
) -> None:
    """Rows are late, early and at the bound; a failing transaction undoes a tick with its rows."""
    start = START.replace(tzinfo=None) if is_naive else START
    with thresholds({"reactive.engine.collections.key_orders.MANY": 1}):
        db = Database()
        beats, devices = db.table(Beat, name="b", key="id"), db.table(Device, name="d", key="id")
        devices.add_all(map(Device, range(4)))
        moment = start + timedelta(minutes=10)
        db.clock.advance(moment)
        view = {**QUERIES, **GUARDED}[name](db, beats, devices).materialize()
        for kind, number, minutes in steps:
            at = beat(number, 60 * minutes + 300, start)
            if kind == "tick":
                moment += timedelta(minutes=minutes)
                db.clock.advance(moment)
            elif kind == "add":
                beats.upsert(at)
            elif kind == "drop":
                beats.remove_all([b for b in beats if b.id == number])
            elif kind == "clear":
                beats.clear()
            else:
                with pytest.raises(KeyError), db.transaction():
                    db.clock.advance(moment + timedelta(minutes=minutes))
                    beats.upsert(at)
                    raise KeyError
            assert db.clock.now == moment
            view.verify()


EXPIRING = st.lists(
    st.tuples(
        st.sampled_from(["tick", "add", "drop", "fail", "refuse", "both"]),
        st.integers(0, 5),
        st.integers(0, 12),
    ),
    max_size=14,
)


@pytest.mark.parametrize("key", ["id", None])
@examples(60)
@given(EXPIRING)
def test_rows_expire_in_the_commit_of_the_tick(
    key: str | None, steps: list[tuple[str, int, int]]
) -> None:
    """The rows are those of a plain list; of several commits in one transaction, too."""
    db = Database()
    beats: Any = db.table(Beat, name="b", key=key, expire_after=AGE, at="at")
    moment = START + timedelta(minutes=10)
    db.clock.advance(moment)
    deltas: list[Delta[Beat]] = []
    subscription = beats.subscribe(deltas.append)
    strict = beats.where(lambda b: 1 / (b.device + 1) > 0).materialize()
    rows: list[Beat] = []
    for kind, number, minutes in steps:
        row, before = beat(number, 60 * minutes + 300), [*rows]
        deltas.clear()
        if kind == "add" and (key is None or not any(b.id == number for b in rows)):
            beats.add(row)
            rows.append(row)
        elif kind == "drop" and rows:
            beats.remove(rows.pop(number % len(rows)))
        elif kind in ("tick", "both"):
            with db.transaction():
                if kind == "both":
                    beats.remove_all([b for b in beats if b.id == number])
                    beats.add(row)
                    rows = [b for b in rows if b.id != number] + [row]
                db.clock.advance(moment + timedelta(minutes=minutes))
            if minutes:
                rows = [b for b in rows if b.at + AGE > moment + timedelta(minutes=minutes)]
            moment += timedelta(minutes=minutes)
            assert all(delta.tick == (moment if minutes else None) for delta in deltas)
        elif kind == "fail":
            with pytest.raises(KeyError), db.transaction():
                beats.clear()
                beats.discard(row)
                db.clock.advance(moment + timedelta(minutes=minutes))
                raise KeyError
        elif kind == "refuse":
            with pytest.raises(ZeroDivisionError), db.transaction():
                db.clock.advance(moment + timedelta(minutes=minutes))
                beats.add(Beat(99, -1, moment, 0.0, moment.date()))
        assert sorted(beats, key=repr) == sorted(rows, key=repr)
        assert sorted(strict, key=repr) == sorted(rows, key=repr)
        assert len(deltas) == (sorted(before, key=repr) != sorted(rows, key=repr))
    subscription.close()


@dataclass(frozen=True)
class Login:
    id: int
    at: Annotated[datetime, UTC]


TEXTS = [
    "select id from t where at > now() - interval '5 minutes'",
    "select id from t where now() - at < interval '5 minutes'",
    "select id from t where at + interval '5 minutes' >= current_timestamp",
    "select count(*) as n from t where at between now() - interval '2 minutes' and now()",
    "select id from t where not exists (select 1 from t u where u.id = t.id + 1 and u.at > now())",
    "select id from t where cast(at as date) = current_date",
    "select id, at < transaction_timestamp() as past from t",
]


@sampled
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("kind", [Login, Beat])
@examples(8)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8), st.integers(0, 8)), max_size=8))
def test_sql_reads_the_clock(
    kind: Any, dialect: Any, text: str, steps: list[tuple[bool, int, int]]
) -> None:
    """Columns are instants, or datetimes with or without a time zone."""
    for start in (START, START.replace(tzinfo=None))[: 1 if kind is Login else 2]:
        db = Database(dialect=dialect, timezone="Europe/Berlin" if start.tzinfo else "UTC")
        rows: Any = db.table(kind, name="t", key="id")
        moment = start + timedelta(minutes=5)
        db.clock.advance(moment)
        view = db.sql(text).materialize()
        for is_tick, number, minutes in steps:
            if is_tick:
                moment += timedelta(minutes=minutes)
                db.clock.advance(moment)
            elif kind is Login:
                rows.upsert(Login(number, start + timedelta(minutes=minutes)))
            else:
                rows.upsert(beat(number, 60 * minutes, start))
            view.verify()
            assert not view.errors


def test_the_words_of_sql_are_the_moment_of_the_clock() -> None:
    words = {
        "duckdb": "now(), current_timestamp, get_current_timestamp(), transaction_timestamp()",
        "postgres": "now(), current_timestamp, statement_timestamp(), transaction_timestamp()",
    }
    for dialect, four in words.items():
        db = Database(dialect=dialect, timezone="Europe/Berlin")  # type: ignore[arg-type]
        with pytest.raises(PlanError, match="was not set"):
            db.sql("select now()")
        db.clock.advance(START - timedelta(minutes=30))
        row = db.sql(f"select {four}, localtimestamp, current_date").materialize()
        local = datetime(2024, 1, 1, 0, 30)
        assert row.value == (*[db.clock.now] * 4, local, local.date())
        db.clock.advance(START + timedelta(hours=23))
        assert row.value == (*[db.clock.now] * 4, datetime(2024, 1, 2), date(2024, 1, 2))
        db.execute("create table t (id int, at timestamptz)")
        db.execute("create view late as select id from t where at < now()")
        db.execute("insert into t values (1, '2024-01-01')")
        late = db.sql("select * from late").materialize()
        assert len(late) == 1
        for text in ("insert into t values (1, now())", "delete from t where at < now()"):
            with pytest.raises(PlanError, match=r"queries only(.|\n)*now=db\.clock\.now"):
                db.execute(text)
        for text in ("current_time", "current_timestamp(3)", "localtime"):
            with pytest.raises(PlanError):
                db.sql(f"select {text}")


def test_a_row_without_a_moment_stays() -> None:
    db = Database()
    rows = db.table(int, expire_after=AGE, at=lambda n: START if n else None)
    rows.add_all([0, 1])
    db.clock.advance(START + 2 * AGE)
    assert list(rows) == [0]


def test_a_clock_goes_forward_by_moments_of_one_kind() -> None:
    db = Database()
    with pytest.raises(TableError, match="was not set"):
        db.clock.now  # noqa: B018
    with pytest.raises(PlanError, match="outside of a query"):
        now()
    beats = db.table(Beat, name="b", key="id")
    with pytest.raises(PlanError, match=r"was not set\n.*db\.clock\.run"):
        beats.where(lambda b: b.at < now())
    berlin = timezone(timedelta(hours=1))
    db.clock.advance(START.astimezone(berlin))
    assert db.clock.now.tzinfo is UTC and db.clock.now == START
    for moment, text in (
        (START - timedelta.resolution, "cannot go back"),
        (START.replace(tzinfo=None), "has no time zone"),
        (START.date(), "advanced to a datetime"),
    ):
        with pytest.raises(TableError, match=text):
            db.clock.advance(moment)  # type: ignore[arg-type]
        with pytest.raises(TableError):
            db.tables()[0].set(moment)  # type: ignore[attr-defined]
    with pytest.raises(TableError):
        db.tables()[0].clear()
    assert db.clock.now == START
    assert db.version == 1


def test_a_clock_is_stored_with_its_database(tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    with Database(path) as db:
        beats = db.table(Beat, name="b", key="id", expire_after=AGE, at="at")
        beats.add_all([beat(1, 0), beat(2, 200)])
        db.clock.advance(START)
    with Database(path) as db:
        beats = db.table(Beat, name="b", key="id", expire_after=AGE, at="at")
        view = beats.where(lambda b: now() - b.at < AGE).materialize()
        assert db.clock.now == START and len(view) == 2
        db.clock.advance(START + AGE)
        assert [b.id for b in beats] == [2] == [b.id for b in view]
        with pytest.raises(TableError, match="cannot go back"):
            db.clock.advance(START)
    with Database(path) as db:
        assert len(db.table(Beat, name="b", key="id")) == 1
        assert db.clock.now == START + AGE


def test_expiry_refuses_what_it_cannot_do() -> None:
    db = Database()
    for options, text in (
        ({"expire_after": AGE}, "takes at="),
        ({"at": "at"}, "takes expire_after="),
        ({"expire_after": 5, "at": "at"}, "takes a timedelta"),
        ({"expire_after": -AGE, "at": "at"}, "not negative"),
        ({"expire_after": AGE, "at": "at", "stored": False}, "must be stored"),
        ({"expire_after": AGE, "at": "date"}, "no such field"),
        ({"expire_after": AGE, "at": "id"}, "is of class bool or int, by its annotation"),
        ({"expire_after": AGE, "at": lambda b: b.day}, "is of class date"),
    ):
        with pytest.raises(PlanError, match=text):
            db.table(Beat, name="refused", **options)
    assert db.tables() == []
    rows = db.table(Beat, name="rows", expire_after=AGE, at="at")
    naive = beat(1, 0, START.replace(tzinfo=None))
    rows.add(naive)
    with pytest.raises(TableError, match="with a time zone"):
        db.clock.advance(START)
    rows.remove(naive)
    db.clock.advance(START)


@pytest.mark.parametrize("is_naive", [False, True])
def test_a_moment_that_the_clock_cannot_compare_refuses_the_insertion(is_naive: bool) -> None:
    db = Database()
    start = START.replace(tzinfo=None) if is_naive else START
    other = START if is_naive else START.replace(tzinfo=None)
    rows = db.table(tuple, name="rows", expire_after=AGE, at=lambda row: row[1])
    keyed = db.table(tuple, key=lambda row: row[0], name="k", expire_after=AGE, at=lambda r: r[1])
    with pytest.raises(TableError, match="the clock takes datetimes;"):
        rows.add((1, "noon"))
    db.clock.advance(start)
    keyed.add((0, start))
    changes: list[Any] = [
        lambda: rows.add((1, other)),
        lambda: rows.add_all([(1, start), (2, start.date())]),
        lambda: rows.replace_all([(1, None), (2, other)]),
        lambda: keyed.upsert((0, other)),
        lambda: keyed.update((0, start), (0, 7)),
        lambda: keyed.upsert_all([(3, start), (4, other)]),
    ]
    for change in changes:
        with pytest.raises(TableError, match="the clock takes datetimes with"):
            change()
        with pytest.raises(TableError, match="the clock takes datetimes with"), db.transaction():
            rows.add((9, start))
            change()
    with pytest.raises(IndexError) as raised:
        rows.add(())
    assert "in at= of table 'rows'" in str(raised.value.__notes__)
    assert (list(rows), list(keyed)) == ([], [(0, start)])
    rows.add_all([(1, start), (2, None)])
    db.clock.advance(start + AGE)
    assert (list(rows), list(keyed)) == ([(2, None)], [])


def test_a_tick_touches_the_rows_that_enter_or_leave() -> None:
    for name in sorted(QUERIES):
        touched = []
        for count in (500, 2_000):
            db = Database()
            beats, devices = db.table(Beat, name="b", key="id"), db.table(Device, name="d")
            beats.add_all(beat(n, n) for n in range(count))
            devices.add_all(map(Device, range(4)))
            db.clock.advance(START + AGE)
            view = QUERIES[name](db, beats, devices).materialize()
            for second in (1, 2, 3):  # the first one may make an order
                before = view.stats().touched
                db.clock.advance(START + AGE + timedelta(seconds=second))
            touched.append(view.stats().touched - before)
            view.verify()
        assert max(touched) < 60, (name, touched)


UNKNOWN = frozenset({"last", "absent", "any", "SQL, left join"})
"""Queries that show the clock, or keep only a bound for each key: they may change at each tick."""


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_next_is_the_present_where_it_is_unknown(name: str) -> None:
    db = Database()
    beats, devices = db.table(Beat, name="b", key="id"), db.table(Device, name="d", key="id")
    db.clock.advance(START)
    view = QUERIES[name](db, beats, devices).materialize()
    beats.add(beat(1, 60))
    devices.add(Device(1))
    assert db.clock.next == db.clock.now
    view.close()
    assert db.clock.next is None


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - UNKNOWN))
@examples(20)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 900_000_000)), max_size=8))
def test_next_is_the_first_moment_of_a_change(name: str, times: list[tuple[int, int]]) -> None:
    """Nothing changes before it; at most every other one is no change, as of a row that a second
    condition leaves out."""
    db = Database()
    beats, devices = db.table(Beat, name="b", key="id"), db.table(Device, name="d", key="id")
    devices.add_all(map(Device, range(4)))
    db.clock.advance(START + timedelta(minutes=8))
    view = QUERIES[name](db, beats, devices).materialize()
    for number, microseconds in times:
        at = START + timedelta(microseconds=microseconds)
        beats.upsert(Beat(number, number % 3, at, at.timestamp(), at.date()))
    for _ in range(40):
        due, rows = db.clock.next, view.snapshot()
        if due is None:
            break
        assert due > db.clock.now
        db.clock.advance(due - timedelta(microseconds=1))
        view.verify()
        assert view.snapshot() == rows
        assert db.clock.next in (due, db.clock.now)
        db.clock.advance(due)
        view.verify()
    else:
        raise AssertionError("too many moments")
    rows = view.snapshot()
    db.clock.advance(db.clock.now + timedelta(days=999))
    view.verify()
    assert view.snapshot() == rows


def test_a_running_clock_follows_the_time_of_the_machine() -> None:
    before = datetime.now(UTC)
    with Database() as db:
        soon = timedelta(seconds=0.1)
        codes = db.table(Beat, name="codes", expire_after=soon, at="at")
        beats = db.table(Beat, name="beats", key="id")
        db.clock.run(every=0.01)
        seen: queue.Queue[Delta[Beat]] = queue.Queue()
        view = beats.where(lambda b: b.at < now()).materialize()
        subscription = codes.subscribe(seen.put)
        coming = beat(1, 0, datetime.now(UTC) + soon)
        beats.add(coming)
        codes.add(coming)
        assert seen.get(timeout=60).added == (coming,)
        last = seen.get(timeout=60)
        assert last.removed == (coming,) and last.tick is not None and not codes
        assert before < coming.at + soon <= last.tick <= db.clock.now
        assert list(view) == [coming]
        subscription.close()
        db.clock.stop()
        stopped = db.clock.now
        time.sleep(0.05)
        assert db.clock.now == stopped
        db.clock.run(every=0.01)
        with db.transaction():
            db.clock.stop()
        db.clock.run(every=0.01)
        db.clock.run(every=0.02)
    for every in (0, -1, "1s", float("nan")):
        with pytest.raises(PlanError, match="positive number"):
            Database().clock.run(every=every)  # type: ignore[arg-type]


def test_an_idle_clock_makes_no_commits() -> None:
    with Database() as db:
        beats = db.table(Beat, name="b", key="id", expire_after=AGE, at="at")
        assert db.clock.next is None
        db.clock.run(every=0.001)
        assert db.clock.next is None
        beats.add(beat(1, 0, datetime.now(UTC)))
        version = db.version
        assert db.clock.next == beats[1].at + AGE
        time.sleep(0.05)
        assert db.version == version
        view = beats.where(lambda b: b.at < now()).materialize()
        deadline = time.monotonic() + 60
        while not (db.version > version and len(view)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert db.version > version and len(view) == 1
        db.clock.stop()
        expires = beats[1].at + AGE
        assert db.clock.next == expires
        shown = beats.select(lambda b: now()).materialize()
        assert db.clock.next == db.clock.now
        shown.close()
        assert db.clock.next == expires


def test_a_clock_stands_while_the_time_of_the_machine_is_earlier(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Database() as db:
        later = datetime.now(UTC) + timedelta(days=1)
        db.clock.advance(later)
        view = db.table(Beat, name="b").where(lambda b: b.at < now()).materialize()
        db.clock.run(every=0.001)
        time.sleep(0.03)
        assert db.clock.now == later and len(view) == 0
        assert not caplog.records
