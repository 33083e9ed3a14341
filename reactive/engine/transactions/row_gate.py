"""Tables as commits see them: the gate of rows, their updates, and the rows of the last commit.

`RowGate` checks each row that is added to a table.

    its class        that of the table, whose instances do not change in place
    its fields       None only if declared; strict: the declared classes (`row_check.py`)
    NaN, instants    in one form, so that equal rows are found

Most rows pass one generated test, and need no further check. The test is generated from the
annotations of the class or, if these do not say enough, from the first rows (`plain_rows.py`).

State:  the tests.
Cost:   one call per row that passes; one loop for many rows.

`UpdateLog` records which rows a commit replaced, for subscribers that read updates.

    update(a, b), update(b, c)              a -> c
    keyed table                             also a deleted and an inserted row of equal key

Updates are recorded only for tables whose updates reach a subscriber (`Node.tracers`), and composed
only on demand.

State:  the updates of the commit in progress.
Cost:   a list append per update.

`CommittedRows` is the store of a table as of the last commit: readers outside an open transaction
use it. `rows_at_rest` returns all rows as one batch.

    current rows  -  net changes of the transaction

State:  the net changes of the transaction so far.
Cost:   a look-up costs as in the table; all rows O(rows).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

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
from reactive.engine.dataflow.delta import (
    Move,
    MoveComposer,
    MovesBySource,
    pair_by_key,
    split_valid_moves,
)
from reactive.engine.dataflow.node import Node
from reactive.engine.storage import plain_rows
from reactive.engine.storage.row_check import (
    ALWAYS_STRICT,
    KeyedStore,
    RowCheck,
    many_tests,
    one_test,
    row_check,
    row_test_text,
)
from reactive.engine.storage.rows import (
    REMEDIES,
    TRACKED_CLASSES,
    check_objects,
    class_and_width,
    is_row_of,
    nan_texts,
    why_changeable,
    wrong_class,
)
from reactive.engine.storage.store import BagStore, RowStore
from reactive.errors import TableError, VerificationError

if TYPE_CHECKING:
    from reactive.engine.transactions.followers import Followers

log = logging.getLogger("reactive")
FROM_TUPLES = "_from_tuples_"
"""The attribute of a class of named tuples whose tables take plain tuples as well."""
MANY = 64
"""Minimum number of rows that are checked by one generated loop."""


class RowGate:
    """Checks the rows that are added to a table, or looked up in it.

    Parameters
    ----------
    table: the table.
    store: returns the store of its rows.
    strict: True if values of other classes than declared are refused.
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
        """Classes whose rows do not change in place, with the test for undeclared values."""
        nan = nan_texts(self._class) if self._may_hold_nan else []
        is_sure = isinstance(self._class, type) and self._accepts(self._class)
        self._plain = self._class if nan is not None and is_sure else None
        """The class whose rows need at most the test that follows."""
        self.is_odd: Callable[[Row], object] = type
        """True of a row that must be checked completely; by default `type`, true of every row."""
        self.are_odd: Callable[[Sequence[Row]], object] = type
        """True of several rows if `is_odd` is true of one of them."""
        self._has_nan = bool(nan)
        self.text: plain_rows.RowText | None = None
        """The source text of `is_odd`, if the annotations of the class say enough for one."""
        if self._plain is not None:
            text = self.text = row_test_text(self._plain, nan or (), self._check_of(self._plain))
            self.is_odd = one_test(text)
            self.are_odd = many_tests(self._plain, text)
        self._until_learned = MANY if self._plain is None else 0
        """Number of rows to check until class and test are learned from rows; 0 if they are known.

        Used if no type declares what the rows are.
        """
        self._test: plain_rows.PlainTest | None = None

    def is_row(self, row: object) -> bool:
        """Return True if the table accepts the class of the row."""
        return is_row_of(row, self._class, self._width)

    def to_row(self, row: Any) -> Any:
        """Convert a tuple to a row of a table created by SQL, whose class has no public name.

        Return other values, and tuples of another width, unchanged.
        """
        kind: Any = self._class
        if type(row) is tuple and getattr(kind, FROM_TUPLES, False):
            return kind(*row) if len(row) == len(kind._fields) else row
        return row

    def allowed_classes(self, width: int, kind: Any) -> plain_rows.Shape:
        """Return the classes that each field of rows of a class may have, as `RowCheck` does."""
        return self._check_of(kind).allowed_classes(width, kind)

    def verify(self, pairs: Iterable[Pair]) -> None:
        """Raise `VerificationError` if a row is not as the table declares its rows.

        That is, if it has None in a field that is not optional, or a value of another class.
        """
        for row, _ in pairs:
            check = row_check(type(row), self._table.row_type, strict=True)
            is_unfit = check.is_unfit
            why = check.refusal(row) if is_unfit is not None and is_unfit(row) else None
            if why is not None:
                name = self._table.name
                raise VerificationError(f"table {name!r} has the row {row!r:.200}: {why}")

    def check_restored(self, rows: Iterable[Row], where: str) -> None:
        """Log the first row of a file that the table would refuse to add today."""
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
        """Return the rows as the table stores them, and the test that proved them plain, if any.

        Without `wants_plain`, that test is only run if the rows would be checked one by one.
        """
        given = list(rows)
        if getattr(self._class, FROM_TUPLES, False) and tuple in map(type, given):
            given = [*map(self.to_row, given)]
        if known is not None and len(given) >= MANY:
            known = plain_rows.plain_test_of(known.kind, known.shape, self.allowed_classes)
            if known is not None:
                return given, self._find_plain_test(given, known)
        is_many = len(given) >= MANY
        is_first = is_many and (wants_plain or self._has_nan or self._plain is None)
        if is_first and (passed := self._find_plain_test(given, is_new=is_new)) is not None:
            return given, passed
        if not self.are_odd(given):
            return given, None
        if (
            is_many
            and not is_first
            and (passed := self._find_plain_test(given, is_new=is_new)) is not None
        ):
            return given, passed
        return [self.check_row(row, is_new=is_new) for row in given], None

    def _find_plain_test(
        self,
        rows: Sequence[Row],
        known: plain_rows.PlainTest | None = None,
        *,
        is_new: bool = True,
    ) -> plain_rows.PlainTest | None:
        """Return a test by which all rows are plain, and of one class; None if there is none.

        The test is the known one, the last one, or a new one, which is stored. Raises
        `TableError` if the first row is refused.
        """
        self.check_row(rows[0], is_new=is_new)
        last = self._test
        if known is None and last is not None and last.are_plain(rows):
            return last
        test = self._test = known or plain_rows.plain_test(rows, self.allowed_classes)
        if test is None or (known is None and (test is last or not test.are_plain(rows))):
            return None
        if self._until_learned:
            self._learn(test)
        return test

    def _learn(self, test: plain_rows.PlainTest) -> None:
        """Use this test first for further rows; rows that it finds odd are checked completely."""
        self._plain, self.is_odd, self._until_learned = test.kind, test.is_odd, 0
        self.are_odd, self._has_nan = lambda rows: not test.are_plain(rows), True

    def _learn_from(self, row: Row) -> None:
        """Count a checked row; the last one creates a test, from it and some stored rows."""
        self._until_learned -= 1
        if self._until_learned == 0:
            store = self._store()
            is_at_hand = hasattr(store, "distinct")
            held = islice(store.pairs(), MANY) if is_at_hand else ()
            test = plain_rows.plain_test([row, *map(_row_of_pair, held)], self.allowed_classes)
            if test is not None and not test.is_odd(row):
                self._learn(test)

    def check_row(self, row: Row, *, is_new: bool = True, known: Collection[Any] = ()) -> Row:
        """Return the row as the table stores it; raise if it is refused.

        is_new: True if the row is to be added. A row that is not new may be in the table although
                its fields are not as declared: it was read from an old file.
        known: parts of the row that were checked for tracked objects before.
        """
        if not is_row_of(row, self._class, self._width):
            if (named := self.to_row(row)) is not row:
                return self.check_row(named, is_new=is_new, known=known)
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
            if TRACKED_CLASSES and not self._table.identity:
                check_objects(row, "table ", self._table.name, known)
            return canonical(row)
        except RecursionError:
            raise TableError(
                f"cannot add a {kind.__name__} to table {self._table.name!r}: its values are "
                f"nested too deep, tuples at most {NESTED} within each other\n"
                "  have a row for each part, with the key of the part that it is in"
            ) from None

    def sought(self, row: Row) -> Row:
        """Return the row as the table would store it."""
        return self.check_row(row, is_new=False)

    def _check_fields(self, row: Row) -> None:
        """Raise if a required field is None; if strict, also on values of undeclared classes."""
        why = self._check_of(type(row)).refusal(row)
        if why is not None:
            raise TableError(f"cannot add {row!r:.200} to table {self._table.name!r}: {why}")

    def _check_of(self, kind: Any) -> RowCheck:
        """Return the check of rows of a class, which is made once."""
        found = self._checks.get(kind)
        if found is None:
            found = self._checks[kind] = row_check(kind, self._table.row_type, strict=self._strict)
        return found

    def _accepts(self, kind: type) -> bool:
        """Return True if rows of a class do not change in place, or the table is declared so."""
        if kind.__hash__ is None:
            return True  # refused for that elsewhere
        if not self._table.identity and why_changeable(kind) is not None:
            return False
        self._accepted[kind] = self._check_of(kind).is_unfit
        return True


