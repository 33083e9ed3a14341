"""Tables that are read from a SQL database: at the beginning, on request, and after a doubt."""

from __future__ import annotations

import gc
import time
import weakref
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reactive import Database, PlanError, TableError, TransactionError
from tests.borders.two_commits.shop import Faulty, Order, Shop

PATIENCE = 30


def lose() -> None:
    raise ConnectionError("lost")


def buy(shop: Shop, *, after: bool = True, number: int = 2) -> None:
    """Put an order, and lose the answer to COMMIT."""
    faulty = Faulty(shop.sql, 0, lose, after=after, of="commit")
    with (
        pytest.raises(TransactionError, match="outcome unknown"),
        shop.db.transaction(commit_with=faulty),
    ):
        shop.put(Order(number, "bob", 6))


def settled(shop: Shop) -> None:
    until = time.monotonic() + PATIENCE
    while shop.db.in_doubt:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_table_begins_with_what_there_is_and_takes_in_what_others_write(shop: Shop) -> None:
    assert list(shop.orders) == [Order(1, "ann", 5)]
    with shop.connect() as other:
        other.execute("insert into orders values (2, 'bob', 6)")
        other.execute("update orders set total = 10 where id = 1")
    shop.heard.clear()
    shop.db.reread()
    shop.check()
    assert [delta.version for delta in shop.heard] == [shop.db.version] * 2  # in one commit
    version = shop.db.version
    shop.db.reread(shop.orders)
    assert shop.db.version == version  # no difference


def test_a_table_that_cannot_be_read_is_not_made() -> None:
    db = Database()

    def fail() -> list[Order]:
        raise ConnectionError

    twice = [Order(1, "ann", 5), Order(1, "bob", 5)]
    for kind, reread in [(ConnectionError, fail), (TableError, lambda: twice)]:
        with pytest.raises(kind):
            db.table(Order, key="id", reread=reread)
    with pytest.raises(TableError, match="not stored"):
        db.table(Order, stored=False, reread=list)
    assert db.tables() == []
    plain = db.table(Order, key="id")
    with pytest.raises(TableError, match="reread=callable"):
        db.reread(plain)
    db.reread()


@pytest.mark.parametrize("after", [False, True])
def test_if_the_answer_is_lost_tables_are_those_of_the_file(shop: Shop, after: bool) -> None:
    buy(shop, after=after)
    assert len(shop.orders) == (2 if after else 1)
    assert shop.db.in_doubt == {}
    shop.check()


def test_tables_without_it_are_as_before_and_the_error_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop.db", rereads=False)
    faulty = Faulty(shop.sql, 0, lose, after=True, of="commit")
    with pytest.raises(TransactionError) as info, shop.db.transaction(commit_with=faulty):
        shop.put(Order(2, "bob", 6))
    assert "as before the commit: table 'orders'" in str(info.value)
    assert "reread=callable" in str(info.value)
    assert isinstance(info.value.__cause__, ConnectionError)
    assert (len(shop.orders), len(shop.read()), shop.heard) == (0, 1, [])
    shop.orders.replace_all(shop.read())
    shop.check()
    shop.close()


def test_while_it_cannot_be_read_it_shows_the_last_commit_and_is_in_doubt(shop: Shop) -> None:
    shop.is_there = False
    buy(shop)
    assert list(shop.orders) == [Order(1, "ann", 5)]
    assert list(shop.db.in_doubt) == ["orders"]
    assert isinstance(shop.db.in_doubt["orders"], ConnectionError)
    shop.notes.add("others go on")
    with (
        pytest.raises(TransactionError, match="'orders' was in doubt"),
        shop.db.transaction(commit_with=shop.sql),
    ):
        shop.put(Order(3, "cy", 6))
    with shop.db.transaction(commit_with=shop.sql):
        shop.notes.add("and so do other tables")
    with pytest.raises(ConnectionError):
        shop.db.reread()
    shop.is_there = True
    settled(shop)  # by a thread
    shop.check()
    assert len(shop.orders) == 2
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(3, "cy", 6))
    shop.check()


def test_reading_it_again_by_hand_ends_a_doubt(shop: Shop) -> None:
    shop.is_there = False
    buy(shop)
    shop.is_there = True
    shop.db.reread(shop.orders)
    assert shop.db.in_doubt == {}
    shop.check()


def test_a_view_that_raises_of_what_is_read_leaves_it_in_doubt(shop: Shop) -> None:
    with shop.connect() as other:
        other.execute("insert into orders values (7, 'eve', 0)")
    buy(shop)
    assert isinstance(shop.db.in_doubt["orders"], ZeroDivisionError)
    assert list(shop.orders) == [Order(1, "ann", 5)]
    with shop.connect() as other:
        other.execute("delete from orders where id = 7")
    settled(shop)
    shop.check()


def test_the_thread_ends_with_the_doubt_and_with_the_database(shop: Shop, monkeypatch: Any) -> None:
    monkeypatch.setattr("reactive.borders.two_commits.rereading.CONFIRMS", 0.0)

    known = shop.db._engine.rereading
    until = time.monotonic() + PATIENCE
    for ends in (partial(setattr, shop, "is_there", True), shop.db.close):
        shop.is_there = False
        buy(shop, number=3 if shop.orders.get(2) else 2)
        thread = known._thread
        assert thread.is_alive()
        ends()
        while thread.is_alive():
            assert time.monotonic() < until
            time.sleep(0.01)


