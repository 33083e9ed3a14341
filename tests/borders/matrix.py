"""Every kind of value over every border and back: the outcome, as data and as a page of docs.

Each case is an annotation with values. A border takes a class of rows and rows, writes the rows,
reads them as rows of the class, and returns them, or raises the library's refusal.
"""

from __future__ import annotations

import atexit
import csv
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID

from optimizer.kinds.kind import (
    Choice,
    Items,
    Kind,
    Members,
    Scalar,
    declares_none,
    kind_of,
    without_none,
)
from optimizer.kinds.texts import json_of
from reactive import Bag, Database, PostgresSource, ReactiveError, mirror, to_python
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.schema import Pickled, kept_as
from tests.postgres_server import PostgresServer

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Crossed(Enum):
    """The name of each is the value of the other."""

    A = "B"
    B = "A"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Unit(StrEnum):
    KG = "kg"
    M = "m"


class Point(NamedTuple):
    x: int
    y: str | None


@dataclass(frozen=True, slots=True)
class Line:
    item: str
    key: UUID


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    inside: T


@dataclass(frozen=True, slots=True)
class Tree:
    name: str
    below: tuple[Tree, ...] = ()


Euro = NewType("Euro", Decimal)
SCALARS: dict[str, tuple[Any, list[Any]]] = {
    "bool": (bool, [True, False]),
    "int": (int, [0, -7, 2**62]),
    "float": (float, [0.5, -1e300, 7.0]),
    "str": (str, ["a", 'ü, "b"', " c ", ""]),
    "bytes": (bytes, [b"ab", b""]),
    "bytes, not UTF-8": (bytes, [b"\x00\xff"]),
    "Decimal": (Decimal, [Decimal("1.5"), Decimal("-12.125")]),
    "date": (date, [date(2026, 1, 2), date(1, 1, 1)]),
    "time": (time, [time(3, 4), time(23, 59, 59, 999999)]),
    "datetime": (datetime, [datetime(2026, 1, 2, 3, 4, 5, 6)]),
    "zoned datetime": (Annotated[datetime, UTC], [datetime(2026, 1, 2, tzinfo=UTC)]),
    "timedelta": (timedelta, [timedelta(seconds=3.5), timedelta(days=-2, microseconds=1)]),
    "UUID": (UUID, [UUID(int=7), UUID(int=2**127)]),
    "Enum": (Colour, [Colour.RED, Colour.GREEN]),
    "Enum, crossed": (Crossed, [Crossed.A, Crossed.B]),
    "IntEnum": (Level, [Level.LOW, Level.HIGH]),
    "StrEnum": (Unit, [Unit.KG, Unit.M]),
    "Literal": (Literal["a", "b"], ["a", "b"]),
    "Literal of ints": (Literal[1, 2], [1, 2]),
    "NewType": (Euro, [Decimal("1.5")]),
}
_TUPLE: Any = tuple
_FROZENSET: Any = frozenset
_BAG: Any = Bag
_BOX: Any = Box
SHAPES: dict[str, Callable[[Any, list[Any]], tuple[Any, list[Any]]]] = {
    "{}": lambda of, values: (of, values),
    "{} | None": lambda of, values: (of | None, [*values, None]),
    "tuple[{}, ...]": lambda of, values: (_TUPLE[of, ...], [tuple(values), ()]),
    "frozenset[{}]": lambda of, values: (_FROZENSET[of], [frozenset(values), frozenset()]),
    "Bag[{}]": lambda of, values: (_BAG[of], [Bag(values)]),
    "tuple[{}, int]": lambda of, values: (_TUPLE[of, int], [(value, 1) for value in values]),
    "Box[{}]": lambda of, values: (_BOX[of], [Box(value) for value in values]),
}
"""Shapes around a value. `Box` is a generic dataclass."""
RECORDS: dict[str, tuple[Any, list[Any]]] = {
    "NamedTuple": (Point, [Point(1, "a"), Point(2, None)]),
    "dataclass": (Line, [Line("a", UUID(int=7))]),
    "dataclass | None": (Line | None, [Line("a", UUID(int=7)), None]),
    "tuple[dataclass, ...]": (tuple[Line, ...], [(Line("a", UUID(int=7)),), ()]),
    "recursive dataclass": (Tree, [Tree("a", (Tree("b"), Tree("c", (Tree("d"),))))]),
}
CASES: dict[str, tuple[Any, list[Any]]] = {
    shape.format(name): inside(of, values)
    for name, (of, values) in SCALARS.items()
    for shape, inside in SHAPES.items()
} | RECORDS


