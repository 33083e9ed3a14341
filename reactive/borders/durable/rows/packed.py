"""Columns of values as bytes, and back, for states of operators: large, and read as a whole.

    [(1, "a"), (2, "b")]        tuples of two: [1, 2] and ["a", "b"]
    [Arc(1, 2), Arc(1, 3)]      records of Arc: [1, 1] and [2, 3]
    [1, 2, 3], [0.5, 2.5]       arrays of 16, 32 or 64-bit numbers
    [1, 2.5, None]              unchanged

Values of one class are split into columns, down to arrays of numbers and lists of other plain
values, which `pickle` reads fastest. Stored bytes can name only the classes in `VALUES`, and
records and enumerations that the process has loaded and whose construction runs no code of their
own. So reading never runs stored code.

A pickle has at most `SLICE` values, so that other threads can run between two.

State:  equal strings are one object, in the bytes and after reading.
Cost:   some 30 ns per value or tuple, half a microsecond per dataclass.
"""

from __future__ import annotations

import io
import pickle
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from datetime import time as time_of_day
from decimal import Decimal
from enum import Enum, EnumMeta
from fractions import Fraction
from functools import partial
from itertools import islice, repeat
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Any
from uuid import UUID

from optimizer.kinds.fields import TRACKED, is_record, members
from reactive.borders.durable.rows.row_codec import changes_fields, record_constructor
from reactive.borders.durable.rows.values import Unstorable

PLAIN = frozenset({int, float, str, bytes, bool, NoneType})
VALUES = frozenset({date, datetime, time_of_day, timedelta, timezone, Decimal, Fraction, UUID})
_NAMED = {(kind.__module__, kind.__qualname__): kind for kind in VALUES} | {
    ("datetime", kind.__qualname__): kind for kind in (date, datetime, time_of_day, timedelta)
}
ARRAYS = {"h": 15, "i": 31, "q": 63}
"""The type codes of arrays of integers, with the bits of their values."""
GENERATED = "reactive.api.extended"
"""The module that makes row classes from column names."""
SLICE = 10_000
"""The most values in a pickle."""
REST = 0.0001
"""The seconds between two pickles, for other threads."""


class Unreadable(Exception):
    """The bytes were not written by `Packer`, or not for the current classes."""


