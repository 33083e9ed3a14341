"""Mirrors over a real server: instants around clock changes, and columns of all other kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import Enum
from importlib import import_module
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg2
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from reactive import Count, Database, Mirror, mirror

BERLIN, LONDON = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/London")
NEW_YORK, LORD_HOWE = ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")


class Base(DeclarativeBase): ...


class Visit(Base):
    __tablename__ = "visits"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[Annotated[datetime, UTC]] = mapped_column(sa.DateTime(timezone=True))
    left: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))


class Colour(Enum):
    RED = "red"
    GREEN = 2


class Thing(Base):
    __tablename__ = "things"
    id: Mapped[UUID] = mapped_column(primary_key=True)
    colour: Mapped[Colour]
    maybe: Mapped[Colour | None]
    took: Mapped[timedelta]
    about: Mapped[Any] = mapped_column(sa.JSON)
    more: Mapped[Any] = mapped_column(JSONB, nullable=True)
    tags: Mapped[Any] = mapped_column(sa.ARRAY(sa.String))
    keys: Mapped[Any] = mapped_column(sa.ARRAY(sa.Uuid))
    spans: Mapped[Any] = mapped_column(sa.ARRAY(sa.Interval), nullable=True)


@pytest.fixture
def engine(database: str) -> Iterator[sa.Engine]:
    yield from made_by(psycopg2, "psycopg2", database)


def made_by(driver: Any, name: str, database: str, zone: str = "UTC") -> Iterator[sa.Engine]:
    """Make an engine of a driver, whose sessions are in a time zone."""

    def connect() -> Any:
        return driver.connect(database, options=f"-c timezone={zone}")

    made = sa.create_engine(f"postgresql+{name}://", creator=connect, poolclass=sa.NullPool)
    Base.metadata.create_all(made)
    yield made
    made.dispose()


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/New_York"])
def zone(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["psycopg2", "psycopg"])
def zoned_engine(request: pytest.FixtureRequest, database: str, zone: str) -> Iterator[sa.Engine]:
    """Yield engines that return instants with the offset, or with the zone of the session."""
    yield from made_by(import_module(request.param), request.param, database, zone)


CHANGES: list[tuple[tzinfo, datetime]] = [
    (BERLIN, datetime(2024, 10, 27, 1, tzinfo=UTC)),
    (BERLIN, datetime(2024, 3, 31, 1, tzinfo=UTC)),
    (LONDON, datetime(2024, 10, 27, 1, tzinfo=UTC)),
    (NEW_YORK, datetime(2024, 11, 3, 6, tzinfo=UTC)),
    (LORD_HOWE, datetime(2024, 4, 6, 15, tzinfo=UTC)),
]
INSTANTS = [
    (change + timedelta(minutes=minutes)).astimezone(zone)
    for zone, change in CHANGES
    for minutes in (-60, -30, -1, 0, 30, 60)
] + [datetime(2024, 10, 27, 2, 30, tzinfo=timezone(timedelta(hours=hours))) for hours in (1, 2, -3)]


def stored(engine: sa.Engine) -> list[tuple[int, float, float | None]]:
    """Return the rows as the server has them, in seconds since 1970."""
    query = "select id, extract(epoch from at), extract(epoch from visits.left) from visits"
    with engine.connect() as connection:
        found = connection.execute(sa.text(query)).all()
    return sorted((i, float(at), None if left is None else float(left)) for i, at, left in found)


def mirrored(m: Mirror) -> list[tuple[int, float, float | None]]:
    rows = [
        (row.id, row.at.timestamp(), None if row.left is None else row.left.timestamp())
        for row in m[Visit]
    ]
    return sorted(rows)


def by_instant(rows: list[tuple[int, float, float | None]]) -> dict[float, int]:
    found: dict[float, int] = {}
    for _, at, _ in rows:
        found[at] = found.get(at, 0) + 1
    return found


def test_instants_around_clock_changes_are_those_of_the_server(zoned_engine: sa.Engine) -> None:
    factory = sessionmaker(zoned_engine)
    with factory() as session:
        visits = [Visit(id=n, at=at, left=None) for n, at in enumerate(INSTANTS[::2])]
        session.add_all(visits)
        session.commit()
    with mirror(Database(), factory, Visit) as m:
        groups = m[Visit].group_by(lambda row: row.at).aggregate(Count()).materialize()
        cut = INSTANTS[3]
        late = m[Visit].where(lambda row: row.at >= cut).materialize()
        stays = m[Visit].join(m[Visit], on=lambda a, b: a.at == b.left).materialize()

        def compare() -> None:
            rows = stored(zoned_engine)
            assert mirrored(m) == rows
            assert {at.timestamp(): count for at, count in groups} == by_instant(rows)
            assert sorted(row.id for row in late) == [
                n for n, at, _ in rows if at >= cut.timestamp()
            ]
            pairs = [(a, b) for a, at, _ in rows for b, _, left in rows if at == left]
            assert sorted((a.id, b.id) for a, b in stays) == pairs
            for view in (groups, late, stays):
                view.verify()

        compare()
        for act in ACTS:
            with factory() as session:
                act(session)
                session.commit()
            compare()


def _add(session: Session) -> None:
    session.add_all(
        Visit(id=100 + n, at=at, left=INSTANTS[-1 - n]) for n, at in enumerate(INSTANTS)
    )


def _move(session: Session) -> None:
    for visit in session.scalars(sa.select(Visit).where(Visit.id % 3 == 0)):
        visit.at += timedelta(hours=1)
        visit.left = visit.at


def _same_local_time_later(session: Session) -> None:
    """Move the first 02:30 of the clock change to the second, which has the same local time."""
    for visit in session.scalars(sa.select(Visit).where(Visit.at == INSTANTS[1])):
        visit.at = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)


def _in_bulk(session: Session) -> None:
    session.execute(
        sa.update(Visit).where(Visit.at < INSTANTS[4]).values(left=Visit.at + timedelta(minutes=30))
    )


def _delete_of_an_instant(session: Session) -> None:
    session.execute(sa.delete(Visit).where(Visit.at == INSTANTS[4]))


def _delete(session: Session) -> None:
    for visit in session.scalars(sa.select(Visit).where(Visit.id % 2 == 1)):
        session.delete(visit)


def _by_text(session: Session) -> None:
    session.execute(
        sa.text("update visits set at = '2024-10-27 02:30:00+01' where id % 5 = 0 or at is null")
    )


ACTS: list[Callable[[Session], None]] = [
    *(_add, _move, _same_local_time_later, _in_bulk, _delete_of_an_instant, _by_text, _delete)
]


def things(engine: sa.Engine) -> dict[UUID, tuple[str, ...]]:
    """Return the rows as the server writes them."""
    names = ("colour", "maybe", "took", "about", "more", "tags", "keys", "spans")
    query = f"select id, {', '.join(f'{name}::text' for name in names)} from things"
    with engine.connect() as connection:
        return {row[0]: tuple(row[1:]) for row in connection.execute(sa.text(query))}


def test_columns_of_all_kinds_are_mirrored(engine: sa.Engine) -> None:
    factory = sessionmaker(engine)

    def thing(n: int, **others: Any) -> Thing:
        values: dict[str, Any] = {
            "colour": Colour.RED if n % 2 else Colour.GREEN,
            "maybe": None if n % 3 else Colour.RED,
            "took": timedelta(days=n, seconds=-1, microseconds=n),
            "about": {"n": n, "inner": [1, {"a": None}], "text": "ü"},
            "more": None if n % 2 else [n, "x"],
            "tags": ["a", "", "b, c"][:n],
            "keys": [UUID(int=n), UUID(int=2**127)],
            "spans": [timedelta(hours=n)] if n else None,
        }
        return Thing(id=UUID(int=n), **values | others)

    with factory() as session:
        session.add_all(thing(n) for n in range(3))
        session.commit()
    with mirror(Database(), factory, Thing) as m:
        table = m[Thing]
        groups = table.group_by(lambda row: row.colour).aggregate(Count()).materialize()

        def compare() -> None:
            again = sessionmaker(engine)
            with again() as session, mirror(Database(), again, Thing) as fresh:
                assert {*map(repr, table)} == {*map(repr, fresh[Thing])}
                found = {each.id: each for each in session.scalars(sa.select(Thing))}
                assert {row.id for row in table} == found.keys() == things(engine).keys()
                for row in table:
                    of = found[row.id]
                    assert (row.colour, row.maybe, row.took) == (of.colour, of.maybe, of.took)
                    assert row.about["n"] == of.about["n"]
                    assert row.about["inner"][1] == of.about["inner"][1]
                    assert [list(row.tags), list(row.keys)] == [of.tags, of.keys]
                    assert (row.spans and list(row.spans)) == of.spans
                    assert (row.more and list(row.more)) == of.more
                counts: dict[Colour, int] = {}
                for of in found.values():
                    counts[of.colour] = counts.get(of.colour, 0) + 1
                assert dict(iter(groups)) == counts
            groups.verify()

        compare()
        with factory() as session:
            session.add(thing(7, about={"n": 7, "inner": [0, {"a": 1}]}))
            one = session.get_one(Thing, UUID(int=1))
            one.colour, one.took, one.tags = Colour.GREEN, timedelta(-3), [*one.tags, "new"]
            one.about = {**one.about, "n": 11}
            session.commit()
        compare()
        with factory() as session:
            session.execute(sa.update(Thing).values(maybe=Colour.GREEN, keys=[UUID(int=9)]))
            session.execute(sa.delete(Thing).where(Thing.colour == Colour.RED))
            session.commit()
        compare()
        with factory() as session:
            session.delete(session.get_one(Thing, UUID(int=1)))
            session.execute(sa.text("update things set spans = '{1 day,02:00}', took = '1 week'"))
            session.commit()
        compare()
