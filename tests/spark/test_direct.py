"""Flushes by jobs and by this process, in any order: each gives what the query gives.

The tables have a base of several buckets, so that rows are looked for by the hash of their key.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark")

from optimizer import plan
from reactive import Count, CountDistinct, Max, OffloadError, Sum
from reactive.engine.collections.zset import NAN
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Plain
from spark_backend.direct import flush
from spark_backend.direct.flush import Field, Lookup
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import find_column_obstacle
from spark_backend.state import one_job, tables
from tests.budget import TIMES, drawing, seeds
from tests.moments import is_closed
from tests.spark import (
    test_first_rows,
    test_fragment_aggregates,
    test_fragment_callables,
    test_fragments,
)
from tests.spark.drawn import DAY, FLOATS, OF, Left, Right, Rows, drawn
from tests.spark.fragments import (
    Histories,
    Query,
    entries,
    evaluated,
    fragment_of,
    inputs_in_order,
)
from tests.spark.ways import begun, jobs, way

WAYS = ("job", *("here",) * 8, "few", "few to seek")
"""Some flushes find in the process that they would read many rows."""


@contextmanager
def going(name: str) -> Iterator[None]:
    """The next flush goes one way; or the process begins it, and leaves it to a job."""
    with ExitStack() as stack:
        stack.enter_context(way(is_job=name == "job"))
        if name == "few":
            stack.enter_context(patch.object(flush, "MOST_FETCHED", 3))
        if name == "few to seek":
            stack.enter_context(patch.object(flush, "MOST_SOUGHT", 3))
        yield


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases of several buckets, made once."""
    monkeypatch.setattr(tables, "PER_BUCKET", 4)
    monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
    monkeypatch.setattr(one_job, "FEW_SOUGHT", 0)
    monkeypatch.setattr(tables, "SHARE", 100.0)


def check_reads(
    remote: StateRemote, expected: Counter[Any], gone: list[Any], random: Random
) -> None:
    """However it is read, it is what the query gives."""
    assert Counter(dict(remote._in_files())) == expected
    assert Counter(dict(remote.contents())) == expected
    assert remote.size() == expected.total()
    by_group = remote._fragment.is_by_group
    wanted: dict[Any, list[Any]] = {}
    for row, n in expected.items():
        wanted.setdefault(row[0] if by_group else row, []).append((row, n))
    for row in gone:
        wanted.setdefault(row[0] if by_group else row, [])
    for key, pairs in random.sample(sorted(wanted.items(), key=repr), min(len(wanted), 6)):
        assert Counter(dict(remote.at(key))) == Counter(dict(pairs)), key


def play(
    session: Session, seed: int, folder: Path, depth: int, ways: tuple[str, ...]
) -> Counter[str] | None:
    """A random query over a random history; which ways it went, or None for no columns."""
    random = Random(seed)
    name, query = drawn(random, depth)
    try:
        fragment = fragment_of(query, OF)
    except AssertionError:
        return None
    is_all = isinstance(fragment.node, plan.Aggregate) and fragment.node.key is None
    if find_column_obstacle(session, fragment) is not None or (is_all and "job" not in ways):
        return None
    places = inputs_in_order(fragment, OF)
    remote = StateRemote(session, fragment, str(folder), stable=False)
    if "job" not in ways:
        begun(remote)
    rows, shown, ever = Rows(random), Counter[Any](), Counter[Any]()
    taken = Counter[str]()
    for number, size in enumerate(SIZES, remote.shared._number):
        chosen = random.choice(ways)
        given = entries(fragment, places, rows.changes(size, odd=number > 2))
        with going(chosen), jobs() as done:
            shown.update(dict(remote.apply(number, given)))
        taken[f"{chosen}: {'a job' if done else 'here'}"] += 1
        expected = evaluated(fragment, places, rows.bags)
        told = f"seed {seed}, flush {number} ({chosen}): {name}"
        assert Counter({r: n for r, n in shown.items() if n}) == expected, told
        ever.update(expected.keys())
        check_reads(remote, expected, [row for row in ever if row not in expected][-5:], random)
        if number and chosen == "here":
            assert not done, told
    return taken


