"""Pathway with one worker: rows are written to a connector, and a subscriber gets the result.

It runs in a thread of its own. A change has arrived when the engine reports the end of its time,
which follows all its effects.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any

from asv_benchmarks.peers.sides import COLUMNS, GROUP, Result
from asv_benchmarks.rows import Customer, Order

PATIENCE = 60.0


class Pathway:
    """A graph that runs until the process ends."""

    def __init__(self, query: str) -> None:
        import pathway as pw

        self._query = query
        self._result: Result = {}
        self._waiting: queue.Queue[list[dict[str, Any]]] = queue.Queue()
        self._news: queue.Queue[int] = queue.Queue()
        self._pw: Any = pw
        self._expected = 0

    def load(self, orders: Sequence[Order], customers: Sequence[Customer]) -> None:
        pw = self._pw
        made = _source(pw, self._waiting)
        some = made.filter(pw.this.quantity > 1)
        if self._query == GROUP:
            some = some.select(key=pw.this.product, amount=pw.this.quantity * pw.this.price)
        else:
            rows = [(c.id, c.region) for c in customers if c.active]
            types = pw.schema_from_types(customer_id=int, region=int)
            others = pw.debug.table_from_rows(types, rows)
            some = some.join(others, pw.left.customer == pw.right.customer_id).select(
                key=pw.right.region, amount=pw.left.quantity * pw.left.price
            )
        sums = some.groupby(pw.this.key).reduce(pw.this.key, total=pw.reducers.sum(pw.this.amount))
        pw.io.subscribe(sums, self._changed, on_time_end=self._news.put)
        run = {"monitoring_level": pw.MonitoringLevel.NONE}
        threading.Thread(target=pw.run, kwargs=run, daemon=True).start()
        self._send(orders)

    def add(self, order: Order) -> None:
        self._send([order])

    def result(self) -> Result:
        return self._result

    def _send(self, orders: Sequence[Order]) -> None:
        seen = len(self._changes)
        self._waiting.put([{name: getattr(order, name) for name in COLUMNS} for order in orders])
        while len(self._changes) == seen:  # a time that is over, with a change in it
            self._news.get(timeout=PATIENCE)

    @property
    def _changes(self) -> list[int]:
        return self.__dict__.setdefault("_times", [])  # type: ignore[no-any-return]

    def _changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        if is_addition:
            self._result[row["key"]] = row["total"]
        elif self._result.get(row["key"]) == row["total"]:
            del self._result[row["key"]]
        if not self._changes or self._changes[-1] != time:
            self._changes.append(time)


def _source(pw: Any, waiting: queue.Queue[list[dict[str, Any]]]) -> Any:
    class Orders(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            while True:
                for row in waiting.get():
                    self.next(**row)
                self.commit()

    schema = pw.schema_from_types(**dict.fromkeys(COLUMNS, int))
    return pw.io.python.read(Orders(), schema=schema, autocommit_duration_ms=None)
