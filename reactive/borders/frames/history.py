"""What a view has changed since a version: the deltas of its last commits, which add up.

    version 41 --delta--> 42 --delta--> 43 = now        changes_since(41) = their sum

Begun by `keep_changes` or the first `changes_since`; a view that nobody asks keeps nothing. Deltas
come by a subscription, after their commit; those on their way are taken from the delivery queue.

What is older, as after a restart, comes of the commits that a durable database keeps: the view is
evaluated over the rows that its tables had then, and compared with that of now.

State:  the deltas of at most `commits` commits.
Cost:   O(1) of a commit that changes the view; O(changes since) of what is asked; of what comes of
        the file that of evaluating the view once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from optimizer.errors import PlanError
from optimizer.plans.properties import tables
from reactive.api.subscriptions.subscribe import listen
from reactive.borders.durable import history as durable_history
from reactive.borders.frames import export
from reactive.engine.collections.zset import Pair, Row, consolidate, negate
from reactive.engine.dataflow.delta import Delta
from reactive.engine.reference.verify import evaluated
from reactive.engine.runtime import needs

COMMITS = 1000
"""Commits whose deltas are kept, if it is not said."""


class NetChanges:
    """What the rows of a view came to change from one version to another: each row once.

    It iterates over (row, weight): how often a row came, or went if it is negative.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> view = words.materialize()
    >>> view.keep_changes()
    >>> words.add_all(["to", "be"])
    >>> view.changes_since(0)
    NetChanges(0 to 1: {'to': +1, 'be': +1})
    """

    def __init__(self, view: Any, since: int, version: int, pairs: Sequence[Pair]) -> None:
        self._view = view
        self._pairs = pairs
        self.since = since
        """The version that these are the changes of."""
        self.version = version
        """The version that they lead to: give it to `changes_since` the next time."""

    def items(self) -> tuple[tuple[Any, int], ...]:
        """Each row that changed with its signed weight."""
        return tuple(self._pairs)

    def to_arrow(self) -> Any:
        """The changes as a `pyarrow.Table`: as of `View.to_arrow`, with the column `weight` at the
        end; `weight_` where a row has one."""
        needs.check("changes_since(...).to_arrow")
        return export.weighted(self._view, self._pairs)

    def to_polars(self) -> Any:
        """The same as a `polars.DataFrame`."""
        needs.check("changes_since(...).to_polars", "polars")
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`."""
        needs.check("changes_since(...).to_pandas", "pandas")
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{row!r}: {weight:+}" for row, weight in self._pairs[:3])
        more = ", ..." if len(self._pairs) > 3 else ""
        return f"NetChanges({self.since} to {self.version}: {{{pairs}{more}}})"


class History:
    """The deltas of the last commits of a view. Made and asked inside the lock."""

    def __init__(self, engine: Any, leaf: Any, commits: int) -> None:
        self.commits = commits
        self.since = engine.version
        """From this version on changes are known."""
        self._engine = engine
        self._deltas: deque[Delta[Any]] = deque()
        self._subscription, self._reference = listen(engine, leaf, self._add, None)

    def keep(self, commits: int) -> None:
        """Keep the deltas of so many commits from now on."""
        self.commits = commits
        self._forget()

    def deltas(self) -> list[Delta[Any]]:
        """Those that are kept, and those on their way, which another thread may be delivering: what
        is not in the queue any more is kept."""
        queue = list(self._engine.delivery_queue)
        kept = list(self._deltas)
        known = set(map(id, kept))
        waiting = [delta for to, delta in queue if self._reference in to and id(delta) not in known]
        return kept + waiting

    def _add(self, delta: Delta[Any]) -> None:
        if not self._deltas or delta is not self._deltas[-1]:  # it comes again after an interrupt
            self._deltas.append(delta)
        self._forget()

    _add.is_repeatable = True  # type: ignore[attr-defined]
    _add.needs_each = True  # type: ignore[attr-defined]

    def _forget(self) -> None:
        while len(self._deltas) > self.commits:
            self.since = self._deltas[0].version
            self._deltas.popleft()


def keep(view: Any, commits: int) -> None:
    """What `View.keep_changes` does.

    Raises
    ------
    PlanError: it is no number of commits.
    """
    if type(commits) is not int or commits < 1:
        raise PlanError(f"keep_changes takes a number of commits from 1 on, not {commits!r}")
    with view._reading():
        _of(view, commits).keep(commits)


def changes_since(view: Any, version: int) -> NetChanges:
    """What `View.changes_since` does.

    Raises
    ------
    PlanError: the changes since that version are not kept.
    """
    if type(version) is not int:
        raise PlanError(
            f"changes_since takes the number of a version, not {version!r:.100}\n"
            "  db.version is the one of now"
        )
    with view._reading():
        engine, history = view._engine, _of(view, COMMITS)
        deltas = history.deltas()  # before it is asked from when on they are known
        if 0 <= version < history.since:
            return NetChanges(view, version, engine.version, _from_file(view, history, version))
        if not history.since <= version <= engine.version:
            raise PlanError(_unknown(view, history, version, engine.version))
        pairs = [pair for delta in deltas if delta.version > version for pair in delta.items()]
        return NetChanges(view, version, engine.version, consolidate(pairs))


def _from_file(view: Any, history: History, version: int) -> list[Pair]:
    """Return the changes since a version of before, by the commits that a durable database keeps.

    Cost: that of evaluating the view over the rows of then.
    """
    engine, node = view._engine, view.relation.plan
    read = tables(node)
    then = durable_history.rows_at(engine.journal, version, [engine.table_of(t) for t in read])
    if isinstance(then, str):
        raise PlanError(_unknown(view, history, version, engine.version, then))
    before = dict(zip(read, then, strict=True))
    with engine.graph.running():
        rows = evaluated(engine.queries.base(node), before.__getitem__)
    return consolidate([*view._contents.items(), *negate(rows.items())])


def _unknown(view: Any, history: History, version: int, now: int, why: str = "") -> str:
    if version > now:
        return f"{view._called()} has no version {version} yet\n  db.version is {now}"
    return (
        f"{view._called()} keeps its changes from version {history.since} on, not from {version}\n"
        f"  read all rows, and ask from db.version, {now}, on; keep_changes(commits=...), before, "
        f"keeps those of more than {history.commits} commits"
        + (f"\n  they are not known from the file either: {why}" if why else "")
    )


def _of(view: Any, commits: int) -> History:
    found = view._history
    if found is None:
        found = view._history = History(view._engine, view._node, commits)
    history: History = found
    return history
