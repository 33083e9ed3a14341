"""Drivers that commit by themselves: the mirror equals SQL, whatever a transaction is."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from sqlalchemy.pool import StaticPool

from reactive import Database, Mirror, Sum, TransactionError, mirror


class Base(DeclarativeBase): ...


class Tag(Base):
    __tablename__ = "tags"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


LEVELS = ["", "IMMEDIATE", None]
"""Statement of a SQLite driver that begins a transaction; None if the driver begins none."""


@pytest.fixture(params=LEVELS, ids=["default", "immediate", "none"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    path = tmp_path / "tags.db"
    made = create_engine(f"sqlite:///{path}", connect_args={"isolation_level": request.param})
    Base.metadata.create_all(made)
    with made.connect() as connection:
        connection.execute(text("insert into tags values (1, 'a'), (2, 'b')"))
        connection.commit()
    yield made
    made.dispose()


def rows_of(engine: Engine) -> list[tuple[int, str]]:
    with engine.connect() as connection:
        return sorted((row.id, row.name) for row in connection.execute(select(Tag.__table__)))


def rows_in(m: Mirror) -> list[tuple[int, str]]:
    return sorted((row.id, row.name) for row in m[Tag])


def _by_savepoint(connection: Connection) -> None:
    with connection.begin_nested():
        connection.execute(text("insert into tags values (3, 'c')"))


def _by_inner_savepoint(connection: Connection) -> None:
    with connection.begin_nested():
        inner = connection.begin_nested()
        connection.execute(text("insert into tags values (3, 'c')"))
        inner.rollback()
        connection.execute(text("insert into tags values (4, 'd')"))


def _of_objects(connection: Connection) -> None:
    connection.begin()
    with Session(connection, join_transaction_mode="create_savepoint") as session:
        with session.begin_nested():
            session.add(Tag(id=3, name="c"))
        session.commit()


def _text(said: str) -> Callable[[Connection], None]:
    def act(connection: Connection) -> None:
        connection.execute(text(said))

    return act


ACTS: dict[str, Callable[[Connection], None]] = {
    "savepoint": _by_savepoint,
    "savepoint in a savepoint": _by_inner_savepoint,
    "objects in a savepoint": _of_objects,
    "with ... delete": _text(
        "with x(i) as (select 1) delete from tags where id in (select i from x)"
    ),
    "with ... update": _text(
        "with x(i) as (select 1) update tags set name = 'z' from x where id = i"
    ),
    "with ... insert": _text("with x(i) as (select 9) insert into tags select i, 'x' from x"),
    "with ... replace": _text("WITH x(i) AS (SELECT 1) REPLACE INTO tags SELECT i, 'x' FROM x"),
    "replace": _text("replace into tags values (1, 'r')"),
    "a comment first": _text("/* nightly */ delete from tags where id = 1"),
    "a comment of a line first": _text("-- nightly\ndelete from tags where id = 1"),
    "drop": _text("drop table tags"),
    "alter": _text("alter table tags add column more int"),
    "create trigger": _text(
        "create trigger t after insert on tags begin delete from tags where id = 1; end"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_transaction_is_one_whatever_it_begins_with(engine: Engine, act: str, ends: str) -> None:
    before = rows_of(engine)
    with mirror(Database(), sessionmaker(engine), Tag) as m:
        with engine.connect() as connection:
            ACTS[act](connection)
            assert rows_in(m) == before
            getattr(connection, ends)()
        if inspect(engine).has_table("tags"):
            assert rows_in(m) == rows_of(engine)
            assert ends == "commit" or rows_of(engine) == before
        else:
            assert (ends, rows_in(m)) == ("commit", [])
        assert not m.is_behind


@pytest.mark.parametrize("said", ["commit", "end", "END TRANSACTION", "/* done */ commit"])
def test_a_commit_as_a_text_is_seen(engine: Engine, said: str) -> None:
    with mirror(Database(), sessionmaker(engine), Tag) as m:
        with engine.connect() as connection:
            connection.execute(text("delete from tags where id = 1"))
            connection.exec_driver_sql(said)
            assert rows_in(m) == [(2, "b")]
            connection.execute(text("delete from tags where id = 2"))
            connection.rollback()
        assert rows_in(m) == rows_of(engine) == [(2, "b")]


def test_a_rollback_as_a_text_is_seen(engine: Engine) -> None:
    with mirror(Database(), sessionmaker(engine), Tag) as m:
        with engine.connect() as connection:
            connection.execute(text("delete from tags where id = 1"))
            connection.exec_driver_sql("rollback")
            connection.execute(text("update tags set name = 'z' where id = 2"))
            connection.commit()
        assert rows_in(m) == rows_of(engine) == [(1, "a"), (2, "z")]


def test_a_mirror_that_cannot_show_what_sql_has_committed_says_that_it_is_behind(
    engine: Engine,
) -> None:
    with mirror(Database(), sessionmaker(engine), Tag) as m:
        view = m[Tag].aggregate(Sum(lambda tag: 1 // (tag.id - 3))).materialize()
        with engine.connect() as connection:
            connection.execute(text("insert into tags values (3, 'c')"))
            with pytest.raises(ZeroDivisionError) as caught:
                connection.exec_driver_sql("commit")
            assert "m.reload()" in caught.value.__notes__[-1]
        assert m.is_behind
        assert len(rows_in(m)) == 2
        view.close()
        m.reload()
        assert not m.is_behind
        assert rows_in(m) == rows_of(engine)


def test_tables_that_are_not_mirrored_are_written_as_without_a_mirror(engine: Engine) -> None:
    with mirror(Database(), sessionmaker(engine), Tag):
        with engine.connect() as connection:
            connection.exec_driver_sql("create table others (id int)")
            assert not connection.connection.driver_connection.in_transaction  # type: ignore[union-attr]
            connection.exec_driver_sql("pragma foreign_keys = on")
            assert not connection.connection.driver_connection.in_transaction  # type: ignore[union-attr]
        assert inspect(engine).has_table("others")


def test_a_driver_that_says_that_it_commits_each_statement_is_refused(tmp_path: Path) -> None:
    class Automatic(sqlite3.Connection):
        autocommit = True

    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"factory": Automatic})
    Base.metadata.create_all(engine)
    with (
        mirror(Database(), sessionmaker(engine), Tag),
        engine.connect() as connection,
        pytest.raises(TransactionError, match="AUTOCOMMIT"),
    ):
        connection.execute(text("insert into tags values (3, 'c')"))


def test_an_asynchronous_session_may_begin_with_a_savepoint(tmp_path: Path) -> None:
    async def main() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'tags.db'}")
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        sessions = async_sessionmaker(engine)
        m: Any = await mirror(Database(), sessions, Tag)
        for ends, expected in (("rollback", []), ("commit", [(1, "a")])):
            async with sessions() as session:
                async with session.begin_nested():
                    session.add(Tag(id=1, name="a"))
                await getattr(session, ends)()
            assert rows_in(m) == expected
            async with engine.connect() as reader:
                found = await reader.execute(select(Tag.__table__))
                assert [tuple(row) for row in found] == expected
        await engine.dispose()

    asyncio.run(main())


def test_an_engine_that_begins_by_a_listener_is_left_alone(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'tags.db'}")
    said: list[str] = []

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        connection.set_trace_callback(said.append)

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    Base.metadata.create_all(engine)
    with mirror(Database(), sessionmaker(engine), Tag) as m:
        said.clear()
        with engine.connect() as connection:
            _by_savepoint(connection)
            connection.rollback()
        assert [each for each in said if each.startswith("BEGIN")] == ["BEGIN"]
        assert rows_in(m) == []
