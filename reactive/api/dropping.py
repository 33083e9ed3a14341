"""Tables that are dropped or replaced, and what becomes of those who read them.

    drop     the views and subscriptions over it end, and say why; its rows are given up
    replace  the same, once another table of its name has been made

A query over such a table is a query still, but cannot be computed any more.

Cost: what the views held is freed; nothing is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer.errors import PlanError
from optimizer.properties import tables
from reactive.api.table import Table
from reactive.compiler.leaves import end
from reactive.errors import TransactionError

if TYPE_CHECKING:
    from reactive.database import Database
    from reactive.dataflow.node import Node

SHOWN = 5
"""Views that a message names."""
AGAIN = "make its query again, over a table that is there: see db.tables()"


def drop(db: Database, table: Table[Any], *, views: bool, why: str) -> None:
    """Take a table out of its database; as `Database.drop`. Done inside the gate, to write."""
    _check(db, table)
    db._drain()
    found = readers(db, table)
    if found and not views:
        raise PlanError(_refusal(db, table, found))
    db._gate.critical = True  # Ctrl-C comes when it is done
    for leaf in found:
        leaf.leaf.remedy = AGAIN
        end(db, leaf, why)
    del db._tables[table.plan.number]
    db._offloading.spilling.forget(table)
    db._graph.drop_source(table._node)
    table._give_up(why)


def readers(db: Database, table: Table[Any]) -> list[Node]:
    """The leaves of views and subscriptions whose query reads a table."""
    number = table.plan.number
    leaves = db._graph.leaves()
    return [leaf for leaf in leaves if any(t.number == number for t in tables(leaf.leaf.plan))]


def _check(db: Database, table: Any) -> None:
    if not isinstance(table, Table):
        raise PlanError(
            f"drop takes a table, not {table!r:.100}\n"
            "  db.tables() has them all; a view ends with view.close()"
        )
    if db._tables.get(table.plan.number) is not table:
        raise PlanError(f"table {table.name!r} is none of this database, or dropped already")
    if db._pending is not None:
        raise TransactionError(
            f"table {table.name!r} cannot be dropped or replaced inside a transaction\n"
            "  do it after the `with` block"
        )


def _refusal(db: Database, table: Table[Any], found: list[Node]) -> str:
    names = [_name(db, leaf) for leaf in found[:SHOWN]]
    names += [f"{len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return (
        f"table {table.name!r} cannot be dropped: it is read by {', '.join(names)}\n"
        "  close them first; drop(table, views=True) closes them too"
    )


def _name(db: Database, leaf: Node) -> str:
    feed = leaf.leaf
    if leaf.rank not in db._views:
        return f"a subscription made at {feed.place}"
    return f"{feed}" if feed.name is None else f"{feed} ({feed.place})"
