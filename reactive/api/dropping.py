"""Tables that are dropped or replaced, and what becomes of those who read them.

    drop     the views and subscriptions over it end, and say why; its rows are given up
    replace  the same, once another table of its name has been made

A query over such a table is a query still, but cannot be computed any more.

Cost: what the views held is freed; nothing is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer.errors import PlanError
from optimizer.plans.properties import tables
from reactive.api.table import Table
from reactive.errors import TransactionError

if TYPE_CHECKING:
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.engine import Engine

SHOWN = 5
"""Views that a message names."""
AGAIN = "make its query again, over a table that is there: see db.tables()"


def drop(engine: Engine, table: Table[Any], *, views: bool, why: str) -> None:
    """Take a table out of its database; as `Database.drop`. Done inside the lock, to write."""
    _check(engine, table)
    engine.drain()
    found = readers(engine, table)
    if found and not views:
        raise PlanError(_refusal(engine, table, found))
    if engine.journal is not None:
        engine.journal.forget(table)
    engine.db_lock.critical = True  # Ctrl-C comes when it is done
    for leaf in found:
        leaf.leaf.remedy = AGAIN
        engine.end(leaf, why)
    del engine.tables[table.plan.number]
    engine.offloading.forget(table)
    if engine.catalog is not None:
        engine.catalog.forget(table.plan.number)
    engine.graph.drop_source(table._node)
    table._give_up(why)


def readers(engine: Engine, table: Table[Any]) -> list[Node]:
    """The leaves of views and subscriptions whose query reads a table."""
    number = table.plan.number
    leaves = engine.graph.leaves()
    return [leaf for leaf in leaves if any(t.number == number for t in tables(leaf.leaf.plan))]


def _check(engine: Engine, table: Any) -> None:
    if not isinstance(table, Table):
        raise PlanError(
            f"drop takes a table, not {table!r:.100}\n"
            "  db.tables() has them all; a view ends with view.close()"
        )
    found: object = engine.tables.get(table.plan.number)
    if found is not table:
        raise PlanError(f"table {table.name!r} is none of this database, or dropped already")
    if engine.pending is not None:
        raise TransactionError(
            f"table {table.name!r} cannot be dropped or replaced inside a transaction\n"
            "  do it after the `with` block"
        )


def _refusal(engine: Engine, table: Table[Any], found: list[Node]) -> str:
    names = [_name(engine, leaf) for leaf in found[:SHOWN]]
    names += [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return (
        f"table {table.name!r} cannot be dropped: it is read by {', '.join(names)}\n"
        "  close them first; drop(table, views=True) closes them too"
    )


def _name(engine: Engine, leaf: Node) -> str:
    channel = leaf.leaf
    if leaf.rank not in engine.views:
        return f"a subscription made at {channel.place}"
    return f"{channel}" if channel.name is None else f"{channel} ({channel.place})"
