"""Commits of a database: history, undo and redo, rows as of a version, and why a row has gone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.engine.collections.zset import Pair, negate, repeat_by_weight
from reactive.engine.reference.bags import ordered_rows
from reactive.engine.reference.verify import evaluate_plan
from reactive.engine.runtime.left_out import optional
from reactive.engine.transactions.commit_log import CommitLog, LoggedChanges, Past
from reactive.engine.transactions.supposition import Supposition
from reactive.engine.transactions.transaction import Transaction
from reactive.errors import PlanError, TableError, TransactionError

if TYPE_CHECKING:
    from reactive.api.proofs import Proof
    from reactive.engine.transactions.engine import Engine

SHOWN = 10


def start_log(engine: Engine, commits: int | None, rows: int | None) -> CommitLog:
    """Log commits from now on, or change how many are kept."""
    for name, most in (("commits", commits), ("rows", rows)):
        if most is not None and (type(most) is not int or most < 1):
            raise PlanError(f"journal takes {name}= as a number from 1 on, not {most!r:.60}")
    with engine.inside(to_write=True):
        if engine.log is None:
            engine.log = CommitLog(engine, commits, rows)
        else:
            engine.log.limit(commits, rows)
        found: CommitLog = engine.log
        return found


def log_of(engine: Engine) -> CommitLog:
    """Return the log of a database; that of a durable one is read from its file at first.

    Raises
    ------
    PlanError: no commits are kept.
    """
    found: CommitLog | None = engine.log
    if found is None:
        journal = engine.journal
        keep = 0 if journal is None else journal.keeps
        if not keep:
            raise PlanError(
                "no commits are kept\n  keep them: Database(keep=1000), or db.journal() from now on"
            )
        found = start_log(engine, keep, None)
        _read_file(engine, found)
    return found


def _read_file(engine: Engine, log: CommitLog) -> None:
    """Add the commits of the file of a database to its log."""
    by_name = {table.name: table for table in engine.tables.values()}
    past = optional("borders.durable.journal").history(engine, 0)
    log.first = past[0].version - 1 if past else engine.version
    for each in past:
        if not all(name in by_name for name in each.changes):
            missing = next(name for name in each.changes if name not in by_name)
            log.stop()
            engine.log = None
            raise PlanError(
                f"commit {each.version} changed table {missing!r}, which is not made yet\n"
                f"  make it first: db.table(..., name={missing!r})"
            )
        for name, pairs in each.changes.items():
            when, said = each.time.timestamp(), (each.label, each.turn)
            log.add(each.version, when, said, by_name[name], list(pairs))


def history(engine: Engine, since: int) -> list[Past]:
    """Return the commits after a version that are kept: see `Database.history`."""
    durable = optional("borders.durable.journal")
    if engine.log is None or engine.journal is not None:
        found: list[Past] = durable.history(engine, since)
        return found
    with engine.inside():
        return [_past(entry) for entry in engine.log.entries if entry.version > since]


def _past(entry: LoggedChanges) -> Past:
    named = {table.name: pairs for table, pairs in entry.changes().items()}
    return Past(entry.version, entry.when, named, entry.label, entry.turn)


def turn(engine: Engine, which: str) -> Past:
    """Take the last commit back, or make the last one that was taken back again.

    Raises
    ------
    PlanError: there is no such commit, or it changed a table whose rows are not stored.
    """
    log = log_of(engine)
    with engine.inside(to_write=True):
        entry = log.last_done() if which == "undo" else log.last_undone()
        if entry is None:
            raise PlanError(f"there is nothing to {which}")
        changes = entry.changes()
        if engine.mine is not None:
            raise TransactionError(f"a transaction is open\n  {which} after its end")
        before, engine.said = engine.said, (entry.label, which)
        try:
            if len(changes) == 1:
                ((table, pairs),) = changes.items()
                _apply(table, negate(pairs) if which == "undo" else pairs)
            else:
                _turn_all(engine, changes, which)
        finally:
            engine.said = before
    return _past(entry)


def _turn_all(engine: Engine, changes: Mapping[Any, Sequence[Pair]], which: str) -> None:
    """Make the changes of several tables in one commit, or take them back."""
    with Transaction(engine):
        for table, pairs in changes.items():
            _apply(table, negate(pairs) if which == "undo" else pairs)


def _apply(table: Any, pairs: Sequence[Pair]) -> None:
    """Change a table by a delta, as one statement."""
    table._check_stored("undo")
    if len(pairs) == 1:
        ((row, weight),) = pairs
        (table.add if weight > 0 else table.remove)(row, abs(weight))
        return
    gone = [row for row, weight in pairs for _ in range(-weight)]
    come = [row for row, weight in pairs for _ in range(weight)]
    if not gone or not come:
        (table.add_all if come else table.remove_all)(come or gone)
    else:
        table._write_many(table._do.replace_some, gone, come)


# Rows by their origins.


def replace_origin(table: Any, origin: Hashable, rows: Iterable[Any]) -> None:
    """Replace the rows of an origin: see `Table.replace_origin`."""
    if table._origins is None:
        ingest = optional("borders.sources.ingest").ingest
        name = f"origins of {table.name}"
        table._origins = ingest(table._engine, None, table, None, "raise", name)
    batch = optional("borders.sources.batch").Batch(origins={origin: list(rows)})
    table._origins.take(batch)


def origins_of(table: Any) -> Mapping[Hashable, tuple[Any, ...]]:
    """Return the rows of a table by their origins."""
    return {} if table._origins is None else dict(table._origins.origins)


# Rows as of a version.


def changes_of_table(table: Any, version: int) -> Any:
    """Return the net changes of a table since a version: see `Table.changes_since`."""
    engine = table._engine
    if type(version) is not int:
        raise PlanError(f"changes_since takes the number of a version, not {version!r:.100}")
    with engine.inside():
        pairs = log_of(engine).changes_since(table, version)
    made = optional("borders.frames.export").NetChanges
    return made(table, version, engine.version, pairs)


class PastDatabase:
    """A database as it was at a version: `Database.at` makes it.

    `past[name]` is a table of it, `past[view]` has the rows of a view or relation of the database.

    >>> from reactive import Database
    >>> db = Database(keep=10)
    >>> words = db.table(str, name="words")
    >>> words.add("to")
    >>> words.add("be")
    >>> list(db.at(1)["words"]), db.at(1)[words.select(len)]
    (['to'], [2])
    """

    def __init__(self, engine: Engine, version: int, make: Any) -> None:
        with engine.inside():
            log = log_of(engine)
            log.since(version)
            self._engine, self.version = engine, version
            self._rows = {
                table.plan.number: log.rows_at(table, version)
                for table in list(engine.tables.values())
                if table.plan.stored
            }
        self.db = make(self._rows, version)
        """A database in memory with the tables and their rows; it takes no changes."""

    def __getitem__(self, what: Any) -> Any:
        """Return a table by its name; or the rows of a table, view or relation, as a list."""
        if isinstance(what, str):
            return self.db.table(what)
        plan_of = getattr(what, "relation", what).plan
        missing = [each.name for each in tables(plan_of) if each.number not in self._rows]
        if missing:
            raise TableError(f"the rows of {missing[0]!r} are not stored, and not known then")
        with self._engine.inside():
            node = self._engine.queries.base(plan_of)

            def rows(table: Any) -> Sequence[Pair]:
                return self._rows[table.number]

            if isinstance(node, plan.OrderBy):
                return ordered_rows(node, evaluate_plan(node.input, rows))
            return list(repeat_by_weight(evaluate_plan(node, rows).items()))

    def __repr__(self) -> str:
        return f"<database at version {self.version}>"


class Unchanging:
    """The follower of a table of a past database: it refuses all changes."""

    def __init__(self, version: int) -> None:
        self._version = version

    def check(self, delta: Sequence[Pair]) -> None:
        """Refuse a change."""
        raise TableError(
            f"this is the database as of version {self._version}: it does not change\n"
            "  copy the rows into another database: Database().table(...).add_all(rows)"
        )

    def note(self, delta: Sequence[Pair], rows: int) -> None:
        """Do nothing: nothing is committed."""

    def forget(self) -> None:
        """Do nothing: nothing is known."""


# Why a row has gone, and since when one is there.


@dataclass(frozen=True, slots=True, repr=False)
class Turning:
    """The commit with which a row came or went, and what it changed that mattered.

    Parameters
    ----------
    row: the row of the view.
    has_gone: True if it went with the commit, False if it came.
    version, time, label: of the commit.
    facts: rows of tables that the commit added or removed and that decide it: (table, row, weight).
    proof: why the row was there before the commit, or is there since.

    >>> from reactive import Database
    >>> db = Database(keep=10)
    >>> words = db.table(str, name="words")
    >>> short = words.where(lambda w: len(w) < 3).materialize()
    >>> words.add("to")
    >>> words.remove("to")
    >>> print(short.why_gone("to"))
    'to' has gone with commit 2
      words 'to' was removed
    """

    row: Any
    has_gone: bool
    version: int
    time: datetime
    label: str | None
    facts: tuple[tuple[str, Any, int], ...]
    proof: Proof | None

    def __str__(self) -> str:
        named = f" {self.label!r}" if self.label else ""
        verb = "has gone" if self.has_gone else "is there since"
        said = [f"{self.row!r:.200} {verb} with commit {self.version}{named}"]
        for name, row, weight in self.facts[:SHOWN]:
            text = f"{row!r:.200}"
            shown = text if text.startswith(f"{name}(") else f"{name} {text}"
            said.append(f"  {shown} was {'added' if weight > 0 else 'removed'}")
        return "\n".join(said)

    def __repr__(self) -> str:
        return f"<{self.row!r:.100} {'gone' if self.has_gone else 'came'} with {self.version}>"


def turning(view: Any, row: Any, *, has_gone: bool) -> Turning:
    """Return the commit with which a row went, or came.

    The commits are taken back one after the other, the last one first, until the row is there, or
    no longer there; nothing of that happens outside.

    Raises
    ------
    PlanError: the row is there, or is not; or it went or came before the commits that are kept.
    """
    engine = view._engine
    log = log_of(engine)
    if (row in view) is has_gone:
        state, other = ("there", "since") if has_gone else ("not there", "why_gone")
        raise PlanError(f"{row!r:.100} is {state}\n  view.{other}(row) tells the commit")
    found: LoggedChanges | None = None
    proof: Proof | None = None if has_gone else view.why(row)
    with Supposition(engine):
        for entry in reversed(log.entries):
            for table, pairs in reversed(list(entry.changes().items())):
                _apply(table, negate(pairs))
            if (row in view) is has_gone:
                found = entry
                proof = view.why(row) if has_gone else proof
                break
    if found is None:
        raise PlanError(
            f"{row!r:.100} was {'not ' * has_gone}there in all commits that are kept, "
            f"from version {log.first} on"
        )
    return Turning(
        row, has_gone, found.version, found.when, found.label, _facts(found, proof), proof
    )


def _facts(entry: LoggedChanges, proof: Proof | None) -> tuple[tuple[str, Any, int], ...]:
    """Return the changes of a commit that a proof rests on; all of them if it names none."""
    changes = [
        (table.name, row, weight)
        for table, pairs in entry.changes().items()
        for row, weight in pairs
    ]
    facts = set() if proof is None else {(name, row) for name, row in proof.facts()}
    named = tuple(each for each in changes if (each[0], each[1]) in facts)
    return named or tuple(changes)
