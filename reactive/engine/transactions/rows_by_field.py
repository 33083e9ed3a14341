"""Find the rows that satisfy a condition by an index of the field that it compares with values.

    calls.replace_where(lambda c: c.file == file and c.callee != "main", rows)

    file -> its rows                   of the last commit, kept from the `FIRST`th such call on
    and the open transaction's rows    each candidate is looked up in the table, and tested

The condition is lifted anew at each call, with its captured values. Only its first equations are
used: `==` and `in` with plain values, `or` of these, and more of them after `and`. They cannot
raise for fields of plain values, so that the rows that are not found need no test. Any other
condition, and any field with other values, is tested with every row.

State:  per field the rows by their values, and the deltas of the commits since the last call.
Cost:   a list append per commit; a call O(changes since the last one + rows of the value).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from operator import attrgetter, itemgetter
from types import FunctionType
from typing import Any

from optimizer.callables.opaque import opaque
from optimizer.expr import (
    Attribute,
    Constant,
    Display,
    Expr,
    Item,
    Operation,
    Or,
    Parameter,
    conjuncts,
    disjuncts,
)
from optimizer.lifting.lift import lift
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.storage.plain_rows import plain_fields

Field = str | int
"""The name of a field, or the position of an item."""
Equation = tuple[Field, Sequence[Any]]
"""A field, and the values that it is to have, one of them."""
SAFE = frozenset({int, str, float, bool, type(None), date})
"""Classes whose values can be compared with each other, and have equal hashes if they are equal."""
FIRST = 3
"""The number of the call for a field that makes its index."""
SMALL = 256
"""Number of rows of a table below which every row is tested."""
FEW = 64
"""Number of rows of a value above which the next equation is looked at."""


class RowsByField:
    """The indexes of a table by fields, made and dropped by the conditions that use them."""

    __slots__ = ("_calls", "_deltas", "_waiting", "indexes")

    def __init__(self) -> None:
        self._calls: dict[Field, int] = {}
        """The number of calls by field, until the index is made."""
        self.indexes: dict[Field, _Index | None] = {}
        """The index by field; None if a row has another value than a plain one in it."""
        self._deltas: list[Sequence[Pair]] = []
        """The deltas of commits that the indexes lack."""
        self._waiting = 0

    def note(self, delta: Sequence[Pair], rows: int) -> None:
        """Note the delta of a commit; drop all indexes if there are more changes than rows."""
        if self.indexes:
            self._deltas.append(delta)
            self._waiting += len(delta)
            if self._waiting > max(rows, SMALL):
                self.forget()

    def forget(self) -> None:
        """Drop all indexes."""
        self._calls, self.indexes, self._deltas, self._waiting = {}, {}, [], 0

    def find(
        self,
        equations: Sequence[Equation],
        held: Sequence[Pair] | Any,
        *,
        made_at: int | None = None,
    ) -> list[Row] | None:
        """Return all rows of the last commit that satisfy the equations, and perhaps others.

        Return None if they cannot be found. `held` has all rows, as a store; None if these are not
        the rows of the last commit. The call of number `made_at` for a field makes its index, by
        default the `FIRST`th.
        """
        self._catch_up()
        best: list[Row] | None = None
        for field, values in equations:
            index = self._index(field, held, FIRST if made_at is None else made_at)
            if index is None:
                break  # a later equation is not asked if this one raises
            rows = index.rows_of(values, best)
            best = rows if best is None or len(rows) < len(best) else best
            if len(best) <= FEW:
                break
        return best

    def _index(self, field: Field, held: Any, made_at: int) -> _Index | None:
        """Return the index by a field; None if there is none yet, or cannot be one."""
        if field in self.indexes or held is None:
            return self.indexes.get(field)
        calls = self._calls[field] = self._calls.get(field, 0) + 1
        if calls < made_at:
            return None
        made = _Index(field)
        self.indexes[field] = made if made.change(held.pairs()) else None
        return self.indexes[field]

    def _catch_up(self) -> None:
        """Apply the noted deltas; if that is broken off, the indexes are dropped."""
        deltas, indexes, calls = self._deltas, self.indexes, self._calls
        if not deltas:
            return
        self.forget()
        for delta in deltas:
            for field, index in indexes.items():
                if index is not None and not index.change(delta):
                    indexes[field] = None
        self.indexes, self._calls = indexes, calls


class _Index:
    """The rows of a table by the value of a field.

    Rows are found by identity: equal rows of a table are one object.
    """

    __slots__ = ("_field", "_kinds", "_read", "_rows", "_times")

    def __init__(self, field: Field) -> None:
        self._field = field
        self._read: Any = attrgetter(field) if isinstance(field, str) else itemgetter(field)
        self._kinds: dict[type, bool] = {}
        """Classes of rows, with True if their field is read without running code."""
        self._rows: dict[Any, dict[int, Row]] = {}
        self._times: dict[int, int] = {}
        """The weights of rows other than 1, by `id`."""

    def change(self, delta: Iterable[Pair]) -> bool:
        """Apply a delta; return False if a row has another value than a plain one in the field."""
        read, kinds, rows = self._read, self._kinds, self._rows
        for row, weight in delta:
            if row.__class__ not in kinds:
                kinds[row.__class__] = self._is_plain(row.__class__)
            if not kinds[row.__class__]:
                return False
            try:
                value = read(row)
            except (AttributeError, IndexError):  # a tuple may be too short
                return False
            if value.__class__ not in SAFE:
                return False
            found = rows.get(value)
            if found is None:
                found = rows[value] = {}
            number = id(row)
            times = self._times.pop(number, 1 if number in found else 0) + weight
            if times == 1:
                found[number] = row
            elif times:
                found[number], self._times[number] = row, times
            elif found.pop(number, None) is not None and not found:
                del rows[value]
        return True

    def _is_plain(self, kind: type) -> bool:
        if kind is tuple:
            return isinstance(self._field, int)
        names = plain_fields(kind)
        if names is None:
            return False
        if isinstance(self._field, int):
            return issubclass(kind, tuple) and self._field < len(names)
        return self._field in names

    def rows_of(self, values: Sequence[Any], best: list[Row] | None) -> list[Row]:
        """Return the rows with one of the values; `best` if that has fewer."""
        some = [self._rows[value] for value in dict.fromkeys(values) if value in self._rows]
        if best is not None and sum(map(len, some)) >= len(best):
            return best
        return [row for found in some for row in found.values()]


def equations_of(predicate: Any) -> list[Equation]:
    """Return the first equations of a predicate, all of which its rows satisfy.

    >>> file = "b.py"
    >>> equations_of(lambda c: c.file in ("a.py", file) and c[1] == 2 and len(c) > 2)
    [('file', ('a.py', 'b.py')), (1, (2,))]
    """
    if not isinstance(predicate, FunctionType):
        return []
    try:
        body = lift(opaque(predicate, 1, "replace_where")).body
    except Exception as error:  # calling it says what is wrong
        reraise_asynchronous(error)
        return []
    return list(_leading_equations(body))


def _leading_equations(body: Expr) -> Iterator[Equation]:
    for part in conjuncts(body):
        found = _equation(part)
        if found is None:
            return
        yield found


def _equation(test: Expr) -> Equation | None:
    """Return the field that a test compares with plain values; None if it does anything else."""
    match test:
        case Operation("==", (one, Constant(value))):
            return _of_values(one, (value,))
        case Operation("==", (Constant(value), other)):
            return _of_values(other, (value,))
        case Operation("in", (one, Constant(values))):
            is_known = type(values) in (tuple, list, set, frozenset)
            return _of_values(one, tuple(values)) if is_known else None
        case Operation("in", (one, Display(_, items))):
            if not all(isinstance(item, Constant) for item in items):
                return None
            return _of_values(one, tuple(getattr(item, "value", None) for item in items))
        case Operation("not", (Operation("!=", pair),)):
            return _equation(Operation("==", pair))
        case Or():
            some = [_equation(each) for each in disjuncts(test)]
            if None in some or len({each[0] for each in some if each}) != 1:
                return None
            field = next(each[0] for each in some if each)
            return field, tuple(value for each in some if each for value in each[1])
    return None


def _of_values(read: Expr, values: tuple[Any, ...]) -> Equation | None:
    """Return the equation of a field and plain values; None for other values, or no field."""
    if not SAFE.issuperset(map(type, values)):
        return None
    match read:
        case Attribute(Parameter(0), name):
            return name, values
        case Item(Parameter(0), Constant(place)) if type(place) is int and place >= 0:
            return place, values
    return None