class Cell(NamedTuple):
    """Outcome of a case at a border."""

    is_exact: bool
    text: str


def row_class(name: str) -> Any:
    """The class of rows with a number and a value of a case."""
    made: Any = make_dataclass("Row", [("id", int), ("v", CASES[name][0])], frozen=True, slots=True)
    made.__module__ = __name__
    return made


def over_json(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(to_python(r), default=to_python)}\n" for r in rows))
    return list(Database().watch(str(path), kind))


def over_csv(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["id", "v"])
        for row in rows:
            out.writerow([row.id, _cell(row.v, kind.__annotations__["v"])])
    return list(Database().watch(str(path), kind))


def _cell(value: Any, of: Any) -> str:
    if value is None:
        return ""
    if (value == "" or value == b"") and declares_none(kind_of(of)):
        raise ReactiveError("an empty cell is None, and the empty text is no other cell")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ReactiveError("a cell is text, and these bytes are not UTF-8") from None
    plain = json_of(value)
    plain = to_python(plain) if plain is value else plain
    if isinstance(plain, list | dict):
        return json.dumps(plain, default=to_python)
    return str(plain)


def over_arrow(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    again = Database().table(kind, name="again")
    again.add_arrow(_filled(kind, rows).to_arrow())
    return list(again)


def over_parquet(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    import pyarrow.parquet as pq

    pq.write_table(_filled(kind, rows).to_arrow(), folder / "rows.parquet")
    return list(Database().watch(str(folder / "rows.parquet"), kind))


def over_file(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    with Database(folder / "rows.db") as db:
        db.table(kind, name="rows").add_all(rows)
    with Database(folder / "rows.db") as db:
        return list(db.table(kind, name="rows"))


def over_sql(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    db = Database()
    db.table(kind, name="rows").add_all(rows)
    return [kind(*row) for row in db.sql("select id, v from rows").materialize()]


def over_where(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    """WHERE with each value as a parameter, and as a literal where one can be written."""
    db = Database()
    db.table(kind, name="rows").add_all(rows)
    found: dict[int, Any] = {}
    for row in rows:
        equals = "=" if row.v is not None else "is not distinct from"
        asked = f"select id, v from rows where v {equals}"
        literal = _literal(kind_of(kind.__annotations__["v"]), row.v)
        views = [db.sql(f"{asked} :v", v=row.v)]
        if literal is not None:
            views.append(db.sql(f"{asked} {literal}"))
        for view in views:
            again = [kind(*each) for each in view.materialize()]
            assert again == [row], f"WHERE {literal or row.v!r} finds {again}"
            found |= {each.id: each for each in again}
    return list(found.values())


def _literal(kind: Kind, value: Any) -> str | None:
    """Return a value as an SQL literal; None if SQL has no literal for it."""
    if value is None:
        return "null"
    if not isinstance(without_none(kind), Scalar | Choice):
        return None
    match value:
        case bytes():
            return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::blob"
        case bool() | int() | float() | Decimal():
            return str(value).lower()
        case datetime(tzinfo=zone):
            return f"{'timestamp' if zone is None else 'timestamptz'} '{value}'"
        case date() | time():
            return f"{type(value).__name__} '{value}'"
        case timedelta():
            return f"interval '{value // timedelta(microseconds=1)} microseconds'"
        case UUID():
            return f"'{value}'::uuid"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


class _PickledError(ReactiveError):
    """A row is exact on Spark, but in one column of bytes, which Spark cannot compute with."""


def over_spark(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    """The columns that rows have on Spark, without a session; `tests/spark` has one."""
    kept = kept_as(kind)
    if isinstance(kept, Pickled):
        raise _PickledError(kept.reason)
    return from_arrow(kept, to_arrow(kept, rows))


def over_frames(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    """Frames of polars, which a table of the class takes twice."""
    frame = _filled(kind, rows).to_polars()
    table = Database().table(kind, name="again", key="id")
    table.sync(frame)
    table.sync(frame)
    return list(table)


def over_postgres(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    """A table of the columns that one would choose: types of its own, arrays, else `jsonb`."""
    case = (kind.__annotations__["v"], [row.v for row in rows])
    name = next(name for name, each in CASES.items() if each == case)
    return [kind(*row) for row in _of_postgres()[name]]


@cache
def _of_postgres() -> dict[str, list[Any]]:
    """The rows of all cases, which one source follows: a source for each takes minutes."""
    server, db = PostgresServer(), Database()
    server.start()
    atexit.register(server.close)
    dsn = server.new_database()
    into: dict[Any, Any] = {}
    for place, (name, (of, _)) in enumerate(CASES.items()):
        wanted = kind_of(of)
        column = _postgres_type(without_none(wanted))
        null = "" if declares_none(wanted) else " not null"
        server.execute(dsn, f"create table t{place} (id int primary key, v {column}{null})")
        kind = row_class(name)
        into[kind] = db.table(kind, name=f"t{place}", key="id")
    tables: dict[str, type] = {table.name: kind for kind, table in into.items()}
    source = PostgresSource(dsn, tables, name="matrix", temporary=True)
    with db.ingest(source, into):
        source.catch_up(120)
        for place, (_, values) in enumerate(CASES.values()):  # these rows are sent as changes
            column = _postgres_type(without_none(kind_of([*into][place].__annotations__["v"])))
            marks = ", ".join([f"(%s, %s::{column})"] * len(values))
            given = [e for n, v in enumerate(values) for e in (n, _postgres_value(v, column))]
            server.execute(dsn, f"insert into t{place} values {marks}", given)
        source.catch_up(120)
    return {
        name: [(row.id, row.v) for row in table]
        for name, table in zip(CASES, into.values(), strict=True)
    }


POSTGRES: dict[Any, str] = {
    bool: "boolean",
    int: "bigint",
    float: "double precision",
    str: "text",
    bytes: "bytea",
    Decimal: "numeric",
    date: "date",
    time: "time",
    datetime: "timestamp",
    timedelta: "interval",
    UUID: "uuid",
}


def _postgres_type(kind: Kind) -> str:
    match kind:
        case Scalar(_, zone) if zone is not None:
            return "timestamptz"
        case Scalar(python):
            return POSTGRES[python]
        case Members(python):
            return POSTGRES[type(next(iter(python)).value)]
        case Choice(values):
            return POSTGRES[type(values[0])]
        case Items(python, item) if python is tuple and _postgres_type(item) != "jsonb":
            return f"{_postgres_type(item)}[]"
        case _:
            return "jsonb"


def _postgres_value(value: Any, column: str) -> Any:
    if column == "jsonb":
        return None if value is None else json.dumps(to_python(value), default=to_python)
    if column.endswith("[]"):
        return [_postgres_value(each, column[:-2]) for each in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, UUID) else value


def over_orm(kind: Any, rows: Sequence[Any], folder: Path) -> list[Any]:
    """The mirror of a class of SQLAlchemy over SQLite, whose column is of the type for it."""
    import sqlalchemy as sa
    from sqlalchemy.orm import registry, sessionmaker
    from sqlalchemy.pool import StaticPool

    wanted = kind_of(kind.__annotations__["v"])
    column = _orm_type(without_none(wanted))
    mapped: Any = type("Mapped", (), {})
    base = registry()
    table = sa.Table(
        "rows",
        base.metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("v", column, nullable=declares_none(wanted)),
    )
    base.map_imperatively(mapped, table)
    engine = sa.create_engine("sqlite://", poolclass=StaticPool)
    base.metadata.create_all(engine)
    factory = sessionmaker(engine)
    with factory() as session:
        session.execute(sa.insert(table), [{"id": row.id, "v": row.v} for row in rows[:1]])
        session.commit()
    with mirror(Database(), factory, mapped) as found:
        with factory() as session:
            for row in rows[1:]:
                made = mapped()
                made.id, made.v = row.id, row.v
                session.add(made)
            session.commit()
        again = [kind(row.id, row.v) for row in found[mapped]]
    engine.dispose()
    return again


def _orm_type(kind: Kind) -> Any:
    import sqlalchemy as sa

    types: dict[Any, Any] = {
        bool: sa.Boolean,
        int: sa.BigInteger,
        float: sa.Float,
        str: sa.String,
        bytes: sa.LargeBinary,
        date: sa.Date,
        time: sa.Time,
        datetime: sa.DateTime,
        timedelta: sa.Interval,
        UUID: sa.Uuid,
        Decimal: sa.Numeric(20, 6),
    }
    match kind:
        case Scalar(_, zone) if zone is not None:
            return sa.PickleType
        case Scalar(python):
            return types[python]
        case Members(python):
            return sa.Enum(python)
        case Choice(values):
            return types[type(values[0])]
        case _:
            return sa.PickleType


BORDERS: dict[str, Callable[[Any, Sequence[Any], Path], list[Any]]] = {
    "JSON": over_json,
    "CSV": over_csv,
    "Arrow": over_arrow,
    "Parquet": over_parquet,
    "frames": over_frames,
    "durable file": over_file,
    "SQL": over_sql,
    "SQL, WHERE": over_where,
    "Postgres": over_postgres,
    "ORM": over_orm,
    "Spark": over_spark,
}


def _filled(kind: Any, rows: Sequence[Any]) -> Any:
    table = Database().table(kind, name="rows")
    table.add_all(rows)
    return table


@cache
def crossed(name: str, border: str) -> Cell:
    """Send the values of a case over a border and back, and return the outcome."""
    kind = row_class(name)
    globals()["Row"] = kind
    rows = [kind(place, value) for place, value in enumerate(CASES[name][1])]
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = sorted(BORDERS[border](kind, rows, Path(folder)), key=lambda row: row.id)
        except Exception as error:
            if isinstance(error, _PickledError):
                return Cell(False, f"pickled: {error}".replace("Row.v: ", ""))
            if not isinstance(error, ReactiveError):
                return Cell(False, f"{type(error).__name__}: {error}".splitlines()[0][:200])
            return Cell(False, f"refused: {error}".splitlines()[0][:200])
    for row, again in zip(rows, found, strict=True):
        if again != row or type(again.v) is not type(row.v):
            return Cell(False, f"wrong: {row.v!r} is {again.v!r}")
    return Cell(True, "exact")


def page() -> str:
    """Return the table of docs: the outcome of each kind at each border, alone and inside."""
    lines = [f"| kind | {' | '.join(BORDERS)} |", f"|---|{'---|' * len(BORDERS)}"]
    for name in SCALARS:
        cells = [_together({s: crossed(s.format(name), b) for s in SHAPES}) for b in BORDERS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name in RECORDS:
        found = [crossed(name, border).text for border in BORDERS]
        called = name.replace("|", "\\|")
        lines.append(f"| {called} | {' | '.join(found)} |")
    return "\n".join(lines).replace("tests.borders.matrix.", "") + "\n"


def _together(cells: dict[str, Cell]) -> str:
    """Return the text for a kind, with the shapes whose outcome differs."""
    alone = cells["{}"].text
    others = [shape for shape, cell in cells.items() if cell.is_exact != cells["{}"].is_exact]
    if not others:
        return alone
    reason = next(cells[shape].text for shape in others)
    inside = ", ".join(f"`{shape.format('..')}`" for shape in others).replace("|", "\\|")
    return f"{alone}; {inside} {reason}"
