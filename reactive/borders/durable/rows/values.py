"""Values of rows as plain values of a store, and back; nothing that is stored is ever run.

    7, 1.5, "tea", b"..", None      as they are
    anything else                   MARK, and JSON: {"Decimal": "1.50"}, {"tuple": [1, 2]}

What has no JSON by itself has a word before it. Records and enumerations are found by the names of
classes that the row's class mentions in its annotations: no other class comes of what is stored.

Cost: of a value that is plain, that of a look at its class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

from optimizer.kinds.fields import is_record, members
from reactive.borders.durable.store import Plain
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.collections.frozen_list import FrozenList
from reactive.engine.collections.frozen_object import FrozenObject
from reactive.engine.collections.frozen_set import FrozenSet
from reactive.engine.collections.zset import canonical

HELD: dict[Any, type] = {FrozenList: list, FrozenDict: dict, FrozenSet: set}
"""What rows hold of containers in objects that change, and what these are."""
MARK = b"\xff"
"""What the bytes of a value that is not plain begin with."""
LEAST, MOST = -(2**63), 2**63 - 1
"""The integers that a store has."""


class Unstorable(Exception):
    """A value that is neither plain nor made of what is; its text says which one."""


class Damaged(Unstorable):
    """A stored value that this library has not written."""


def pack(value: Any, names: Mapping[type, str]) -> Plain:
    """A value as a store has it.

    Parameters
    ----------
    names: the classes of records and enumerations that are known, with what they are called.

    >>> pack(7, {}), pack(True, {}), pack((1, Decimal("1.50")), {})
    (7, b'\\xfftrue', b'\\xff{"tuple": [1, {"Decimal": "1.50"}]}')
    """
    return value if is_plain(value) else marked(value, names)


def marked(value: Any, names: Mapping[type, str]) -> bytes:
    """The same, as bytes also if it is plain."""
    return MARK + json.dumps(tree(value, names)).encode()


def unpack(stored: Any, classes: Mapping[str, type]) -> Any:
    """A value that was packed.

    >>> unpack(b'\\xff{"tuple": [1, {"Decimal": "1.50"}]}', {})
    (1, Decimal('1.50'))
    """
    if stored.__class__ is bytes and stored[:1] == MARK:
        try:
            return untree(json.loads(stored[1:]), classes)
        except _NOT_WRITTEN as error:
            raise Damaged(f"{stored!r:.100}, which this library has not written") from error
    return stored


def is_plain(value: Any) -> bool:
    """Whether a store has it as it is."""
    kind = value.__class__
    if kind is int:
        return bool(LEAST <= value <= MOST)
    if kind is str:
        return is_text(value)
    if kind is float:
        return not math.isnan(value)
    return value is None or bool(kind is bytes and value[:1] != MARK)


def is_text(value: str) -> bool:
    """Whether a text is without lone surrogates, which UTF-8 has not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def tree(value: Any, names: Mapping[type, str]) -> Any:
    """A value as JSON has it.

    Raises
    ------
    Unstorable: it, or something inside, is of a class that is not known.
    """
    kind: Any = type(value)
    if kind in AS_THEY_ARE:
        return value
    if kind is int:
        return value if LEAST <= value <= MOST else {"int": hex(value)}
    text = TEXTS.get(kind)
    if text is not None:
        return {kind.__name__: text(value)}
    kind = vars(kind).get("__reactive_twin__", HELD.get(kind, kind))
    if kind is list:
        return [tree(part, names) for part in value]
    if kind is tuple:
        return {"tuple": [tree(part, names) for part in value]}
    if kind is frozenset or kind is set:
        return {kind.__name__: sorted((tree(part, names) for part in value), key=json.dumps)}
    if kind is dict:
        return {"dict": [[tree(key, names), tree(v, names)] for key, v in value.items()]}
    if kind is FrozenObject:
        pairs = [[tree(key, names), tree(v, names)] for key, v in value.items()]
        return {"object": sorted(pairs, key=json.dumps)}
    if kind is Bag:
        pairs = [[tree(part, names), count] for part, count in value.items()]
        return {"Bag": sorted(pairs, key=json.dumps)}
    if kind is datetime or kind is time:
        return {kind.__name__: _of_time(value)}
    if kind in names:
        return _of_known(value, names[kind], names)
    raise Unstorable(f"{value!r:.100} of class {kind.__qualname__}")


def _of_known(value: Any, name: str, names: Mapping[type, str]) -> Any:
    if isinstance(value, Enum):
        if value.name in type(value).__members__:
            return {"enum": [name, value.name]}
        return {"flag": [name, value.value]}
    fields = {field: tree(getattr(value, field), names) for field in members(type(value))}
    return {"record": [name, fields]}


