"""A durable file and a pickle that an older release wrote, with a column of every kind.

    python -m tests.borders.durable.old_rows   rewrites both, by the code of an older commit

The declarations here must not change: the files hold the names of these classes and fields, and
the texts of their annotations.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union
from uuid import UUID
from zoneinfo import ZoneInfo

from reactive import Bag, Database

FILE = Path(__file__).with_suffix(".db")
PICKLE = Path(__file__).with_suffix(".pickle")
BERLIN = ZoneInfo("Europe/Berlin")
INDIA = timezone(timedelta(hours=5, minutes=30))
T = TypeVar("T")
Euro = NewType("Euro", Decimal)


class Colour(Enum):
    RED = "red"
    GREEN = 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    KG = "kg"


class Point(NamedTuple):
    x: int
    y: Optional[str]  # noqa: UP045  its text in the file is that of `str | None`


@dataclass(frozen=True, slots=True)
class Line:
    item: str
    key: UUID
    colour: Colour | None = None


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    inside: T


@dataclass(frozen=True, slots=True)
class Tree:
    name: str
    below: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class Single:
    """A field of each kind of single values, and each of them or None."""

    id: int
    flag: bool
    real: float
    text: str
    raw: bytes
    exact: Decimal
    day: date
    at: time
    when: datetime
    instant: Annotated[datetime, UTC]
    local: Annotated[datetime, BERLIN]
    took: timedelta
    uuid: UUID
    colour: Colour
    level: Level
    unit: Unit
    word: Literal["a", "b"]
    price: Euro
    anything: Any
    real_or_none: float | None
    raw_or_none: bytes | None
    exact_or_none: Optional[Decimal]  # noqa: UP045
    time_or_none: time | None
    instant_or_none: Annotated[datetime, UTC] | None
    uuid_or_none: UUID | None
    colour_or_none: Union[Colour, None]  # noqa: UP007
    either: int | str | None
    part: Fraction


@dataclass(frozen=True, slots=True)
class Nested:
    """A field of each kind that holds others."""

    id: int
    point: Point
    line: Line | None
    box: Box[int]
    tree: Tree
    pair: tuple[int, UUID | None]
    times: tuple[time, ...]
    tags: frozenset[str]
    shades: frozenset[Colour]
    lines: tuple[Line, ...]
    bag: Bag[Decimal]
    points: Bag[Point]
    inner: tuple[tuple[Colour, frozenset[int]], ...]


PAIR: Any = GenericAlias(tuple, (int, Colour | None, tuple[UUID, ...]))
_INSTANTS = [
    datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
    datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=INDIA),
]
_single: Any = Single
_nested: Any = Nested
_LOCAL = [
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=2))),
    datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=1))),
    datetime(2024, 7, 1, 12, tzinfo=BERLIN),
]
TABLES: dict[str, tuple[Any, list[Any]]] = {
    "single": (
        Single,
        [
            _single(
                *(n, n == 1, (0.5, -1e300, float("inf"))[n], ("a", 'ü, "b"', "")[n]),
                *((b"ab", b"\xff\x00", b"")[n], Decimal(("1.50", "-12.125", "0")[n])),
                *(date(2026, 1, 2 + n), (time(3, 4), time.max, time.min)[n]),
                *(datetime(2026, 1, 2, 3, 4, 5, n), _INSTANTS[n]),
                _LOCAL[n],
                *((timedelta(seconds=3.5), timedelta(-2, 0, 1), timedelta.max)[n], UUID(int=n)),
                *((Colour.RED, Colour.GREEN, Colour.RED)[n], (Level.LOW, Level.HIGH)[n % 2]),
                *(Unit.KG, ("a", "b")[n % 2], Euro(Decimal(n))),
                (None, (1, Colour.RED.value), date(2026, 1, 1))[n],
                *((None,) * 7 if n == 0 else (1.5, b"\xff", Decimal(1), time(1), _INSTANTS[n])),
                *(() if n == 0 else (UUID(int=9), Colour.GREEN)),
                *((None, 7, "seven")[n], Fraction(n, 3)),
            )
            for n in range(3)
        ],
    ),
    "nested": (
        Nested,
        [
            _nested(
                *(n, Point(n, None if n else "p"), Line("a", UUID(int=n)) if n else None),
                *(Box(n), Tree("t", (Tree("u"), Tree("v", (Tree("w"),))))),
                *((n, None if n else UUID(int=7)), (time(1), time(2, 3))[:n]),
                *(frozenset(("x", "y")[:n]), frozenset({Colour.RED, Colour.GREEN})),
                *((Line("b", UUID(int=8), Colour.GREEN),) * n, Bag([Decimal("1.50")] * n)),
                Bag([Point(1, None), Point(2, "q")]),
                ((Colour.RED, frozenset({1, 2})), (Colour.GREEN, frozenset())),
            )
            for n in range(3)
        ],
    ),
    "pairs": (PAIR, [(1, None, ()), (2, Colour.RED, (UUID(int=1), UUID(int=2)))]),
    "days": (date, [date(2026, 1, 1), date(2026, 1, 2)]),
    "colours": (Colour, [Colour.RED, Colour.GREEN]),
}


def table_of(db: Database, name: str) -> Any:
    """Return a table as the file has it."""
    kind, _ = TABLES[name]
    return db.table(kind, name=name, key="id" if name in ("single", "nested") else None)


def write(path: Path, names: Iterable[str] = TABLES) -> None:
    """Write a durable file of the tables."""
    with Database(path) as db:
        for name in names:
            table_of(db, name).add_all(TABLES[name][1])


if __name__ == "__main__":
    from tests.borders.durable import old_rows

    FILE.unlink(missing_ok=True)
    old_rows.write(FILE)
    PICKLE.write_bytes(pickle.dumps([rows for _, rows in old_rows.TABLES.values()], protocol=4))
