"""Targets of sinks: the protocol, functions that are called with changes, and an outbox in a
durable store.

An outbox in the store of a durable database: a sink goes on after a restart where it was.

    !batch, !version, !delivered     the position, and the last batch that the receiver has
    =row                             how often the receiver was told of the row, up to !batch
    +row                             the change of the row in batch !batch

It is one table of the store, `sink NAME`, with a row of it as JSON. A batch, its number and the
sums are written in one transaction, after the commits that they are of: so the file never has a
batch of a commit that it does not have. That transaction waits for the disk, whatever
`synchronous=` says, as what a receiver was told cannot be taken back.

State:  the sums, as text, in the process; and in the store.
Cost:   a batch O(its changes) and one sync of the disk; making the sink O(what was told).
Source: the transactional outbox of message brokers.

Changes that a function is called with, each batch until the function has returned.

    outbox: batch n is kept  -->  function(n, changes)  -->  outbox: n is delivered

A function that raises, or a process that ends, leaves the batch in the outbox: the function is
called with it again, the same changes under the same number. So one that takes note of the number
together with what it does has each batch once.

State:  that of the outbox.
Cost:   O(changes), written once before the call.
Source: the transactional outbox of message brokers.

The protocol of what the changes of a view are written to.

    open        which batch is in it, as it says itself
    difference  what leads from what is in it to the rows of now
    stage       a batch is written aside: it is to be there, and nobody sees it yet
    deliver     what is staged is there, in one step; done again, it changes nothing

The position is a part of what is written, so there is no moment at which one is there and the
other is not. A batch that was staged and not delivered when the process ended is either delivered
by the next one, as it was, or is not there and is found as a difference.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from optimizer.errors import PlanError
from optimizer.expressions.members import row_of
from reactive.borders.durable.journal import Journal
from reactive.borders.durable.rows.declared import declared_by
from reactive.borders.durable.rows.values import Unstorable, known_in, tree, untree
from reactive.borders.durable.store import Change, Column, Schema, Values
from reactive.engine.collections.zset import Pair, consolidate, integrate, negate
from reactive.engine.dataflow.delta import Delta, NumberedDelta
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


BATCH, VERSION, DELIVERED = "!batch", "!version", "!delivered"
TOLD, STAGED = "=", "+"
COLUMNS = (Column("row", "str", "plain"), Column("weight", "int", "plain"))
MANY = 2000
"""Rows that are written together when the table is made again."""


class DurableOutbox:
    """An `Outbox` in the store of a durable database.

    Parameters
    ----------
    name: of the sink.
    row_type: the annotation of the rows, which names the classes of records in them.
    migrate: whether rows of another query may be there; the difference is told then.
    instead: what else can be done where rows cannot be kept.
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
        self._names = known_in(self._classes)

    def open(self, plan: str) -> Position | None:
        """Read what earlier processes have told, and give the position.

        Raises
        ------
        PlanError: it is of another query, and `migrate` is not given; or no sink has written it.
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
                self._known()
                self._check_query(found, plan)
        return self._position()

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """The changes that lead from all that was staged to these rows."""
        held, pairs, seen = self._known(), list[Pair](), set[str]()
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
        """Keep a batch."""
        held = self._known()
        updates: dict[str, int | None] = dict.fromkeys(self._staged)
        for row, weight in batch.changes:
            text = self._text(row)
            updates[STAGED + text] = (updates.get(STAGED + text) or 0) + weight or None
            told = updates.get(TOLD + text, held.get(TOLD + text, 0)) or 0
            updates[TOLD + text] = told + weight or None
        updates |= {BATCH: batch.number, VERSION: batch.version}
        self._write(updates, is_safe=True)

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept last, if it is not delivered.

        Its changes are in the order of their text, so that they come again as they were.
        """
        held, at = self._known(), self._position()
        if at is None or held.get(DELIVERED) == at.batch:
            return None
        changes = [(self._row(key[1:]), held[key]) for key in sorted(self._staged)]
        return ChangeBatch(at.batch, changes, "", at.version)

    def delivered(self) -> None:
        """The receiver has it."""
        self._write({DELIVERED: self._known()[BATCH]}, is_safe=False)

    def forget(self) -> None:
        """Remove the table from the store."""
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

    def _known(self) -> dict[str, int]:
        held = self._held
        if held is None:
            with self._engine.inside():
                self._journal.store.version()  # what was half done is undone
                held = self._held = self._read()
            self._staged = [key for key in held if key[0] == STAGED]
        return held

    def _position(self) -> Position | None:
        held = self._known()
        return Position(held[BATCH], held[VERSION]) if BATCH in held else None

    def _read(self) -> dict[str, int]:
        store = self._journal.store
        found: dict[str, int] = {}
        for batch, _ in store.rows(self._table):
            for row in batch:
                if not (len(row) == 2 and type(row[0]) is str and row[0] and type(row[1]) is int):
                    raise self._damaged(row)
                found[row[0]] = row[1]
        if found.keys() & {BATCH, VERSION} and not {BATCH, VERSION} <= found.keys():
            raise self._damaged("the position")
        return found

    def _check_query(self, found: Schema, plan: str) -> None:
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
        rows = list(self._known().items())
        batches = [(rows[at : at + MANY], 1) for at in range(0, len(rows), MANY)]
        self._journal.store.create(schema, batches)

    def _check_written(self, found: Schema) -> None:
        """Raise if the table is none of a sink."""
        about: Any = None
        with suppress(ValueError):
            about = json.loads(found.about)
        if found.columns != COLUMNS or type(about) is not dict or "sink" not in about:
            raise PlanError(
                f"cannot keep sink {self.name!r} in {self._where}: it has a table {self._table!r} "
                "that no sink has written\n  give the sink another name"
            )

    def _write(self, updates: Mapping[str, int | None], *, is_safe: bool) -> None:
        """Write values of keys, None for those that go."""
        held = self._known()
        gone: list[Values] = []
        come: list[Values] = []
        for key, value in updates.items():
            before = held.get(key)
            if before != value:
                gone += [] if before is None else [(key, before)]
                come += [] if value is None else [(key, value)]
        self._held = None  # until it is known what stands
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
            found = self._known()
        except DurabilityError:
            return False
        return all(found.get(key) == value for key, value in come)

    # Rows as text.

    def _text(self, row: Any) -> str:
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
        try:
            row = untree(json.loads(text), self._classes)
        except Unstorable as misfit:
            raise DurabilityError(
                f"cannot read what sink {self.name!r} has told: a row in {self._where} holds "
                f"{misfit}\n  say what the rows are, row_type=Alert; or give the sink another name"
            ) from None
        except (ValueError, TypeError, RecursionError, ArithmeticError) as error:
            raise self._damaged(text) from error
        return tuple(map(row_of, row)) if type(row) is tuple else row_of(row)

    @property
    def _where(self) -> str:
        return self._journal.store.name

    def _damaged(self, row: Any) -> DurabilityError:
        return DurabilityError(
            f"cannot read table {self._table!r} in {self._where}: {row!r:.100} is damaged\n"
            "  put a backup in the place of the file"
        )


