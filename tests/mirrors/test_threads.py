"""Sessions of several threads: views show commits in the order in which SQL made them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Thread

from sqlalchemy import select
from sqlalchemy.orm import Session

from reactive import Database, Sum, mirror
from tests.mirrors.shop import Customer, Order, shop


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
            sum(total)  # readers neither wait nor see what is not committed
        for thread in threads:
            thread.join()
        assert wrong == []
        with Session(engine) as session:
            assert sum(session.scalars(select(Order.total))) == sum(total) == len(seen)
        assert seen == sorted(seen)
        subscription.close()
    engine.dispose()
