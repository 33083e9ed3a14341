"""Values of fields, converted from JSON or from text according to annotations.

    float           7, "7.5"                    date      "2026-11-26"
    int | None      7, null; "7", ""            Decimal   "12.10", 12
    tuple[int, ...] [1, 2]; "[1, 2]"            Color     "red", by values, or else by names
    timedelta       "P1DT2H", "2:00:00", 7200   bytes     base64; of a cell, its UTF-8

Values without an annotation stay unchanged. Other classes are called with the value.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

from optimizer.kinds.kind import (
    NONE,
    Anything,
    Choice,
    Either,
    Instance,
    Items,
    Kind,
    Members,
    Places,
    Scalar,
    Struct,
    Table,
    kind_of,
    name_of,
)
from optimizer.kinds.texts import json_of, member_of, reader_of
from reactive.engine.collections.frozen_object import FrozenObject

Made = Callable[[Any], Any]
"""Convert a value to that of a row; raise an exception if it does not fit."""
Records: TypeAlias = Callable[[Any], Made]
WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
"""The texts that mean true or false."""
_HASHABLE: dict[type, type] = {list: tuple, set: frozenset, deque: tuple}
"""The hashable classes that replace collections without a hash."""


class UnfitFieldValue(ValueError):
    """A value does not fit the declared type of its field."""

    def __init__(self, value: Any, wanted: Any) -> None:
        super().__init__(f"{value!r:.80} is no {name_of(kind_of(wanted))}")


def unconverted_classes(kind: Kind) -> frozenset[type]:
    """Return the classes of values that need no conversion."""
    if isinstance(kind, Either):
        return frozenset[type]().union(*map(unconverted_classes, kind.kinds))
    return frozenset({kind.python}) if isinstance(kind, Scalar) else frozenset()


def from_json(of: Any, record: Records, *, by_name: bool = False) -> Made:
    """Return a function that converts JSON or Arrow values to an annotation.

    Parameters
    ----------
    record: kind of a record -> function that makes such records.
    by_name: True for values from Arrow: enumerations by name, tuples as structs by position.

    >>> from_json(tuple[float, ...], type)([1, 2.5])
    (1.0, 2.5)
    """
    kind = kind_of(of)

    def inner(each: Kind) -> Made:
        return from_json(each, record, by_name=by_name)

    match kind:
        case Anything():
            return _freeze_undeclared
        case Either(kinds):
            return _first_success([inner(each) for each in kinds], kind, unconverted_classes(kind))
        case Choice(values):
            return _choice_of(values, kind)
        case Members(python):
            return _member_reader(python, by_name=by_name)
        case Struct():
            return record(kind)
        case Places(items):
            return _tuple_of([inner(each) for each in items], kind, is_struct=by_name)
        case Items(python, item):
            return _collection_of(_HASHABLE.get(python, python), inner(item), kind)
        case Table(_, key, value):
            return _mapping_of(inner(key), inner(value), kind)
        case Scalar(python):
            return _scalar(python)
        case Instance(python):
            return _constructor_of(python)


def from_text(of: Any, record: Records) -> Made:
    """Return a function that converts text, such as the cells of CSV, to an annotation.

    >>> from_text(int | None, type)("7"), from_text(int | None, type)("")
    (7, None)
    """
    kind = kind_of(of)
    match kind:
        case Anything():
            return str
        case Either(kinds):
            some = [each for each in kinds if each != NONE]
            made = [from_text(each, record) for each in some]
            one = made[0] if len(made) == 1 else _first_success(made, kind, frozenset())
            return _or_none(one) if len(some) < len(kinds) else one
        case Choice(values):
            return _one_of_texts(values, kind)
        case Members(python):
            return _member_of_text(python)
        case Struct() | Places() | Items() | Table():
            of_json = from_json(kind, record)
            return lambda text: of_json(json.loads(text))
        case Scalar(python) if python in _OF_CELLS:
            return _OF_CELLS[python]
        case Scalar(python):
            return _scalar(python)
        case Instance(python):
            return _constructor_of(python)


def _scalar(python: type) -> Made:
    """Return the maker of values of a class, which refuses values that do not fit exactly."""
    if python is float:
        return _as_float
    if python is Decimal:
        return _as_decimal
    if reader_of(python) is not None:
        return _from_text_reader(python)
    return _exact_class(python)


def _exact_class(kind: type) -> Made:
    """Return the maker that accepts only values of exactly this class."""

    def make_value(value: Any) -> Any:
        if type(value) is not kind:
            raise UnfitFieldValue(value, kind)
        return value

    return make_value


def _as_float(value: Any) -> float:
    """Return a float, also of an integer. Raises `UnfitFieldValue` for anything else."""
    if type(value) not in (float, int):
        raise UnfitFieldValue(value, float)
    return float(value)


def _as_decimal(value: Any) -> Decimal:
    """Return a number or its text as a `Decimal`. Raises `UnfitFieldValue` for anything else."""
    if type(value) not in (Decimal, int, float, str):
        raise UnfitFieldValue(value, Decimal)
    try:
        return value if type(value) is Decimal else Decimal(str(value))
    except ArithmeticError:
        raise UnfitFieldValue(value, Decimal) from None


def _from_text_reader(kind: Any) -> Made:
    """Return the maker of values that are written as text; it also accepts converted values."""
    read: Any = reader_of(kind)

    def make_value(value: Any) -> Any:
        if type(value) is kind:
            return value
        try:
            if kind is UUID and type(value) is bytes:
                return UUID(bytes=value)
            if type(value) is not str and kind is not timedelta:
                raise UnfitFieldValue(value, kind)
            return read(value)
        except (ValueError, TypeError, OverflowError):
            raise UnfitFieldValue(value, kind) from None

    return make_value


def _constructor_of(kind: Any) -> Made:
    """Return the maker that calls a class; it accepts instances as they are."""

    def make_value(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return kind(value)
        except Exception as error:
            raise UnfitFieldValue(value, kind) from error

    return make_value


def _member_reader(kind: type[Enum], *, by_name: bool) -> Made:
    """Return the maker of an enumeration's members, from values or names; it accepts members."""

    def make_value(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return member_of(kind, value, by_name=by_name)
        except ValueError as error:
            raise UnfitFieldValue(value, kind) from error

    return make_value


def _word(text: str) -> bool:
    """Return the truth value that a text such as `yes` names.

    Raises `UnfitFieldValue` for others.
    """
    found = WORDS.get(text.strip().lower())
    if found is None:
        raise UnfitFieldValue(text, bool)
    return found


def _or_none(made: Made) -> Made:
    return lambda text: None if text == "" else made(text)


def _first_success(makers: list[Made], annotation: Any, as_it_is: frozenset[type]) -> Made:
    """Return a function that tries converters in turn."""

    def make_value(value: Any) -> Any:
        if type(value) in as_it_is:
            return value
        for maker in makers:
            try:
                return maker(value)
            except (ValueError, TypeError):
                pass
        raise UnfitFieldValue(value, annotation)

    return make_value


def _choice_of(values: tuple[Any, ...], kind: Kind) -> Made:
    """Return the maker that accepts only some values, or their form in JSON, of the same class."""

    def make_value(value: Any) -> Any:
        for known in values:
            for written in (known, json_of(known)):
                if written == value and type(written) is type(value):
                    return known
        raise UnfitFieldValue(value, kind)

    return make_value


def _one_of_texts(values: tuple[Any, ...], kind: Kind) -> Made:
    """Return the maker that accepts only the texts of some values; that of None is empty."""
    known = {"" if value is None else str(json_of(value)): value for value in values}

    def make_value(text: str) -> Any:
        if text not in known:
            raise UnfitFieldValue(text, kind)
        return known[text]

    return make_value


def _member_of_text(kind: type[Enum]) -> Made:
    """Return the maker of an enumeration's members, from the text of a value, or else a name."""
    values = {str(member.value): member for member in kind}
    known: dict[str, Any] = {**kind.__members__, **values}

    def make_value(text: str) -> Any:
        if text not in known:
            raise UnfitFieldValue(text, kind)
        return known[text]

    return make_value


def _collection_of(python: Any, item: Made, kind: Kind) -> Made:
    """Return the maker of a collection from a list or tuple, item by item."""

    def make_value(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            raise UnfitFieldValue(values, kind)
        return python([item(value) for value in values])

    return make_value


def _tuple_of(makers: list[Made], kind: Kind, *, is_struct: bool) -> Made:
    """Return the maker of a tuple from a list of its length, or from a struct of its places."""
    names = [str(place) for place in range(len(makers))] if is_struct else None

    def make_value(values: Any) -> Any:
        if isinstance(values, dict) and [*values] == names:
            values = [*values.values()]
        if not isinstance(values, list | tuple) or len(values) != len(makers):
            raise UnfitFieldValue(values, kind)
        return tuple([make(value) for make, value in zip(makers, values, strict=True)])

    return make_value


def _mapping_of(key: Made, value: Made, kind: Kind) -> Made:
    """Convert objects to hashable mappings; also lists of pairs, as Arrow gives for maps."""

    def make_value(values: Any) -> Any:
        if not isinstance(values, Mapping | list):
            raise UnfitFieldValue(values, kind)
        pairs = values.items() if isinstance(values, Mapping) else values
        return FrozenObject({key(name): value(each) for name, each in pairs})

    return make_value


def _freeze_undeclared(value: Any) -> Any:
    """Make a value without a declared type hashable."""
    if isinstance(value, list):
        return tuple(map(_freeze_undeclared, value))
    if isinstance(value, dict):
        return tuple((name, _freeze_undeclared(each)) for name, each in value.items())
    return value


_OF_CELLS: dict[type, Made] = {int: int, float: float, str: str, bool: _word, bytes: str.encode}
"""The conversions of cells that differ from conversions of JSON texts."""
