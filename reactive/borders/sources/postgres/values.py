"""Texts of Postgres as values of Python.

    integer float numeric boolean text    int float Decimal bool str
    date time timestamp interval          date time datetime timedelta
    bytea uuid json array                 bytes UUID frozen tuple
    enum, domain                          its text; as its base type
    all others                            text

Values that Python's class cannot hold are refused: infinite dates, years after 9999, intervals with
months. A field that is declared as `str` takes the text unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from optimizer.kinds.kind import (
    ANYTHING,
    Anything,
    Choice,
    Either,
    Kind,
    Members,
    Places,
    Scalar,
    Table,
    class_of,
    inside_of,
    kind_of,
    without_none,
)
from reactive.borders.sources.files.row_maker import record_maker
from reactive.borders.sources.files.values import from_json
from reactive.engine.collections.frozen_object import FrozenObject

# JSON as immutable values: objects as `FrozenObject`, arrays as tuples.


def frozen_json(text: str) -> Any:
    """Return the value of a JSON text, with frozen collections.

    >>> frozen_json('{"tags": ["a", "b"]}')["tags"]
    ('a', 'b')
    """
    return _freeze_lists(json.loads(text, object_hook=_freeze_object))


def _freeze_object(items: dict[str, Any]) -> FrozenObject:
    """Return a parsed object, whose inner objects are frozen already, without lists."""
    return FrozenObject({name: _freeze_lists(each) for name, each in items.items()})


def _freeze_lists(value: Any) -> Any:
    """Replace the lists in a parsed value by tuples, except in its objects, which have none."""
    return tuple(map(_freeze_lists, value)) if isinstance(value, list) else value


SETTINGS = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC "
    "-c extra_float_digits=1 -c bytea_output=hex"
)
"""The settings for the format of values."""

TRUE = "t".__eq__


class Conversion(NamedTuple):
    """The class of a type's values, and the function from text; None if the value is the text."""

    python: Any
    call: Callable[[str], Any] | None


def _parse_hex(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _parse_date(text: str) -> date:
    return date.fromisoformat(text)


def _datetime(text: str) -> datetime:
    return datetime.fromisoformat(text)


INTERVAL = re.compile(
    r"(?:(?P<years>[-+]?\d+) years? ?)?(?:(?P<months>[-+]?\d+) mons? ?)?"
    r"(?:(?P<days>[-+]?\d+) days? ?)?"
    r"(?:(?P<sign>[-+])?(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)(?:\.(?P<f>\d+))?)?"
)


def parse_interval(text: str) -> timedelta:
    """Return the length of an interval; raise for one with months.

    >>> parse_interval("-1 days +02:03:04.5")
    datetime.timedelta(days=-1, seconds=7384, microseconds=500000)
    """
    found = INTERVAL.fullmatch(text)
    if found is None or found["years"] or found["months"]:
        raise ValueError(f"{text!r} has no fixed length")
    hours, minutes, seconds = (int(found[name] or 0) for name in "hms")
    micro = int((found["f"] or "0").ljust(6, "0"))
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micro)
    days = timedelta(days=int(found["days"] or 0))
    return days - length if found["sign"] == "-" else days + length


def parse_array(text: str, call: Callable[[str], Any] | None) -> tuple[Any, ...]:
    """Return the items of an array, each by `call`, as texts if None; nested arrays are tuples.

    >>> parse_array('{{1,NULL},{"3",4}}', int), parse_array('[0:1]={"a,b","NULL"}', None)
    (((1, None), (3, 4)), ('a,b', 'NULL'))
    """
    parts = ITEM.finditer(text, text.index("{") + 1)
    return _array_items(parts, call)


ITEM = re.compile(r'[{}]|"((?:[^"\\]|\\.)*)"|([^{},"]+)')
ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def _array_items(
    parts: Iterator[re.Match[str]], call: Callable[[str], Any] | None
) -> tuple[Any, ...]:
    """Return the items of an array; see `parse_array`. `parts` are consumed up to its end."""
    found: list[Any] = []
    for part in parts:
        quoted, plain = part[1], part[2]
        if quoted is not None:
            item = ESCAPED.sub(r"\1", quoted)
        elif plain is None:
            if part[0] == "}":
                break
            found.append(_array_items(parts, call))
            continue
        elif plain == "NULL":
            found.append(None)
            continue
        else:
            item = ESCAPED.sub(r"\1", plain)
        found.append(item if call is None else call(item))
    return tuple(found)


TEXT = Conversion(str, None)
INT, FLOAT = Conversion(int, int), Conversion(float, float)
TIMESTAMPTZ = 1184
BUILT_IN: dict[int, Conversion] = {
    16: Conversion(bool, TRUE),
    17: Conversion(bytes, _parse_hex),
    20: INT,
    21: INT,
    23: INT,
    26: INT,
    114: Conversion(Any, frozen_json),
    3802: Conversion(Any, frozen_json),
    700: FLOAT,
    701: FLOAT,
    1700: Conversion(Decimal, Decimal),
    1082: Conversion(date, _parse_date),
    1083: Conversion(time, time.fromisoformat),
    1266: Conversion(time, time.fromisoformat),
    1114: Conversion(datetime, _datetime),
    TIMESTAMPTZ: Conversion(datetime, _datetime),
    1186: Conversion(timedelta, parse_interval),
    2950: Conversion(UUID, UUID),
    **dict.fromkeys((18, 19, 25, 1042, 1043), TEXT),
}
"""The conversions by type number, which is the same in every server."""
NATIVE = frozenset({16, 20, 21, 23, 26, 700, 701, 1700, 18, 19, 25, 1042, 1043})
"""The types that the driver converts to the same values, in a fraction of the time."""


def array_conversion(item: Conversion) -> Conversion:
    """Return the conversion of arrays of the given items."""
    python: Any = tuple.__class_getitem__((item.python, ...))
    return Conversion(python, lambda text: parse_array(text, item.call))


def fit_conversion(kind: Conversion, hint: Any) -> Conversion | None:
    """Return the conversion to the declared type of a field; None if there is none.

    >>> fit_conversion(INT, float).call("7"), fit_conversion(INT, int | None) is INT
    (7.0, True)
    >>> fit_conversion(INT, bytes)
    """
    wanted = without_none(kind_of(hint))
    if isinstance(wanted, Anything | Either):
        return kind
    if wanted == Scalar(str):
        return TEXT
    if isinstance(wanted, Scalar) and wanted.python is float and kind.python in (int, Decimal):
        return FLOAT
    if wanted == Scalar(Decimal) and kind.python is int:
        return Conversion(Decimal, Decimal)
    if isinstance(wanted, Members):
        return Conversion(wanted.python, _enum_reader(wanted.python, kind.call))
    if kind.python is Any or isinstance(wanted, Choice | Places) or inside_of(wanted) != ():
        is_open = isinstance(wanted, Table) and wanted.value == ANYTHING  # any document
        is_same = kind_of(kind.python) == wanted
        return kind if is_open or is_same else _read_declared(kind, kind_of(hint))
    made = class_of(kind_of(kind.python)) or object
    return kind if issubclass(made, wanted.python) else None


def _read_declared(kind: Conversion, wanted: Kind) -> Conversion:
    """Return the conversion of JSON and arrays to a declared type with inner types."""
    made, call = from_json(wanted, record_maker(False)), kind.call
    return Conversion(kind.python, lambda text: made(text if call is None else call(text)))


def _enum_reader(kind: type[Enum], call: Callable[[str], Any] | None) -> Callable[[str], Enum]:
    return kind if call is None else lambda text: kind(call(text))