def _row_of_pair(pair: Pair) -> Row:
    return pair[0]


Change = tuple["Base", Sequence[Pair]]
NONE: Sequence[Move] = ()


class UpdateLog:
    """The updates of the commit in progress."""

    __slots__ = ("_noted", "_version", "clock")

    def __init__(self) -> None:
        self.clock: Base | None = None
        """The table of the clock, whose changes are ticks."""
        self._noted: dict[Node, list[Move]] = {}  # by the source node of a table
        self._version = 0

    def record(self, table: Base, changes: Sequence[Pair], version: int) -> None:
        """Record that the commit of this version replaced a row."""
        if version != self._version:
            self._noted, self._version = {}, version
        (old, _), (new, _) = changes
        self._noted.setdefault(table._node, []).append((old, new))

    def move_to(self, version: int) -> None:
        """Move the recorded updates to another version."""
        if self._noted:
            self._version = version

    def discard(self) -> None:
        """Discard the updates, because they were undone."""
        self._noted = {}

    def moves_by_source(self, changes: Sequence[Change], version: int) -> MovesBySource | None:
        """Map the source node of each table to the function that finds its moves.

        Tables without moves or traced subscribers are left out; None if none is left, and the
        commit is no tick.
        """
        found = MovesBySource()
        is_noted = version == self._version
        for table, delta in changes:
            node, keyed = table._node, table._keyed
            if table is self.clock:
                found.tick = next(moment for moment, weight in delta if weight > 0)
            if not node.tracers or len(delta) < 2 or type(delta) is UniformDelta:
                continue
            noted = self._noted.get(node, NONE) if is_noted else NONE
            if noted or keyed is not None:
                found[node] = _Moves(delta, noted, None if keyed is None else keyed.key)
        return found if found or found.tick is not None else None


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
        """Return the moves of the delta: noted updates, and pairs of rows with equal keys."""
        moves = self._noted if len(self._noted) < 2 else MoveComposer(self._noted).moves()
        found, rest = split_valid_moves(moves, self._delta)
        return found if self._key is None else [*found, *pair_by_key(self._key, rest)[0]]


