"""Commits that are written later, many in one transaction of the store; and a database that begins
with a store.

Commits that are written some time after they were made, many in one transaction of the store.

    note        before the operators step: the rows as they are stored
    gather      what was noted and has been committed, as what it comes to (`group.py`)
    write       of a thread, at most `DELAY` after the first (`"group"`), or of `flush` and `close`

What was noted of a commit that did not come to stand is passed over: its version is not reached, or
is noted again. If the store does not take what is written, memory is ahead of it: from then on the
database refuses changes of durable tables, and `flush` and `close` raise what it was. A file that
is not at its path is looked for at each `flush`; when it is back, what waits is written.

State:  what is not written yet; a thread.
Cost:   of noting a commit of one row half a microsecond.

What is noted of commits until it is written, and what it comes to when that is done together.

    (7, comes, row)             a row that comes, of a table with a key: as values
    (8, both, (rows, rows))     some that go, and some that come
    (9, None, record)           of tables without a key, as it is written

Of a row that came and went in between nothing is written; of a key whose row was replaced often,
the last one. So many commits become one record, with one change for each of their tables.

State:  none.
Cost:   of a commit that adds a row a tenth of a microsecond; of any other row half of one.
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
from reactive.borders.durable.journal import ANEW, Changes, Journal, KeptTable
from reactive.borders.durable.opening import Chosen, snapshot_of, store_of
from reactive.borders.durable.refusals import Gone
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
"""Seconds after which a commit is written at the latest."""
MOST = 10_000
"""Of what is noted that is written together, and what belongs to the same commit."""


class GroupJournal(Journal):
    """Notes commits, and writes them later.

    Parameters
    ----------
    version: what gives the version of the last commit that stands.
    by_itself: whether a thread writes them; else only `flush` and `close` do.
    is_each: whether the store keeps a history, of each commit.
    """

    is_immediate = False

    def __init__(
        self, store: Store, version: Callable[[], int], *, by_itself: bool, is_each: bool
    ) -> None:
        super().__init__(store)
        self._noted: list[Noted] = []
        """Never another list. Their versions rise."""
        self._notes: dict[Any, Note] = {}
        """Note deltas of tables with a key, as long as they may be written."""
        self._version = version
        self._is_each = is_each
        self._writes = threading.Lock()
        """Held by who writes to the store, or reads it."""
        self._has_work = threading.Event()
        self._is_due = threading.Event()
        self.is_asleep = by_itself
        """Whether a thread is to be woken when something is noted."""
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_gone = False
        """True while the file is not at its path, so that nothing is written."""
        self._ends = partial(_at_exit, weakref.ref(self))
        atexit.register(self._ends)

    def begin(self, changes: Changes, version: int) -> None:
        """Note a commit, which is written later."""
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
        """It is not written before it stands; what was noted of it is forgotten."""
        noted = self._noted
        while noted and noted[-1][0] >= version:
            noted.pop()
        return False

    def refuse(self, why: str, error: BaseException | None, remedy: str = ANEW) -> None:
        """Write nothing any more."""
        super().refuse(why, error, remedy)
        for table in [*self._notes]:
            self._note_no_more(table)

    def keep(self, table: Any, kept: KeptTable) -> None:
        """A table is durable from now on."""
        super().keep(table, kept)
        if kept.codec.schema.key is None or self._is_each:
            return

        def otherwise(delta: Sequence[Pair], version: int) -> None:
            self.has(version)
            note(delta, version)
            if self.is_asleep:
                self.wake()

        sides = sides_of(kept)
        note = self._notes[table] = noting(kept, sides, self._noted)
        table._node.note = noting_one(kept, sides, self._noted, self, otherwise)

    def forget(self, table: Any) -> None:
        """A table was dropped, or replaced."""
        super().forget(table)
        self._note_no_more(table)

    def release(self, table: Any) -> None:
        """A table was not made after all."""
        super().release(table)
        self._note_no_more(table)

    def _note_no_more(self, table: Any) -> None:
        if self._notes.pop(table, None) is not None:
            table._node.note = None

    def wake(self) -> None:
        """Have the thread write what was noted, in a while."""
        self.is_asleep = False
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"writer of {self.store.name}", daemon=True
            )
            self._thread.start()
        self._has_work.set()

    def _run(self) -> None:
        while not self._is_closed and self._error is None:
            self._has_work.wait()
            self._is_due.wait(DELAY)
            self._is_due.clear()
            try:
                with self._writes:
                    self._write_noted()
            except DurabilityError:
                if self._is_gone:  # another thread goes on when it has come back
                    self._thread, self.is_asleep = None, True
                return
            self._has_work.clear()
            self.is_asleep = True
            if self._noted or self._is_closed:  # since, or of a commit that is about to stand
                self.wake()

    def _write_noted(self) -> None:
        """Write what has come to stand until now, not what others go on to commit. By who has
        `_writes`."""
        noted, now = self._noted, self._version()
        while self._error is None and noted and noted[0][0] <= now and (many := self._standing()):
            last = noted[many - 1][0]
            try:
                self.store.write(together(noted[:many]))
            except BaseException as error:
                if not self._stands(last):
                    self._fail(error, f"{self.store.name} has commits up to {noted[0][0] - 1} only")
                    raise
            self._stood = last
            del noted[:many]

    def _fail(self, error: BaseException, why: str) -> None:
        """Refuse commits: for ever, or until a file that is gone has come back."""
        if isinstance(error, Gone):
            self._is_gone = True
            self.refuse(why, error, BACK)
        else:
            self._error = error
            self.refuse(why, error)

    def _go_on(self) -> None:
        """Take commits again: the file has come back, and has all that was noted."""
        self._is_gone, self._refusal = False, None
        for table, kept in [*self.kept.items()]:
            self.keep(table, kept)

    def _stands(self, version: int) -> bool:
        try:
            return self.store.version() == version
        except DurabilityError:
            return False

    def _standing(self) -> int:
        """How many of what is noted belong to the first commits that stand."""
        last = self._version()
        for version, _, _ in self._noted[MOST - 1 : MOST]:
            last = min(last, version)
        return bisect_right(self._noted, last, key=_VERSION)

    def settle(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Write what has been committed.

        Raises
        ------
        DurabilityError: it cannot be written, now or before.
        """
        with self._writes:
            if self._error is None:
                self._write_noted()
                if self._is_gone:
                    self._go_on()
        super().settle()

    def write_beside(self, changes: Sequence[Change], *, is_safe: bool) -> None:
        """Write what was committed, and then what is no commit."""
        with self._writes:
            if self._error is None:
                self._write_noted()
            super().write_beside(changes, is_safe=is_safe)

    def is_settled(self) -> bool:
        """Whether no commit waits to be written."""
        return not self._noted and super().is_settled()

    def after_fork(self) -> None:
        """In a child of the process: nothing may be written."""
        super().after_fork()
        self._noted.clear()
        self._is_closed = True

    def close(self) -> None:
        """Write what there is, and let the store go."""
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
    """The program ends, and nobody has closed it."""
    journal = reference()
    if journal is not None and not journal._is_closed:
        journal.close()


