"""A move to state tables: in pieces, while commits go on, without a second copy of the state."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

from reactive import Count, Database, OffloadError, Sum
from reactive.engine.collections.zset import NAN
from reactive.engine.remote.fragments import whole_fragment
from reactive.engine.remote.remote import Entry
from spark_backend.fragments.remote import StateRemote
from tests.borders.offload.conftest import small_pieces

pytestmark = pytest.mark.usefixtures("either_way")

PIECE = 7


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch, PIECE)


class Point(NamedTuple):
    x: float
    y: float | None


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: int
    amount: float


@dataclass(frozen=True, slots=True)
class Customer:
    id: int
    town: str


@dataclass(frozen=True, slots=True)
class Anything:
    """Every kind of column there is."""

    number: int | None
    share: float
    text: str | None
    data: bytes
    yes: bool
    day: date
    at: datetime
    price: Decimal
    point: Point | None
    pair: tuple[int, str]


def anything(n: int) -> Anything:
    return Anything(
        None if n % 3 == 0 else n * 10**17,
        (0.0, -1.5, NAN, float("inf"), 5e-324)[n % 5],
        None if n % 2 else "\x00ä" * n,
        bytes([n]),
        n % 2 == 0,
        date(1, 1, 1 + n),
        datetime(1, 1, 1 + n, 23, 59, 59, 999_999),
        Decimal(n) / 10,
        None if n % 4 == 0 else Point(n / 3, None if n % 5 else 1.5),
        (n, "b"),
    )


def by_town(orders: Any, customers: Any) -> Any:
    joined = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return joined.group_by(lambda o, c: c.town).aggregate(Count(), Sum(lambda o, c: o.amount))


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> list[int]:
    """Call a function after each piece that is sent; return the sizes of the pieces."""
    sizes, stage = list[int](), StateRemote.stage

    def staged(self: StateRemote, number: int, entries: Sequence[Entry]) -> None:
        stage(self, number, entries)
        sizes.append(len(entries))
        act(len(sizes))

    monkeypatch.setattr(StateRemote, "stage", staged)
    return sizes


def test_a_view_moves_in_pieces_and_what_other_threads_commit_meanwhile_is_in_it(
    offload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(offload=offload) as db:
        orders = db.table(Order, name="orders")
        customers = db.table(Customer, name="customers")
        view = by_town(orders, customers).materialize("by town")
        twin = by_town(orders, customers).materialize("twin")
        first = [Order(n, n % 5, n / 3) for n in range(20)]
        orders.add_all([*first, *first[:3]])  # some twice
        customers.add_all(Customer(n, "ab"[n % 2]) for n in range(4))

        def write(piece: int) -> None:
            orders.remove(first[piece])
            orders.add(Order(100 + piece, piece % 5, 0.25))
            customers.update(Customer(piece % 4, "ab"[piece % 2]), Customer(piece % 4, "c"))
            customers.update(Customer(piece % 4, "c"), Customer(piece % 4, "ab"[piece % 2]))

        def commit(piece: int) -> None:
            writer = threading.Thread(target=write, args=(piece,))
            writer.start()
            writer.join(30)
            assert not writer.is_alive()

        sizes = during(monkeypatch, commit)
        view.offload()
        assert len(sizes) == 4 and max(sizes) == PIECE and sum(sizes) == 20 + 4
        assert sorted(view) == sorted(twin)
        orders.add(Order(-1, 0, 1.0))
        view.verify()
        assert dict(view.zset().items()) == dict(twin.zset().items())
        assert not list(Path(offload._folder).rglob("staged/*"))


@pytest.mark.quick
def test_a_hand_over_that_fails_leaves_the_view_where_it_was_and_can_be_done_again(
    offload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(offload=offload) as db:
        orders = db.table(Order, name="orders")
        customers = db.table(Customer, name="customers")
        view = by_town(orders, customers).materialize("by town")
        orders.add_all(Order(n, n % 5, n / 3) for n in range(20))
        customers.add_all(Customer(n, "ab"[n % 2]) for n in range(4))
        before = sorted(view)

        def fail(piece: int) -> None:
            raise OffloadError("no space left")

        with monkeypatch.context() as failing:
            during(failing, fail)
            with pytest.raises(OffloadError, match="no space left"):
                view.offload()
        assert not db.offload_status() and sorted(view) == before
        sizes = during(monkeypatch, lambda _: None)
        view.offload()
        assert sum(sizes) == 24 and sorted(view) == before
        assert "state tables" in view.explain()


def test_a_row_that_no_column_holds_keeps_the_view_in_the_process(offload: Any) -> None:
    with Database(offload=offload) as db:
        orders = db.table(Order, name="orders")
        customers = db.table(Customer, name="customers")
        view = by_town(orders, customers).materialize("by town")
        orders.add_all(Order(n, n, 1.0) for n in range(10))
        orders.add(Order(True, 5, 1.0))
        customers.add(Customer(1, "a"))
        with pytest.raises(OffloadError, match=r"True(.|\n)*exactly"):
            view.offload()
        assert list(view) == [("a", 1, 1.0)]


def test_rows_of_all_types_come_back_from_a_file_as_what_they_are(
    session: Any, tmp_path: Path
) -> None:
    table: Any = Database().table(Anything, name="anything")
    whole = whole_fragment(table.distinct().plan, lambda _: False)
    assert whole is not None
    remote = StateRemote(session, whole, str(tmp_path), stable=True)
    rows = [anything(n) for n in range(12)]
    entries = [(0, *remote.pack(0, row, row), 1) for row in rows]
    for start in range(0, 9, 3):
        remote.stage(0, entries[start : start + 3])
    staged = sorted(p.name for p in tmp_path.rglob("staged/*/*/*.parquet"))
    assert staged == ["000000.parquet", "000001.parquet", "000002.parquet"]
    out = remote.apply(0, entries[9:])
    assert Counter(map(repr, dict(out))) == Counter(map(repr, rows))
    assert Counter(map(repr, dict(remote.contents()))) == Counter(map(repr, rows))
    assert not list(tmp_path.rglob("staged/*"))


def test_what_was_staged_of_a_flush_that_never_came_counts_for_nothing(
    session: Any, tmp_path: Path
) -> None:
    table: Any = Database().table(int, name="numbers")
    whole = whole_fragment(table.distinct().plan, lambda _: False)
    assert whole is not None

    def opened() -> StateRemote:
        return StateRemote(session, whole, str(tmp_path), stable=True)

    first = opened()
    first.stage(0, [(0, 0, 1, 1), (0, 0, 2, 1)])
    again = opened()
    again.stage(0, [(0, 0, 5, 1)])
    again.stage(1, [(0, 0, 3, 1)])  # it goes on with another number
    assert again.apply(0, [(0, 0, 7, 1)]) == [(7, 1)]
    assert list(again.contents()) == [(7, 1)]
