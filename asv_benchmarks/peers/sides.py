"""The peers, each with two queries: sums of a group, and sums of a join.

Each keeps the tables as suits it best, takes a change, and has the whole result afterwards. Peers
that recompute use their best form of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from asv_benchmarks.rows import Customer, Order
from asv_benchmarks.workloads import group_sum, join_sum
from reactive import Database

GROUP, JOIN = "group_sum", "join_sum"
COLUMNS = ("id", "customer", "product", "quantity", "price")
Result = dict[Any, Any]


class Peer(Protocol):
    """Tables of orders and customers, and the result of a query over them."""

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None: ...

    def add(self, order: Order) -> None:
        """Add an order; when this returns, the result has it."""

    def result(self) -> Result: ...


class Reactive:
    """The side of this library."""

    def __init__(self, query: str) -> None:
        db = Database()
        self._orders = db.table(Order)
        self._customers = db.table(Customer, key="id")
        if query == GROUP:
            self._view: Any = group_sum.query(self._orders).materialize()
        else:
            self._view = join_sum.query(self._orders, self._customers).materialize()
        self._subscription = self._view.subscribe(_nobody)

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None:
        self._customers.add_all(customers)
        self._orders.add_all(orders)

    def add(self, order: Order) -> None:
        self._orders.add(order)

    def result(self) -> Result:
        return {row[0]: row[1] for row in self._view}


class Plain:
    """Python: lists, and a loop over all of them."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._orders: list[Order] = []
        self._customers: dict[int, Customer] = {}
        self._result: Result = {}

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None:
        self._customers = {customer.id: customer for customer in customers}
        self._orders = list(orders)
        self._compute()

    def add(self, order: Order) -> None:
        self._orders.append(order)
        self._compute()

    def result(self) -> Result:
        return self._result

    def _compute(self) -> None:
        sums: Result = {}
        customers = self._customers
        if self._query == GROUP:
            for order in self._orders:
                if order.quantity > 1:
                    key = order.product
                    sums[key] = sums.get(key, 0) + order.quantity * order.price
        else:
            for order in self._orders:
                customer = customers.get(order.customer)
                if customer is not None and customer.active and order.quantity > 1:
                    key = customer.region
                    sums[key] = sums.get(key, 0) + order.quantity * order.price
        self._result = sums


class DuckDB:
    """DuckDB in memory: an insert, and the query again."""

    def __init__(self, query: str) -> None:
        import duckdb

        self._db: Any = duckdb.connect(":memory:")
        self._db.execute("SET threads TO 1")
        by, source = ("product", "orders") if query == GROUP else ("region", _JOINED)
        self._sql = f"SELECT {by}, sum(quantity * price) FROM {source} WHERE quantity > 1"
        self._sql += ("" if query == GROUP else " AND active") + " GROUP BY ALL"
        self._rows: list[Any] = []

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None:
        import polars

        made = polars.DataFrame(columns_of(orders))
        others = polars.DataFrame(_customer_columns(customers))
        self._db.register("made", made.to_arrow())
        self._db.register("others", others.to_arrow())
        self._db.execute("CREATE TABLE orders AS SELECT * FROM made")
        self._db.execute("CREATE TABLE customers AS SELECT * FROM others")
        self._compute()

    def add(self, order: Order) -> None:
        self._db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", _values(order))
        self._compute()

    def result(self) -> Result:
        return {key: int(total) for key, total in self._rows}

    def _compute(self) -> None:
        self._rows = self._db.execute(self._sql).fetchall()


class Polars:
    """Polars: append a row to a frame, and run the query again."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._orders: Any = None
        self._customers: Any = None
        self._found: Any = None

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None:
        import polars

        self._orders = polars.DataFrame(columns_of(orders))
        self._customers = polars.DataFrame(_customer_columns(customers)).filter("active")
        self._compute()

    def add(self, order: Order) -> None:
        import polars

        self._orders = self._orders.vstack(polars.DataFrame(columns_of([order])))
        self._compute()

    def result(self) -> Result:
        return dict(self._found.iter_rows())

    def _compute(self) -> None:
        import polars
        from polars import col

        some = self._orders.lazy().filter(col("quantity") > 1)
        if self._query == JOIN:
            some = some.join(self._customers.lazy(), left_on="customer", right_on="customer_id")
        by = "product" if self._query == GROUP else "region"
        amount = (col("quantity") * col("price")).sum().cast(polars.Int64)
        self._found = some.group_by(by).agg(amount).collect()


PEERS: dict[str, Callable[[str], Peer]] = {
    "reactive": Reactive,
    "Python, again": Plain,
    "DuckDB, again": DuckDB,
    "Polars, again": Polars,
}
_JOINED = "orders JOIN customers ON customer = customer_id"


def columns_of(orders: Sequence[Order]) -> dict[str, list[int]]:
    """Orders by column."""
    return {name: [getattr(order, name) for order in orders] for name in COLUMNS}


def _customer_columns(customers: Sequence[Customer]) -> dict[str, list[Any]]:
    return {
        "customer_id": [customer.id for customer in customers],
        "region": [customer.region for customer in customers],
        "active": [customer.active for customer in customers],
    }


def _values(order: Order) -> list[int]:
    return [getattr(order, name) for name in COLUMNS]


def _nobody(delta: object) -> None:
    """Do nothing, as a subscriber."""
