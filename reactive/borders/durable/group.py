"""Group commit: commits written later, several in one transaction; and the opening of a database.

`GroupJournal` notes commits and writes them later:

    note        before the operators step: the rows in stored form
    merge       the notes of finished commits, netted into one record (`merge_notes`)
    write       by a thread, at most `DELAY` after the first note (`"group"`), or by `flush` and
                `close`

The notes of a commit that was undone are skipped: no commit reaches its version, or a later one
replaces the notes. If the store refuses a write, memory is ahead of it: from then on the database
refuses changes of durable tables, and `flush` and `close` raise the error. If the file is not at
its path, each `flush` looks for it; when it is back, the waiting notes are written.

The notes of commits:

    (7, comes, row)             an inserted row of a table with a key, as values
    (8, both, (rows, rows))     deleted and inserted rows
    (9, None, record)           changes of tables without a key, as they are written

A row that was inserted and deleted in between is not written; of a key whose row was replaced
several times, only the last row is. So many commits become one record with one change per table.

State:  notes that are not written yet; a thread.
Cost:   a noted commit of one row takes half a microsecond; merging takes a tenth of a microsecond
        per inserted row, half of one per other row.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from time import time
from typing import Any, NamedTuple, TypeAlias

from optimizer.errors import PlanError
from reactive.api.internal_interface import node_of
from reactive.borders.durable.journal import ANEW, Changes, Journal, KeptTable
from reactive.borders.durable.opening import StoreOptions, read_only_store, store_of
from reactive.borders.durable.refusals import MissingFileError
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.store import Change, Record, Store, Values
from reactive.engine.codegen.functions import BoundValues as CodeValues
from reactive.engine.codegen.functions import build
from reactive.engine.collections.zset import Pair
from reactive.errors import DurabilityError

BACK = (
    "move that file, with the -wal beside it, back to its place, and call db.flush(), which writes "
    "what waits; or save what the tables hold, close the database, and open it anew"
)
DELAY = 0.01
"""The most seconds until a commit is written."""
MOST = 10_000
"""The most notes written together, unless one commit has more."""


class GroupJournal(Journal):
    """A journal that notes commits, and writes them later.

    Parameters
    ----------
    version: a function that returns the version of the last finished commit.
    by_itself: True if a thread writes them; else only `flush` and `close` do.
    is_each: True if the store keeps a history, which needs each commit.
    """

    is_immediate = False

    def __init__(
        self, store: Store, version: Callable[[], int], *, by_itself: bool, is_each: bool
    ) -> None:
        super().__init__(store)
        self._noted: list[Noted] = []
        """The notes, by rising version.

        The list object never changes: generated code refers to it.
        """
        self._notes: dict[Any, Note] = {}
        """The function that notes a delta, for each table with a key, while writes are allowed."""
        self._version = version
        self._is_each = is_each
        self._writes = threading.Lock()
        """Held while the store is read or written."""
        self._has_work = threading.Event()
        self._is_due = threading.Event()
        self.is_asleep = by_itself
        """True if the next note must wake the thread."""
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_gone = False
        """True while the file is not at its path, so that nothing is written."""
        self._ends = partial(_at_exit, weakref.ref(self))
        atexit.register(self._ends)

    def begin(self, changes: Changes, version: int) -> None:
        """Note a commit. Return None: the commit itself writes nothing."""
        self.record(changes, version)

    def record(self, changes: Changes, version: int) -> None:
        """Note a commit that is about to be made."""
        self.has(version)
        others = []
        for table, delta in changes:
            note = self._notes.get(table)
            if note is None:
                others.append((table, delta))
            else:
                note(delta, version)
        record = super().record(others, version) if others else None
        if record is not None:
            self._noted.append((version, None, record))
        if self.is_asleep and self._noted:
            self.wake()

    def has(self, version: int) -> bool:
        """Delete notes of `version` or later, whose commit was undone; return False."""
        noted = self._noted
        while noted and noted[-1][0] >= version:
            noted.pop()
        return False

    def refuse(self, why: str, error: BaseException | None, remedy: str = ANEW) -> None:
        """Refuse all later writes with this reason."""
        super().refuse(why, error, remedy)
        for table in [*self._notes]:
            self._note_no_more(table)

    def keep(self, table: Any, kept: KeptTable) -> None:
        """Make a table durable from now on."""
        super().keep(table, kept)
        if kept.codec.schema.key is None or kept.log is not None or self._is_each:
            return

        def otherwise(delta: Sequence[Pair], version: int) -> None:
            self.has(version)
            note(delta, version)
            if self.is_asleep:
                self.wake()

        sides = note_kinds(kept)
        note = self._notes[table] = keyed_note(kept, sides, self._noted)
        node_of(table).note = single_row_note(kept, sides, self._noted, self, otherwise)

    def forget(self, table: Any) -> None:
        """Forget a table that was dropped or replaced."""
        super().forget(table)
        self._note_no_more(table)

    def release(self, table: Any) -> None:
        """Forget a table whose creation failed."""
        super().release(table)
        self._note_no_more(table)

    def _note_no_more(self, table: Any) -> None:
        """Stop noting the commits of a table, if they are noted by its node."""
        if self._notes.pop(table, None) is not None:
            node_of(table).note = None

    def wake(self) -> None:
        """Start the thread, or wake it; it writes the notes after `DELAY`."""
        self.is_asleep = False
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"writer of {self.store.name}", daemon=True
            )
            self._thread.start()
        self._has_work.set()

    def _run(self) -> None:
        """Write notes when the thread is woken, until the journal is closed or a write fails."""
        while not self._is_closed and self._error is None:
            self._has_work.wait()
            self._is_due.wait(DELAY)
            self._is_due.clear()
            try:
                with self._writes:
                    self._write_noted()
            except DurabilityError:
                if self._is_gone:  # another thread starts when the file is back
                    self._thread, self.is_asleep = None, True
                return
            self._has_work.clear()
            self.is_asleep = True
            if self._noted or self._is_closed:  # noted since, or by an unfinished commit
                self.wake()

    def _write_noted(self) -> None:
        """Write the notes of commits that are finished now, but not of later ones.

        If the store refuses the notes, later commits are refused, too, and the error is
        raised.

        The caller holds `_writes`.
        """
        noted, now = self._noted, self._version()
        while self._error is None and noted and noted[0][0] <= now and (many := self._standing()):
            last = noted[many - 1][0]
            try:
                self.store.write(merge_notes(noted[:many]))
            except BaseException as error:
                if not self._stands(last):
                    self._fail(error, f"{self.store.name} has commits up to {noted[0][0] - 1} only")
                    raise
            self._stood = last
            del noted[:many]

    def _fail(self, error: BaseException, why: str) -> None:
        """Refuse commits: for ever, or until a missing file is back."""
        if isinstance(error, MissingFileError):
            self._is_gone = True
            self.refuse(why, error, BACK)
        else:
            self._error = error
            self.refuse(why, error)

    def _go_on(self) -> None:
        """Accept commits again: the file is back, and has all notes."""
        self._is_gone, self._refusal = False, None
        for table, kept in [*self.kept.items()]:
            self.keep(table, kept)

    def _stands(self, version: int) -> bool:
        """Return True if the store's last commit is `version`; False also if it cannot tell."""
        try:
            return self.store.version() == version
        except DurabilityError:
            return False

    def _standing(self) -> int:
        """Return the number of notes of finished commits, at most about `MOST`."""
        last = self._version()
        for version, _, _ in self._noted[MOST - 1 : MOST]:
            last = min(last, version)
        return bisect_right(self._noted, last, key=_VERSION)

    def settle(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Write all commits.

        Raises
        ------
        DurabilityError: they cannot be written, now or earlier.
        """
        with self._writes:
            if self._error is None:
                self._write_noted()
                if self._is_gone:
                    self._go_on()
        super().settle()

    def write_beside(self, changes: Sequence[Change], *, is_safe: bool) -> None:
        """Write all commits, and then changes that are not a commit; see `Journal.write_beside`."""
        with self._writes:
            if self._error is None:
                self._write_noted()
            super().write_beside(changes, is_safe=is_safe)

    def is_settled(self) -> bool:
        """Return True if no commit waits to be written."""
        return not self._noted and super().is_settled()

    def after_fork(self) -> None:
        """Refuse all writes, in a forked child of the process."""
        super().after_fork()
        self._noted.clear()
        self._is_closed = True

    def close(self) -> None:
        """Write all commits, and release the store."""
        try:
            if not self._is_closed:
                self.flush()
        finally:
            self._is_closed = True
            atexit.unregister(self._ends)
            self._is_due.set()
            self._has_work.set()
            with self._writes:
                super().close()


_VERSION = itemgetter(0)


def _at_exit(reference: weakref.ref[GroupJournal]) -> None:
    """Close a journal that is still open when the program ends."""
    journal = reference()
    if journal is not None and not journal._is_closed:
        journal.close()


class KeyedNotes(NamedTuple):
    """The kind of a note about a table with a key.

    key_place: the position of the key among the values of a row.
    ways: 1 for one inserted row, -1 for one deleted row, 0 for both kinds.
    """

    table: str
    key_place: int
    ways: int


Noted: TypeAlias = tuple[int, KeyedNotes | None, Any]
"""The version of a commit, the kind of note, and its rows."""
Step: TypeAlias = tuple[Sequence[Values], Sequence[Values]]
"""Deleted rows, and then inserted rows."""
Note: TypeAlias = Callable[[Sequence[Pair], int], None]
"""A function that notes a delta of a table as part of a version; raises if a row is refused."""


def note_kinds(kept: KeptTable) -> tuple[KeyedNotes, KeyedNotes, KeyedNotes]:
    """Return the kinds of notes of a table: an inserted row, a deleted row, both."""
    place = kept.codec.schema.key_place
    return (
        KeyedNotes(kept.name, place, 1),
        KeyedNotes(kept.name, place, -1),
        KeyedNotes(kept.name, place, 0),
    )


def keyed_note(kept: KeptTable, sides: Sequence[KeyedNotes], noted: list[Noted]) -> Note:
    """Return the function that appends a delta of a table with a key to `noted`.

    It raises, and notes nothing, if a row cannot be stored.
    """
    write, both = kept.codec.write, sides[2]

    def note(delta: Sequence[Pair], version: int) -> None:
        row: Any = None
        gone: list[Values] = []
        come: list[Values] = []
        try:
            for row, weight in delta:
                (come if weight > 0 else gone).append(write(row))
        except Unstorable as misfit:
            raise kept.refusal(row, misfit) from None
        noted.append((version, both, (gone, come)))

    return note


def single_row_note(
    kept: KeptTable, sides: Sequence[KeyedNotes], noted: list[Noted], journal: Any, otherwise: Note
) -> Note:
    """Return the function that notes commits of one table with a key: generated code for one row.

    Parameters
    ----------
    journal: its `has` deletes the notes of an undone version; `wake` is called if it `is_asleep`.
    otherwise: the function that notes all other commits.
    """
    usual, values = kept.codec.usual, CodeValues()
    if usual is None:
        return otherwise
    values.by_name |= {**usual.by_name, "Unstorable": Unstorable, "otherwise": otherwise}
    values.by_name |= {"journal": journal, "noted": noted, "comes": sides[0], "goes": sides[1]}
    lines = "".join(f"        {line}\n" for line in usual.lines)
    text = _NOTE.format(lines=lines, test=usual.test, values=usual.values)
    return build("note", text, values)


_NOTE = """\
def note(delta, version):
    if len(delta) != 1: return otherwise(delta, version)
    ((row, weight),) = delta
    try:
{lines}\
    except Unstorable: return otherwise(delta, version)
    if not ({test}): return otherwise(delta, version)
    if noted and noted[-1][0] >= version: journal.has(version)
    noted.append((version, comes if weight > 0 else goes, {values}))
    if journal.is_asleep: journal.wake()
"""


def merge_notes(noted: Sequence[Noted]) -> list[Record]:
    """Merge notes of commits into records; `noted` must have all notes of its last commit.

    >>> comes, both = KeyedNotes("words", 0, 1), KeyedNotes("words", 0, 0)
    >>> old, new = ("tea", 1), ("tea", 2)
    >>> (record,) = merge_notes([(7, comes, ("to", 1)), (8, both, ([old], [new]))])
    >>> record.version, record.changes
    (8, [Change(table='words', gone=[('tea', 1)], come=[('to', 1), ('tea', 2)], counted=())])
    """
    records: list[Record] = []
    steps: dict[str, tuple[KeyedNotes, list[Step]]] = {}
    for side, run in groupby(noted, _SIDE):
        found = [*map(_WHAT, run)]
        if side is None:
            records += found
            continue
        _, its = steps.setdefault(side.table, (side, []))
        its += [((), found)] if side.ways > 0 else [(found, ())] if side.ways else found
    if steps:
        changes = [_net_steps(*each) for each in steps.values()]
        records.append(Record(noted[-1][0], time(), changes))
    return records


def _net_steps(side: KeyedNotes, steps: Sequence[Step]) -> Change:
    """Return the net change of a table with a key: its rows before and after all steps."""
    if not any(gone for gone, _ in steps):
        return Change(side.table, (), [*chain.from_iterable(come for _, come in steps)])
    place = side.key_place
    before: dict[Any, Values | None] = {}
    after: dict[Any, Values | None] = {}
    for gone, come in steps:
        for row in gone:
            before.setdefault(row[place], row)
            after[row[place]] = None
        for row in come:
            before.setdefault(row[place], None)
            after[row[place]] = row
    return Change(side.table, [*filter(None, before.values())], [*filter(None, after.values())])


_SIDE, _WHAT = itemgetter(1), itemgetter(2)


# The opening of a database with a store: `Database(path)`, `Database(store=...)`.


def begin(engine: Any, chosen: StoreOptions, reading: Callable[[Any, Any], Journal]) -> None:
    """Open a store, and attach its journal to the engine.

    Parameters
    ----------
    reading: the function that makes the journal of a store that is only read.

    Raises
    ------
    PlanError: the options do not fit together.
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
        found = read_only_store(chosen.path)
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
        engine.journal.keeps, engine.journal.said = chosen.keep, lambda: engine.said
    _Child(engine.journal).watch()


def journal_of(engine: Any, store: Store, durability: str, *, is_each: bool) -> Journal:
    """Return the journal for a level of durability."""
    if durability == "commit":
        return Journal(store)
    by_itself = durability == "group"
    return GroupJournal(store, lambda: int(engine.version), by_itself=by_itself, is_each=is_each)


class _Child:
    """The watch for forked children of the process, which share the file but must not write."""

    def __init__(self, journal: Journal) -> None:
        self._journal = weakref.ref(journal)
        self._kept: Any = None

    def watch(self) -> None:
        """Call the journal in each child forked from now on."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begins)

    def _begins(self) -> None:
        """Tell the journal that it is in a forked child, and keep its store alive."""
        journal = self._journal()
        if journal is not None:
            self._kept = journal.store  # closing it would affect the parent: keep it alive
            journal.after_fork()
