"""Net changes of a batch: deleted and inserted rows per table, and entries of the ledger.

    upserts, deletes   by key         the row of the key is replaced, if it differs, or deleted
    upserts, removes   by count       inserted rows minus deleted rows
    origins            by origin      its rows now, minus its rows before
    appends            by origin      its new rows, beside the earlier ones

A row that is left out is not inserted, but the row that it would replace is deleted. So the rows in
the tables and the rows left out are together the rows of the source.

Cost: O(rows of the batch); for an origin O(its rows, before and now), unless they are appended.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from operator import eq, is_, truth
from typing import Any

from reactive.api.literal import Raised, RowError
from reactive.borders.sources.batch import NOWHERE, ByTable, Refused, TableBatches
from reactive.borders.sources.ledger import ORIGIN, Entry, Ledger, Owner, part_owner
from reactive.engine.collections.zset import Row, consolidate
from reactive.engine.runtime.interrupts import reraise_asynchronous

NOTHING: Mapping[int, tuple[Row, ...]] = {}


@dataclass(frozen=True, slots=True)
class NetBatch:
    """The net changes of a batch.

    gone: deleted rows, by table.
    come: inserted rows, by table.
    entries: changed entries of the ledger.
    solved: rows that are no longer left out.
    errors: rows that are left out now.
    """

    gone: ByTable = field(default_factory=dict)
    come: ByTable = field(default_factory=dict)
    entries: dict[Owner, Entry | None] = field(default_factory=dict)
    solved: list[RowError] = field(default_factory=list)
    errors: list[RowError] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, (*self.gone.values(), *self.come.values())))


def net_changes(batch: TableBatches, ledger: Ledger, left_out: LeftOut | None) -> NetBatch:
    """Return the net changes of a batch. Called inside a transaction, because it reads the tables.

    Parameters
    ----------
    left_out: rows not to insert or delete; None if refused rows must raise.
    """
    changes = _Changes(ledger, left_out)
    if batch.anew:
        changes.forget({*batch.anew})
    every = (batch.upserts, batch.deletes, batch.removes, batch.unfit)
    for number in dict.fromkeys(number for part in every for number in part):
        rows, unfit = batch.upserts.get(number, []), batch.unfit.get(number, ())
        if number != NOWHERE and ledger.targets.is_keyed(number):
            changes.by_key(number, rows, batch.deletes.get(number, ()), unfit)
        else:
            changes.by_count(number, rows, batch.removes.get(number, ()), unfit)
    for origin, by_table in batch.origins.items():
        changes.by_origin(origin, by_table, changes.refused(batch.refused.get(origin, ())))
    for origin, by_table in batch.appends.items():
        changes.by_append(origin, by_table, changes.refused(batch.refused.get(origin, ())))
    return changes.made(batch)


class _Changes:
    """The collector of the net changes of a batch.

    In its methods, `number` is the number of a table among the targets of the source, and `owner`
    the owner of an entry of the ledger, such as an origin or a key that is left out.
    """

    def __init__(self, ledger: Ledger, left_out: LeftOut | None) -> None:
        self._net = NetBatch()
        self._ledger = ledger
        self._targets = ledger.targets
        self._left_out = None if left_out is None else left_out.again()
        self._errors: dict[Owner, tuple[RowError, ...]] = {}
        """The rows that are left out now, for each owner that the batch mentions."""
        self._has_errors = bool(ledger.errors)

    def forget(self, numbers: Collection[int]) -> None:
        """Clear the left-out rows of tables, except rows of origins.

        The batch reports them again.
        """
        for entry in self._ledger.entries:
            owner = entry.owner
            if entry.errors and owner[0] != ORIGIN and owner[1] in numbers:
                self._errors[owner] = ()

    def by_key(
        self,
        number: int,
        rows: list[Row],
        deleted: Collection[Any],
        unfit: Collection[Refused] = (),
    ) -> None:
        """Upsert rows by key, delete keys, and record values that cannot be converted to rows."""
        if self._left_out is None and not self._has_errors and not unfit:
            self._all_by_key(number, rows, deleted)
            return
        held = self._targets.held(number)
        latest = self._latest(number, rows)
        refused = {each.key: each for each in unfit if each.key not in latest}
        for value, each in refused.items():
            owner = ("key", number, value)
            self._settle(owner, *self.refused([each]))
            if value in held:
                self._goes(number, held[value], owner)
        for value, (row, odd) in latest.items():
            old, owner = held.get(value), ("key", number, value)
            if odd is None and old is not None and old == row:
                self._settle(owner)
                continue
            error = odd or self._refusal_of(number, row)
            self._settle(owner, error)
            if old is not None:
                self._goes(number, old, owner)
            if error is None:
                self._comes(number, row)
        for value in dict.fromkeys(deleted):
            if value not in latest and value not in refused:
                old, owner = held.get(value), ("key", number, value)
                self._settle(owner)
                if old is not None:
                    self._goes(number, old, owner)

    def _all_by_key(self, number: int, rows: list[Row], deleted: Collection[Any]) -> None:
        """Do the work of `by_key` if no row is or was left out, in a third of the time."""
        held, latest = self._targets.held(number), self._targets.by_key(number, rows)
        self._targets.expect(number, [*latest, *deleted])
        come = {key: row for key, row in latest.items() if key not in held or held[key] != row}
        ending = [key for key in dict.fromkeys(deleted) if key not in latest]
        gone = [held[key] for key in (*come, *ending) if key in held]
        self._net.gone.setdefault(number, []).extend(gone)
        self._net.come.setdefault(number, []).extend(come.values())

    def by_count(
        self,
        number: int,
        rows: list[Row],
        removed: Collection[Row],
        unfit: Collection[Refused] = (),
    ) -> None:
        """Insert `rows` and delete `removed`, one copy of each, in a table without a key.

        `unfit` are values that cannot be converted to rows; they are recorded as errors.
        """
        rows = self._accepted_rows(number, rows, None)
        for each in unfit:
            self._add_error(("row", number, each.given), *self.refused([each]))
        if self._has_errors or unfit:
            removed = [row for row in removed if not self._solves(("row", number, row))]
        if removed and rows:
            pairs = [*((row, 1) for row in rows), *((row, -1) for row in removed)]
            net = consolidate(pairs)
            rows = [row for row, weight in net for _ in range(weight)]
            removed = [row for row, weight in net for _ in range(-weight)]
        for row in removed:
            self._goes(number, row, ("removal", number, row))
        for row in rows:
            error = self._refusal_of(number, row)
            if error is None:
                self._comes(number, row)
            else:
                self._add_error(("row", number, row), error)

    def by_origin(
        self, origin: Hashable, by_table: ByTable, refused: tuple[RowError, ...] = ()
    ) -> None:
        """Replace all rows of an origin by the rows in `by_table`.

        `refused` are the errors of its values that cannot be converted to rows.
        """
        owner = part_owner(origin, 0)
        parts = self._ledger.parts(origin)
        before = _rows_of(parts)
        self._settle(owner)
        held: dict[int, tuple[Row, ...]] = {}
        for number in dict.fromkeys((*before, *by_table)):
            old, wanted = before.get(number, ()), by_table.get(number, [])
            rows = self._of_origin(owner, number, old, wanted)
            if rows:
                held[number] = rows
        errors = (*self._errors.pop(owner, ()), *refused)
        if held != before or errors or any(part.errors for part in parts):
            for part in parts[1:]:
                self._replace(part.owner, ())
            self._replace(owner, errors, held)

    def by_append(
        self, origin: Hashable, by_table: ByTable, refused: tuple[RowError, ...] = ()
    ) -> None:
        """Add rows to an origin, as a further part of it.

        If a row has a key that is in use, all rows of the origin are replaced instead.
        """
        parts = self._ledger.parts(origin)
        if any(self._takes_places(number, rows) for number, rows in by_table.items()):
            known = tuple(error for part in parts for error in part.errors)
            self.by_origin(origin, _join_rows(_rows_of(parts), by_table), (*known, *refused))
            return
        owner = part_owner(origin, len(parts))
        held = {number: self._come(owner, number, rows) for number, rows in by_table.items()}
        errors = (*self._errors.pop(owner, ()), *refused)
        joined: list[Entry] = []
        while parts and _count_parts(parts[-1].rows, parts[-1].errors) <= _count_parts(
            held, errors
        ):
            part = parts.pop()
            held = {n: tuple(rows) for n, rows in _join_rows(part.rows or {}, held).items()}
            errors = (*part.errors, *errors)
            joined.append(part)
        for part in joined[:-1]:
            self._replace(part.owner, ())
        rows = {number: some for number, some in held.items() if some}
        if rows or errors:
            self._replace(part_owner(origin, len(parts)), errors, rows)

    def refused(self, given: Collection[Refused]) -> tuple[RowError, ...]:
        """Return the errors for values that cannot be converted to rows."""
        of = f"source {self._ledger.name}"
        return tuple(RowError(of, each.given, _describe_error(each.error)) for each in given)

    def made(self, batch: TableBatches) -> NetBatch:
        """Return the collected changes."""
        for owner, errors in self._errors.items():
            self._replace(owner, errors)
        if batch.token is not None:
            self._net.entries.update(self._ledger.with_token(batch.token))
        elif batch.token_changes:
            self._net.entries.update(self._ledger.with_token_changes(batch.token_changes))
        return self._net

    def _of_origin(
        self, owner: Owner, number: int, old: tuple[Row, ...], wanted: list[Row]
    ) -> tuple[Row, ...]:
        """Change the rows of an origin in one table from `old` to `wanted`.

        Return the rows that it has then: without refused ones, and with old ones that must stay.
        Unchanged rows keep their objects.
        """
        wanted = self._accepted_rows(number, wanted, owner)
        if number != NOWHERE and self._targets.is_keyed(number):
            wanted = list(self._targets.by_key(number, wanted).values())
        if not old and self._left_out is None:
            self._net.come.setdefault(number, []).extend(wanted)
            return tuple(wanted)
        start, end = _equal_ends(old, wanted)
        before, after = old[start : len(old) - end], wanted[start : len(wanted) - end]
        if not before and not after:
            return old
        known = dict(zip(before, before, strict=True))
        rows, staying = [known.get(row, row) for row in after], list[Row]()
        net = consolidate([*((row, 1) for row in rows), *((row, -1) for row in before)])
        for row, weight in net:
            for _ in range(-weight):
                if not self._goes(number, row, owner):
                    staying.append(row)
            for _ in range(weight):
                error = self._refusal_of(number, row)
                if error is None:
                    self._comes(number, row)
                else:
                    self._add_error(owner, error)
                    rows.remove(row)
        return (*old[:start], *rows, *old[len(old) - end :], *staying)

    def _takes_places(self, number: int, rows: list[Row]) -> bool:
        """Return True if a row has a key that is in use, or two rows have the same key."""
        if number == NOWHERE or not self._targets.is_keyed(number):
            return False
        held, key_of = self._targets.held(number), self._targets.key_of(number)
        if self._left_out is not None:
            rows = [row for row in rows if self._targets.refusal(number, row) is None]
        keys = {key_of(row) for row in rows}
        return len(keys) < len(rows) or any(key in held for key in keys)

    def _come(self, owner: Owner, number: int, rows: list[Row]) -> tuple[Row, ...]:
        """Insert rows of an origin. Return the rows that are not left out."""
        rows = self._accepted_rows(number, rows, owner)
        if self._left_out is None:
            self._net.come.setdefault(number, []).extend(rows)
            return tuple(rows)
        come = []
        for row in rows:
            error = self._refusal_of(number, row)
            if error is None:
                self._comes(number, row)
                come.append(row)
            else:
                self._add_error(owner, error)
        return tuple(come)

    # Rows.

    def _comes(self, number: int, row: Row) -> None:
        self._net.come.setdefault(number, []).append(row)

    def _goes(self, number: int, row: Row, owner: Owner) -> bool:
        """Delete a row of an owner; False if the row must stay, which is noted as an error."""
        error = None if self._left_out is None else self._left_out.stays(number, row)
        if error is None:
            self._net.gone.setdefault(number, []).append(row)
        else:
            self._add_error(owner, self._row_error(number, row, error))
        return error is None

    def _refusal_of(self, number: int, row: Row) -> RowError | None:
        """Return the error of a row that must be left out; None if it is inserted."""
        error = None if self._left_out is None else self._left_out.waits(number, row)
        return None if error is None else self._row_error(number, row, error)

    def _latest(self, number: int, rows: list[Row]) -> dict[Any, tuple[Row, RowError | None]]:
        """Return the last row of each key, with the error if its table refuses it."""
        key_of = self._targets.key_of(number)
        if self._left_out is None:
            return {key_of(row): (row, None) for row in rows}
        found: dict[Any, tuple[Row, RowError | None]] = {}
        for row in rows:
            odd = self._odd(number, row)
            try:
                found[key_of(row)] = (row, odd)
            except Exception as error:
                reraise_asynchronous(error)
                assert odd is not None
                self._settle(("row", number, odd.row), odd)
        return found

    def _accepted_rows(self, number: int, rows: list[Row], owner: Owner | None) -> list[Row]:
        """Return the rows that their table accepts; leave out the others, as errors of `owner`.

        If refused rows must raise (`left_out` is None), only rows without a table raise here.
        """
        if self._left_out is None:
            if number == NOWHERE:
                raise self._targets.refusal(number, rows[0])  # type: ignore[misc]
            return rows
        found = [(row, self._odd(number, row)) for row in rows]
        for _, odd in found:
            if odd is not None:
                self._add_error(owner or ("row", number, odd.row), odd)
        return [row for row, odd in found if odd is None]

    def _odd(self, number: int, row: Row) -> RowError | None:
        """Return the error of a row that no table accepts; None if its table does."""
        error = self._targets.refusal(number, row)
        return None if error is None else self._row_error(number, row, error)

    def _row_error(self, number: int, row: Row, error: Exception) -> RowError:
        """Return the error of a row; a row that cannot be hashed is shown by its `repr`."""
        into = "" if number == NOWHERE else f" into {self._targets.tables[number].name}"
        try:
            hash(row)
            shown = row
        except Exception:
            shown = repr(row)
        return RowError(f"source {self._ledger.name}{into}", shown, _describe_error(error))

    # The ledger.

    def _known_errors(self, owner: Owner) -> tuple[RowError, ...]:
        """Return the rows left out of an owner so far."""
        entry = self._ledger.held(owner) if self._has_errors else None
        return () if entry is None else entry.errors

    def _settle(self, owner: Owner, *errors: RowError | None) -> None:
        """Set the rows left out of an owner, replacing earlier ones."""
        found = tuple(error for error in errors if error is not None)
        if found or self._known_errors(owner):
            self._errors[owner] = found

    def _add_error(self, owner: Owner, error: RowError) -> None:
        """Add an error to those of an owner, which are the known ones at first."""
        known = self._errors[owner] if owner in self._errors else self._known_errors(owner)
        self._errors[owner] = (*known, error)

    def _solves(self, owner: Owner) -> bool:
        """Return True if a deleted row was left out, and remove it from the left-out rows."""
        known = self._errors[owner] if owner in self._errors else self._known_errors(owner)
        if known:
            self._errors[owner] = known[1:]
        return bool(known)

    def _replace(
        self,
        owner: Owner,
        errors: tuple[RowError, ...],
        rows: Mapping[int, tuple[Row, ...]] | None = None,
    ) -> None:
        """Replace the errors and rows of an owner; delete its entry if there are neither."""
        is_kept = bool(errors or rows)
        self._net.solved.extend(self._known_errors(owner))
        self._net.errors.extend(errors)
        self._net.entries[owner] = Entry(owner, None, rows, errors) if is_kept else None


def _equal_ends(old: Sequence[Row], new: Sequence[Row]) -> tuple[int, int]:
    """Return how many rows at the beginning and at the end of two sequences are equal.

    >>> _equal_ends("abcd", "abxxd"), _equal_ends("aa", "aaa"), _equal_ends("ab", "ab")
    ((2, 1), (2, 0), (2, 0))
    """
    start = _count_equal(old, new)
    left = min(len(old), len(new)) - start
    return start, _count_equal(list(islice(reversed(old), left)), list(islice(reversed(new), left)))


def _count_equal(old: Sequence[Row], new: Sequence[Row]) -> int:
    """Return how many rows at the beginning are equal; rows of one object are not compared."""
    same = sum(takewhile(truth, map(is_, old, new)))
    rest = map(eq, islice(old, same, None), islice(new, same, None))
    return same + sum(takewhile(truth, map(truth, rest)))


def _rows_of(parts: Iterable[Entry]) -> Mapping[int, tuple[Row, ...]]:
    """Return all rows of an origin, which usually has one part."""
    found = [part.rows for part in parts if part.rows]
    if len(found) <= 1:
        return found[0] if found else NOTHING
    every = dict.fromkeys(number for rows in found for number in rows)
    return {n: tuple(row for rows in found for row in rows.get(n, ())) for n in every}


def _join_rows(first: Mapping[int, Iterable[Row]], then: Mapping[int, Iterable[Row]]) -> ByTable:
    """Return the rows of both by table, the first ones first."""
    numbers = dict.fromkeys((*first, *then))
    return {number: [*first.get(number, ()), *then.get(number, ())] for number in numbers}


def _count_parts(rows: Mapping[int, Collection[Row]] | None, errors: Collection[RowError]) -> int:
    return sum(map(len, (rows or {}).values())) + len(errors)


def _describe_error(error: Exception) -> Raised:
    return Raised(type(error).__name__, str(error))


# Rows of a batch that are left out so that the rest can be committed, with the reasons.


class LeftOut:
    """Rows not to insert, and rows not to delete, each with one error per occurrence."""

    __slots__ = ("_coming", "_going")

    def __init__(
        self,
        coming: Mapping[tuple[int, Row], list[Exception]] | None = None,
        going: Mapping[tuple[int, Row], list[Exception]] | None = None,
    ) -> None:
        self._coming: dict[tuple[int, Row], list[Exception]] = dict(coming or {})
        self._going: dict[tuple[int, Row], list[Exception]] = dict(going or {})

    def again(self) -> LeftOut:
        """Return a copy, whose errors can be consumed."""
        coming = {row: list(errors) for row, errors in self._coming.items()}
        return LeftOut(coming, {row: list(errors) for row, errors in self._going.items()})

    def note(self, place: tuple[int, Row], error: Exception, *, comes: bool) -> None:
        """Leave one more occurrence of a row out.

        comes: True if it must not be inserted, False if it must not be deleted.
        """
        (self._coming if comes else self._going).setdefault(place, []).append(error)

    def waits(self, number: int, row: Row) -> Exception | None:
        """Return and consume the error of a row that must not be inserted; None if it may be."""
        return _next_error(self._coming, (number, row))

    def stays(self, number: int, row: Row) -> Exception | None:
        """Return and consume the error of a row that must not be deleted; None if it may be."""
        return _next_error(self._going, (number, row))


def _next_error(
    noted: dict[tuple[int, Row], list[Exception]], place: tuple[int, Row]
) -> Exception | None:
    """Remove and return the first error that is noted for a row; None if there is none left."""
    errors = noted.get(place) if noted else None
    return errors.pop(0) if errors else None


# Rows that a Spark stream leaves out, as rows of a table beside its own.


@dataclass(frozen=True, slots=True)
class UnfitRow:
    """A row that a stream leaves out because it does not fit the type of the rows.

    operator: the operator that left it out.
    row: the input, as JSON or as the original line.
    error: the reason.
    key: the key of its row as JSON, empty without a key.

    The removal of a row that was left out deletes one occurrence.
    """

    operator: str
    row: str
    error: Raised
    key: str