BATCHED_FROM = 256
"""Minimum number of rows for a new view to start with one batch."""


class CommittedRows:
    """Reader of a store without the uncommitted changes.

    >>> from reactive.engine.storage.store import BagStore
    >>> store = BagStore()
    >>> changes = [store.add("a", 2), store.add("b", 1)]
    >>> before = CommittedRows(store, changes[1:])
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
        """Return how many copies of a row there were."""
        return self._store.count(row) - sum(n for changed, n in self._changes if changed == row)

    def pairs(self) -> list[Pair]:
        """Return each row with the number of its copies."""
        return consolidate([*self._store.pairs(), *negate(self._changes)])

    def get(self, key: Any) -> Row | None:
        """Return the row that a key had at the last commit; None if it had none."""
        assert self._key is not None
        changed = [(row, weight) for row, weight in self._changes if self._key(row) == key]
        if changed:
            return next((row for row, weight in changed if weight < 0), None)
        get: Callable[[Any], Row | None] = getattr(self._store, "get")  # noqa: B009
        return get(key)


def rows_at_rest(store: RowStore) -> Sequence[Pair]:
    """Return the rows of a store with their weights, for new views. Cost: O(rows).

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


# The interface of a table for commits.


class Base(Protocol):
    """A table of rows, as statements and commits use it."""

    name: str
    identity: bool
    row_type: Any
    _node: Node
    _store: RowStore
    _flowed: bool
    _followers: Followers | None

    @property
    def plan(self) -> plan.Table: ...

    @property
    def _do(self) -> Any: ...

    @property
    def _keyed(self) -> Any: ...

    def __getitem__(self, key: Any) -> Any: ...

    def _holds(self) -> str: ...