class Packer:
    """Write columns and plain values, one after the other.

    >>> packer = Packer()
    >>> packer.column([(1, "a"), (2, "b"), None])
    >>> packer.plain({"rounds": 3})
    >>> unpacker = Unpacker(packer.bytes())
    >>> unpacker.column(), unpacker.plain()
    ([(1, 'a'), (2, 'b'), None], {'rounds': 3})
    """

    def __init__(self, *, rests: bool = False) -> None:
        self._buffer = io.BytesIO()
        self._pickler = pickle.Pickler(self._buffer, 5)
        self._strings: dict[str, str] = {}
        self._rests = rests
        """True to let other threads run between two pickles."""
        self.seconds = 0.0
        """The seconds that pickling took."""

    def bytes(self) -> bytes:
        """Return the bytes written so far."""
        return self._buffer.getvalue()

    def plain(self, value: Any) -> None:
        """Write a number, a string, or a list or dictionary of them."""
        start = time.perf_counter()
        self._pickler.dump(value)
        self.seconds += time.perf_counter() - start
        if self._rests:
            time.sleep(REST)

    def column(self, values: Sequence[Any]) -> None:
        """Write a list of values.

        Raises
        ------
        Unstorable: a value has a class that could not be read back.
        """
        kinds = dict.fromkeys(map(type, values))
        if kinds.keys() <= PLAIN or (len(kinds) == 1 and kinds.keys() <= VALUES):
            self._leaf(values, kinds)
        elif len(kinds) > 1:
            self._write_mixed(values, list(kinds))
        else:
            (kind,) = kinds
            self._alike(values, kind)

    def _leaf(self, values: Sequence[Any], kinds: dict[Any, None]) -> None:
        """Write plain values: as an array if all are floats or fitting ints, else as they are.

        Raises `Unstorable` for a NaN, or a value that would not be equal after reading.
        """
        if float in kinds and any(value != value for value in values):
            raise Unstorable("a NaN, which equals no other")
        if kinds.keys() & VALUES:
            _check_values(values)
        if [*kinds] == [str]:
            intern = self._strings.setdefault
            values = [intern(value, value) for value in values]
        code = _array_code(values, kinds)
        if code is not None:
            self.plain(("array", code, sys.byteorder, len(values)))
            for start in range(0, len(values), SLICE):
                self.plain(array(code, values[start : start + SLICE]).tobytes())
            return
        self.plain(("values", len(values)))
        for start in range(0, len(values), SLICE):
            self.plain(list(values[start : start + SLICE]))

    def _write_mixed(self, values: Sequence[Any], kinds: list[type]) -> None:
        """Write values of several classes: the class of each, then a column per class."""
        places = {kind: place for place, kind in enumerate(kinds)}
        self.plain(("mixed", len(kinds)))
        self.column([places[type(value)] for value in values])
        for kind in kinds:
            self.column([value for value in values if type(value) is kind])

    def _alike(self, values: Sequence[Any], kind: type) -> None:
        """Write values of one class as columns of their parts."""
        if kind is tuple:
            self._tuples(values)
        elif issubclass(kind, Enum):
            _enumeration(*_stored_name(kind))
            self.plain(("enum", *_stored_name(kind)))
            self.column([value.name for value in values])
        else:
            name = _stored_name(kind)
            fields, _ = _record_access(*name)
            self.plain(("record", *name))
            parts = range(len(fields)) if isinstance(values[0], tuple) else fields
            for part in parts:
                read: Any = attrgetter(part) if isinstance(part, str) else itemgetter(part)
                self.column([*map(read, values)])

    def _tuples(self, values: Sequence[Any]) -> None:
        """Write tuples by position; if their lengths differ, as the lengths and all items."""
        widths = set(map(len, values))
        if len(widths) > 1:
            self.plain(("tuples", len(values)))
            self.column([*map(len, values)])
            self.column([part for value in values for part in value])
            return
        self.plain(("tuple", len(values), *widths))
        for part in range(*widths):
            self.column([*map(itemgetter(part), values)])


class Unpacker:
    """Read the output of a `Packer`, in the same order.

    Raises `Unreadable` for any other bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._unpickler = _Values(io.BytesIO(data))

    def plain(self) -> Any:
        """Read a value that `Packer.plain` wrote. Raises `Unreadable` for any other bytes."""
        try:
            return self._unpickler.load()
        except Exception as error:  # damaged bytes can raise any exception
            raise Unreadable(f"{type(error).__name__}: {error}") from error

    def column(self) -> list[Any]:
        """Read a list that `Packer.column` wrote. Raises `Unreadable` for any other bytes."""
        try:
            return self._column()
        except (
            TypeError,
            ValueError,
            IndexError,
            KeyError,
            AttributeError,
            StopIteration,
        ) as error:
            raise Unreadable(f"{type(error).__name__}: {error}") from error

    def _column(self) -> list[Any]:
        """Read a list that `Packer.column` wrote.

        Damaged data may raise any exception that `column` catches.
        """
        match self.plain():
            case ("values", int() as length):
                return self._leaf(length)
            case ("array", str() as code, str() as byteorder, int() as length):
                return self._numbers(code, byteorder, length)
            case ("mixed", int() as kinds):
                order = self._column()
                parts = [iter(self._column()) for _ in range(kinds)]
                return [next(parts[place]) for place in order]
            case ("tuple", int() as length, int() as width):
                columns = [self._column() for _ in range(width)]
                return list(zip(*columns, strict=True)) if width else [()] * length
            case ("tuples", int()):
                widths, values = self._column(), iter(self._column())
                return [tuple(islice(values, width)) for width in widths]
            case ("enum", str() as module, str() as name):
                return [*map(_enumeration(module, name).__getitem__, self._column())]
            case ("record", str() as module, name):
                fields, make = _record_access(module, name)
                columns = [self._column() for _ in fields]
                return make(columns)
            case other:
                raise Unreadable(f"{other!r:.60} is no column")

    def _leaf(self, length: int) -> list[Any]:
        """Read `length` plain values from consecutive lists.

        Raises `Unreadable` if some are missing.
        """
        values: list[Any] = []
        while len(values) < length:
            more = self.plain()
            if type(more) is not list or not more:
                raise Unreadable("a column is too short")
            values += more
        return values

    def _numbers(self, code: str, byteorder: str, length: int) -> list[Any]:
        """Read `length` numbers from consecutive arrays.

        Raises `Unreadable` if some are missing.
        """
        numbers: array[Any] = array(code)
        while len(numbers) < length:
            more = self.plain()
            if type(more) is not bytes or not more:
                raise Unreadable("a column is too short")
            numbers.frombytes(more)
        if byteorder != sys.byteorder:
            numbers.byteswap()
        return numbers.tolist()


class _Values(pickle.Unpickler):
    """An unpickler of plain values, and of data classes of the standard library."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the classes that pickles may name. Raises `Unreadable` for others."""
        found = _NAMED.get((module, name))
        if found is None:
            raise Unreadable(f"{module}.{name} is no class of values")
        return found


