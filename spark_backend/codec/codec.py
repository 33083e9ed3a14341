"""Rows as bytes, by pickle, where that keeps what they are equal to.

A row that is equal to nothing but itself would be another one when it comes back: such rows are
refused, and so are those whose class a worker could not import. What is found out about a type is
found out once.

NaN is one object in all rows (`zset.canonical`), and is again when they come back.

Cost:   pickling, and 0.3 us for a row of plain values.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import sys
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType
from typing import Any
from uuid import UUID

from reactive.api.named_rows import is_row_class
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import DECIMAL_NAN, NAN, Row, canonical, is_nan
from reactive.errors import OffloadError
from spark_backend.codec.buckets import Buckets, values_of

LEAVES = (
    *(int, float, str, bytes, bool, type(None), Decimal, Fraction, UUID),
    *(date, datetime, time, timedelta, timezone, range),
)
UNORDERED = (frozenset, Bag)
NAMED = (type, FunctionType, BuiltinFunctionType)
Parts = Callable[[Any], Iterable[Any]]


class Codec:
    """Rows to bytes, and keys to buckets.

    >>> codec = Codec(stable=True)
    >>> loads(codec.dumps((1, "anna", float("nan")))) == (1, "anna", NAN)
    True
    """

    def __init__(self, *, stable: bool) -> None:
        self.bucket = Buckets(stable=stable)
        self._leaves: set[type] = set(LEAVES)
        self._parts: dict[type, Parts] = {tuple: tuple}
        self._parts |= dict.fromkeys(UNORDERED, tuple)
        self._others: set[type] = set()

    def dumps(self, row: Row) -> bytes:
        """The row as bytes.

        Raises
        ------
        OffloadError: its equality would be lost, or no worker could make it.
        """
        kind = type(row)
        if kind in self._leaves:
            return pickle.dumps(row, 5)
        parts = self._parts.get(kind)
        if (
            parts is not None
            and kind not in UNORDERED
            and self._leaves.issuperset(map(type, parts(row)))
        ):
            return pickle.dumps(row, 5)
        try:
            hidden = self._check(row)
            return _dumps_hidden(row) if hidden else pickle.dumps(row, 5)
        except OffloadError as error:
            raise OffloadError(f"{row!r:.200} cannot be sent to Spark: {error}") from error
        except Exception as error:
            raise OffloadError(
                f"{row!r:.200} cannot be sent to Spark: {error}\n"
                "  classes of rows have to be importable, and their fields plain data"
            ) from error

    def _check(self, value: Any) -> bool:
        """Refuse what would be another value; whether a NaN may be where `canonical` sees none."""
        kind = type(value)
        if kind in self._leaves:
            return False
        if kind is complex:
            if value != value:
                raise OffloadError("a complex NaN is equal to nothing but itself")
            return False
        if isinstance(value, NAMED):
            _check_named(value)
            return False
        if kind not in self._parts and kind not in self._others:
            self._learn(kind, value)
            return self._check(value)
        parts = self._parts.get(kind)
        found = [] if parts is None else [self._check(part) for part in parts(value)]
        return kind in self._others or kind in UNORDERED or any(found)

    def _learn(self, kind: Any, value: Any) -> None:
        if not is_row_class(kind):
            _check_named(kind)
        if issubclass(kind, Enum) and kind.__eq__ is object.__eq__:
            self._leaves.add(kind)
        elif issubclass(kind, tuple) and kind.__eq__ is tuple.__eq__:
            self._parts[kind] = tuple
        elif kind.__eq__ is object.__eq__:
            raise OffloadError(
                f"{value!r:.100} is equal to nothing but itself\n"
                f"  make {kind.__name__} a @dataclass(frozen=True), or give it an __eq__"
            )
        elif hasattr(kind, "__dataclass_fields__"):
            compared = [field.name for field in dataclasses.fields(kind) if field.compare]
            self._parts[kind] = values_of(compared)
        elif kind.__eq__ in {leaf.__eq__ for leaf in LEAVES}:
            self._leaves.add(kind)
        else:
            _check_own_equality(kind, value)
            self._others.add(kind)


def loads(data: bytes) -> Row:
    """The row that some bytes were made of."""
    try:
        return canonical(pickle.loads(data))
    except pickle.UnpicklingError:
        return _Unpickler(io.BytesIO(data)).load()


def main_classes() -> dict[str, Any]:
    """The classes of the script that is run, which no worker could import."""
    main = vars(sys.modules["__main__"])
    return {
        name: value
        for name, value in main.items()
        if isinstance(value, type) and value.__module__ == "__main__"
    }


class _Pickler(pickle.Pickler):
    """Tells every NaN, wherever it is."""

    def persistent_id(self, value: Any) -> str | None:
        if value is NAN or value is DECIMAL_NAN:
            return "decimal nan" if value is DECIMAL_NAN else "nan"
        return "nan" if type(value) is float and value != value else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: str) -> Any:
        return DECIMAL_NAN if name == "decimal nan" else NAN


def _dumps_hidden(row: Row) -> bytes:
    file = io.BytesIO()
    _Pickler(file, 5).dump(row)
    return file.getvalue()


def _check_named(thing: Any) -> None:
    """Refuse a class or function that cannot be found by its name."""
    found: Any = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not thing:
        raise OffloadError(
            f"no worker could import {thing.__qualname__!r}\n"
            "  define it at the top level of a module"
        )


def _check_own_equality(kind: Any, value: Any) -> None:
    """Refuse a type with an equality of its own that does not survive the way."""
    copied = loads(_dumps_hidden(value))
    if not (copied == value and hash(copied) == hash(value)) and not is_nan(value):
        raise OffloadError(
            f"{value!r:.100} comes back as another value\n"
            f"  pickling has to keep what {kind.__name__} is equal to"
        )
