"""A database that begins with a store: `Database(path)`, `Database(store=...)`."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

from optimizer.errors import PlanError
from reactive.borders.durable.group import GroupJournal
from reactive.borders.durable.journal import Journal
from reactive.borders.durable.opening import Chosen, snapshot_of, store_of
from reactive.borders.durable.store import Store


def begin(engine: Any, chosen: Chosen, reading: Callable[[Any, Any], Journal]) -> None:
    """Open a store, and have the engine write to it.

    Parameters
    ----------
    reading: what makes the journal of a store that is read alone.

    Raises
    ------
    PlanError: what is asked for there is not.
    DurabilityError: the store cannot be opened.
    """
    chosen.check()
    if engine.overflow is not None:
        raise PlanError(
            "a database that offloads to Spark cannot be durable: rows of tables leave the process"
            "\n  leave out the path, or offload="
        )
    found: Any = chosen.store
    if chosen.readonly:
        found = snapshot_of(chosen.path)
    elif chosen.path is not None:
        found = store_of(chosen.path, chosen.synchronous)
    found.open(chosen.keep)
    try:
        engine.begin_at(found.version())
    except BaseException:
        found.close()
        raise
    if chosen.readonly:
        engine.journal = reading(engine, found)
    else:
        engine.journal = journal_of(engine, found, chosen.durability, is_each=chosen.keep > 0)
    _Child(engine.journal).watch()


def journal_of(engine: Any, store: Store, durability: str, *, is_each: bool) -> Journal:
    """What writes by a level of durability."""
    if durability == "commit":
        return Journal(store)
    by_itself = durability == "group"
    return GroupJournal(store, lambda: int(engine.version), by_itself=by_itself, is_each=is_each)


class _Child:
    """A child of the process, which has the file open too, must not write to it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = weakref.ref(journal)
        self._kept: Any = None

    def watch(self) -> None:
        """From now on look whether there is one."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begins)

    def _begins(self) -> None:
        journal = self._journal()
        if journal is not None:
            self._kept = journal.store  # what it holds is never let go in there
            journal.after_fork()
