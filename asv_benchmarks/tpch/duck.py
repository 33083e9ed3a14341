"""The TPC-H queries in SQL, from scratch, by DuckDB with one thread, if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import isclose
from time import process_time
from typing import Any

from asv_benchmarks.tpch.workloads import READ
from asv_benchmarks.workload import Rows

SQL = {
    "q1": """
        select returned, status, sum(quantity), sum(price), sum(price * (100 - discount)),
               sum(price * (100 - discount) * (100 + tax)),
               avg(quantity), avg(price), avg(discount), count(*)
        from item where shipped <= 2400 group by returned, status""",
    "q3": """
        select o.id, o.day, o.priority, sum(i.price * (100 - i.discount)) as worth
        from customer c, "order" o, item i
        where c.segment = 'building' and c.id = o.customer and o.id = i."order"
          and o.day < 1200 and i.shipped > 1200
        group by o.id, o.day, o.priority order by worth desc, o.day, o.id limit 10""",
    "q5": """
        select n.name, sum(i.price * (100 - i.discount))
        from customer c, "order" o, item i, supplier s, nation n, region r
        where c.id = o.customer and o.id = i."order" and i.supplier = s.id
          and s.nation = c.nation and s.nation = n.id and n.region = r.id
          and r.name = 'region 2' and o.day >= 365 and o.day < 730
        group by n.name""",
    "q6": """
        select sum(price * discount) from item
        where shipped >= 365 and shipped < 730 and discount between 5 and 7 and quantity < 24""",
    "q9": """
        select n.name, o.day // 365,
               sum(i.price * (100 - i.discount) - 100 * f.cost * i.quantity)
        from item i, part p, offer f, supplier s, "order" o, nation n
        where p.id = i.part and f.part = i.part and f.supplier = i.supplier
          and s.id = i.supplier and o.id = i."order" and n.id = s.nation
          and contains(p.name, 'green')
        group by n.name, o.day // 365""",
    "q13": """
        select orders, count(*) from (
            select c.id, count(o.id) as orders from customer c
            left join "order" o on c.id = o.customer and not contains(o.note, 'special')
            group by c.id)
        group by orders""",
    "q18": """
        select c.id, o.id, o.day, o.total, sum(i.quantity) as pieces
        from customer c, "order" o, item i
        where c.id = o.customer and o.id = i."order"
        group by c.id, o.id, o.day, o.total having sum(i.quantity) > 250
        order by o.total desc, o.day, o.id limit 100""",
}


class Duck:
    """A DuckDB of its own with the tables of one query."""

    def __init__(self, name: str, rows: Rows) -> None:
        import duckdb
        import pyarrow as arrow

        self._sql = SQL[name]
        self._db = duckdb.connect()
        self._db.execute("set threads = 1")
        for row_type, some in zip(READ[name], rows, strict=True):
            columns = {f.name: [getattr(row, f.name) for row in some] for f in fields(row_type)}
            self._db.register("given", arrow.table(columns))
            table = row_type.__name__.lower()
            self._db.execute(f'create table "{table}" as select * from given')
            self._db.unregister("given")

    def rows(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._db.execute(self._sql).fetchall()
        return found

    def seconds(self) -> float:
        """Processor time of the query from scratch."""
        start = process_time()
        self.rows()
        return process_time() - start


def flat(row: Any) -> tuple[Any, ...]:
    """A row of a view as SQL has it: keys that are tuples laid out, one value by itself as one."""
    parts = row if isinstance(row, tuple) else (row,)
    return tuple(v for part in parts for v in (part if isinstance(part, tuple) else (part,)))


def same(view: Sequence[Any], rows: Sequence[tuple[Any, ...]], *, ordered: bool) -> bool:
    """Return True if a view has the rows that DuckDB has, up to the rounding of means."""
    ours, its = [flat(row) for row in view], [tuple(row) for row in rows]
    if not ordered:
        ours, its = sorted(ours, key=repr), sorted(its, key=repr)
    return len(ours) == len(its) and all(map(_close, ours, its))


def _close(ours: tuple[Any, ...], its: tuple[Any, ...]) -> bool:
    return len(ours) == len(its) and all(
        isclose(a, b) if isinstance(b, float) else a == b for a, b in zip(ours, its, strict=True)
    )
