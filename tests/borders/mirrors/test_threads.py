"""Sessions of several threads: views show commits in the commit order of the SQL database."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from reactive import Database, Sum, TransactionError, mirror
from reactive.borders.mirrors import publishing
from tests.borders.mirrors.shop import Customer, Order, shop


def test_threads_that_change_the_same_rows(tmp_path: Path) -> None:
    engine = shop(tmp_path / "shop.db")
    engine.update_execution_options(begin="begin immediate")  # wait for other writers, not fail
    with Session(engine) as session:
        session.add(Customer(id=1, name="a"))
        session.add_all([Order(id=n, total=0, customer_id=1) for n in range(1, 4)])
        session.commit()
    db = Database()
    wrong: list[Exception] = []
    with mirror(db, engine, Order, Customer) as m:
        total = m[Order].aggregate(Sum(lambda o: o.total)).materialize()
        seen: list[int] = []
        subscription = total.subscribe(lambda delta: seen.extend(new for _, new in delta.updated))

        def write(seed: int) -> None:
            random = Random(seed)
            try:
                for _ in range(8):
                    with Session(engine) as session:
                        order = session.get_one(Order, random.randrange(1, 4))
                        order.total += 1
                        if random.random() < 0.2:
                            session.rollback()
                        else:
                            session.commit()
            except Exception as error:
                wrong.append(error)

        threads = [Thread(target=write, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            sum(total)  # readers neither wait nor see uncommitted rows
        for thread in threads:
            thread.join()
        assert wrong == []
        with Session(engine) as session:
            assert sum(session.scalars(select(Order.total))) == sum(total) == len(seen)
        assert seen == sorted(seen)
        subscription.close()
    engine.dispose()


def test_a_commit_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session has a transaction open, and may wait for a row of this session."""
    monkeypatch.setattr(publishing, "PATIENCE", 0.05)
    engine = shop(tmp_path / "shop.db")
    db = Database()
    begun, ended = Event(), Event()

    def hold() -> None:
        with db.transaction():
            begun.set()
            ended.wait(10)

    with mirror(db, engine, Customer) as m:
        thread = Thread(target=hold)
        thread.start()
        begun.wait(10)
        with Session(engine) as session:
            session.add(Customer(name="a"))
            with pytest.raises(TransactionError, match="has been open for"):
                session.commit()
            session.rollback()
            assert session.scalars(select(Customer)).all() == []
            ended.set()
            thread.join()
            session.add(Customer(name="b"))
            session.commit()
        assert [customer.name for customer in m[Customer]] == ["b"]
    engine.dispose()