def _of_time(value: Any) -> list[Any]:
    """A time: as text without its zone, the zone, and the fold."""
    zone = value.tzinfo
    if zone is not None and zone.__class__ is not timezone and not getattr(zone, "key", None):
        raise Unstorable(f"{value!r:.100}, whose zone is a {type(zone).__qualname__}")
    plain = value.replace(tzinfo=None).isoformat()
    if zone is None:
        return [plain, None, value.fold]
    if zone.__class__ is not timezone:
        return [plain, zone.key, value.fold]
    offset = zone.utcoffset(None)
    return [plain, [offset.days, offset.seconds, offset.microseconds], value.fold]


def _time_of(kind: Any, parts: list[Any]) -> Any:
    plain, zone, fold = parts
    found: Any = None
    if isinstance(zone, str):
        from zoneinfo import ZoneInfo

        found = ZoneInfo(zone)
    elif zone is not None:
        found = timezone(timedelta(*zone))
    return canonical(kind.fromisoformat(plain).replace(tzinfo=found, fold=fold))


def untree(stored: Any, classes: Mapping[str, type]) -> Any:
    """The value of a tree.

    Raises
    ------
    Unstorable: it is of a class that is not known, or has fields no more that it had.
    """
    if stored.__class__ is list:
        return [untree(part, classes) for part in stored]
    if stored.__class__ is not dict:
        return stored
    ((word, inside),) = stored.items()
    plain = OF_TEXTS.get(word)
    if plain is not None:
        return plain(inside)
    made = MADE.get(word)
    if made is not None:
        return made(untree(part, classes) for part in inside)
    if word == "dict":
        return {untree(key, classes): untree(value, classes) for key, value in inside}
    if word == "object":
        return FrozenObject({untree(key, classes): untree(value, classes) for key, value in inside})
    if word == "Bag":
        return Bag({untree(part, classes): count for part, count in inside})
    return _known_of(word, inside, classes)


def _known_of(word: str, inside: Any, classes: Mapping[str, type]) -> Any:
    name, content = inside
    kind: Any = classes.get(name)
    if word == "record":
        fields = {field: untree(value, classes) for field, value in content.items()}
        return _record_of(kind, name, fields)
    if kind is None:
        raise Unstorable(f"{content!r:.100} of class {name}, which no field is declared to hold")
    try:
        return kind[content] if word == "enum" else kind(content)
    except (KeyError, ValueError):
        raise Unstorable(f"{content!r:.100}, which {name} has no more") from None


def _record_of(kind: Any, name: str, fields: dict[str, Any]) -> Any:
    if kind is AS_MAPPING:
        return fields
    if kind is None:
        raise Unstorable(f"a {name}, which no field is declared to hold")
    gone = fields.keys() - {*members(kind)}
    if gone:
        raise Unstorable(f"a {name} with {', '.join(sorted(gone))}, which {name} has no more")
    try:
        return kind(**fields)
    except TypeError as error:
        raise Unstorable(f"a {name} of {', '.join(fields)}: {error}") from None


_NOT_WRITTEN = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
)


class AS_MAPPING:
    """The class that stands for a record which is to be read as a dictionary of its fields."""


def known_in(names: Mapping[str, type]) -> dict[type, str]:
    """What classes are called."""
    return {kind: name for name, kind in names.items()}


def can_be_known(kind: type) -> bool:
    """Whether values of a class are told by its name and fields, or its name and member."""
    return is_record(kind) or issubclass(kind, Enum)


AS_THEY_ARE = frozenset({str, float, bool, type(None)})
TEXTS: Mapping[type, Callable[[Any], Any]] = {
    bytes: bytes.hex,
    complex: lambda value: [value.real, value.imag],
    date: date.isoformat,
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    Decimal: str,
    Fraction: str,
    UUID: str,
    range: lambda value: [value.start, value.stop, value.step],
}
OF_TEXTS: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
    "date": date.fromisoformat,
    "datetime": lambda parts: _time_of(datetime, parts),
    "time": lambda parts: _time_of(time, parts),
    "timedelta": lambda parts: timedelta(*parts),
    "int": lambda text: int(text, 16),
    "Decimal": Decimal,
    "Fraction": Fraction,
    "UUID": UUID,
    "range": lambda parts: range(*parts),
}
MADE: Mapping[str, Callable[[Any], Any]] = {"tuple": tuple, "frozenset": frozenset, "set": set}
