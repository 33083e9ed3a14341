"""Targets of sinks: the protocol, functions that are called with changes, and durable outboxes.

The protocol of a target:

    open        return the position stored in it
    difference  return the changes from its contents to the given rows
    stage       write a batch that does not appear yet
    deliver     make the staged batch appear, in one step; idempotent

The position is part of the written data, so the two can never disagree. A batch that was staged but
not delivered when the process ended is either delivered unchanged by the next process, or is lost
and found again as a difference.

A function is called with each batch until it has returned:

    outbox: batch n is stored  -->  function(n, changes)  -->  outbox: n is delivered

If the function raises or the process ends, the batch stays in the outbox, and the function is
called again with the same changes and number. So a function that stores the number together with
its effects handles each batch exactly once.

A `DurableOutbox` lets a sink continue after a restart. It is one table of the store, `sink NAME`,
with rows as JSON:

    !batch, !version, !delivered     the position, and the last delivered batch
    =row                             the copies of the row delivered, up to !batch
    +row                             the change of the row in batch !batch

A batch, its number and the sums are written in one transaction, after the commits that they come
from: so the file never has a batch of a missing commit. That transaction waits for the disk,
whatever `synchronous=` says, because a delivery cannot be undone.

State:  the sums, as text, in the process and in the store.
Cost:   a batch O(changes), written before the call, and if durable one sync of the disk; creating
        the sink O(delivered rows).
Source: the transactional outbox of message brokers.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from optimizer.errors import PlanError
from optimizer.expressions.members import row_of_instance
from reactive.borders.durable.journal import Journal
from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.values import Unstorable, class_names, tree, untree
from reactive.borders.durable.store import Change, Column, Schema, Values
from reactive.engine.collections.zset import Pair, consolidate, integrate, negate
from reactive.engine.dataflow.delta import Delta, NumberedDelta, with_columns
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


BATCH, VERSION, DELIVERED = "!batch", "!version", "!delivered"
TOLD, STAGED = "=", "+"
COLUMNS = (Column("row", "str", "plain"), Column("weight", "int", "plain"))
MANY = 2000
"""The rows written together when the table is recreated."""


class DurableOutbox:
    """An `Outbox` in the store of a durable database.

    Parameters
    ----------
    name: the name of the sink.
    row_type: the annotation of the rows, which names the classes of records in them.
    migrate: True if the stored rows may be of another query; then the difference is delivered.
    instead: the remedy in errors for rows that cannot be stored.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        row_type: Any,
        *,
        migrate: bool,
        instead: str = "keep it in the process: durable=False",
    ) -> None:
        self.name = name
        self._instead = instead
        self._engine = engine
        self._table = f"sink {name}"
        self._may_differ = migrate
        self._held: dict[str, int] | None = None
        """The rows of the table; None until they are read."""
        self._staged: list[str] = []
        """The keys of the changes of the last batch."""
        try:
            known = declared_by(row_type)
        except Unstorable as misfit:
            raise PlanError(
                f"cannot keep what sink {name!r} has told: {misfit}, which has no plain form\n"
                f"  select plain fields first; or {instead}"
            ) from None
        self._classes: dict[str, type] = known.classes
        if known.shape == "record":
            self._classes = {known.kind.__name__: known.kind, **known.classes}
        self._names = class_names(self._classes)

    def open(self, plan: str) -> Position | None:
        """Read what earlier processes delivered, and return the position.

        Raises
        ------
        PlanError: it is of another query, and `migrate` is False; or the table is not that of a
            sink.
        DurabilityError: it cannot be read.
        """
        with self._engine.shaping(to_write=True):
            self._journal.settle()
            found = self._journal.store.tables().get(self._table)
            if found is None:
                self._journal.store.create(self._schema(plan))
                self._held = {}
            else:
                self._check_written(found)
                self._load()
                self._check_query(found, plan)
        return self._position()

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the changes from all staged batches to the given rows."""
        held, pairs, seen = self._load(), list[Pair](), set[str]()
        texts: dict[str, tuple[Any, int]] = {}
        for row, weight in rows:
            text = self._text(row)
            texts[text] = row, weight + (texts[text][1] if text in texts else 0)
        for text, (row, weight) in texts.items():
            seen.add(TOLD + text)
            change = weight - held.get(TOLD + text, 0)
            if change:
                pairs.append((row, change))
        for key, weight in held.items():
            if key[0] == TOLD and key not in seen:
                pairs.append((self._row(key[1:]), -weight))
        return consolidate(pairs)

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        held = self._load()
        updates: dict[str, int | None] = dict.fromkeys(self._staged)
        for row, weight in batch.changes:
            text = self._text(row)
            updates[STAGED + text] = (updates.get(STAGED + text) or 0) + weight or None
            told = updates.get(TOLD + text, held.get(TOLD + text, 0)) or 0
            updates[TOLD + text] = told + weight or None
        updates |= {BATCH: batch.number, VERSION: batch.version}
        self._write(updates, is_safe=True)

    def staged(self) -> ChangeBatch | None:
        """Return the batch stored last; None if it is delivered, or there is none.

        Its changes are in the order of their text, so that they are the same at each call.
        """
        held, at = self._load(), self._position()
        if at is None or held.get(DELIVERED) == at.batch:
            return None
        changes = [(self._row(key[1:]), held[key]) for key in sorted(self._staged)]
        return ChangeBatch(at.batch, changes, "", at.version)

    def mark_delivered(self) -> None:
        """Record that the batch is delivered."""
        self._write({DELIVERED: self._load()[BATCH]}, is_safe=False)

    def forget(self) -> None:
        """Delete the table from the store."""
        with self._engine.shaping(to_write=True):
            self._journal.settle()
            self._journal.store.drop(self._table)

    # The table.

    @property
    def _journal(self) -> Journal:
        journal: Journal = self._engine.journal
        return journal

    def _schema(self, plan: str) -> Schema:
        return Schema(self._table, COLUMNS, "row", json.dumps({"sink": plan}))

    def _load(self) -> dict[str, int]:
        """Return the entries of the outbox, by key; the store is read once."""
        held = self._held
        if held is None:
            with self._engine.inside():
                self._journal.store.version()  # undoes an unfinished write
                held = self._held = self._read_table()
            self._staged = [key for key in held if key[0] == STAGED]
        return held

    def _position(self) -> Position | None:
        """Return the position of the batch stored last; None if there was none."""
        held = self._load()
        return Position(held[BATCH], held[VERSION]) if BATCH in held else None

    def _read_table(self) -> dict[str, int]:
        """Read the entries from the store. Raises `DurabilityError` if they are damaged."""
        store = self._journal.store
        found: dict[str, int] = {}
        for batch, _ in store.rows(self._table):
            for row in batch:
                if not (len(row) == 2 and type(row[0]) is str and row[0] and type(row[1]) is int):
                    raise self._damage_error(row)
                found[row[0]] = row[1]
        if found.keys() & {BATCH, VERSION} and not {BATCH, VERSION} <= found.keys():
            raise self._damage_error("the position")
        return found

    def _check_query(self, found: Schema, plan: str) -> None:
        """Rewrite the table for another query. Raises `PlanError` if the query may not differ."""
        if found == (schema := self._schema(plan)):
            return
        if not self._may_differ:
            raise PlanError(
                f"cannot go on with sink {self.name!r}: what it has told, as {self._where} has it, "
                "are the rows of another query\n"
                "  to tell the difference between those rows and the rows of this query, give "
                "migrate=True\n"
                "  to begin anew, give the sink another name"
            )
        rows = list(self._load().items())
        batches = [(rows[at : at + MANY], 1) for at in range(0, len(rows), MANY)]
        self._journal.store.create(schema, batches)

    def _check_written(self, found: Schema) -> None:
        """Raise if the table is not that of a sink."""
        about: Any = None
        with suppress(ValueError):
            about = json.loads(found.about)
        if found.columns != COLUMNS or type(about) is not dict or "sink" not in about:
            raise PlanError(
                f"cannot keep sink {self.name!r} in {self._where}: it has a table {self._table!r} "
                "that no sink has written\n  give the sink another name"
            )

    def _write(self, updates: Mapping[str, int | None], *, is_safe: bool) -> None:
        """Write values by key; None deletes a key. Raises unless the write is in the store."""
        held = self._load()
        gone: list[Values] = []
        come: list[Values] = []
        for key, value in updates.items():
            before = held.get(key)
            if before != value:
                gone += [] if before is None else [(key, before)]
                come += [] if value is None else [(key, value)]
        self._held = None  # until the outcome is known
        try:
            with self._engine.inside():
                self._journal.write_beside([Change(self._table, gone, come)], is_safe=is_safe)
        except Exception:
            if not self._stands(come):
                raise
            return
        for key, _ in gone:
            del held[key]
        held |= dict(come)
        if BATCH in updates:
            self._staged = [key for key, value in updates.items() if value and key[0] == STAGED]
        self._held = held

    def _stands(self, come: Sequence[Values]) -> bool:
        """Return True if a write that has raised is in the store all the same."""
        try:
            found = self._load()
        except DurabilityError:
            return False
        return all(found.get(key) == value for key, value in come)

    # Rows as text.

    def _text(self, row: Any) -> str:
        """Return a row as JSON text.

        Raises `DurabilityError` if it could not be restored from it.
        """
        try:
            text = self._text_of(row)
            if '"record"' in text and self._text_of(self._row(text)) != text:
                raise Unstorable(f"{row!r:.100}, which its class does not make again of its fields")
        except (Unstorable, RecursionError) as misfit:
            told = misfit if isinstance(misfit, Unstorable) else "values nested too deeply"
            raise DurabilityError(
                f"cannot keep what sink {self.name!r} is to tell: row {row!r:.200} holds {told}\n"
                f"  say what the rows are, row_type=Alert; or {self._instead}"
            ) from None
        return text

    def _text_of(self, row: Any) -> str:
        return json.dumps(tree(row, self._names), separators=(",", ":"))

    def _row(self, text: str) -> Any:
        """Return the row of a text of `_text`.

        Raises `DurabilityError` if it cannot be restored.
        """
        try:
            row = untree(json.loads(text), self._classes)
        except Unstorable as misfit:
            raise DurabilityError(
                f"cannot read what sink {self.name!r} has told: a row in {self._where} holds "
                f"{misfit}\n  say what the rows are, row_type=Alert; or give the sink another name"
            ) from None
        except (ValueError, TypeError, RecursionError, ArithmeticError) as error:
            raise self._damage_error(text) from error
        return tuple(map(row_of_instance, row)) if type(row) is tuple else row_of_instance(row)

    @property
    def _where(self) -> str:
        return self._journal.store.name

    def _damage_error(self, row: Any) -> DurabilityError:
        """Return the error for a damaged entry of the table."""
        return DurabilityError(
            f"cannot read table {self._table!r} in {self._where}: {row!r:.100} is damaged\n"
            "  put a backup in the place of the file"
        )


class CalledTarget:
    """A `SinkTarget` that calls a function."""

    def __init__(self, function: ChangeFunction, outbox: Outbox) -> None:
        self._function = function
        self._outbox = outbox
        self.kept_as: str | None = getattr(outbox, "name", None)
        """The name under which the database stores delivered rows; None if it does not."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox; None if nothing was stored yet."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the changes from the delivered rows to these rows."""
        return self._outbox.difference(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        self._outbox.stage(batch)

    def deliver(self) -> None:
        """Call the function with the stored batch, if there is one."""
        batch = self._outbox.staged()
        if batch is not None:
            self._tell(batch)
            self._outbox.mark_delivered()

    def _tell(self, batch: ChangeBatch) -> None:
        self._function(batch.number, list(batch.changes))

    def forget(self) -> None:
        """Delete the record of delivered rows.

        Raises
        ------
        PlanError: there is none in a durable database.
        """
        forget = getattr(self._outbox, "forget", None)
        if forget is None:
            raise PlanError(
                "cannot forget what a sink has told: it is not kept in a durable database\n"
                "  stop() it: what it has told goes with the process"
            )
        forget()


class ToldTarget(CalledTarget):
    """A `SinkTarget` that calls a callback with deltas. Batch 0 has the initial rows.

    Parameters
    ----------
    name: the name of the subscription.
    key: the key function of rows; None without a key.
    columns: the names of the bindings of rows; None without names.
    snapshot: True to call the callback with batch 0.
    """

    def __init__(
        self,
        callback: Callable[[Delta[Any]], object],
        outbox: Outbox,
        name: str,
        key: Callable[[Any], Any] | None,
        columns: Sequence[str] | None,
        *,
        snapshot: bool,
    ) -> None:
        super().__init__(lambda number, changes: None, outbox)
        self.kept_as = name
        self._callback, self._key, self._snapshot = callback, key, snapshot
        self._columns = columns
        self.is_owed = False
        """True until there is a batch 0, which may have no rows."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox; None if nothing was stored yet."""
        found = super().open(plan)
        self.is_owed = found is None
        return found

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        super().stage(batch)
        self.is_owed = False

    def _tell(self, batch: ChangeBatch) -> None:
        """Call the callback with a batch, except with a first one that is not wanted.

        Raises `TypeError` if the callback is asynchronous.
        """
        if batch.number == 0 and not self._snapshot:
            return
        delta = NumberedDelta[Any](batch.number, batch.version, list(batch.changes), self._key)
        result = self._callback(with_columns(delta, self._columns))
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(
                f"cannot await {result.__qualname__}(), which the callback of subscription "
                f"{self.kept_as!r} gave\n  give it a function that is not asynchronous"
            )


