"""Repair a database after an exception that may have left anything half done.

    tables   what is to be taken back of them is
    views    are computed again from the tables; subscribers are told all rows, as a snapshot

Such an exception comes from outside (`interrupts.py`): a second Ctrl-C, a time limit. Nobody knows
which operators had stepped, so none is believed. A view over a table that is not stored cannot be
computed again: it is closed, and says why.

Cost: that of making all views anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from reactive.compiler.leaves import end, rebuild
from reactive.errors import TableError
from reactive.runtime.collector import paused
from reactive.runtime.gate import IDLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.api.table import Table
    from reactive.collections.zset import Pair
    from reactive.database import Database
    from reactive.dataflow.node import Node

log = logging.getLogger("reactive")
WHY = "an exception from outside broke a commit off, and table {} keeps no rows to begin anew with"


@dataclass(slots=True)
class Broken:
    """What a commit that was broken off had changed in tables, and is still to be taken back."""

    back: list[tuple[Table[Any], Sequence[Pair]]]
    views: bool = True
    """Whether operators may be half changed too."""

    def put_back(self) -> None:
        """Take it back; who is broken off may begin anew."""
        while self.back:
            table, changes = self.back[-1]
            table._store.revert(changes)
            self.back.pop()


def repair(db: Database) -> None:
    """Take back what was broken off, and compute all views again. Done inside the gate.

    If it is broken off itself, the next one goes on.
    """
    gate, broken = db._gate, db._broken
    assert broken is not None
    was_critical, gate.critical = gate.critical, True
    try:
        broken.put_back()
        for table in db._tables.values():
            table._store.recount()
        leaves = _all_again(db) if broken.views else 0
        db._broken, gate.at_rest = None, IDLE
        gate.has_news = True
    finally:
        gate.critical = was_critical
    if broken.views:
        log.warning("a commit was broken off; %d views were computed again", leaves)


def _all_again(db: Database) -> int:
    """Compute all views again; how many could be."""
    db._graph.reset()
    db._offloading.reset()
    with paused():
        return sum([_again(db, leaf) for leaf in db._graph.leaves()])


def _again(db: Database, leaf: Node) -> bool:
    """Compute what a leaf stands for again; False if it cannot be, and is closed."""
    try:
        db._queries.over(leaf.leaf.base, partial(rebuild, db, leaf))
    except TableError:
        gone = next(t for t in db._tables.values() if t._flowed and not t.plan.stored)
        end(db, leaf, WHY.format(repr(gone.name)))
        return False
    db._queries.watch(leaf, leaf.leaf.plan)
    return True
