"""Values of every kind in columns on Spark: views over them equal those in the process."""

from __future__ import annotations

from collections import Counter as Bag
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from reactive import Count, CountDistinct, Database, Max
from spark_backend.codec.schema import Pickled, kept_as

BERLIN = ZoneInfo("Europe/Berlin")


class Color(Enum):
    RED = 1
    BLUE = "blue"
    ROSE = 1  # noqa: PIE796  another name of RED


class Many(NamedTuple):
    """A field of each kind that is kept as text or as an array."""

    id: int
    uuid: UUID
    color: Color
    maybe: Color | None
    at: time
    took: timedelta | None
    when: Annotated[datetime, BERLIN]
    day: date | None
    tags: frozenset[str]
    shades: frozenset[Color]
    either: Literal[Color.RED, Color.BLUE]
    several: tuple[UUID, ...]
    inside: tuple[time, tuple[Color, Decimal]]


many: Any = Many
"""Made of values in groups, which types do not follow."""
KINDS: dict[str, tuple[Any, list[Any]]] = {
    "UUID": (UUID, [UUID(int=n << 100) for n in range(5)]),
    "Enum": (Color, [Color.RED, Color.BLUE, Color.ROSE]),
    "Enum or None": (Color | None, [Color.RED, None, Color.BLUE]),
    "time": (time, [time(9, 30), time(9, 30, 0, 1), time.max, time.min, time(23, 59)]),
    "timedelta": (
        timedelta,
        [timedelta(1), timedelta(-1), timedelta(0, 0, 1), timedelta.max, timedelta.min],
    ),
    "zoned": (
        Annotated[datetime, UTC],
        [
            datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
            datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
            datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
            datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
            datetime(1, 1, 2, tzinfo=UTC),
            datetime(2024, 3, 31, 5, 45, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        ],
    ),
    "frozenset": (
        frozenset[str],
        [frozenset(), frozenset("ab"), frozenset("ba"), frozenset({"é", ""}), frozenset("abc")],
    ),
    "frozenset of None": (
        frozenset[int | None],
        [frozenset({1, None}), frozenset({None, 1, 2}), frozenset({-(2**63), 2**63 - 1})],
    ),
    "frozenset of floats": (frozenset[float], [frozenset({0.5, -1.0}), frozenset({float("inf")})]),
    "frozenset of sets": (
        frozenset[frozenset[Color]],
        [frozenset({frozenset({Color.RED}), frozenset()}), frozenset({frozenset(Color)})],
    ),
    "tuple of times": (tuple[time, ...], [(time(1), time(2)), (), (time(2), time(1))]),
    "None or UUID inside": (
        tuple[UUID | None, Color],
        [(None, Color.RED), (UUID(int=1), Color.BLUE), (UUID(int=1), Color.RED)],
    ),
    "Literal": (Literal["a", "b"], ["a", "b"]),
}


QUERIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "distinct": lambda a, b, first: a.select(lambda row: row[1]).distinct(),
    "group": lambda a, b, first: a.group_by(lambda row: row[1]).aggregate(Count()),
    "join": lambda a, b, first: a.join(b, on=lambda a, b: a[1] == b[1]),
    "where": lambda a, b, first: a.where(lambda row: row[1] == first).distinct(),
    "in": lambda a, b, first: a.where(lambda row: row[1] in (first, None)).distinct(),
    "turned": lambda a, b, first: a.select(lambda row: (row[1], row[0])).distinct(),
    "difference": lambda a, b, first: a.difference(b),
    "semi_join": lambda a, b, first: a.semi_join(b, on=lambda a, b: a[1] == b[1]).distinct(),
    "counted": lambda a, b, first: a.group_by(lambda row: row[0] % 2).aggregate(
        CountDistinct(lambda row: row[1]), Max(lambda row: row[0])
    ),
}


