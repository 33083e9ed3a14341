"""The changes that wait for a flush are bounded by their bytes, too."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database, OffloadError, Sum
from reactive.borders.offload.backend import byte_count, row_count
from reactive.engine.collections.sampled_size import EVERY, SampledSize, deep_size
from tests.borders.offload.elsewhere import Elsewhere


@dataclass(frozen=True, slots=True)
class Note:
    number: int
    text: str


@dataclass(frozen=True)
class Loose:
    text: str


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [
        ("256MB", 256 * 10**6),
        (" 1 gib ", 2**30),
        ("7b", 7),
        ("1.5kB", 1500),
        (12, 12),
        (None, None),
    ],
)
def test_bytes_are_said_as_numbers_or_with_units(said: Any, bytes_: int | None) -> None:
    assert byte_count(said, "limit") == bytes_


@pytest.mark.parametrize(
    "said", ["", "256", "MB", "1 ib", "-1MB", "1e3MB", "0MB", 0, -5, True, 1.5]
)
def test_what_is_no_number_of_bytes_is_refused_with_what_to_say(said: Any) -> None:
    with pytest.raises(OffloadError, match=r"limit=.* is no number of bytes\n.*such as \"256MB\""):
        byte_count(said, "limit")


@pytest.mark.parametrize("said", ["256MB", -1, True, 1.5])
def test_what_is_no_number_of_rows_is_refused_with_how_to_say_bytes(said: Any) -> None:
    with pytest.raises(OffloadError, match=r"max_waiting=.*no number of rows\n.*max_waiting_bytes"):
        row_count(said, "max_waiting")


@pytest.mark.parametrize("row", [Note(1, "a" * 900), Loose("a" * 900), (1, ("a" * 900,))])
def test_the_parts_of_a_row_count(row: Any) -> None:
    assert 900 + sys.getsizeof(row) < deep_size(row) < 2000


def test_sampled_bytes_are_about_right_for_rows_of_all_sizes() -> None:
    draw, size, exact = Random(3), SampledSize(), 0
    for _ in range(3000):
        rows = ["a" * draw.randrange(2000) for _ in range(draw.randrange(5))]
        size.add(rows)
        exact += sum(map(sys.getsizeof, rows))
    assert abs(size.bytes - exact) < 0.1 * exact
    alone = SampledSize()
    alone.add(["a" * 1000] * EVERY)
    assert alone.bytes == EVERY * sys.getsizeof("a" * 1000)


def test_a_writer_waits_when_what_waits_takes_too_many_bytes() -> None:
    db = Database(offload=Elsewhere(max_waiting_bytes=2 * 10**6))
    table = db.table(Note, name="notes")
    view = table.distinct().materialize()
    view.offload()
    lags = []
    for n in range(300):
        table.add(Note(n, f"{n}" * 10_000))
        lags.append(db.offload_status()[0].lag)
    assert db.offload_status()[0].flushes >= 3
    assert max(lags) < 300
    view.verify()


def test_what_waits_in_the_process_beside_a_part_that_is_elsewhere_is_bounded() -> None:
    db = Database(offload=Elsewhere(max_waiting=10))
    orders, names = db.table(tuple, name="orders"), db.table(tuple, name="names")
    totals = orders.group_by(lambda o: o[0]).aggregate(Sum(lambda o: o[1]))
    named = totals.join(names, on=lambda k, s, n: k == n[0]).select(lambda k, s, n: (n[1], s))
    view = named.materialize("named")
    orders.add((1, 5))
    totals.materialize("totals").offload()
    late = []
    for n in range(35):
        names.add((n, "x" * n))
        late.append(max((node.pending_size.count for node in db._engine.graph.late), default=0))
    assert 5 < max(late) <= 10
    assert view.read(stale_ok=True) == [("x", 5)]
    view.verify()
