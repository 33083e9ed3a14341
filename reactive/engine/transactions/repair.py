"""Repair a database after an exception that may have left anything half done.

    tables   their changes that are to be undone are
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
from typing import TYPE_CHECKING

from reactive.engine.compiler.leaves import rebuild
from reactive.engine.runtime.collector import paused
from reactive.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reactive.engine.collections.zset import Pair
    from reactive.engine.dataflow.node import Node
    from reactive.engine.transactions.base import Base
    from reactive.engine.transactions.engine import Engine

log = logging.getLogger("reactive")
WHY = "an exception from outside broke a commit off, and table {} keeps no rows to begin anew with"


@dataclass(slots=True)
class Broken:
    """What a commit that was broken off had changed in tables, and is still to be undone."""

    back: list[tuple[Base, Sequence[Pair]]]
    views: bool = True
    """Whether operators may be half changed too."""

    def put_back(self) -> None:
        """Take it back; who is broken off may begin anew."""
        while self.back:
            table, changes = self.back[-1]
            table._store.revert(changes)
            self.back.pop()


def repair(engine: Engine) -> None:
    """Undo what was broken off, and compute all views again. Done inside the lock.

    A commit that is prepared is not broken: its operators step back, until its end. If this is
    broken off itself, the next one resumes it.
    """
    db_lock = engine.db_lock
    if engine.prepared is not None:
        engine.prepared.park()
    broken = engine.broken
    if broken is None:
        return
    was_critical, db_lock.critical = db_lock.critical, True
    try:
        broken.put_back()
        for table in engine.tables.values():
            table._store.recount()
        leaves = _all_again(engine) if broken.views else 0
        engine.broken, db_lock.at_rest = None, db_lock.idle
        db_lock.has_news = True
    finally:
        db_lock.critical = was_critical
    if broken.views:
        log.warning("a commit was broken off; %d views were computed again", leaves)


def _all_again(engine: Engine) -> int:
    """Compute all views again; how many could be."""
    engine.graph.reset()
    engine.offloading.reset()
    with paused():
        return sum([_again(engine, leaf) for leaf in engine.graph.leaves()])


def _again(engine: Engine, leaf: Node) -> bool:
    """Compute what a leaf stands for again; False if it cannot be, and is closed."""
    try:
        engine.queries.over(leaf.leaf.base, partial(rebuild, engine.graph, leaf))
    except TableError:
        gone = next(t for t in engine.tables.values() if t._flowed and not t.plan.stored)
        engine.end(leaf, WHY.format(repr(gone.name)))
        return False
    engine.queries.watch(leaf, leaf.leaf.plan)
    return True
