"""The journal of a database: the commits written to its store, and the history read from it.

    commit     operators have stepped --> write --> published           (`durability="commit"`)
    group      noted --> committed; a thread writes batches             ("group", `group.py`)
    exit       noted --> committed; written at `flush` and `close`      ("exit")

The store decides: if an asynchronous exception arrives between the write to the store and the
publication, the tables keep the commit, and the views are recomputed (`commit.py`).

State:  the codec of each durable table; the version of the commit that may have been written last.
Cost:   a look-up for a commit that changes no durable table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from optimizer.errors import PlanError
from reactive.api.internal_interface import committed_pairs, keyed_of, row_store_of
from reactive.borders.durable.named_texts import NamedTexts
from reactive.borders.durable.refusals import DAMAGED, damaged_row
from reactive.borders.durable.rows.row_codec import RowCodec
from reactive.borders.durable.rows.values import Unstorable, reader
from reactive.borders.durable.store import Change, Record, Schema, Store, Values
from reactive.engine.collections.zset import Pair, Row, UniformDelta, consolidate, net_by_identity
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.transactions.commit_log import Past
from reactive.errors import DurabilityError, TableError

if TYPE_CHECKING:
    from reactive.api.table import Table
    from reactive.borders.durable.event_log import EventLog
    from reactive.engine.transactions.commit_log import Turn


Changes: TypeAlias = Sequence[tuple[Any, Sequence[Pair]]]
"""Tables, each with its net changes."""
ANEW = "close the database, and open it anew: it will be as stored"
Describe: TypeAlias = Callable[[Row, Unstorable], Exception]


def _not_again(schema: Schema, rows: Sequence[Values]) -> list[Any]:
    raise PlanError(f"the rows of {schema.table!r} are not those that were stored")


@dataclass(frozen=True, slots=True)
class KeptTable:
    """The form of a table in the store.

    name: the name of the table.
    codec: the encoder and decoder of its rows.
    refusal: the function that makes the exception for a row that cannot be stored.
    again: the function that converts rows stored under another schema to rows of the current class.
    log: the log of the events of a stream; None for a table with stored rows.
    """

    name: str
    codec: RowCodec
    refusal: Describe
    again: Callable[[Schema, Sequence[Values]], list[Any]] = _not_again
    log: EventLog | None = None


class Journal:
    """Write each commit while it can still be undone: `durability="commit"`."""

    is_immediate = True
    writes = True
    """True if this process changes the tables; False if another process does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keeps = 0
        """The number of commits that the store keeps."""
        self.said: Callable[[], tuple[str | None, str | None]] = lambda: (None, None)
        """Returns the label of the commit that is written, and what it turns."""
        self.kept: dict[Any, KeptTable] = {}
        """The durable tables."""
        self.kept_views: Any = None
        """The views with stored states; None until there is one (`kept_views.py`)."""
        self._writing = 0
        self._stood: int | None = None
        """The last commit that is known to be in the store."""
        self._refusal: str | None = None
        self.changes_in_step: list[Change] = []
        """The changes of the commit that steps, to which look-ups of events add theirs."""

    # Called by commits.

    def begin(self, changes: Changes, version: int) -> Callable[[], object] | None:
        """Return the function that writes a commit between its phases; None if it has none.

        Raises
        ------
        TableError: a row cannot be stored.
        DurabilityError: the journal refuses changes after an earlier failure.
        """
        if len(changes) == 1:
            kept = self.kept.get(changes[0][0])
            if kept is None:
                return None
            if (
                self._refusal is None and kept.log is None
            ):  # the work of `record` in half of its time
                record = Record(
                    version, time(), (self._change(kept, *changes[0]),), said=self.said()
                )
                return partial(self.write, record)
        found = self.record(changes, version)
        return None if found is None else partial(self.write, found)

    def record(self, changes: Changes, version: int) -> Record | None:
        """Return the record to write between the phases of a commit; None for no durable table.

        Raises
        ------
        TableError: a row cannot be stored.
        DurabilityError: the journal refuses changes after an earlier failure.
        """
        found = self.changes_in_step = []
        for table, delta in changes:
            kept = self.kept.get(table)
            if kept is not None:
                found.append(self._change(kept, table, delta))
        if not found:
            return None
        if self._refusal is not None:
            raise DurabilityError(self._refusal)
        return Record(version, time(), found, said=self.said())

    def write(self, record: Record) -> None:
        """Write a commit. If this raises, the store does not have it, unless `has` returns True.

        Raises
        ------
        DurabilityError: the store has refused the commit.
        """
        self._writing = record.version
        try:
            self.store.write((record,))
            self._stood = record.version
        except Exception as error:
            if is_asynchronous(error) or not self.has(record.version):
                raise

    def has(self, version: int) -> bool:
        """Return True if the store has commit `version`, the one that may have been written last.

        If the store cannot tell, return False, and refuse all later writes.
        """
        if self._writing != version:
            return False
        try:
            stands = self.store.version() == version
        except DurabilityError as error:
            self.refuse(f"whether commit {version} is in {self.store.name} is not known", error)
            stands = False
        if stands:
            self._stood = version
        else:
            self._writing = 0
        return stands

    def write_late(self, record: Record) -> None:
        """Write a commit that is final elsewhere; after a failure, refuse all later commits."""
        try:
            self.write(record)
        except DurabilityError as error:
            why = f"{self.store.name} does not have commit {record.version}, which stands elsewhere"
            self.refuse(why, error)

    def refuse(self, why: str, error: BaseException | None, remedy: str = ANEW) -> None:
        """Refuse all later writes; the message has `why`, the text of `error`, and `remedy`."""
        told = "" if error is None else f": {str(error).partition(chr(10))[0]}"
        self._refusal = f"{why}{told}\n  {remedy}"

    def _change(self, kept: KeptTable, table: Table[Any], delta: Sequence[Pair]) -> Change:
        """Return a table's delta as stored values.

        Raises the table's refusal if a row cannot be stored.
        """
        if kept.log is not None:
            return kept.log.change(kept, delta)
        write = kept.codec.write
        row: Any = None
        try:
            if len(delta) == 1 and keyed_of(table) is not None:
                ((row, weight),) = delta
                values = (write(row),)
                return Change(kept.name, (), values) if weight > 0 else Change(kept.name, values)
            if type(delta) is UniformDelta and _are_single(table, delta.weight):
                rows = []
                for row in delta.rows:
                    rows.append(write(row))
                once = delta.weight > 0
                return Change(kept.name, () if once else rows, rows if once else ())
            if keyed_of(table) is not None:
                gone: list[Values] = []
                come: list[Values] = []
                for row, weight in delta:
                    (come if weight > 0 else gone).append(write(row))
                return Change(kept.name, gone, come)
            return self._count_changes(kept, table, delta)
        except Unstorable as misfit:
            raise kept.refusal(row, misfit) from None

    def _count_changes(self, kept: KeptTable, table: Table[Any], delta: Sequence[Pair]) -> Change:
        """Return a delta as stored values, of a table whose rows may have several copies.

        Raises the table's refusal if a row cannot be stored.
        """
        gone: list[Values] = []
        come: list[Values] = []
        counted: list[tuple[Values, int, int]] = []
        count = row_store_of(table).count
        for row, weight in net_by_identity(delta):
            try:
                values = kept.codec.write(row)
            except Unstorable as misfit:
                raise kept.refusal(row, misfit) from None
            after = count(row)
            before = after - weight
            if (before, after) == (0, 1):
                come.append(values)
            elif (before, after) == (1, 0):
                gone.append(values)
            else:
                counted.append((values, before, after))
        return Change(kept.name, gone, come, counted)

    def write_beside(self, changes: Sequence[Change], *, is_safe: bool) -> None:
        """Write changes that are not a commit, in a transaction of their own, after all commits.

        The caller holds the lock of the database.

        Parameters
        ----------
        is_safe: True to wait for the disk.

        Raises
        ------
        DurabilityError: the store has refused the changes, or the journal refuses writes.
        """
        Journal.settle(self)
        if self._stood is None:
            self._stood = self.store.version()
        self.store.write((Record(self._stood, time(), changes, False, is_safe),))

    # Tables.

    def making(self) -> AbstractContextManager[None]:
        """Return the context manager for the creation of a table."""
        return nullcontext()

    def keep(self, table: Any, kept: KeptTable) -> None:
        """Make a table durable from now on."""
        self.kept[table] = kept

    def forget(self, table: Any) -> None:
        """Forget a table that was dropped, and delete its rows from the store.

        The rows stay if another table of the same name is kept: it has replaced the dropped one.
        """
        kept = self.kept.get(table)
        if kept is None:
            return
        if not any(other.name == kept.name for of, other in self.kept.items() if of is not table):
            self.settle()
            for name in (kept.name,) if kept.log is None else kept.log.tables():
                self.store.drop(name)
        del self.kept[table]

    def release(self, table: Any) -> None:
        """Forget a table whose creation failed: its rows stay in the store."""
        self.kept.pop(table, None)

    def named_texts(self) -> NamedTexts:
        """Return the named texts of the store."""
        return NamedTexts(self)

    # Ends.

    def settle(self) -> None:
        """Write all commits, so that the store can be read and its tables created or dropped.

        Raises `DurabilityError` if the journal refuses writes after an earlier failure.
        """
        if self._refusal is not None:
            raise DurabilityError(self._refusal)

    def flush(self) -> None:
        """Write all commits. In this mode they are written when a commit returns."""
        self.settle()

    def is_settled(self) -> bool:
        """Return True if all commits are in the store."""
        return self._refusal is None

    def after_fork(self) -> None:
        """Refuse all writes, in a forked child of the process."""
        why = f"{self.store.name} was opened by the parent of this process"
        self.refuse(
            why,
            None,
            remedy="have the parent write to it; or open it after the fork, in one of them",
        )
        self.store.after_fork()

    def close(self) -> None:
        """Release the store."""
        self.store.close()