SIZES = (30, 4, 4, 5, 1, 6, 0, 4)
"""The numbers of rows that change in each flush."""


@pytest.mark.parametrize("seed", seeds(12, share=6))
def test_random_queries_whose_flushes_go_either_way(
    seed: int, session: Session, tmp_path: Path, buckets: None
) -> None:
    played(session, seed, tmp_path, 1, WAYS)  # jobs of deeper ones take long to plan


@pytest.mark.parametrize("seed", seeds(40))
def test_random_queries_without_any_job(seed: int, session: Session, tmp_path: Path) -> None:
    played(session, seed, tmp_path, 3, ("here",))


def played(session: Session, seed: int, folder: Path, depth: int, ways: tuple[str, ...]) -> None:
    """Play the first query from a seed on that is of columns."""
    found, number = None, seed * 1000
    while found is None:
        found = play(session, number, folder / str(number), depth, ways)
        number += 1


STEPS: dict[str, Query] = {
    **{f"{name}, joined": query for name, query in test_fragments.QUERIES.items()},
    **test_fragment_aggregates.QUERIES,
    **test_first_rows.QUERIES,
    **{f"of callables: {name}": query for name, query in test_fragment_callables.QUERIES.items()},
    "one record of all rows": lambda o, c: o.distinct().aggregate(Max(lambda o: (o.id, o.id))),
    "a chain": lambda o, c: o.select(lambda o: (o.tag, o.id)).where(lambda t: t[1] > 2).distinct(),
}
"""All kinds of steps that the process does."""
del STEPS[test_fragment_aggregates.BY_JOBS]


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_done_without_any_job(name: str, session: Session, tmp_path: Path) -> None:
    """Spark is not called, either. The first flush had no rows."""
    fragment = fragment_of(STEPS[name])
    places = inputs_in_order(fragment)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=False))
    history, shown = Histories(len(name)), evaluated(fragment, places, ({}, {}))
    with jobs() as done, without_spark():
        for number, count in enumerate((20, 6, 6), 1):
            given = entries(fragment, places, history.changes(count, odd=number == 3))
            shown.update(dict(remote.apply(number, given)))
            shown = Counter({row: n for row, n in shown.items() if n})
            assert shown == evaluated(fragment, places, history.rows)
    assert not done


@contextmanager
def without_spark() -> Iterator[None]:
    """Raise an error for each request of a session."""
    with patch.object(Session, "spark", property(_gone)), patch.object(Session, "ready", _gone):
        yield


def _gone(session: Session) -> Any:
    raise OffloadError("Spark is gone")


def test_rows_are_read_without_spark_by_keys_of_any_type(
    session: Session, tmp_path: Path, buckets: None
) -> None:
    """A key finds what it is equal to, as in a dictionary."""
    rows = [Left(n % 9 - 1, n % 4 or None, FLOATS[n % 9], "xy"[n % 2], DAY) for n in range(40)]
    rows += [Left(9, None, NAN, None, DAY), Left(2**60, 2, math.inf, "", DAY)]
    keys: dict[str, Query] = {
        "whole": lambda a, b: a.group_by(lambda a: a.id).aggregate(Count()),
        "whole or None": lambda a, b: a.group_by(lambda a: a.part).aggregate(Count()),
        "float": lambda a, b: a.group_by(lambda a: a.amount).aggregate(Count()),
        "text": lambda a, b: a.group_by(lambda a: a.tag).aggregate(Count()),
        "flag": lambda a, b: a.group_by(lambda a: a.id > 3).aggregate(Count()),
        "day": lambda a, b: a.group_by(lambda a: a.day).aggregate(Count()),
        "pair": lambda a, b: a.group_by(lambda a: (a.part, a.amount)).aggregate(Count()),
        "row": lambda a, b: a.select(lambda a: (a.tag, a.id)).distinct(),
        "rows": lambda a, b: a.distinct(),
    }
    for name in keys if TIMES else ("whole or None", "float", "text", "row"):
        fragment = fragment_of(keys[name], OF)
        remote = StateRemote(session, fragment, str(tmp_path / name), stable=False)
        remote.apply(0, [(0, 0, row, 1) for row in rows])
        with without_spark():
            contents = list(remote.contents())
            assert remote.size() == sum(weight for _, weight in contents)
            first = remote._fragment.is_by_group
            held = {(row[0] if first else row): (row, n) for row, n in contents}
            for key in [*held, *ODD_KEYS]:
                wanted = [held[key]] if key in held else []
                assert list(remote.at(key)) == wanted, (name, key)


