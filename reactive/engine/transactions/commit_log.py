"""The last commits of a database, in memory: their net changes of tables, and their labels.

    commit 7   "import"     orders +3, customers +1
    commit 8   "undo"       orders -3, customers -1     undoes 7

Tables tell the log of each commit by their followers, so that a database without a log pays
nothing. What is read of the log, such as the rows as of a version, is made of the rows of now and
of the changes since.

Invariants
----------
1. The log has all commits after `first`.
2. `done` has the commits that `undo` may take back, the last one at its end; `undone` those that
   `redo` may make again. A commit of its own empties `undone`.

State:  the changed rows of the last commits.
Cost:   a list append per commit and table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Literal

from reactive.engine.collections.zset import Pair, consolidate, negate
from reactive.engine.transactions.followers import followers_of
from reactive.errors import PlanError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.row_gate import Base

Turn = Literal["undo", "redo"] | None
"""What a commit does to an earlier one."""


@dataclass(frozen=True, slots=True)
class Past:
    """A past commit.

    Parameters
    ----------
    version: its number.
    time: the time of the commit.
    changes: by the name of each table that it changed, rows with the change in their number of
        copies. Rows of a table that this process has not created are dictionaries.
    label: what `transaction(label=...)` called it.
    turn: "undo" or "redo" for a commit of `Database.undo` or `redo`.

    >>> Past(7, datetime(2026, 1, 1), {"words": [("to", 1)]}).changes["words"]
    [('to', 1)]
    """

    version: int
    time: datetime
    changes: Mapping[str, Sequence[tuple[Any, int]]]
    label: str | None = None
    turn: Turn = None


@dataclass(slots=True, eq=False)
class LoggedChanges:
    """A commit: the deltas of the tables that it changed."""

    version: int
    time: float
    label: str | None = None
    turn: Turn = None
    parts: list[tuple[Any, Sequence[Pair]]] = field(default_factory=list)

    @property
    def when(self) -> datetime:
        """The time of the commit."""
        return datetime.fromtimestamp(self.time, UTC)

    def changes(self) -> dict[Any, list[Pair]]:
        """Return the net changes by table."""
        found: dict[Any, list[Pair]] = {}
        for table, delta in self.parts:
            found.setdefault(table, []).extend(delta)
        return {table: net for table, pairs in found.items() if (net := consolidate(pairs))}

    def rows(self) -> int:
        """Return the number of changed rows."""
        return sum([len(delta) for _, delta in self.parts])


class TableLog:
    """The follower of one table that tells the log of its commits."""

    __slots__ = ("_log", "_table")

    def __init__(self, log: CommitLog, table: Base) -> None:
        self._log, self._table = log, table

    def note(self, delta: Sequence[Pair]) -> None:
        """Note the delta of a commit."""
        self._log.note(self._table, delta)


class CommitLog:
    """The last commits of a database.

    Parameters
    ----------
    commits, rows: how many commits, and changed rows of commits, are kept; None for any number.
    """

    def __init__(self, engine: Engine, commits: int | None, rows: int | None) -> None:
        self._engine = engine
        self.commits, self.most_rows = commits, rows
        self.first = engine.version
        self.entries: deque[LoggedChanges] = deque()
        self.done: list[LoggedChanges] = []
        self.undone: list[LoggedChanges] = []
        self._rows = 0
        for table in list(engine.tables.values()):
            self.follow(table)

    def follow(self, table: Any) -> None:
        """Log the commits of a table from now on."""
        followers_of(table).log = TableLog(self, table)

    def note(self, table: Any, delta: Sequence[Pair]) -> None:
        """Note the delta of a table in the last commit."""
        engine, entries = self._engine, self.entries
        version = engine.version
        if entries and entries[-1].version == version:
            entries[-1].parts.append((table, delta))
            self._rows += len(delta)
            return
        label, turn = engine.said
        entry = LoggedChanges(version, time(), label, turn, [(table, delta)])
        self._rows += len(delta)
        self.append(entry)

    def append(self, entry: LoggedChanges) -> None:
        """Append a commit, and drop the oldest ones that are too many."""
        self.entries.append(entry)
        if entry.turn is None:
            self.done.append(entry)
            self.undone.clear()
        elif entry.turn == "undo" and self.done:
            self.undone.append(self.done.pop())
        elif entry.turn == "redo" and self.undone:
            self.done.append(self.undone.pop())
        while self._is_too_long() and len(self.entries) > 1:
            gone = self.entries.popleft()
            self._rows -= gone.rows()
            self.first = gone.version
            if self.done and self.done[0] is gone:
                del self.done[0]

    def _is_too_long(self) -> bool:
        is_many = self.commits is not None and len(self.entries) > self.commits
        return is_many or (self.most_rows is not None and self._rows > self.most_rows)

    def since(self, version: int) -> list[LoggedChanges]:
        """Return the commits after a version.

        Raises
        ------
        PlanError: not all of them are kept, or the version is to come.
        """
        now = self._engine.version
        if version > now:
            raise PlanError(f"there is no version {version} yet\n  db.version is {now}")
        if version < self.first:
            raise PlanError(
                f"the commits from version {self.first} on are kept, not from {version}\n"
                "  keep more of them: Database(keep=...), or db.journal(commits=...)"
            )
        return [entry for entry in self.entries if entry.version > version]

    def rows_at(self, table: Any, version: int) -> list[Pair]:
        """Return the rows of a table as of a version."""
        later = self.changes_since(table, version)
        return consolidate([*table._all(), *negate(later)])

    def changes_since(self, table: Any, version: int) -> list[Pair]:
        """Return the net changes of a table since a version."""
        return net_of(self.since(version), table)

    def stop(self) -> None:
        """Log nothing any more."""
        for table in list(self._engine.tables.values()):
            followers_of(table).log = None


def net_of(entries: Iterable[LoggedChanges], table: Any) -> list[Pair]:
    """Return the net changes of a table in some commits."""
    parts = [delta for entry in entries for changed, delta in entry.parts if changed is table]
    return consolidate([pair for delta in parts for pair in delta])