def _are_single(table: Table[Any], weight: int) -> bool:
    """Return True if no row of a table has, or had before this delta, more than one copy."""
    if keyed_of(table) is not None:
        return True
    store: Any = row_store_of(table)
    held = getattr(store, "held", None)
    return weight > 0 and held is not None and len(held) == store.size


def refusal_of(table: str) -> Describe:
    """Return the function that makes the exception for a row that cannot be stored."""

    def describe(row: Row, misfit: Unstorable) -> Exception:
        return TableError(
            f"table {table!r} cannot store {row!r:.200}: {misfit}\n"
            "  declare the field as what it holds, give db.table(..., codec=), or keep the table "
            "out with durable=False"
        )

    return describe


def none_to_migrate(table: str) -> PlanError:
    """Return the error for `codec=` or `migrate=` given to a table that is not durable."""
    return PlanError(
        f"table {table!r} is not durable, and has no use for codec= or migrate=\n"
        "  give the database a path: Database('shop.db')"
    )


# The last commits that the store has kept, for `Database.history`.


def history(engine: Any, since: int) -> list[Past]:
    """Return the commits after a version.

    Raises
    ------
    PlanError: the database is in memory, and keeps no history.
    """
    journal: Journal | None = engine.journal
    if journal is None:
        raise PlanError(
            "a database in memory has no history, if it keeps none\n"
            "  Database(keep=1000), or with a path: Database('shop.db', keep=1000)"
        )
    with engine.inside():
        return _read_past(journal, since)