class Word(StrEnum):
    X = "x"


class Size(IntEnum):
    TWO = 2


class Caseless(str):
    """Equal to a text of other letters."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


ODD_KEYS: tuple[Any, ...] = (
    *(True, 1.0, 1, 2.5, -0.0, Decimal(2), Decimal("0.1"), Fraction(1, 2), Size.TWO, 2.0**70),
    *(2**70, -(2**63) - 1, math.inf, NAN, None, 1j, "x", Word.X, Caseless("X"), "\ud800", b"x"),
    *(DAY, datetime(2000, 1, 1), date(1, 1, 1), object(), (), (1, 0.2), (True, Decimal(1))),
    *(("x", 1), (Word.X, 1.0), ("x", 2**70), ("x",), Left(0, 2, 0.0, "y", DAY), frozenset()),
    Right(0, 2, 0.0, "y", DAY),
)


SEVERAL: Query = lambda a, b: (  # noqa: E731
    a.left_join(b, on=lambda a, b: a.part == b.part)
    .select(lambda a, b: (a.tag, a.id, a.amount))
    .distinct()
    .group_by(lambda t: t[0])
    .aggregate(Count(), Sum(lambda t: t[2]), Max(lambda t: t[1]))
)
"""A query of several steps."""


@pytest.mark.quick
def test_whatever_fails_in_the_process_is_left_to_a_job(session: Session, tmp_path: Path) -> None:
    """Failures are drawn at any call of a flush in this process. Without Spark, the changes are
    given again with the next ones."""
    fragment = fragment_of(SEVERAL, OF)
    places = inputs_in_order(fragment, OF)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=False))
    random = drawing()
    rows, shown, calls = Rows(random), Counter[Any](), 0
    given: list[Any] = []
    for number in range(1, 400 if TIMES else 30):
        given += entries(fragment, places, rows.changes(20 if number == 1 else 3, odd=number > 9))
        failing = Failing(random.randrange(calls) if number > 2 and random.random() < 0.7 else None)
        try:
            with without_spark(), failing:
                shown.update(dict(remote.apply(number, given)))
        except OffloadError as error:
            assert "Spark is gone" in str(error) and failing.has_failed, failing.where
            assert Counter(dict(remote.contents())) == shown, failing.where
            continue
        assert not failing.has_failed, failing.where
        given = []
        calls = max(calls, failing.calls)
        shown = Counter({row: n for row, n in shown.items() if n})
        assert shown == evaluated(fragment, places, rows.bags)
        assert Counter(dict(remote.contents())) == shown


class Failed(Exception):
    """An exception that no other code raises or handles."""


class Failing:
    """Raises at one of the calls of functions that do flushes in the process."""

    def __init__(self, at: int | None) -> None:
        self._at, self.calls, self.where, self.has_failed = at, 0, "", False

    def __enter__(self) -> None:
        sys.settrace(self._called)

    def __exit__(self, *of: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if "/direct" not in code.co_filename and not code.co_name.startswith("direct"):
            return
        if is_closed(frame):
            return
        self.calls += 1
        if self._at is not None and self.calls > self._at:
            self.has_failed, self.where = True, f"{code.co_qualname} of {code.co_filename}"
            sys.settrace(None)
            raise Failed("at a call")


def grumbles(tag: str | None) -> str | None:
    for other in ("odd", "gone"):
        if tag == other == "gone":
            sys.exit("no more")
        if tag == other:
            raise ValueError(f"an odd tag: {other}")
    return tag


RAISING: dict[str, Query] = {
    "select": lambda a, b: a.select(lambda a: (grumbles(a.tag), a.id)).distinct(),
    "condition": lambda a, b: a.join(
        b, on=lambda a, b: a.part == b.part and grumbles(a.tag) != b.tag
    ),
    "group": lambda a, b: a.group_by(lambda a: grumbles(a.tag)).aggregate(Count()),
    "value": lambda a, b: a.group_by(lambda a: a.part).aggregate(
        CountDistinct(lambda a: grumbles(a.tag))
    ),
}


@pytest.mark.parametrize("name", RAISING)
def test_a_callable_that_raises_is_left_to_a_job_and_gone_with_its_row(
    name: str, session: Session, tmp_path: Path
) -> None:
    """The job reports the exception (test_fragment_callables)."""
    fragment = fragment_of(RAISING[name], OF)
    places = inputs_in_order(fragment, OF)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=False))
    good = [Left(n, n % 2, 0.5, "xy"[n % 2], DAY) for n in range(4)]
    partner = Right(1, 1, 0.5, "z", DAY)
    shown = Counter[Any]()

    def flush(*changes: tuple[int, Any, int]) -> None:
        given = entries(fragment, places, list(changes))
        shown.update(dict(remote.apply(remote.applied + 1, given)))

    with without_spark():
        flush(*((0, row, 1) for row in good), (1, partner, 1))
        for tag in ("odd", "gone"):
            row = Left(7, 1, 0.5, tag, DAY)
            with pytest.raises(OffloadError, match="Spark is gone"):
                flush((0, row, 1))
            flush((0, row, 1), (0, row, -1), (0, good[0], 1))
    bags = Counter([*good, good[0], good[0]]), Counter([partner])
    assert Counter({row: n for row, n in shown.items() if n}) == evaluated(fragment, places, bags)


@pytest.mark.parametrize(
    ("kind", "key", "asked"),
    [
        *(
            (int, 1, [1]),
            (int, True, [1]),
            (int, 2.0, [2]),
            (int, Decimal(2), [2]),
            (int, -0.0, [0]),
        ),
        *((int, 2.5, []), (int, math.inf, []), (int, NAN, []), (int, "1", []), (int, 2**70, [])),
        *((int, 2.0**70, []), (int, object(), []), (int, None, None), (int, Size.TWO, None)),
        *((bool, 1, [True]), (bool, 0.0, [False]), (bool, 2, []), (bool, "", [])),
        *((str, "x", ["x"]), (str, b"x", []), (str, "\ud800", []), (str, Word.X, None)),
        *((date, DAY, [DAY]), (date, datetime(2000, 1, 1), []), (bytes, b"", [b""])),
        (float, 1.0, None),
    ],
)
def test_a_column_is_compared_with_the_value_that_is_equal_to_that_of_a_key(
    kind: type, key: Any, asked: list[Any] | None
) -> None:
    look = Lookup([Plain(kind)], [Field(0, ("row",), Plain(kind))])
    found = look.values([(key,)])
    assert (found and found[1].to_pylist()) == asked


def test_a_flush_does_not_take_a_whole_table_to_find_rows_by_none(
    session: Session, tmp_path: Path
) -> None:
    fragment = fragment_of(lambda a, b: a.semi_join(b, on=lambda a, b: a.part == b.part), OF)
    remote = begun(StateRemote(session, fragment, str(tmp_path), stable=False))
    rows = [(0, 0, Left(n, n, 0.5, "x", DAY), 1) for n in range(9)]
    remote.apply(1, rows)
    with without_spark(), patch.object(flush, "MOST_FETCHED", 5):
        remote.apply(2, [(1, 0, Right(9, 3, 0.5, "x", DAY), 1)])
        with pytest.raises(OffloadError, match="Spark is gone"):
            remote.apply(3, [(1, 0, Right(9, None, 0.5, "x", DAY), 1)])
