"""Tables as commits see them: the gate of rows, their updates, and the rows of the last commit.

The gate of a table: what a row has to be to get in.

    its class        that of the table, whose instances do not change in place
    its fields       None only where it is declared; strict: the declared classes (`row_check.py`)
    NaN, instants    in one form, so that equal rows are found

Most rows pass one generated test, and are not looked at otherwise. It is made of the annotations of
the class, or where these do not say enough, of the first rows (`plain_rows.py`).

State:  the tests.
Cost:   of a row that passes, one call; of many, one loop.

Which rows of tables were replaced in a commit, for those who are told of updates.

    update(a, b), update(b, c)              a -> c
    keyed table                             also what else has come with the key of what went

It is noted only of tables from which updates lead to a subscriber (`Node.tracers`), and looked at
only when the commit reaches one, or one asks.

State:  the updates of the commit that is under way.
Cost:   of an update that of appending to a list.

The rows of a table as of the last commit: as a store that others read while a transaction is
open, and as one batch.

    rows of now  -  net changes of the transaction

State:  the net changes of the transaction so far.
Cost:   of a look-up as of the table; of all rows O(rows).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Protocol

from optimizer import plan
from reactive.engine.collections.zset import (
    NESTED,
    Pair,
    Row,
    UniformDelta,
    canonical,
    consolidate,
    may_hold_nan,
    negate,
)
from reactive.engine.dataflow.delta import Chains, Move, Moved, Moves, by_key, standing
from reactive.engine.dataflow.node import Node
from reactive.engine.storage import plain_rows
from reactive.engine.storage.row_check import (
    ALWAYS_STRICT,
    KeyedStore,
    RowCheck,
    many_tests,
    one_test,
    row_check,
    row_text,
)
from reactive.engine.storage.rows import (
    REMEDIES,
    check_objects,
    class_and_width,
    fits,
    nan_texts,
    why_changeable,
    wrong_class,
)
from reactive.engine.storage.store import BagStore, RowStore
from reactive.errors import TableError, VerificationError

log = logging.getLogger("reactive")
FROM_TUPLES = "_from_tuples_"
"""The attribute of a class of named tuples whose tables take plain tuples as well."""
MANY = 64
"""From so many rows on they are looked at by a test that is made for them."""


class RowGate:
    """Looks at the rows that are to get into a table, or are sought in it.

    Parameters
    ----------
    table: the table.
    store: gives the store of its rows.
    strict: whether values of other classes than declared are refused.
    """

    __slots__ = (
        "_accepted",
        "_checks",
        "_class",
        "_has_nan",
        "_may_hold_nan",
        "_plain",
        "_store",
        "_strict",
        "_table",
        "_test",
        "_until_learned",
        "_width",
        "are_odd",
        "is_odd",
        "text",
    )

    def __init__(self, table: Base, store: Callable[[], RowStore], *, strict: bool) -> None:
        self._table = table
        self._store = store
        self._strict = strict or getattr(table.row_type, ALWAYS_STRICT, False)
        self._class, self._width = class_and_width(table.row_type)
        self._may_hold_nan = may_hold_nan(self._class or object)
        self._checks: dict[type, RowCheck] = {}
        """Checks of declared fields, by the class of the rows."""
        self._accepted: dict[type, Callable[[Row], bool] | None] = {}
        """Classes whose rows do not change in place, with the test for values that are not as
        declared."""
        nan = nan_texts(self._class) if self._may_hold_nan else []
        is_sure = isinstance(self._class, type) and self._accepts(self._class)
        self._plain = self._class if nan is not None and is_sure else None
        """The class whose rows need at most the test that follows."""
        self.is_odd: Callable[[Row], object] = type
        """True of a row that must be examined whole; the default, `type`, is true of every row."""
        self.are_odd: Callable[[Sequence[Row]], object] = type
        """Function that is true of several rows if `is_odd` is true of one of them."""
        self._has_nan = bool(nan)
        self.text: plain_rows.RowText | None = None
        """The test that `is_odd` makes, if the annotations of the class say enough for one."""
        if self._plain is not None:
            text = self.text = row_text(self._plain, nan or (), self._check_of(self._plain))
            self.is_odd = one_test(text)
            self.are_odd = many_tests(self._plain, text)
        self._until_learned = MANY if self._plain is None else 0
        """After so many rows, each looked at, the class and the test are taken from rows: no type
        says what they hold. 0: they are known."""
        self._test: plain_rows.PlainTest | None = None

    def is_row(self, row: object) -> bool:
        """Return True if the class of the row is one that the table takes."""
        return fits(row, self._class, self._width)

    def named(self, row: Any) -> Any:
        """Return a row for a tuple that is as wide as the rows of a table made by SQL, whose class
        nobody has by name; anything else as it is."""
        kind: Any = self._class
        if type(row) is tuple and getattr(kind, FROM_TUPLES, False):
            return kind(*row) if len(row) == len(kind._fields) else row
        return row

    def admitted(self, width: int, kind: Any) -> plain_rows.Shape:
        """Return the classes that each field of rows of a class may have, as `RowCheck` does."""
        return self._check_of(kind).admitted(width, kind)

    def verify(self, pairs: Iterable[Pair]) -> None:
        """Raise `VerificationError` if a row is not as the table declares its rows: None in a field
        that is not optional, or a value of another class."""
        for row, _ in pairs:
            check = row_check(type(row), self._table.row_type, strict=True)
            is_unfit = check.is_unfit
            why = check.refusal(row) if is_unfit is not None and is_unfit(row) else None
            if why is not None:
                name = self._table.name
                raise VerificationError(f"table {name!r} has the row {row!r:.200}: {why}")

    def check_restored(self, rows: Iterable[Row], where: str) -> None:
        """Log the first row that a file has and the table would refuse to add today."""
        for row in rows:
            is_unfit = self._accepted.get(type(row))
            if is_unfit is not None and is_unfit(row):
                why = self._check_of(type(row)).refusal(row)
                if why is not None:
                    message = "table %r has rows in %s that it would not add: %s in %r"
                    what, _, remedy = why.partition("\n")
                    message += "; SQL may answer wrongly\n%s"
                    log.warning(message, self._table.name, where, what, row, remedy)
                    return

    def all_checked(
        self,
        rows: Iterable[Row],
        *,
        wants_plain: bool,
        known: plain_rows.PlainTest | None = None,
        is_new: bool = True,
    ) -> tuple[list[Row], plain_rows.PlainTest | None]:
        """The rows as the table takes them, and the test that has found them plain.

        If nobody wants to know that, it is only asked where the rows would be looked at each.
        """
        given = list(rows)
        if getattr(self._class, FROM_TUPLES, False) and tuple in map(type, given):
            given = [*map(self.named, given)]
        if known is not None and len(given) >= MANY:
            known = plain_rows.plain_test_of(known.kind, known.shape, self.admitted)
            if known is not None:
                return given, self._passed(given, known)
        is_many = len(given) >= MANY
        is_first = is_many and (wants_plain or self._has_nan or self._plain is None)
        if is_first and (passed := self._passed(given, is_new=is_new)) is not None:
            return given, passed
        if not self.are_odd(given):
            return given, None
        if is_many and not is_first and (passed := self._passed(given, is_new=is_new)) is not None:
            return given, passed
        return [self.checked(row, is_new=is_new) for row in given], None

    def _passed(
        self,
        rows: Sequence[Row],
        known: plain_rows.PlainTest | None = None,
        *,
        is_new: bool = True,
    ) -> plain_rows.PlainTest | None:
        """The test that finds rows of one class plain: one that is known to, the one that was right
        last, or another."""
        self.checked(rows[0], is_new=is_new)
        last = self._test
        if known is None and last is not None and last.are_plain(rows):
            return last
        test = self._test = known or plain_rows.plain_test(rows, self.admitted)
        if test is None or (known is None and (test is last or not test.are_plain(rows))):
            return None
        if self._until_learned:
            self._learn(test)
        return test

    def _learn(self, test: plain_rows.PlainTest) -> None:
        """Ask rows by this test first from now on; one that it finds odd is looked at whole."""
        self._plain, self.is_odd, self._until_learned = test.kind, test.is_odd, 0
        self.are_odd, self._has_nan = lambda rows: not test.are_plain(rows), True

    def _learn_from(self, row: Row) -> None:
        """Count a row that was looked at; the last one makes a test, with some that are held."""
        self._until_learned -= 1
        if self._until_learned == 0:
            store = self._store()
            is_at_hand = hasattr(store, "distinct")
            held = islice(store.pairs(), MANY) if is_at_hand else ()
            test = plain_rows.plain_test([row, *map(_row, held)], self.admitted)
            if test is not None and not test.is_odd(row):
                self._learn(test)

    def checked(self, row: Row, *, is_new: bool = True) -> Row:
        """The row as the table takes it, or an error that says what is wrong with it.

        is_new: whether it is to be added. One that is not may be in the table though its fields
                are not as declared: a file had it from before.
        """
        if not fits(row, self._class, self._width):
            if (named := self.named(row)) is not row:
                return self.checked(named, is_new=is_new)
            raise TableError(wrong_class(self._table.name, self._table.row_type, row))
        kind = type(row)
        if kind not in self._accepted and not self._accepts(kind):
            name = kind.__name__
            raise TableError(
                f"table {self._table.name!r} cannot take a {name}: it may change in place "
                f"({why_changeable(kind)}), and no view would notice\n  {REMEDIES.format(name)}"
            )
        if is_new and (is_unfit := self._accepted.get(kind)) and is_unfit(row):
            self._check_fields(row)
        if self._until_learned:
            self._learn_from(row)
        if not self._may_hold_nan:
            return row
        try:
            if not self._table.identity:
                check_objects(row, "table ", self._table.name)
            return canonical(row)
        except RecursionError:
            raise TableError(
                f"cannot add a {kind.__name__} to table {self._table.name!r}: its values are "
                f"nested too deep, tuples at most {NESTED} within each other\n"
                "  have a row for each part, with the key of the part that it is in"
            ) from None

    def sought(self, row: Row) -> Row:
        """The row as the table would have it."""
        return self.checked(row, is_new=False)

    def _check_fields(self, row: Row) -> None:
        """Refuse None in a field that is not optional; if strict, values of other classes too."""
        why = self._check_of(type(row)).refusal(row)
        if why is not None:
            raise TableError(f"cannot add {row!r:.200} to table {self._table.name!r}: {why}")

    def _check_of(self, kind: Any) -> RowCheck:
        found = self._checks.get(kind)
        if found is None:
            found = self._checks[kind] = row_check(kind, self._table.row_type, strict=self._strict)
        return found

    def _accepts(self, kind: type) -> bool:
        """Return True if rows of a class do not change in place, or the table was told so."""
        if kind.__hash__ is None:
            return True  # it is refused for that
        if not self._table.identity and why_changeable(kind) is not None:
            return False
        self._accepted[kind] = self._check_of(kind).is_unfit
        return True


def _row(pair: Pair) -> Row:
    return pair[0]


Change = tuple["Base", Sequence[Pair]]
NONE: Sequence[Move] = ()


class Updates:
    """Notes updates until they have been committed."""

    __slots__ = ("_noted", "_version")

    def __init__(self) -> None:
        self._noted: dict[Node, list[Move]] = {}  # by the source that a table feeds
        self._version = 0

    def note(self, table: Base, changes: Sequence[Pair], version: int) -> None:
        """A row was replaced in the commit that is to be this version."""
        if version != self._version:
            self._noted, self._version = {}, version
        (old, _), (new, _) = changes
        self._noted.setdefault(table._node, []).append((old, new))

    def move_to(self, version: int) -> None:
        """Count what was noted to the commit that is to be another version."""
        if self._noted:
            self._version = version

    def forget(self) -> None:
        """They have been taken back."""
        self._noted = {}

    def of(self, changes: Sequence[Change], version: int) -> Moved | None:
        """What finds the moves of each table, if there may be any that somebody is told of."""
        found: dict[Node, Moves] = {}
        is_noted = version == self._version
        for table, delta in changes:
            node, keyed = table._node, table._keyed
            if not node.tracers or len(delta) < 2 or type(delta) is UniformDelta:
                continue
            noted = self._noted.get(node, NONE) if is_noted else NONE
            if noted or keyed is not None:
                found[node] = _Moves(delta, noted, None if keyed is None else keyed.key)
        return found or None


class _Moves:
    """Finds the moves in a delta of a table, once."""

    __slots__ = ("_delta", "_found", "_key", "_noted")

    def __init__(
        self, delta: Sequence[Pair], noted: Sequence[Move], key: Callable[[Row], Any] | None
    ) -> None:
        self._delta = delta
        self._noted = noted
        self._key = key
        self._found: Sequence[Move] | None = None

    def __call__(self) -> Sequence[Move]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def _find(self) -> Sequence[Move]:
        moves = self._noted if len(self._noted) < 2 else Chains(self._noted).moves()
        found, rest = standing(moves, self._delta)
        return found if self._key is None else [*found, *by_key(self._key, rest)[0]]


BATCHED_FROM = 256
"""From this number of rows on, a view that is made begins with one batch of them."""


class Committed:
    """What can be read of a store, without changes that are not committed.

    >>> from reactive.engine.storage.store import BagStore
    >>> store = BagStore()
    >>> changes = [store.add("a", 2), store.add("b", 1)]
    >>> before = Committed(store, changes[1:])
    >>> len(before), before.count("b"), before.pairs()
    (2, 0, [('a', 2)])
    """

    __slots__ = ("_changes", "_key", "_store")

    def __init__(
        self, store: RowStore, changes: Sequence[Pair], key: Callable[[Row], Any] | None = None
    ) -> None:
        self._store = store
        self._changes = changes
        self._key = key

    def __len__(self) -> int:
        return len(self._store) - sum(weight for _, weight in self._changes)

    def count(self, row: Row) -> int:
        """How often a row was there."""
        return self._store.count(row) - sum(n for changed, n in self._changes if changed == row)

    def pairs(self) -> list[Pair]:
        """Each row with how often it was there."""
        return consolidate([*self._store.pairs(), *negate(self._changes)])

    def get(self, key: Any) -> Row | None:
        """The row that a key had, of a keyed table; or None."""
        assert self._key is not None
        changed = [(row, weight) for row, weight in self._changes if self._key(row) == key]
        if changed:
            return next((row for row, weight in changed if weight < 0), None)
        get: Callable[[Any], Row | None] = getattr(self._store, "get")  # noqa: B009
        return get(key)


def rows_at_rest(store: RowStore) -> Sequence[Pair]:
    """The rows of a store with their weights, for views that are made now. Cost: O(rows).

    >>> rows_at_rest(BagStore())
    []
    """
    rows = None
    if isinstance(store, BagStore | KeyedStore) and len(store) >= BATCHED_FROM:
        rows = store.distinct()
    if rows is None:
        return list(store.pairs())
    batch = UniformDelta(rows, 1)
    batch.differ = True
    return batch


# What commits need of a table.


class Base(Protocol):
    """A base collection of rows, as statements and commits know it."""

    name: str
    identity: bool
    row_type: Any
    _node: Node
    _store: RowStore
    _flowed: bool

    @property
    def plan(self) -> plan.Table: ...

    @property
    def _do(self) -> Any: ...

    @property
    def _keyed(self) -> Any: ...

    def __getitem__(self, key: Any) -> Any: ...

    def _holds(self) -> str: ...
