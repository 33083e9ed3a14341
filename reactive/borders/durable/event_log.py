"""Logs of durable streams: the events, and the look-ups of events, in the store.

    commit of events     come --> table of the stream: the events, numbered
                         step --> "lookups of NAME": what look-ups paired with them
    a view is made       log --> all events, as if they were rows of a stored table
    file opened again    the watermark and the views begin with the log

A stream keeps no event in memory. Its log does, in the store, in the commit of the events and of
the token of their source. Every state over a stream is a function of its events, except that of a
look-up, whose relation has changed since: so look-ups have a log of their own.

State:  the last number of each log; the decoded log, from a read until the next event.
Cost:   of a commit, one row per event, and one per look-up; of a view, one read of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from reactive.api.internal_interface import node_of
from reactive.borders.durable.refusals import DAMAGED, damaged_row
from reactive.borders.durable.rows.packed import Unreadable
from reactive.borders.durable.rows.row_codec import RowCodec, with_key
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.sqlite_tables import pack_state, unpack_state
from reactive.borders.durable.store import Change, Column, Schema, Values
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.compiler.lineage import lost_of
from reactive.errors import DurabilityError, TableError

if TYPE_CHECKING:
    from reactive.borders.durable.journal import Journal, KeptTable


class Numbers:
    """The numbers of the rows of a log, each larger than all before."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, row: Row = None) -> int:
        self.last += 1
        return self.last


def numbered(codec: RowCodec, numbers: Numbers) -> RowCodec:
    """Return a codec of events: each written one has a number, by which equal events differ."""
    return replace(with_key(codec, numbers, {}), key=None)


class EventLog:
    """The log of the events of a stream, or of its late events.

    Parameters
    ----------
    adoption: the conversion of stored rows to events (`opening.Adoption`), with a numbered codec.
    """

    def __init__(self, journal: Journal, adoption: Any, numbers: Numbers) -> None:
        self._journal, self._adoption, self._numbers = journal, adoption, numbers
        self._read: list[Pair] = []
        """The events as of the last read, until the next commit of events."""
        self._version = -1
        """The version of the store as of the last read."""
        self.lookups = LookupLog(journal, adoption.table.name)

    def open(self) -> None:
        """Read the events that the store has, in the current form."""
        store, name = self._journal.store, self._adoption.table.name
        if name in store.tables():
            self._adoption.write_again(store)
        else:
            store.create(self._adoption.codec.schema)
        stored = self._stored()
        self._numbers.last = max((values[-1] for values in stored), default=0)
        self._read, self._version = self._decode(stored), store.version()

    def pairs(self) -> Sequence[Pair]:
        """Return all events of the commits so far, in the order in which they came."""
        self._journal.settle()
        version = self._journal.store.version()
        if version != self._version:
            self._read, self._version = self._decode(self._stored()), version
        return self._read

    def _stored(self) -> list[Values]:
        rows = self._journal.store.rows(self._adoption.table.name)
        return sorted((values for batch, _ in rows for values in batch), key=lambda v: v[-1])

    def _decode(self, stored: Sequence[Values]) -> list[Pair]:
        read, where = self._adoption.codec.read, self._journal.store.name
        try:
            return consolidate([(row, 1) for row in read(stored)])
        except (Unstorable, *DAMAGED) as error:
            told = damaged_row(where, self._adoption.table.name, stored[:1])
            raise DurabilityError(told) from error

    def tables(self) -> Sequence[str]:
        """Return the names of the tables of the store that have the log."""
        own = [self._adoption.table.name, self.lookups.table]
        return [name for name in own if name in self._journal.store.tables()]

    def change(self, kept: KeptTable, delta: Sequence[Pair]) -> Change:
        """Return the stored values of new events.

        Raises
        ------
        TableError: an event cannot be stored, or is removed.
        """
        self._read, self._version = [], -1
        write, come = kept.codec.write, list[Values]()
        for row, weight in delta:
            if weight < 0:
                raise TableError(
                    f"cannot remove {row!r:.200} from {kept.name!r}, which keeps its events\n"
                    "  db.table has rows that change"
                )
            try:
                come += [write(row) for _ in range(weight)]
            except Unstorable as misfit:
                raise kept.refusal(row, misfit) from None
        return Change(kept.name, (), come)


class LookupLog:
    """The log of what look-ups have paired with the events of a stream, by look-up."""

    def __init__(self, journal: Journal, stream: str) -> None:
        self._journal, self.table = journal, f"lookups of {stream}"
        self._numbers, self._is_open = Numbers(), False

    def open(self) -> None:
        """Create the log in the store, or read its last number, for the first look-up."""
        if self._is_open:
            return
        self._journal.settle()
        store = self._journal.store
        if self.table in store.tables():
            numbers = [row[0] for rows, _ in store.rows(self.table) for row in rows]
            self._numbers.last = max(numbers, default=0)
        else:
            store.create(_lookup_schema(self.table))
        self._is_open = True

    def of_plan(self, node: plan.Lookup) -> LookupOfPlan:
        """Return the part of one look-up, which is found again by the fingerprint of its plan."""
        self.open()
        return LookupOfPlan(self, fingerprint(node))

    def note(self, lookup: str, pairs: Sequence[Pair]) -> None:
        """Add what a look-up has paired in the commit that is about to be written."""
        rows, weights = zip(*pairs, strict=True)
        try:
            data, _ = pack_state({"rows": [*rows], "weights": [*weights]})
        except Unstorable as misfit:
            raise TableError(
                f"{self.table!r} cannot store what a look-up pairs: {misfit}\n"
                "  make the stream with durable=False"
            ) from misfit
        row = (self._numbers(), lookup, data)
        self._journal.changes_in_step.append(Change(self.table, (), [row]))

    def pairs(self, lookup: str) -> Sequence[Pair]:
        """Return all that a look-up has paired in the commits so far."""
        self._journal.settle()
        store, found = self._journal.store, list[Pair]()
        every = (row for rows, _ in store.rows(self.table) for row in rows)
        for _, _, data in sorted(row for row in every if row[1] == lookup):
            try:
                state = unpack_state(data)
            except (Unreadable, Unstorable) as error:
                told = damaged_row(store.name, self.table, lookup)
                raise DurabilityError(told) from error
            found += zip(state["rows"], state["weights"], strict=True)
        return found


@dataclass(frozen=True, slots=True)
class LookupOfPlan:
    """The part of a log that one look-up has written."""

    log: LookupLog
    name: str

    def note(self, pairs: Sequence[Pair]) -> None:
        """Add what the look-up has paired in the commit that is about to be written."""
        self.log.note(self.name, pairs)

    def pairs(self) -> Sequence[Pair]:
        """Return all that the look-up has paired in the commits so far."""
        return self.log.pairs(self.name)


def _lookup_schema(table: str) -> Schema:
    columns = (
        Column("number", "int", "plain"),
        Column("lookup", "str", "plain"),
        Column("data", "bytes", "plain"),
    )
    return Schema(table, columns, "number", "")


def keep_events(journal: Journal, adoption: Any, numbers: Numbers) -> EventLog:
    """Keep the events of a stream, which begins with those that the store has."""
    table = adoption.table
    log = EventLog(journal, adoption, numbers)
    log.open()
    table._log = log
    node_of(table).lost = partial(lost_of, table.name)
    clock = table.plan.clock
    if clock is not None:
        clock.lookups = log.lookups
    return log
