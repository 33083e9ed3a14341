"""Orders in a SQLite file and in a table, with connections that fail on request."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reactive import Count, Database, Sum


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str
    total: int


Act = Callable[[], object]


class Faulty:
    """A connection that acts before or after one of its calls, or of its calls named `of`.

    It is not a class of `sqlite3`, so that the library knows nothing of it but its methods.
    """

    def __init__(
        self,
        connection: Any,
        at: int = -1,
        act: Act = int,
        *,
        after: bool = False,
        of: str | None = None,
    ) -> None:
        self.connection = connection
        self.of = of
        self.begin_anew(at, act, after=after)

    def begin_anew(self, at: int, act: Act, *, after: bool) -> None:
        """Reset the connection, with another call `at` and action."""
        self.at, self.act, self.after = at, act, after
        self.calls = 0
        self.names: list[str] = []

    def _do(self, name: str, *arguments: Any) -> Any:
        number = self.calls if self.of in (None, name) else -2
        self.calls += number >= 0
        self.names.append(name)
        if number == self.at and not self.after:
            self.act()
        found = getattr(self.connection, name)(*arguments)
        if number == self.at and self.after:
            self.act()
        return found

    def execute(self, *arguments: Any) -> Any:
        return self._do("execute", *arguments)

    def commit(self) -> None:
        self._do("commit")

    def rollback(self) -> None:
        self._do("rollback")


class Shop:
    """A file with orders, and a database beside it.

    orders: their table, which is read again from the file.
    notes: a table that is nowhere else.
    """

    def __init__(self, file: Path, *, rereads: bool = True, path: Path | None = None) -> None:
        self.file = file
        self.is_there = True
        with self.connect() as sql:
            sql.execute(
                "create table if not exists orders"
                "(id integer primary key, customer text, total integer)"
            )
        self.sql = self.connect()
        self.db = Database() if path is None else Database(path)
        self.orders: Any = self.db.table(
            Order,
            key="id",
            name="orders",
            reread=self.read if rereads else None,
            durable=None if path is None else True,
        )
        if not rereads:
            self.orders.replace_all(self.read())
        self.notes: Any = self.db.table(str, name="notes", durable=False)
        orders = self.orders
        self.spent: Any = (
            orders.group_by(lambda o: o.customer)
            .aggregate(Count(), Sum(lambda o: o.total))
            .materialize()
        )
        self.parts: Any = orders.select(lambda o: (o.id, 60 // o.total)).materialize()
        self.heard: list[Any] = []
        self.following = [v.subscribe(self.heard.append) for v in (self.spent, self.parts)]

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, check_same_thread=False, timeout=10)

    def read(self) -> list[Order]:
        """Return the orders that another connection reads from the file."""
        if not self.is_there:
            raise ConnectionError("the database cannot be reached")
        sql = self.connect()
        try:
            return [Order(*row) for row in sql.execute("select id, customer, total from orders")]
        finally:
            sql.close()

    def put(self, order: Order, sql: Any = None) -> None:
        """Statements on both, within a transaction."""
        values = (order.id, order.customer, order.total)
        (sql or self.sql).execute("insert or replace into orders values (?, ?, ?)", values)
        self.orders.upsert(order)

    def delete(self, number: int, sql: Any = None) -> None:
        (sql or self.sql).execute("delete from orders where id = ?", (number,))
        self.orders.delete(number)

    def state(self) -> Any:
        """Return the contents of tables and views."""
        return Counter(self.orders), Counter(self.notes), Counter(self.spent)

    def check(self) -> None:
        """Check that the table equals the file, and the view the SQL query."""
        assert Counter(self.orders) == Counter(self.read())
        sql = self.connect()
        query = "select customer, count(*), sum(total) from orders group by customer"
        assert Counter(self.spent) == Counter(sql.execute(query))
        sql.close()
        for view in (self.spent, self.parts):
            view.verify()
        assert self.db._engine.pending is None

    def close(self) -> None:
        self.db.close()
        self.sql.close()