class KeyedNotes(NamedTuple):
    """What is noted of a table with a key.

    key_place: where the key is among the values of a row.
    ways: whether a row comes (1), a row goes (-1), or some do both (0).
    """

    table: str
    key_place: int
    ways: int


Noted: TypeAlias = tuple[int, KeyedNotes | None, Any]
"""The version of a commit, and what is noted of it."""
Step: TypeAlias = tuple[Sequence[Values], Sequence[Values]]
"""Rows that go, and then rows that come."""
Note: TypeAlias = Callable[[Sequence[Pair], int], None]
"""Notes a delta of a table as part of a version. Raises what the table refuses a row with."""


def sides_of(kept: KeptTable) -> tuple[KeyedNotes, KeyedNotes, KeyedNotes]:
    """What may be noted of a table with a key: a row that comes, one that goes, and both."""
    place = kept.codec.schema.key_place
    return (
        KeyedNotes(kept.name, place, 1),
        KeyedNotes(kept.name, place, -1),
        KeyedNotes(kept.name, place, 0),
    )


def noting(kept: KeptTable, sides: Sequence[KeyedNotes], noted: list[Noted]) -> Note:
    """What notes deltas of a table with a key: each all at once, or not at all."""
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


def noting_one(
    kept: KeptTable, sides: Sequence[KeyedNotes], noted: list[Noted], journal: Any, otherwise: Note
) -> Note:
    """What notes commits of one table with a key: a generated function for one row as usual.

    Parameters
    ----------
    journal: `has` forgets a version that was noted, and `wake` is called if it `is_asleep`.
    otherwise: what notes the other commits.
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


def together(noted: Sequence[Noted]) -> list[Record]:
    """What commits come to, of which the last one is whole.

    >>> comes, both = KeyedNotes("words", 0, 1), KeyedNotes("words", 0, 0)
    >>> old, new = ("tea", 1), ("tea", 2)
    >>> (record,) = together([(7, comes, ("to", 1)), (8, both, ([old], [new]))])
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
        changes = [_net(*each) for each in steps.values()]
        records.append(Record(noted[-1][0], time(), changes))
    return records


def _net(side: KeyedNotes, steps: Sequence[Step]) -> Change:
    """What the rows of a table come to."""
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


# A database that begins with a store: `Database(path)`, `Database(store=...)`.


def begin(engine: Any, chosen: Chosen, reading: Callable[[Any, Any], Journal]) -> None:
    """Open a store, and have the engine write to it.

    Parameters
    ----------
    reading: what makes the journal of a store that is read alone.

    Raises
    ------
    PlanError: what is asked for there is not.
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
        found = snapshot_of(chosen.path)
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