class CalledTarget:
    """A `SinkTarget` that calls a function."""

    def __init__(self, function: Called, outbox: Outbox) -> None:
        self._function = function
        self._outbox = outbox
        self.kept_as: str | None = getattr(outbox, "name", None)
        """The name under which the database keeps what was told, if it does."""

    def open(self, plan: str) -> Position | None:
        """Return the position of the outbox; None if nothing was kept yet."""
        return self._outbox.open(plan)

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What the function has not been told of these rows."""
        return self._outbox.difference(rows)

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        self._outbox.stage(batch)

    def deliver(self) -> None:
        """Call the function with the batch that is kept, if there is one."""
        batch = self._outbox.staged()
        if batch is not None:
            self._tell(batch)
            self._outbox.delivered()

    def _tell(self, batch: ChangeBatch) -> None:
        self._function(batch.number, list(batch.changes))

    def forget(self) -> None:
        """Keep no more what was told.

        Raises
        ------
        PlanError: it is not kept in a durable database.
        """
        forget = getattr(self._outbox, "forget", None)
        if forget is None:
            raise PlanError(
                "cannot forget what a sink has told: it is not kept in a durable database\n"
                "  stop() it: what it has told goes with the process"
            )
        forget()


class ToldTarget(CalledTarget):
    """A `SinkTarget` that calls a callback with deltas. Batch 0 is the rows of the beginning.

    Parameters
    ----------
    name: of the subscription.
    key: what identifies a row, if something does.
    columns: the names of the bindings of rows, if they have names.
    snapshot: whether the callback is told of batch 0.
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
        """Return the position of the outbox; None if nothing was kept yet."""
        found = super().open(plan)
        self.is_owed = found is None
        return found

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        super().stage(batch)
        self.is_owed = False

    def _tell(self, batch: ChangeBatch) -> None:
        if batch.number == 0 and not self._snapshot:
            return
        delta = NumberedDelta[Any](batch.number, batch.version, list(batch.changes), self._key)
        result = self._callback(delta._with_columns(self._columns))
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
        """Where it is."""
        return self._position

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What has not been staged."""
        return consolidate([*rows, *negate(self._rows.items())])

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch."""
        integrate(self._rows, batch.changes)
        self._staged, self._position = batch, batch.position

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept last, if it is not delivered."""
        return self._staged

    def delivered(self) -> None:
        """Forget it."""
        self._staged = None


Changed: TypeAlias = Sequence[tuple[Any, int]]
"""Rows with the number of times that each comes, or goes if it is negative; each row once."""


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a view is written. Prints as text.

    >>> print(Position(4, 17))
    batch 4, through commit 17
    """

    batch: int
    """The number of the last batch, from 0 on. A batch that changes nothing is not written."""
    version: int
    """The commit that it is up to date through, in the process that wrote it."""

    def __str__(self) -> str:
        return f"batch {self.batch}, through commit {self.version}"


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes that are written together.

    `number` counts up from 0. `plan` is the fingerprint of the query that the rows are of.
    """

    number: int
    changes: Any
    """`Changed`; for `FrameTarget.stage_frame`, `RemoteRows`."""
    plan: str
    version: int

    @property
    def position(self) -> Position:
        """Where what has it is."""
        return Position(self.number, self.version)


class SinkTarget(Protocol):
    """What a `Sink` writes to.

    One that has an attribute `is_owed`, and that is true, is given a batch also if nothing has
    changed: so a table can be there before its first row is.
    """

    def open(self, plan: str) -> Position | None:
        """Where it is; None if nothing has been written to it, or staged.

        Parameters
        ----------
        plan: the fingerprint of the query whose rows are to be written.

        Raises
        ------
        OffloadError: it cannot be read, or holds the changes of another query and keeps them.
        """
        ...

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """What leads from what is in it, with what is staged, to these rows."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Write a batch aside. If this raises, it is as if it had not been called."""
        ...

    def deliver(self) -> None:
        """Have what was staged be there, once. Nothing staged: nothing is done."""
        ...


@runtime_checkable
class FrameTarget(SinkTarget, Protocol):
    """A `SinkTarget` that can read rows where they are, so that none of them passes the process."""

    def difference_frame(self, rows: Any) -> Any:
        """As `difference`, of all rows as `RemoteRows`, which are not read before `stage_frame`."""
        ...

    def stage_frame(self, batch: ChangeBatch) -> bool:
        """As `stage`, of changes that are not added up; false if they come to nothing, and nothing
        is staged."""
        ...


class Outbox(Protocol):
    """Keeps the batch that a receiver is to be given, until it has it, and what it was given."""

    def open(self, plan: str) -> Position | None:
        """As of a `SinkTarget`."""
        ...

    def difference(self, rows: Iterable[Pair]) -> Changed:
        """As of a `SinkTarget`."""
        ...

    def stage(self, batch: ChangeBatch) -> None:
        """Keep a batch. If this raises, it is as if it had not been called."""
        ...

    def staged(self) -> ChangeBatch | None:
        """The batch that was kept and is not known to be delivered."""
        ...

    def delivered(self) -> None:
        """The receiver has it."""
        ...


Called: TypeAlias = Callable[[int, list[tuple[Any, int]]], object]
"""A function of the number of a batch, and its changes."""
