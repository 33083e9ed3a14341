"""A database that begins with a store: `Database(path)`, `Database(store=...)`."""

from __future__ import annotations

import os
import weakref
from typing import Any

from optimizer.errors import PlanError
from reactive.durable.group import GroupJournal
from reactive.durable.journal import Journal
from reactive.durable.opening import check_chosen, store_of
from reactive.durable.store import Store


def begin(
    engine: Any,
    path: str | os.PathLike[str] | None,
    store: Store | None,
    durability: str,
    synchronous: str,
    keep: int,
) -> None:
    """Open a store, and have the engine write to it.

    Raises
    ------
    PlanError: what is asked for there is not.
    DurabilityError: the store cannot be opened.
    """
    check_chosen(durability, synchronous)
    if type(keep) is not int or keep < 0:
        raise PlanError(f"keep={keep!r:.50} is no number of commits\n  write an integer from 0 on")
    if path is not None and store is not None:
        raise PlanError("a database has a path or a store, not both\n  leave one of them out")
    if engine.overflow is not None:
        raise PlanError(
            "a database that offloads to Spark cannot be durable: rows of tables leave the process"
            "\n  leave out the path, or offload="
        )
    found = store if path is None else store_of(path, synchronous)  # type: ignore[arg-type]
    assert found is not None
    found.open(keep)
    try:
        engine.begin_at(found.version())
    except BaseException:
        found.close()
        raise
    engine.journal = journal_of(engine, found, durability, is_each=keep > 0)
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
