"""Both commit, or neither does: whichever of the two refuses, and whatever the block raises."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reactive import Database, PlanError, TableError, TransactionError
from tests.borders.two_commits.shop import Faulty, Order, Shop
from tests.budget import seeds

PATIENCE = 30


class Refused(Exception):
    """Exception raised by a block."""


def test_both_commit_in_this_order(shop: Shop) -> None:
    seen: list[Any] = []

    class Watched(Faulty):
        def commit(self) -> None:
            seen.append((len(shop.read()), len(shop.spent), list(shop.heard)))
            super().commit()
            seen.append((len(shop.read()), len(shop.spent), list(shop.heard)))

    with shop.db.transaction(commit_with=Watched(shop.sql)):
        shop.put(Order(2, "bob", 6))
    assert seen == [(1, 1, []), (2, 1, [])]  # views are published after it has committed
    assert [delta.version for delta in shop.heard] == [shop.db.version] * 2
    shop.check()


def test_what_a_view_raises_leaves_both_as_they_were(shop: Shop) -> None:
    before = shop.state()
    with pytest.raises(ZeroDivisionError), shop.db.transaction(commit_with=shop.sql):
        shop.notes.add("none")
        shop.put(Order(2, "bob", 0))
    assert (shop.state(), shop.heard, shop.sql.in_transaction) == (before, [], False)
    shop.check()


@pytest.mark.parametrize("of_sql", [True, False])
def test_what_the_block_raises_leaves_both_as_they_were(shop: Shop, of_sql: bool) -> None:
    before = shop.state()
    kind: type[Exception] = sqlite3.IntegrityError if of_sql else Refused
    with pytest.raises(kind), shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(2, "bob", 6))
        if of_sql:
            shop.sql.execute("insert into orders values (1, 'cy', 7)")
        raise Refused
    assert (shop.state(), shop.heard, shop.sql.in_transaction) == (before, [], False)
    shop.check()


def test_a_refusal_at_commit_leaves_both_as_they_were_and_passes(shop: Shop) -> None:
    before = shop.state()
    shop.sql.execute("pragma foreign_keys = on")
    shop.sql.execute(
        "create table parts(id integer references orders(id) deferrable initially deferred)"
    )
    with pytest.raises(sqlite3.IntegrityError) as info, shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(2, "bob", 6))
        shop.sql.execute("insert into parts values (77)")
    assert any("nothing has changed, here or there" in note for note in info.value.__notes__)
    assert (shop.state(), shop.heard, shop.sql.in_transaction) == (before, [], False)
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(2, "bob", 6))
    shop.check()


def test_a_database_that_is_busy_refuses(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop.db")
    shop.sql.execute("pragma busy_timeout = 0")
    reader = shop.connect()
    reader.execute("begin").execute("select * from orders").fetchall()
    before = shop.state()
    with (
        pytest.raises(sqlite3.OperationalError, match="locked"),
        shop.db.transaction(commit_with=shop.sql),
    ):
        shop.put(Order(2, "bob", 6))
    assert (shop.state(), shop.heard, shop.sql.in_transaction) == (before, [], False)
    reader.close()
    shop.check()
    shop.close()


def test_a_nested_transaction_that_failed_fails_both(shop: Shop) -> None:
    before = shop.state()
    with pytest.raises(TransactionError, match="nested"), shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(2, "bob", 6))
        with suppress(Refused), shop.db.transaction():
            raise Refused
    assert (shop.state(), shop.sql.in_transaction) == (before, False)
    shop.check()


def test_of_nested_ones_only_the_outermost_commits(shop: Shop) -> None:
    faulty = Faulty(shop.sql)
    same = shop.db.transaction(commit_with=faulty)
    with same, shop.db.transaction(), shop.db.transaction(commit_with=faulty), same:
        shop.put(Order(2, "bob", 6))
    assert faulty.names == ["commit"]
    shop.check()


def test_it_is_refused_within_one_that_commits_something_else(shop: Shop) -> None:
    before = shop.state()
    with (
        pytest.raises(TransactionError, match="outermost"),
        shop.db.transaction(),
        shop.db.transaction(commit_with=shop.sql),
    ):
        raise AssertionError
    other = shop.connect()
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(2, "bob", 6))
        with (
            pytest.raises(TransactionError, match="use one connection for both"),
            shop.db.transaction(commit_with=other),
        ):
            raise AssertionError
    other.close()
    assert shop.state() != before  # the refused statement has not failed the outer one
    shop.check()


def test_a_transaction_that_is_open_is_joined(shop: Shop) -> None:
    shop.sql.execute("insert into orders values (3, 'cy', 7)")
    with shop.db.transaction(commit_with=shop.sql):
        shop.orders.add(Order(3, "cy", 7))
    shop.check()
    shop.sql.execute("delete from orders")
    with suppress(Refused), shop.db.transaction(commit_with=shop.sql):
        raise Refused
    shop.check()
    assert len(shop.orders) == 2


def test_without_changes_of_tables_it_commits_all_the_same(shop: Shop) -> None:
    version = shop.db.version
    with shop.db.transaction(commit_with=shop.sql):
        shop.sql.execute("create table more(n)")
    assert shop.db.version == version and not shop.sql.in_transaction
    assert shop.connect().execute("select * from more").fetchall() == []


def test_what_cannot_be_rolled_back_is_told_of_the_first_error(shop: Shop) -> None:
    before = shop.state()

    class Stuck(Faulty):
        def rollback(self) -> None:
            raise ConnectionError("gone")

    with pytest.raises(Refused) as info, shop.db.transaction(commit_with=Stuck(shop.sql)):
        shop.orders.add(Order(2, "bob", 6))
        raise Refused
    assert any("gone" in note for note in info.value.__notes__)
    assert shop.state() == before


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([1, 2], "not several"),
        (object(), r"has commit\(\) and rollback\(\)"),
        (sqlite3.Connection, r"has commit\(\) and rollback\(\)"),
        ("shop.db", "Django"),
    ],
)
def test_what_cannot_be_committed_is_refused(given: Any, match: str, monkeypatch: Any) -> None:
    monkeypatch.delitem(__import__("sys").modules, "django.db", raising=False)
    with pytest.raises(PlanError, match=match):
        Database().transaction(commit_with=given)


def test_writers_wait_for_the_answer_and_readers_do_not(shop: Shop) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert go_on.wait(PATIENCE)

    def write() -> None:
        sql = shop.connect()
        with shop.db.transaction(commit_with=Faulty(sql, 0, wait)):
            shop.put(Order(2, "bob", 6), sql)
        sql.close()

    old = shop.state()
    with ThreadPoolExecutor(3) as pool:
        written = pool.submit(write)
        assert reached.wait(PATIENCE)
        noted = pool.submit(shop.notes.add, "later")
        assert pool.submit(shop.state).result(PATIENCE) == old
        assert not noted.done()
        go_on.set()
        written.result(PATIENCE)
        noted.result(PATIENCE)
    shop.check()
    assert list(shop.notes) == ["later"]


def test_threads_with_connections_of_their_own_stay_right(shop: Shop) -> None:
    def work(number: int) -> None:
        rng, sql = random.Random(number), shop.connect()
        for step in range(12):
            with suppress(Refused, ZeroDivisionError), shop.db.transaction(commit_with=sql):
                change(shop, rng, sql)
                if step % 4 == 0:
                    raise Refused
        sql.close()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, number) for number in range(4)]:
            for _ in range(30):
                shop.spent.items()
            done.result(PATIENCE)
    shop.check()


def change(shop: Shop, rng: random.Random, sql: Any = None) -> None:
    """Execute one to three statements; some make a view raise."""
    for _ in range(rng.randint(1, 3)):
        number = rng.randint(1, 9)
        if rng.random() < 0.3 and shop.orders.get(number) is not None:
            shop.delete(number, sql)
        else:
            total = rng.randint(0, 9) if rng.random() < 0.3 else rng.randint(1, 9)
            shop.put(Order(number, rng.choice(["ann", "bob", "cy"]), total), sql)


@pytest.mark.parametrize("seed", seeds(8))
def test_after_any_history_views_are_the_sql_query(shop: Shop, seed: int) -> None:
    history(shop, random.Random(seed), 40)


def history(shop: Shop, rng: random.Random, steps: int) -> None:
    """Run transactions: some are refused, some fail, and the answer to some is lost."""

    def lose() -> None:
        raise ConnectionError("lost")

    def refuse() -> None:
        raise sqlite3.IntegrityError("no")

    acts: list[Callable[[], object]] = [int, int, lose, refuse]
    for _ in range(steps):
        act, after = rng.choice(acts), rng.random() < 0.5
        after = after and act is not refuse  # a driver that has committed does not refuse
        faulty = Faulty(shop.sql, 0, act, after=after, of="commit")
        expected = (ZeroDivisionError, Refused, TransactionError, sqlite3.IntegrityError)
        with suppress(*expected), shop.db.transaction(commit_with=faulty):
            change(shop, rng, shop.sql)
            if rng.random() < 0.2:
                raise Refused
        shop.check()
        assert shop.db.in_doubt == {}


@pytest.mark.parametrize("ends", ["commit", "rollback", "with"])
@pytest.mark.parametrize("level", ["", None])
def test_who_ends_it_within_the_block_is_told(shop: Shop, ends: str, level: Any) -> None:
    before, shop.sql.isolation_level = list(shop.orders), level
    with (
        pytest.raises(TransactionError, match="within the block"),
        shop.db.transaction(commit_with=shop.sql),
    ):
        shop.put(Order(2, "bob", 6))
        if ends == "with":
            with shop.sql:
                pass
        else:
            getattr(shop.sql, ends)()
    assert list(shop.orders) == before
    assert len(shop.read()) == (1 if ends == "rollback" else 2)


@pytest.mark.parametrize("ends", ["commit", "rollback", "close"])
def test_who_ends_a_session_within_the_block_is_told(tmp_path: Path, ends: str) -> None:
    from sqlalchemy import create_engine, text
    from sqlalchemy.orm import Session

    engine = create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with engine.begin() as connection:
        connection.execute(text("create table notes (text)"))
    db = Database()
    notes = db.table(str, name="notes")
    with Session(engine) as session, engine.connect() as fresh, engine.begin() as connection:
        for other in (session, fresh, connection):
            with (
                pytest.raises(TransactionError, match="within the block"),
                db.transaction(commit_with=other),
            ):
                notes.add("to")
                other.execute(text("select 1"))
                getattr(other.get_transaction() if other is connection else other, ends)()
            assert not notes


def test_reread_is_a_callable_that_gives_rows() -> None:
    with pytest.raises(PlanError, match="reread of table 'str' is a callable"):
        Database().table(str, reread=["to"])  # type: ignore[call-overload]
    with pytest.raises(TableError, match="has given None"):
        Database().table(str, reread=lambda: None)  # type: ignore[arg-type,return-value]