class MemoryOutbox:
    """An `Outbox` that lives as long as the process."""

    def __init__(self) -> None:
        self._rows: dict[object, int] = {}
        self._staged: ChangeBatch | None = None
        self._position: Position | None = None

    def open(self, plan: str) -> Position | None:
        """Return the position."""
        return self._position

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the changes from the staged rows to these rows."""
        return consolidate([*rows, *negate(self._rows.items())])

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch."""
        integrate(self._rows, batch.changes)
        self._staged, self._position = batch, batch.position

    def staged(self) -> ChangeBatch | None:
        """Return the batch stored last; None if it is delivered, or there is none."""
        return self._staged

    def mark_delivered(self) -> None:
        """Forget the delivered batch."""
        self._staged = None


ChangedRows: TypeAlias = Sequence[tuple[Any, int]]
"""Rows with the change in their number of copies; each row once."""


@dataclass(frozen=True, slots=True)
class Position:
    """The last batch and commit that were written. Prints as text.

    >>> print(Position(4, 17))
    batch 4, through commit 17
    """

    batch: int
    """The number of the last batch, from 0 on. A batch without changes is not written."""
    version: int
    """The commit that it includes, in the process that wrote it."""

    def __str__(self) -> str:
        return f"batch {self.batch}, through commit {self.version}"


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes that are written together.

    `number` counts up from 0. `plan` is the fingerprint of the query.
    """

    number: int
    changes: Any
    """`ChangedRows`; for `FrameTarget.stage_frame`, `RemoteRows`."""
    plan: str
    version: int

    @property
    def position(self) -> Position:
        """The position after this batch."""
        return Position(self.number, self.version)


class SinkTarget(Protocol):
    """The target of a `Sink`.

    If its attribute `is_owed` is true, it receives a batch even without changes, for example to
    create a table before its first row.
    """

    def open(self, plan: str) -> Position | None:
        """Return its position; None if nothing was written or staged.

        Parameters
        ----------
        plan: the fingerprint of the query whose rows are to be written.

        Raises
        ------
        OffloadError: it cannot be read, or holds the changes of another query, which must not be
            mixed.
        """
        ...

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the changes from its contents, staged ones included, to the given rows."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Write a batch without showing it. If this raises, it has no effect."""
        ...

    def deliver(self) -> None:
        """Show the staged batch; no effect without one."""
        ...


@runtime_checkable
class FrameTarget(SinkTarget, Protocol):
    """A `SinkTarget` that can read rows where they are, so that none passes through the process."""

    def difference_frame(self, rows: Any) -> Any:
        """Return the difference to all rows, as `RemoteRows` that only `stage_frame` reads."""
        ...

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """Stage changes that are not netted; False if they cancel out, and nothing is staged."""
        ...


class Outbox(Protocol):
    """A store for the batch to deliver, until it is delivered, and for the delivered rows."""

    def open(self, plan: str) -> Position | None:
        """Return the position, as `SinkTarget.open` does."""
        ...

    def difference(self, rows: Iterable[Pair]) -> ChangedRows:
        """Return the changes to the given rows, as `SinkTarget.difference` does."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Store a batch. If this raises, it has no effect."""
        ...

    def staged(self) -> ChangeBatch | None:
        """Return the stored batch, unless it is known to be delivered."""
        ...

    def mark_delivered(self) -> None:
        """Record that the batch is delivered."""
        ...


ChangeFunction: TypeAlias = Callable[[int, list[tuple[Any, int]]], object]
"""A function of the number of a batch, and its changes."""
