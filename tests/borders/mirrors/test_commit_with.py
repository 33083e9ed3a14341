"""`db.transaction(commit_with=session)` together with mirrored tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from reactive import Database, Mirror, TransactionError, mirror
from tests.borders.mirrors.shop import Customer, Order, shop


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = shop(tmp_path / "shop.db")
    with Session(made) as session:
        session.add(Order(id=1, total=20, customer=Customer(name="ann")))
        session.commit()
    yield made
    made.dispose()


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def m(db: Database, engine: Engine) -> Iterator[Mirror]:
    with mirror(db, engine, Order, Customer) as made:
        yield made


def test_both_kinds_of_tables_change_in_one_commit(db: Database, m: Mirror, engine: Engine) -> None:
    log = db.table(str, name="log")
    both = m[Order].join(log).select(lambda o, word: (o.total, word)).materialize()
    told: list[Any] = []
    subscription = both.subscribe(lambda delta: told.append(sorted(delta.added)))
    version = db.version
    with Session(engine) as session, db.transaction(commit_with=session):
        session.get_one(Order, 1).total = 7
        log.add("changed")
    assert db.version == version + 1
    assert list(both) == [(7, "changed")]
    assert told[-1:] == [[(7, "changed")]]
    subscription.close()


def test_an_error_of_a_view_undoes_both(db: Database, m: Mirror, engine: Engine) -> None:
    log = db.table(str, name="log")
    view = m[Order].select(lambda o: 100 // (o.total - 7)).materialize()
    with Session(engine) as session:
        with pytest.raises(ZeroDivisionError), db.transaction(commit_with=session):
            session.get_one(Order, 1).total = 7
            log.add("changed")
        assert session.get_one(Order, 1).total == 20
    assert (list(view), list(log), m[Order][1].total) == ([7], [], 20)


def test_sql_commits_once_and_so_does_the_database(db: Database, m: Mirror, engine: Engine) -> None:
    commits: list[Any] = []
    event.listen(engine, "commit", commits.append)
    version = db.version
    with Session(engine) as session, db.transaction(commit_with=session):
        session.get_one(Order, 1).total = 7
        session.flush()
        session.get_one(Order, 1).total = 8
        session.add(Order(id=2, total=3, customer_id=1))
    assert (len(commits), db.version) == (1, version + 1)
    assert sorted(o.total for o in m[Order]) == [3, 8]


@pytest.mark.parametrize("of", ["session", "connection"])
def test_a_refusal_at_commit_undoes_both(db: Database, m: Mirror, engine: Engine, of: str) -> None:
    def refuse(connection: Any) -> None:
        raise sqlite3.IntegrityError("refused")

    log = db.table(str, name="log")
    follower, version = m._mirrored._parts[0].follower, db.version
    original, follower._commit = follower._commit, refuse
    try:
        with (
            Session(engine) as session,
            pytest.raises(IntegrityError),
            db.transaction(commit_with=session if of == "session" else session.connection()),
        ):
            session.get_one(Order, 1).total = 9
            session.flush()
            log.add("changed")
    finally:
        follower._commit = original
    with engine.connect() as connection:
        assert connection.scalar(text("select total from orders")) == 20
    assert (m[Order][1].total, [*log], db.version, db.in_doubt) == (20, [], version, {})
    with Session(engine) as session, db.transaction(commit_with=session):
        session.get_one(Order, 1).total = 10
        log.add("changed")
    assert (m[Order][1].total, [*log]) == (10, ["changed"])


def test_a_connection_commits_with_mirrors_too(db: Database, m: Mirror, engine: Engine) -> None:
    with (
        engine.connect() as connection,
        connection.begin(),
        db.transaction(commit_with=connection),
    ):
        connection.exec_driver_sql("update orders set total = 8")
    assert m[Order][1].total == 8


def test_a_lost_answer_has_mirrors_read_again(db: Database, m: Mirror, engine: Engine) -> None:
    follower = m._mirrored._parts[0].follower
    original = follower._commit

    def lost(connection: Any) -> None:
        original(connection)
        raise ConnectionResetError("lost")

    follower._commit = lost
    try:
        with (
            Session(engine) as session,
            pytest.raises(TransactionError, match="outcome unknown"),
            db.transaction(commit_with=session),
        ):
            session.get_one(Order, 1).total = 9
    finally:
        follower._commit = original
    assert m[Order][1].total == 9
    assert db.in_doubt == {}
