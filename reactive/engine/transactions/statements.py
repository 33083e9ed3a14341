"""Statements on tables: each changes the store of its table, and returns the delta.

A statement is atomic: refused, it leaves the store unchanged. A row in its delta is always the
object that the store holds, or held before the statement or transaction removed it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from reactive.engine.collections import bag_folds
from reactive.engine.collections.zset import (
    Pair,
    Row,
    UniformDelta,
    consolidate,
    negate,
    repeat_by_weight,
)
from reactive.engine.runtime.interrupts import reraise_asynchronous, surely
from reactive.engine.storage import plain_rows
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.rows import (
    TRACKED_CLASSES,
    check_copies,
    checked_parts,
    label_of,
    times_text,
)
from reactive.engine.storage.store import Absent, BagStore, Duplicate, RowStore
from reactive.engine.transactions import bulk_upsert, followers, one_row, row_gate, rows_by_field
from reactive.engine.transactions.row_gate import RowGate
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.row_gate import Base


Predicate = Callable[[Row], object]


class Statements:
    """The statements of one table. They raise `TableError` if the table refuses a row."""

    __slots__ = (
        "_engine",
        "_known",
        "_lost_at",
        "_table",
        "add_one",
        "gate",
        "remove_one",
        "store",
        "update_one",
    )

    def __init__(self, table: Base, engine: Engine) -> None:
        self._table = table
        self._engine = engine
        self.store: RowStore
        """The store of the table; it may be replaced between two commits."""
        self.gate = RowGate(table, lambda: self.store, strict=engine.strict)
        """The gate that rows must pass."""
        self._known: dict[Row, Row] | None = None  # rows that this statement has removed so far
        self._lost_at = -1
        """The version of the last removal of rows.

        If it is still current, a transaction may have removed them, and may add them again.
        """
        self.add_one: one_row.Statement = self.add if self.gate.text is None else self._add_first
        """Adds one copy as `add` does; generated once a class or load shows the shape of rows."""
        self.remove_one: one_row.Statement = self.remove
        self.update_one: one_row.Update | None = None
        """Replaces a row as `update` does; generated with the others, and None before."""

    def move_to(self, store: RowStore) -> None:
        """Change to another store. Generated functions are dropped: they refer to the old store."""
        self.store = store
        self.add_one = self.add if self.gate.text is None else self._add_first
        self.remove_one = self.remove
        self.update_one = None

    def note_removal(self) -> None:
        """Note that rows are removed which this transaction may add again."""
        self._lost_at = self._engine.version

    @property
    def is_part(self) -> bool:
        """True while several statements run as one."""
        return self._known is not None

    def add(
        self, row: Row, count: int = 1, *, is_new: bool = True, known: Collection[Any] = ()
    ) -> list[Pair]:
        """Add `count` copies of a row, and return the delta.

        Raise `TableError` if the store refuses the row. With `is_new`, the row is checked
        as a new one. `known` are parts of it that were checked for tracked objects before.
        """
        if self.gate.is_odd(row):
            row = self.gate.check_row(row, is_new=is_new, known=known)
        if count != 1:
            check_copies(count)
        try:
            if self._known is not None or self._lost_at == self._engine.version:
                row = self._intern((row,))[0] if self._may_return() else row
            return [self.store.add(row, count)]
        except (Duplicate, TypeError) as error:
            raise self._refusal(row, error, count) from None

    def add_all(
        self,
        rows: Iterable[Row],
        known: plain_rows.PlainTest | None = None,
        *,
        is_new: bool = True,
    ) -> Sequence[Pair]:
        """Add rows in one loop, each as `add` does; if one is refused, raise, and add none.

        known: a test that all rows are known to pass.
        is_new: False for rows of a file, whose fields may not be as declared.
        """
        wants_plain = getattr(self.store, "wants_plain", False)
        checked: Sequence[Row]
        checked, plain = self.gate.all_checked(
            rows, wants_plain=wants_plain, known=known, is_new=is_new
        )
        add = None if plain is None else getattr(self.store, "add_plain", None)
        try:
            checked = self.intern_returned(checked)
            if add is not None and self.store.interns and not len(self.store):
                self.add_one, self.remove_one = self._add_first, self._remove_first
                self.update_one = self._update_first
            batch = UniformDelta((), 1)  # built before: no call follows the change
            batch.rows = self.store.add_rows(checked) if add is None else add(checked)
            if plain is not None and batch.rows is checked:
                batch.fields = plain.fields
            return batch
        except (Duplicate, TypeError) as error:
            raise self._first_refusal(checked, self.store.add, error) from None

    def remove_all(self, rows: Iterable[Row]) -> Sequence[Pair]:
        """Remove rows in one loop, each as `remove` does; return the delta.

        If a row is refused, raise the `TableError` of the first such row, and remove none.
        """
        checked, _ = self.gate.all_checked(rows, wants_plain=False, is_new=False)
        try:
            return self.remove_known(checked)
        except (Absent, TypeError) as error:
            raise self._first_refusal(checked, self.store.remove, error) from None

    def remove_known(self, rows: Sequence[Row]) -> Sequence[Pair]:
        """Remove rows that are checked already, in one loop; return the delta."""
        self._lost_at, batch = self._engine.version, UniformDelta((), -1)
        is_many = len(rows) >= row_gate.MANY
        remove_held = getattr(self.store, "remove_held", None) if is_many else None
        gone = None if remove_held is None else remove_held(rows)
        batch.rows = self.store.remove_rows(rows) if gone is None else gone
        return batch

    def _add_first(self, row: Row) -> Sequence[Pair]:
        """Generate the statements of one row, and add the row."""
        self._make_ones()
        return self.add_one(row)

    def _remove_first(self, row: Row) -> Sequence[Pair]:
        """Generate the statements of one row, and remove the row."""
        self._make_ones()
        return self.remove_one(row)

    def _update_first(self, old: Row, new: Row) -> Sequence[Pair]:
        """Generate the statements of one row, and replace the row."""
        self._make_ones()
        return (self.update_one or self.update)(old, new)

    def _make_ones(self) -> None:
        """Generate the statements of one row.

        They need a field to find rows by, which a load shows, or annotations of the class to check
        rows by.
        """
        store, text = self.store, self.gate.text
        ones: tuple[one_row.Statement, one_row.Statement, one_row.Update | None]
        ones = self.add, self.remove, None
        if isinstance(store, BagStore | KeyedStore) and store.field is not None:
            ones = one_row.make_row_statements(self, self._engine, store, store.field)
        elif text is not None and (found := one_row.add_by_class(self, self._engine, store, text)):
            ones = found, self.remove, None
        self.add_one, self.remove_one, self.update_one = ones

    def _first_refusal(
        self, rows: Sequence[Row], do: Callable[[Row, int], Pair], error: BaseException
    ) -> BaseException:
        """Return the error for the first row that the store refuses to add or to remove.

        To find that row, `do` changes the rows one by one; the changes are undone. If no row is
        refused now, return `error`.
        """
        changes: list[Pair] = []
        try:
            for row in rows:
                try:
                    changes.append(do(row, 1))
                except (Absent, Duplicate, TypeError) as refused:
                    return self._refusal(row, refused)
        finally:
            surely(partial(self.store.revert, changes))
        return error

    def remove(self, row: Row, count: int = 1, *, known: Collection[Any] = ()) -> list[Pair]:
        """Remove `count` copies of a row, and return the delta.

        Raise `TableError` if there are fewer. `known` is as in `add`.
        """
        if self.gate.is_odd(row):
            row = self.gate.check_row(row, is_new=False, known=known)
        if count != 1:
            check_copies(count)
        self._lost_at = self._engine.version
        try:
            change = self.store.remove(row, count)
        except (Absent, TypeError) as error:
            raise self._refusal(row, error, count) from None
        if self._known is not None:
            try:
                self._known[row] = change[0]
            except BaseException:
                self.store.revert([change])
                raise
        return [change]

    def discard(self, row: Row) -> list[Pair]:
        return self.remove(row) if self.store.count(self.gate.sought(row)) else []

    def update(
        self, old: Row, new: Row, known: Collection[Any] = (), *, is_held: bool = False
    ) -> list[Pair]:
        """Replace a row by another, and return the delta; empty if both are one held object.

        known: parts of the new row that were checked for tracked objects before.
        is_held: True if the old row is the object that the table stores, which was checked.
        """
        if old is new and self._table.plan.stored:
            try:
                if self.store.count(self.gate.sought(old)):
                    return []
            except TypeError as error:
                raise self._refusal(old, error) from None
        held = checked_parts(old) if TRACKED_CLASSES else ()
        return self.together(
            lambda: self.remove(old, known=held if is_held else ()),
            lambda: self.add(new, known=(*known, *held)),
            is_noted=True,
        )

    def upsert(self, row: Row) -> list[Pair]:
        """Add a row or replace the row of its key; the delta is empty if they are equal."""
        if self.gate.is_odd(row):
            row = self.gate.check_row(row)
        keyed = self._table._keyed
        assert keyed is not None
        old = keyed.get(keyed.key(row))
        if old is None:
            return self.add(row)
        if old is row or old == row:
            return []
        return self.together(lambda: self.remove(old), lambda: self.add(row))

    def replace_all(self, rows: Iterable[Row]) -> list[Pair]:
        """Replace all rows of the table, and return the difference as the delta."""
        wanted = [self.gate.check_row(row) for row in rows]
        return self._replace(list(self.store.pairs()), wanted)

    def replace_where(self, predicate: Predicate, rows: Iterable[Row]) -> list[Pair]:
        """Replace the rows that satisfy a predicate.

        Raise `TableError` if a new row does not satisfy it.
        """
        wanted = [self.gate.check_row(row) for row in rows]
        with self._engine.graph.running():
            outside = [row for row in wanted if not self._call_predicate(predicate, row)]
            held = self._rows_where(predicate)
        if outside:
            raise TableError(
                f"replace_where of table {self._table.name!r}: {outside[0]!r:.100} is no row of "
                f"which {label_of(predicate)} is true\n"
                "  it would not be replaced the next time; add() it, or change the predicate"
            )
        return self._replace(held, wanted)

    def _rows_where(self, predicate: Predicate) -> list[Pair]:
        """Return the rows that satisfy a predicate, found by an index if it allows that."""
        some = self._candidates(predicate)
        try:
            if some is not None:
                return [pair for pair in some if self._call_predicate(predicate, pair[0])]
        except Exception as error:  # raised again below, for the first row
            reraise_asynchronous(error)
        return [pair for pair in self.store.pairs() if self._call_predicate(predicate, pair[0])]

    def _candidates(self, predicate: Predicate) -> list[Pair] | None:
        """Return rows found by the equations in a predicate, among them all that satisfy it.

        Return None if all rows of the table must be tested.
        """
        table, store, pending = self._table, self.store, self._engine.pending
        if type(store) not in (BagStore, KeyedStore) or len(store) < rows_by_field.SMALL:
            return None
        assert isinstance(store, BagStore | KeyedStore)
        equations = rows_by_field.equations_of(predicate)
        if not equations:
            return None
        own = [] if pending is None else [*pending, *pending.beneath]
        deltas = [delta for changed, delta in own if changed is table]
        by_field = followers.followers_of(table).by_field
        found = by_field.find(equations, None if deltas else store)
        if found is None or sum(map(len, deltas)) > len(store):
            return None
        some = {id(row): row for row in found}
        some |= {id(row): row for delta in deltas for row, _ in delta}
        return [(store.held_row(row), n) for row in some.values() if (n := store.count(row))]

    def _call_predicate(self, predicate: Predicate, row: Row) -> object:
        """Call a predicate on a row; an exception gets a note that names the row."""
        try:
            return predicate(row)
        except Exception as error:
            asked = f"{label_of(predicate)} in replace_where of table {self._table.name!r}"
            error.add_note(f"  {asked}, on row {row!r:.200}\n  the table is unchanged")
            raise

    def replace_some(self, gone: Iterable[Row], come: Iterable[Row]) -> list[Pair]:
        """Remove rows and add others, in one loop each; rows in both stay unchanged."""
        wanted = [self.gate.check_row(row) for row in come]
        return self._replace([(self.gate.sought(row), 1) for row in gone], wanted)

    def _replace(self, held: Sequence[Pair], wanted: Iterable[Row]) -> list[Pair]:
        """Change `held` to the `wanted` rows, and return the delta; removals are done first."""
        difference = consolidate([*((row, 1) for row in wanted), *negate(held)])
        difference.sort(key=_second_of_pair)  # removals first, to free keys
        if len(difference) >= row_gate.MANY:
            gone = [*repeat_by_weight((row, -weight) for row, weight in difference if weight < 0)]
            come = [*repeat_by_weight(pair for pair in difference if pair[1] > 0)]
            return self.together(lambda: self.remove_all(gone), lambda: self.add_all(come))
        return self.together(
            *(
                (lambda r=row, w=weight: self.add(r, w))
                if weight > 0
                else (lambda r=row, w=weight: self.remove(r, -w))
                for row, weight in difference
            )
        )

    def upsert_all(self, rows: Iterable[Row]) -> list[Pair]:
        """Upsert rows in order, as one statement, and return the whole delta."""
        rows, upsert = list(rows), self.upsert
        delta = bulk_upsert.upsert_together(self, rows)
        if delta is not None:
            return delta
        if hasattr(self.store, "expect"):
            self.store.expect(map(self._table._keyed.key, map(self.gate.check_row, rows)))
        return self.together(*((lambda r=row: upsert(r)) for row in rows))

    def delete(self, key: Any) -> list[Pair]:
        return self.remove(self._table[key])

    def together(
        self, *statements: Callable[[], Sequence[Pair]], is_noted: bool = False
    ) -> list[Pair]:
        """Run several statements as one: if one is refused, undo the earlier ones.

        They are undone, too, if recording an update is interrupted: the engine has none of them
        yet.
        """
        parts: list[Sequence[Pair]] = []
        outer = self._known
        self._known = {} if outer is None else outer
        try:
            for statement in statements:
                parts += (statement(),)  # no call follows the change
            pairs: list[Pair] = []
            for part in parts:
                pairs += part
            net = consolidate(pairs)
            if is_noted and net and self._table._node.tracers:
                self._engine.updates.record(self._table, net, self._engine.version + 1)
            return net
        except BaseException:
            surely(partial(self._revert, parts))
            raise
        finally:
            self._known = outer

    def _revert(self, parts: Sequence[Sequence[Pair]]) -> None:
        """Undo changes one by one, since their rows may not be comparable."""
        for change in reversed([pair for part in parts for pair in part]):
            self.store.revert([change])

    def _may_return(self) -> bool:
        """Return True if this statement or transaction has removed rows that may be added again."""
        if self._known is not None:
            return True
        is_lost = self._lost_at == self._engine.version and self._table.plan.stored
        return is_lost and self._engine.pending is not None

    def intern_returned(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Replace rows by the equal objects that were removed before, if any may have been."""
        return self._intern(rows) if self._may_return() else rows

    def intern_row(self, row: Row) -> Row:
        """Return the row, or the equal object that the open transaction has removed, if any."""
        pending = self._engine.pending
        if pending is None or not self._table.plan.stored:
            return row
        return pending.intern_row(self._table, row)

    def _intern(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Replace each row by the equal object that the statement or transaction removed."""
        known, pending = self._known, self._engine.pending
        found = rows if known is None else list(map(known.get, rows, rows))
        return found if pending is None else pending.intern_rows(self._table, found)

    def check(self, row: Row) -> None:
        """Raise if the table would refuse the row even without any other rows."""
        try:
            hash(self.gate.check_row(row))
        except TypeError as error:
            raise self._refusal(row, error) from None

    def _refusal(self, row: Row, error: BaseException, count: int = 1) -> BaseException:
        """Return the error for a row that the store refuses to add or to remove."""
        match error:
            case Duplicate() if count != 1:
                return TableError(
                    f"cannot add {row!r} to table {self._table.name!r} {count} times\n"
                    "  a keyed table holds a row once"
                )
            case Duplicate():
                return TableError(
                    f"cannot add {row!r} to table {self._table.name!r}: its key is taken by "
                    f"{error.args[0]!r}\n"
                    "  upsert() puts a row in the place of the one with its key"
                )
            case Absent():
                held = self.store.count(row)
                there = (
                    f"it is there {times_text(held)}, not {count}" if held else "it is not there"
                )
                return TableError(
                    f"cannot remove {row!r} from table {self._table.name!r}: {there}\n"
                    f"  {self._table._holds()}; discard() removes only what is present"
                )
        part = bag_folds.unhashable_reason(row)
        if part is None:
            return error
        return TableError(
            f"table {self._table.name!r} cannot take {row!r:.100}: {part}\n"
            "  rows are found by hash; use a frozen dataclass, tuples and frozensets"
        )


def _second_of_pair(pair: Pair) -> int:
    return pair[1]
