"""Spilled tables: stored tables whose rows leave the process, because only remote parts read them.

    statements --> remote store --+-- moved rows
                                  +-- rows not moved yet, in the old store: moved in pieces

Rows move while commits continue, and each is released when it has moved: there is never a second
copy of them. A spilled table returns before an operator in the process is created that reads it:
operators know the rows of a stored table by identity, and rows that are fetched are new objects
each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.api.internal_interface import keyed_of, move_rows, node_of, row_store_of
from reactive.api.table import Table
from reactive.engine.compiler import placement as offloading
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.plain import LINEAR
from reactive.engine.runtime.interrupts import surely
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import BagStore, RowStore

if TYPE_CHECKING:
    from reactive.borders.offload.backend import Offload
    from reactive.engine.transactions.engine import Engine

PIECE = 2_000
"""The rows moved at a time, while commits wait."""
RECURSIVE = (plan.Fixpoint, plan.Component, plan.Iterate)


class SpilledRows(RowStore, Protocol):
    """The rows of a table that only remote parts read.

    Rows that have not moved yet are in the old store, where statements find them.
    """

    def move(self, count: int) -> int:
        """Move `count` of the rows. Return the number left. When this raises, none has moved."""
        ...

    def close(self) -> None:
        """Delete the remote rows."""
        ...


class Spilling:
    """The spilled tables of a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.stores: dict[Table[Any], Any] = {}

    def spill(self, node: plan.Node, offload: Offload) -> None:
        """Spill the stored tables that a part reads and no operator in the process does."""
        for read in tables(node):
            table = self._engine.table_of(read)
            if type(table) is Table and table not in self.stores and self._may_go(table):
                self._spill(table, offload)

    def _spill(self, table: Table[Any], offload: Offload) -> None:
        """Move the rows in pieces, while commits continue."""
        engine = self._engine
        with engine.inside():
            rows: Any = row_store_of(table)
            if engine.pending is not None or engine.aside or not self._may_go(table):
                return
            store = self.stores[table] = offload.spill(table.name, table.row_type, rows)
            move_rows(table, store, None if keyed_of(table) is None else store)
        with offload.progress(f"table {table.name}", len(store)):
            while self._move(table, store):
                pass

    def _move(self, table: Table[Any], store: SpilledRows) -> int:
        """Return the number of rows left to move; 0 for a table that has returned meanwhile."""
        left: list[int] = []
        with self._engine.inside():
            if self.stores.get(table) is store:
                surely(lambda: left.append(store.move(PIECE)))
        return left[0] if left else 0

    def _may_go(self, table: Table[Any]) -> bool:
        """Return True if a table's rows are in the process, and only remote operators read them."""
        store = row_store_of(table)
        return isinstance(store, BagStore | KeyedStore) and _is_read_elsewhere_only(node_of(table))

    def bring_back(self, root: plan.Node, offloaded: offloading.OffloadedNodes) -> None:
        """Bring back the tables that a plan reads in the process. The caller holds the lock."""
        spilled = {table.plan.number for table in self.stores}
        for number in _read_here(root, offloaded, spilled) if spilled else ():
            table = self._engine.tables[number]
            gone = self.stores[table]
            store = _empty_store(table)
            for row, count in gone.pairs():
                store.add(row, count)
            move_rows(table, store, store if isinstance(store, KeyedStore) else None)
            del self.stores[table]
            gone.close()

    def forget(self, table: Table[Any]) -> None:
        """Delete the remote rows of a dropped table."""
        store = self.stores.pop(table, None)
        if store is not None:
            store.close()

    def close(self) -> None:
        """Delete all remote rows."""
        for store in self.stores.values():
            store.close()
        self.stores.clear()


def _empty_store(table: Table[Any]) -> BagStore | KeyedStore:
    """Return an empty store for the rows of a table that return to the process."""
    key, keyed = table.plan.key, keyed_of(table)
    if key is None or keyed is None:
        return BagStore()
    return KeyedStore(keyed.key, key.function)


def _is_read_elsewhere_only(source: Node) -> bool:
    """Return True if all stateful operators that read a table's rows are remote."""
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
    """Return the numbers, of those in `of`, of the tables that a plan reads in the process."""
    found: set[int] = set()
    waiting = [(root, False)]
    if offloaded.levels_there(root) is not None:
        waiting = [(source, True) for source in offloaded.fragment(root).inputs]
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
