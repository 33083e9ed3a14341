"""The last commits of a database, in memory: their net changes of tables, and their labels.

    commit 7   "import"     orders +3, customers +1
    commit 8   "undo"       orders -3, customers -1     undoes 7

Tables tell the log of each commit by their followers, so that a database without a log pays
nothing. What is read of the log, such as the rows as of a version, is made of the rows of now and
of the changes since.

Invariants
----------
1. The log has all commits after `first`.

Which commit `undo` takes back is read from the end: a commit that undoes another one cancels it,
and one that redoes it cancels that.

State:  the changed rows of the last commits.
Cost:   a list append per commit and table; an entry is made when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from reactive.engine.collections.zset import Pair, consolidate, negate
from reactive.engine.transactions.followers import followers_of
from reactive.errors import PlanError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

Turn: TypeAlias = Literal["undo", "redo"] | None
"""The effect of a commit on an earlier one, if it is of `undo` or `redo`."""
Said: TypeAlias = tuple[str | None, Turn]
Noted: TypeAlias = tuple[int, float, Said, Any, Sequence[Pair]]
"""A version, its time, its label and turn, a table and its delta."""
LEAST = 64
"""Number of deltas beyond the kept ones at which the oldest are dropped."""


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


class CommitLog:
    """The last commits of a database.

    Parameters
    ----------
    commits, rows: how many commits, and changed rows of commits, are kept; None for any number.
    """

    def __init__(self, engine: Engine, commits: int | None, rows: int | None) -> None:
        self._engine = engine
        self.first = engine.version
        self._noted: list[Noted] = []
        """The deltas of the commits that are kept, and of some before them."""
        self.limit(commits, rows)

    def limit(self, commits: int | None, rows: int | None) -> None:
        """Set how many commits, and changed rows, are kept, and follow all tables."""
        self._commits, self._most_rows = commits, rows
        for table in list(self._engine.tables.values()):
            self.follow(table)

    def follow(self, table: Any) -> None:
        """Log the commits of a table from now on."""
        engine, noted = self._engine, self._noted
        append, trim, now = noted.append, self._trim, time
        many = LEAST if self._most_rows is not None else 2 * (self._commits or 0) + LEAST
        is_bounded = self._commits is not None or self._most_rows is not None

        def note(delta: Sequence[Pair]) -> None:
            append((engine.version, now(), engine.said, table, delta))
            if is_bounded and len(noted) > many:
                trim()

        followers_of(table).log = note

    def add(self, version: int, when: float, said: Said, table: Any, pairs: Sequence[Pair]) -> None:
        """Add a delta of a commit of an earlier process."""
        self._noted.append((version, when, said, table, pairs))

    def _trim(self) -> None:
        """Drop the oldest commits, if there are too many."""
        noted = self._noted
        if self._most_rows is None and len(noted) <= (self._commits or len(noted)):
            return
        versions: dict[int, None] = {}
        rows = 0
        for place in range(len(noted) - 1, -1, -1):
            version, _, _, _, delta = noted[place]
            rows += len(delta)
            is_new = version not in versions
            versions.setdefault(version)
            is_many = self._commits is not None and len(versions) > self._commits
            is_large = self._most_rows is not None and rows > self._most_rows
            if is_new and len(versions) > 1 and (is_many or is_large):
                self.first = version
                del noted[: place + 1]
                return

    @property
    def entries(self) -> list[LoggedChanges]:
        """The commits that are kept, the oldest first."""
        self._trim()
        found: list[LoggedChanges] = []
        for version, when, (label, turn), table, delta in self._noted:
            if found and found[-1].version == version:
                found[-1].parts.append((table, delta))
            else:
                found.append(LoggedChanges(version, when, label, turn, [(table, delta)]))
        return found

    def last_done(self) -> LoggedChanges | None:
        """Return the last commit that `undo` may take back."""
        return self._back(0)

    def last_undone(self) -> LoggedChanges | None:
        """Return the commit that `redo` may make again: the last one that was taken back.

        There is none after a commit of one's own.
        """
        turned = 0
        for _, (_, _, (_, turn), _, _) in self._backwards():
            if turn is None:
                break
            turned += 1 if turn == "undo" else -1
        return None if turned < 1 else self._back(-1)

    def _back(self, skipped: int) -> LoggedChanges | None:
        """Return the last commit of one's own that stands, after `skipped` others that stand.

        With -1, return the last one that was taken back.
        """
        waiting = skipped
        for place, (version, when, (label, turn), _, _) in self._backwards():
            if turn is not None:
                waiting += 1 if turn == "undo" else -1
            elif waiting:
                waiting -= 1
            else:
                return self._entry(place, version, when, label)
        return None

    def _backwards(self) -> Iterator[tuple[int, Noted]]:
        """Yield the first delta of each commit, with its place, the last one first."""
        noted = self._noted
        for place in range(len(noted) - 1, -1, -1):
            if not place or noted[place - 1][0] != noted[place][0]:
                yield place, noted[place]

    def _entry(self, place: int, version: int, when: float, label: str | None) -> LoggedChanges:
        parts = []
        while place < len(self._noted) and self._noted[place][0] == version:
            parts.append(self._noted[place][3:])
            place += 1
        return LoggedChanges(version, when, label, None, parts)

    def since(self, version: int) -> list[LoggedChanges]:
        """Return the commits after a version.

        Raises
        ------
        PlanError: not all of them are kept, or the version is to come.
        """
        now = self._engine.version
        if version > now:
            raise PlanError(f"there is no version {version} yet\n  db.version is {now}")
        entries = self.entries
        if version < self.first:
            raise PlanError(
                f"the commits from version {self.first} on are kept, not from {version}\n"
                "  keep more of them: Database(keep=...), or db.journal(commits=...)"
            )
        return [entry for entry in entries if entry.version > version]

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