def _read_past(journal: Journal, since: int) -> list[Past]:
    """Write what is pending, and return the logged commits after version `since`."""
    journal.settle()
    schemas = journal.store.tables()
    reads = {kept.name: kept.codec.read for kept in journal.kept.values()}
    found = []
    for logged in journal.store.history(since):
        changes = {
            name: _decode_rows(journal, name, reads.get(name), schemas.get(name), pairs)
            for name, pairs in logged.changes.items()
        }
        when = datetime.fromtimestamp(logged.time, UTC)
        label, turn = logged.said
        found.append(Past(logged.version, when, changes, label, cast("Turn", turn)))
    return found


def rows_at(journal: Journal | None, version: int, tables: Sequence[Any]) -> list[list[Pair]] | str:
    """Return the rows of tables as of a version, or the reason why they are unknown.

    Cost: O(rows + kept commits).
    """
    if journal is None or not journal.writes:
        return "its database writes no file"
    for table in tables:
        if table not in journal.kept:
            return f"table {table.name!r}, which it reads, is not durable"
    journal.settle()
    logged = journal.store.history(0)
    first = logged[0].version if logged else None
    if first is None or first > max(version, 1):
        return f"{journal.store.name} has the commits " + (
            "after none: Database(path, keep=1000) keeps the last 1000"
            if first is None
            else f"from version {first} on: Database(path, keep=...) keeps more"
        )
    found = []
    for table in tables:
        kept = journal.kept[table]
        pairs = list(committed_pairs(table))
        for each in logged:
            if each.version > version:
                changes = each.changes.get(kept.name, ())
                rows = _decode_rows(journal, kept.name, kept.codec.read, None, changes)
                pairs += [(row, -n) for row, n in rows]
        found.append(consolidate(pairs))
    return found


def net_changes_since(
    journal: Journal, store: Store, version: int, until: int, tables: Sequence[Any]
) -> list[list[Pair]] | str:
    """Return the changes of tables after a version, up to another, or why they are unknown."""
    logged = store.history(0)
    if not logged or logged[0].version > max(version, 1):
        return f"{store.name} does not keep all commits since: Database(path, keep=...) does"
    found = []
    for kept in (journal.kept[table] for table in tables):
        net: dict[Values, int] = {}
        for each in logged:
            if version < each.version <= until:
                for values, weight in each.changes.get(kept.name, ()):
                    net[values] = net.get(values, 0) + weight
        changed = [(values, weight) for values, weight in net.items() if weight]
        found.append(_decode_rows(journal, kept.name, kept.codec.read, None, changed))
    return found


def _decode_rows(
    journal: Journal, name: str, read: Any, schema: Schema | None, pairs: Any
) -> list[tuple[Any, int]]:
    """Return stored rows, decoded, with their weights; as dictionaries if `read` is None.

    Raises `DurabilityError` if a row is damaged.
    """
    values, weights = [row for row, _ in pairs], [weight for _, weight in pairs]
    try:
        rows = _as_mappings(schema, values) if read is None else read(values)
    except (Unstorable, *DAMAGED) as error:
        told = f"of a change of table {name!r}: {values!r:.200}"
        raise DurabilityError(damaged_row(journal.store.name, "reactive_changes", told)) from error
    return list(zip(rows, weights, strict=True))


def _as_mappings(schema: Schema | None, values: Any) -> list[Any]:
    """Return rows of stored values as dictionaries by column; unchanged without a schema."""
    if schema is None:
        return list(values)
    reads = [(column.name, reader(column.kind, {})) for column in schema.columns]
    return [
        {name: read(value) for (name, read), value in zip(reads, row, strict=True)}
        for row in values
    ]