class Side:
    """A database with a view over two tables of a kind."""

    def __init__(self, db: Database, kind: str, query: str) -> None:
        declared, self.values = KINDS[kind]
        row: Any = GenericAlias(tuple, (int, declared))
        self.tables: list[Any] = [db.table(row, name=name) for name in ("a", "b")]
        for shift, table in enumerate(self.tables):
            table.add_all((n + shift, value) for n, value in enumerate(self.values))
        made = QUERIES[query](self.tables[0], self.tables[1], self.values[0])
        self.view: Any = made.materialize("view")

    def change(self, turn: int) -> None:
        a, b = self.tables
        a.add((10 + turn, self.values[-1]))
        a.remove((turn, self.values[turn]))
        b.add((20 + turn, self.values[0]))

    def rows(self) -> Bag[Any]:
        return Bag(self.view)


@pytest.mark.sampled
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_of_a_kind_is_that_of_the_process(
    session: Any, offload: Any, kind: str, query: str
) -> None:
    with Database(offload=offload) as there, Database() as here:
        moved, twin = Side(there, kind, query), Side(here, kind, query)
        moved.view.offload()
        for turn in range(2):
            moved.change(turn)
            twin.change(turn)
            there.flush()
            assert moved.rows() == twin.rows()


def test_a_row_with_a_field_of_each_kind_comes_back(session: Any, offload: Any) -> None:
    rows = [
        many(
            *(n, UUID(int=n), Color.RED, None if n % 2 else Color.BLUE, time(n, 30)),
            *(timedelta(hours=n) if n % 3 else None, datetime(2024, 10, 27, n, tzinfo=BERLIN)),
            *(date(2024, 1, 1 + n), frozenset("xyz"[: n % 4]), frozenset([Color.RED])),
            *(Color.BLUE, (UUID(int=n), UUID(int=1)), (time(n), (Color.RED, Decimal(n)))),
        )
        for n in range(6)
    ]
    assert not isinstance(kept_as(Many), Pickled)
    with Database(offload=offload) as db:
        table = db.table(Many, name="many")
        view = table.where(lambda row: row.id >= 0).distinct().materialize("many_rows")
        table.add_all(rows)
        view.offload()
        table.add(rows[0]._replace(id=7))
        table.remove(rows[1])
        db.flush()
        assert Bag(view) == Bag(table)
        for row in view:
            assert [type(value) for value in row] == [
                *(int, UUID, Color, type(row.maybe), time, type(row.took), datetime, date),
                *(frozenset, frozenset, Color, tuple, tuple),
            ]
        view.verify()


OTHERS: dict[str, Callable[[Any], Any]] = {
    "hour": lambda row: row.at.hour,
    "days": lambda row: row.took.days if row.took is not None else None,
    "name": lambda row: row.color.name,
    "year": lambda row: row.when.year,
    "later": lambda row: row.when + timedelta(days=1),
    "sum": lambda row: timedelta(hours=1) + (row.took or timedelta()),
    "order": lambda row: row.at < time(3),
    "subset": lambda row: row.tags < frozenset("xyz"),
    "union": lambda row: row.tags | {"w"},
    "in": lambda row: "x" in row.tags,
    "len": lambda row: len(row.tags),
    "truth": lambda row: (bool(row.tags), bool(row.took), bool(row.color)),
    "text": lambda row: f"{row.uuid} {row.at}",
    "hex": lambda row: row.uuid.hex,
}


def test_what_is_asked_of_such_values_is_what_python_says(session: Any, offload: Any) -> None:
    rows = [
        many(
            *(n, UUID(int=n), Color.RED, None, time(n), timedelta(n) if n else None),
            *(datetime(2024, 10, 27, n, tzinfo=BERLIN), None, frozenset("xyz"[:n])),
            *(frozenset(), Color.RED, (), (time(n), (Color.RED, Decimal(n)))),
        )
        for n in range(5)
    ]
    with Database(offload=offload) as db:
        table = db.table(Many, name="asked")
        table.add_all(rows)
        views = {
            name: table.select(ask).distinct().materialize(name) for name, ask in OTHERS.items()
        }
        for view in views.values():
            view.offload()
        table.remove(rows[0])
        db.flush()
        for name, view in views.items():
            assert set(view) == {OTHERS[name](row) for row in table}, name