def _array_code(values: Sequence[Any], kinds: dict[Any, None]) -> str | None:
    """Return the code of the smallest array that holds the values; None if there is none."""
    if [*kinds] == [float]:
        return "d"
    if [*kinds] != [int]:
        return None
    bits = max(max(values).bit_length(), min(values).bit_length())
    return next((code for code, most in ARRAYS.items() if bits <= most), None)


def _stored_name(kind: type) -> tuple[str, Any]:
    """Return the module and name of a class; for a generated row class, its columns."""
    if kind.__module__ == GENERATED:
        return GENERATED, getattr(kind, "_fields", ())
    return kind.__module__, kind.__qualname__


def _loaded_class(module: str, name: str) -> Any:
    """Return a class that the process has loaded.

    Raises
    ------
    Unstorable: there is no class of this name.
    """
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        raise Unstorable(f"a {name}, which is not found by its name in module {module}")
    return found


def _enumeration(module: str, name: str) -> Any:
    """Return a loaded enumeration.

    Raises `Unstorable` if there is none, or it has its own metaclass.
    """
    found = _loaded_class(module, name)
    if type(found) is not EnumMeta:
        raise Unstorable(f"a {name}, which is no plain enumeration")
    return found


def _record_access(module: str, name: Any) -> tuple[Sequence[str], Callable[[Any], list[Any]]]:
    """Return the fields of a record, and the function that makes records from columns.

    Raises
    ------
    Unstorable: the class is not found, is no record, or runs code of its own.
    """
    if module == GENERATED:
        make: Any = getattr(sys.modules.get(module), "row_class", None)
        if make is None or not name or not all(isinstance(field, str) for field in name):
            raise Unreadable(f"{name!r:.60} are no columns")
        return name, partial(_tuples_of, make(tuple(name)))
    kind = _loaded_class(module, name)
    fields = members(kind) if is_record(kind) and not hasattr(kind, TRACKED) else []
    if not fields:
        raise Unstorable(f"a {kind.__qualname__}, which is no record with fields")
    if issubclass(kind, tuple):
        return fields, partial(_tuples_of, kind)
    if changes_fields(kind):
        raise Unstorable(f"a {kind.__qualname__}, which runs code of its own when it is made")
    construct, places = record_constructor(kind, fields)
    return fields, partial(_records_of, construct, [places[field] for field in fields])


def _check_values(values: Sequence[Any]) -> None:
    """Refuse values that would not be equal after reading."""
    for value in values:
        if isinstance(value, Decimal) and value.is_nan():
            raise Unstorable("a NaN, which equals no other")
        if type(getattr(value, "tzinfo", None)) not in (NoneType, timezone):
            raise Unstorable("a time of a named zone")


def _records_of(make: Any, keywords: Sequence[Any], columns: Sequence[list[Any]]) -> Any:
    """Return the records that `make` makes of columns; a keyword of None is a position."""
    if not any(keywords):
        return [*map(make, *columns)]
    rows = zip(*columns, strict=True)
    return [make(**dict(zip(keywords, values, strict=True))) for values in rows]


def _tuples_of(kind: Any, columns: Sequence[list[Any]]) -> Any:
    return [*map(tuple.__new__, repeat(kind), zip(*columns, strict=True))]
