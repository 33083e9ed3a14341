"""Errors at each call of the driver of a session's commit: both have committed, or neither."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from tests.borders.mirrors.sessions import World
from tests.borders.mirrors.shop import Customer, Line, Order, Tag, shop


class Fault:
    """Count the calls of a driver, and raise before or after one of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.at = -1
        self.lasts = False
        self.is_of_commits = False
        self.is_after = False
        self.error: type[Exception] = sqlite3.OperationalError

    def call(self, do: Any, *arguments: Any) -> Any:
        self.calls += not self.is_of_commits or do.__name__ == "commit"
        is_due = self.calls == self.at or (self.lasts and 0 < self.at < self.calls)
        if not is_due:
            return do(*arguments)
        if not self.lasts:
            self.at = -1
        if self._is_done_before(*arguments):
            do(*arguments)
        raise self.error("injected")

    def _is_done_before(self, text: str = "", *_: object) -> bool:
        """Return True if the call fails after its effect, as an answer that is lost."""
        is_lost = not issubclass(self.error, sqlite3.Error)
        return self.is_after and text != "begin" and (is_lost or bool(text))


FAULT = Fault()


class FaultyCursor(sqlite3.Cursor):
    def execute(self, *arguments: Any) -> Any:
        return FAULT.call(super().execute, *arguments)

    def executemany(self, *arguments: Any) -> Any:
        return FAULT.call(super().executemany, *arguments)

    def fetchall(self) -> Any:
        return FAULT.call(super().fetchall)


class FaultyConnection(sqlite3.Connection):
    def cursor(self, *_: Any) -> Any:
        return super().cursor(FaultyCursor)

    def commit(self) -> None:
        FAULT.call(super().commit)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = shop(tmp_path / "shop.db", FaultyConnection)
    FAULT.__init__()  # type: ignore[misc]
    yield made
    FAULT.at = -1
    made.dispose()


def world_with_rows(engine: Engine) -> World:
    world = World(engine, 0)
    fill(world)
    return world


def fill(world: World) -> None:
    """Restore the rows of the beginning."""
    with world.sessions.begin() as session:
        session.execute(delete(Customer))
        session.execute(delete(Tag))
        session.execute(insert(Customer), [{"id": n, "name": "a"} for n in (1, 2)])
        rows = [{"id": n, "customer_id": 1 + n % 2, "total": n} for n in range(1, 5)]
        session.execute(insert(Order), rows)
        session.execute(insert(Line), [{"order_id": 1, "number": 1, "pieces": 1}])


def change(session: Session) -> None:
    """One of each kind of statement, and a savepoint that is rolled back."""
    order = session.scalars(select(Order)).first()
    assert order is not None
    order.total = 100
    order.tags.append(Tag(word="new"))
    with session.begin_nested() as nested:
        session.execute(update(Order).where(Order.total < 4).values(total=9))
        nested.rollback()
    session.execute(delete(Customer).where(Customer.id == 2))
    session.commit()


def calls_of(world: World) -> int:
    """Return the number of driver calls of a changing session."""
    FAULT.calls = 0
    with world.sessions() as session:
        change(session)
    return FAULT.calls


def _refuse(*_: object) -> None:
    if FAULT.calls:
        raise ConnectionRefusedError("the server is gone")


def run(world: World, at: int) -> bool:
    """A session with a fault at its `at`-th call; whether it was refused."""
    FAULT.calls, FAULT.at = 0, at
    try:
        with world.sessions() as session:
            change(session)
    except (SQLAlchemyError, OSError):
        return True
    finally:
        FAULT.at = -1
    return False


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "is_after"),
    [
        (sqlite3.OperationalError, False),
        (ConnectionResetError, False),
        (ConnectionResetError, True),
    ],
)
def test_an_error_of_the_driver_leaves_both_as_they_were_or_both_changed(
    engine: Engine, error: type[Exception], is_after: bool
) -> None:
    world = world_with_rows(engine)
    calls = calls_of(world)
    assert calls > 20
    refused = 0
    for at in range(1, calls + 1):
        fill(world)
        FAULT.error, FAULT.is_after = error, is_after
        refused += run(world, at)
        world.check()
        assert not world.mirror.is_behind
    assert refused > calls - 3  # the savepoint takes two back


def test_a_commit_whose_answer_is_lost_is_read_again_when_that_can_be_done(engine: Engine) -> None:
    world = world_with_rows(engine)
    FAULT.error, FAULT.is_after, FAULT.lasts = ConnectionResetError, True, True
    FAULT.is_of_commits = True
    event.listen(engine, "checkout", _refuse)
    before = list(world.totals.zset().items())
    assert run(world, 1)
    assert world.mirror.is_behind
    assert "behind" in repr(world.mirror)
    assert list(world.totals.zset().items()) == before
    event.remove(engine, "checkout", _refuse)
    with world.sessions() as session:
        session.add(Customer(name="later"))
        session.commit()
    assert not world.mirror.is_behind
    world.check()


def test_a_lost_answer_is_told_in_a_note(engine: Engine) -> None:
    world = world_with_rows(engine)
    FAULT.error, FAULT.is_after, FAULT.is_of_commits = ConnectionResetError, True, True
    FAULT.calls, FAULT.at = 0, 1
    with (
        pytest.raises(ConnectionResetError) as caught,
        world.sessions() as session,
    ):
        change(session)
    assert "the answer to COMMIT was lost" in "".join(caught.value.__notes__)
    world.check()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_comes_from_outside_between_the_phases_leaves_both_alike(
    engine: Engine, error: type[BaseException]
) -> None:
    world = world_with_rows(engine)
    commit: Any = engine.dialect.do_commit
    inner = world.mirror._mirrored._parts[0].follower

    def interrupted(connection: Any) -> None:
        original(connection)
        raise error

    original, inner._commit = inner._commit, interrupted
    assert commit == engine.dialect.do_commit
    with pytest.raises(error), world.sessions() as session:
        change(session)
    inner._commit = original
    world.check()


def test_a_statement_of_a_hook_at_the_commit_is_seen(engine: Engine) -> None:
    world = world_with_rows(engine)

    @event.listens_for(engine, "commit")
    def late(connection: Any) -> None:
        connection.execute(update(Order).values(total=77))

    with world.sessions() as session:
        session.add(Customer(name="x"))
        session.commit()
    event.remove(engine, "commit", late)
    world.check()
    assert {order.total for order in world.mirror[Order]} == {77}
