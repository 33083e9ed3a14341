"""The cost that a mirror adds to a commit of a session, and the time to load 100,000 rows.

    python -m asv_benchmarks.mirrors

A commit of one changed object with a mirror and two views, divided by the commit without; and
loading, divided by reading the rows as tuples in SQLAlchemy. Medians of CPU time, taken in turns.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from sqlalchemy import (
    Column,
    Engine,
    ForeignKey,
    Integer,
    String,
    create_engine,
    event,
    insert,
    select,
)
from sqlalchemy.orm import Session, declarative_base, relationship

from reactive import Database, Sum, mirror

ROWS = 100_000
ROUNDS = 300
Base: Any = declarative_base()


class Customer(Base):  # type: ignore[misc]
    __tablename__ = "customers"
    id = Column(Integer, primary_key=True)
    name = Column(String)


class Order(Base):  # type: ignore[misc]
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    total = Column(Integer)
    note = Column(String)
    customer_id: Any = Column(ForeignKey("customers.id"))
    customer = relationship(Customer)


def engine_with(rows: int, folder: str) -> Engine:
    """Orders in a file, a hundredth as many customers."""
    engine = create_engine(f"sqlite:///{folder}/{rows}.db")

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")

    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        many = max(rows // 100, 1)
        connection.execute(insert(Customer), [{"id": n, "name": f"c{n}"} for n in range(many)])
        made = [{"id": n, "total": n % 97, "customer_id": n % many} for n in range(rows)]
        connection.execute(insert(Order), made)
    return engine


def commit_figures(rows: int = 1000, rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds of a session that changes one object and commits."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as other:
        plain, followed = engine_with(rows, folder), engine_with(rows, other)
        db = Database()
        with mirror(db, followed, Order, Customer) as m:
            views = [
                m[Order].where(lambda o: o.total > 50).materialize(),
                m.related(Order.customer)
                .group_by(lambda o, c: c.name)
                .aggregate(Sum(lambda o, c: o.total))
                .materialize(),
            ]
            taken: dict[Engine, list[float]] = {plain: [], followed: []}
            for number in range(rounds):
                for engine in taken:
                    taken[engine].append(timed(lambda: change(engine, number % rows)))
            assert len(views[0]) > 0
        figures = {"plain": median(taken[plain]) * 1e6, "mirror": median(taken[followed]) * 1e6}
        plain.dispose()
        followed.dispose()
    return {**figures, "ratio": figures["mirror"] / figures["plain"]}


def change(engine: Engine, number: int) -> None:
    with Session(engine) as session:
        order: Any = session.get_one(Order, number)
        order.total += 1
        session.commit()


def load_figures(rows: int = ROWS) -> dict[str, float]:
    """Return the seconds to load `rows` rows, and for SQLAlchemy to read them."""
    with TemporaryDirectory() as folder:
        engine = engine_with(rows, folder)
        asked = select(Order.id, Order.total, Order.note, Order.customer_id)
        reads, loads = [], []
        for _ in range(3):
            with engine.connect() as connection:
                reads.append(timed(lambda: connection.execute(asked).all()))
            made: list[Any] = []
            loads.append(timed(lambda: made.append(mirror(Database(), engine, Order))))
            assert len(made[0][Order]) == rows
            made[0].close()
        engine.dispose()
    read, load = median(reads), median(loads)
    return {"read": read, "load": load, "ratio": load / read}


def timed(act: Callable[[], object]) -> float:
    start = process_time()
    act()
    return process_time() - start


def main() -> None:
    found = commit_figures()
    print(
        f"a session's commit: {found['plain']:.0f} us without, {found['mirror']:.0f} us with a "
        f"mirror: {found['ratio']:.2f}"
    )
    found = load_figures()
    print(
        f"{ROWS} rows: {found['read']:.2f} s to read, {found['load']:.2f} s to load: "
        f"{found['ratio']:.2f}"
    )


if __name__ == "__main__":
    main()