def test_a_table_that_was_dropped_is_in_doubt_no_more() -> None:
    is_there = [True]

    def read() -> list[str]:
        return ["a"] if is_there else [][0]

    class Losing:
        def commit(self) -> None:
            is_there.clear()
            raise ConnectionError

        def rollback(self) -> None: ...

    db = Database()
    words = db.table(str, name="words", reread=read)
    with suppress(TransactionError), db.transaction(commit_with=Losing()):
        words.add("b")
    assert list(db.in_doubt) == ["words"]
    db.drop(words)
    until = time.monotonic() + PATIENCE
    while db.in_doubt:
        assert time.monotonic() < until
        time.sleep(0.01)
    db.reread()


def test_what_was_read_while_others_committed_is_read_again(shop: Shop) -> None:
    calls: list[int] = []
    read = shop.db._engine.rereading.by[shop.orders]

    def slow() -> Any:
        rows = read()
        calls.append(len(rows))
        if len(calls) < 3:
            with shop.db.transaction(commit_with=shop.sql):
                shop.put(Order(10 + len(calls), "cy", 6))
        return rows

    shop.db._engine.rereading.by[shop.orders] = slow
    shop.db.reread()
    assert calls == [1, 2, 3]
    shop.check()


def test_a_server_that_may_be_at_its_commit_still_is_read_once_more(
    shop: Shop, monkeypatch: Any
) -> None:
    monkeypatch.setattr("reactive.borders.two_commits.rereading.CONFIRMS", 0.05)

    class Late:
        """A connection that commits after its caller stopped waiting."""

        def commit(self) -> None:
            raise TimeoutError

        def rollback(self) -> None: ...

    with suppress(TransactionError), shop.db.transaction(commit_with=Late()):
        shop.put(Order(2, "bob", 6))
    assert Counter(shop.orders) == Counter([Order(1, "ann", 5)])
    shop.sql.commit()
    until = time.monotonic() + PATIENCE
    while len(shop.orders) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    shop.check()


def test_a_durable_table_takes_part_only_if_it_can_be_read_again(tmp_path: Path) -> None:
    db = Database(tmp_path / "live.db")
    words = db.table(str, name="words")
    shop = Shop(tmp_path / "shop.db")
    with (
        pytest.raises(TransactionError, match=r"(?s)'words' is durable.*reread=callable"),
        db.transaction(commit_with=shop.sql),
    ):
        shop.sql.execute("insert into orders values (2, 'bob', 6)")
        words.add("be")
    assert (len(words), shop.read(), shop.sql.in_transaction) == (0, [], False)
    with db.transaction(commit_with=shop.sql):
        shop.sql.execute("insert into orders values (2, 'bob', 6)")
    db.close()
    shop.close()


def test_a_durable_table_is_read_again_when_it_is_made_again(tmp_path: Path) -> None:
    file, path = tmp_path / "shop.db", tmp_path / "live.db"
    shop = Shop(file, path=path)
    with shop.db.transaction(commit_with=shop.sql):
        shop.put(Order(1, "ann", 5))
    shop.close()
    with shop.connect() as other:
        other.execute("insert into orders values (2, 'bob', 6)")
    again = Shop(file, path=path)
    again.check()
    again.close()

    def fail() -> list[Order]:
        raise ConnectionError

    db = Database(path)
    orders = db.table(Order, key="id", name="orders", reread=fail)
    assert len(orders) == 2 and list(db.in_doubt) == ["orders"]  # as the file has them
    db.close()


def test_a_durable_table_that_could_not_be_read_again_keeps_its_rows(tmp_path: Path) -> None:
    def broken_off() -> list[str]:
        raise KeyboardInterrupt

    path = tmp_path / "words.db"
    with Database(path) as db:
        db.table(str, name="words").add("to")
    with Database(path) as db:
        with pytest.raises(PlanError, match="is a callable"):
            db.table(str, name="words", reread=["be"])  # type: ignore[call-overload]
        with pytest.raises(KeyboardInterrupt):
            db.table(str, name="words", reread=broken_off)
        assert list(db.table(str, name="words")) == ["to"]


class Losing:
    """A connection that commits, and loses the answer."""

    def commit(self) -> None:
        lose()

    def rollback(self) -> None: ...


def test_a_database_that_nobody_has_any_more_is_not_read_again() -> None:
    fails: list[bool] = []

    def read() -> list[str]:
        if fails:
            lose()
        return []

    def abandoned() -> Any:
        db = Database()
        words = db.table(str, name="words", reread=read)
        fails.append(True)
        with suppress(TransactionError), db.transaction(commit_with=Losing()):
            words.add("to")
        assert [*db.in_doubt] == ["words"]
        return weakref.ref(db._engine)

    engine, until = abandoned(), time.monotonic() + PATIENCE
    while engine() is not None:
        assert time.monotonic() < until
        gc.collect()
        time.sleep(0.01)
