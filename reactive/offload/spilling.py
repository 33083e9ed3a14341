"""Stored tables whose rows leave the process, since only parts elsewhere read them.

A table that has gone is told apart by its store. It comes back before anything in the process is
made that reads it: operators know the rows of a stored table by their identity, and rows that come
from elsewhere are new objects each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.api.table import Table
from reactive.collections.zset import Pair, Row
from reactive.compiler import offloaded as offloading
from reactive.dataflow.node import Node
from reactive.operators.plain import LINEAR
from reactive.storage.store import BagStore

if TYPE_CHECKING:
    from reactive.offload.offload import Offload
    from reactive.transactions.engine import Engine


RECURSIVE = (plan.Fixpoint, plan.Component, plan.Iterate)


class Spilling:
    """Which tables of a database are spilled."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.stores: dict[Table[Any], Any] = {}

    def spill(self, node: plan.Node, offload: Offload) -> None:
        """Spill the tables that a part reads, and nothing in the process does."""
        for read in tables(node):
            table = self._engine.table_of(read)
            if type(table) is Table and table not in self.stores and self._may_go(table):
                self._spill(table, offload)

    def _spill(self, table: Table[Any], offload: Offload) -> None:
        """Write the rows while commits go on, and then what these have changed."""
        version, first = self._rows(table)
        with offload.progress(f"table {table.name}", len(first)):
            store = offload.spill(table.name, first.items())
        if store is None:
            return
        engine = self._engine
        with engine.inside():
            if engine.pending is not None or not self._may_go(table):
                store.close()
                return
            changed = _difference(first, table._store.pairs()) if engine.version != version else ()
            for row, count in changed:
                if count > 0:
                    store.add(row, count)
                else:
                    store.remove(row, -count)
            table._move_to(store)
            self.stores[table] = store

    def _rows(self, table: Table[Any]) -> tuple[int, dict[Row, int]]:
        """All rows of a table, and of which version they are."""
        with self._engine.inside():
            return self._engine.version, dict(table._contents())

    def _may_go(self, table: Table[Any]) -> bool:
        return isinstance(table._store, BagStore) and _is_read_elsewhere_only(table._node)

    def bring_back(self, root: plan.Node, offloaded: offloading.OffloadedNodes) -> None:
        """Bring back the tables that a plan reads in the process. Inside the lock."""
        spilled = {table.plan.number for table in self.stores}
        for number in _read_here(root, offloaded, spilled) if spilled else ():
            table = self._engine.tables[number]
            gone = self.stores.pop(table)
            store = BagStore()
            for row, count in gone.pairs():
                store.add(row, count)
            table._move_to(store)
            gone.close()

    def forget(self, table: Table[Any]) -> None:
        """Discard what is elsewhere of a table that is dropped."""
        store = self.stores.pop(table, None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Discard what is elsewhere; nobody reads it any more."""
        for store in self.stores.values():
            store.close()
        self.stores.clear()


def _difference(before: dict[Any, int], now: Any) -> list[Pair]:
    held = dict(now)
    came = [(row, n - before.get(row, 0)) for row, n in held.items() if n != before.get(row, 0)]
    return [(row, -n) for row, n in before.items() if row not in held] + came


def _is_read_elsewhere_only(source: Node) -> bool:
    """Whether all operators that keep anything of a table's rows are elsewhere."""
    waiting = list(source.readers())
    while waiting:
        node = waiting.pop()
        if node.is_remote:
            continue
        if node.leaf is not None or hasattr(node.operator, "undo"):
            return False
        waiting += node.readers()
    return bool(source.consumers)


def _read_here(root: plan.Node, offloaded: offloading.OffloadedNodes, of: set[int]) -> set[int]:
    """Which of some tables a plan reads by operators in the process."""
    found: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, is_given_away = waiting.pop()
        if isinstance(node, plan.Table):
            found |= {node.number} & of if not is_given_away else set()
        elif isinstance(node, RECURSIVE):
            found |= {table.number for table in tables(node)} & of
        elif offloaded.includes(node):
            waiting += [(source, True) for source in offloaded.fragment(node).inputs]
        elif isinstance(node, LINEAR):
            waiting.append((node.input, is_given_away))
        else:
            waiting += [(source, False) for source in node.inputs()]
    return found
