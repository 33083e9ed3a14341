"""Values of rows as plain values of a store, and back. Reading never runs stored code.

    7, 1.5, "tea", b"..", None      unchanged
    anything else                   MARK, and JSON: {"Decimal": "1.50"}, {"tuple": [1, 2]}

JSON objects tag values that JSON does not have. Records and enumerations are looked up by name
among the classes that the annotations of the row's class mention; stored bytes can name no other
class.

The declared type of a field decides how its values are written:

    int, float, str, bytes      unchanged
    bool                        0, 1
    Decimal, UUID, dates        text
    an enumeration              the name of the member
    anything else               marked JSON

None is stored as None, except in a key. A value that differs from the declared type is marked, so
that each value is read back exactly.

Annotations are stored as text, and compared with the annotations of a later class:

    Optional[int]  ->  "int | None"          tuple["Line", ...]  ->  "tuple[Line, ...]"

A type may become wider: `int` may become `int | None`, or `float`.

Cost: 0.05 us to write a value of its declared type; a check of its class for a plain value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from uuid import UUID

from optimizer.kinds.fields import is_record, members
from reactive.borders.durable.store import Plain
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.frozen_dict import FrozenDict, FrozenSet
from reactive.engine.collections.frozen_object import FrozenObject
from reactive.engine.collections.jsonb import Jsonb
from reactive.engine.collections.long_tuple import FrozenList
from reactive.engine.collections.zset import canonical

HELD: dict[Any, type] = {FrozenList: list, FrozenDict: dict, FrozenSet: set}
"""The classes that rows hold in place of mutable containers, and the containers' classes."""
MARK = b"\xff"
"""The first byte of a value that is not plain."""
LEAST, MOST = -(2**63), 2**63 - 1
"""The range of integers in a store."""


class Unstorable(Exception):
    """A value that cannot be stored; the text names it."""


class DamagedValue(Unstorable):
    """A stored value that this library has not written."""


def pack_value(value: Any, names: Mapping[type, str]) -> Plain:
    """Encode a value for a store.

    Parameters
    ----------
    names: the known classes of records and enumerations, with their names.

    >>> pack_value(7, {}), pack_value(True, {}), pack_value((1, Decimal("1.50")), {})
    (7, b'\\xfftrue', b'\\xff{"tuple": [1, {"Decimal": "1.50"}]}')
    """
    return value if is_stored_unchanged(value) else mark_value(value, names)


def mark_value(value: Any, names: Mapping[type, str]) -> bytes:
    """Encode a value as marked bytes, even if it is plain."""
    return MARK + json.dumps(tree(value, names)).encode()


def unpack_value(stored: Any, classes: Mapping[str, type]) -> Any:
    """Decode a value that `pack_value` encoded.

    Raises `DamagedValue` for marked bytes that were not written so, `Unstorable` for an unknown
    class.

    >>> unpack_value(b'\\xff{"tuple": [1, {"Decimal": "1.50"}]}', {})
    (1, Decimal('1.50'))
    """
    if stored.__class__ is bytes and stored[:1] == MARK:
        try:
            return untree(json.loads(stored[1:]), classes)
        except _NOT_WRITTEN as error:
            raise DamagedValue(f"{stored!r:.100}, which this library has not written") from error
    return stored


def is_stored_unchanged(value: Any) -> bool:
    """Return True if a store holds the value unchanged."""
    kind = value.__class__
    if kind is int:
        return bool(LEAST <= value <= MOST)
    if kind is str:
        return is_text(value)
    if kind is float:
        return not math.isnan(value)
    return value is None or bool(kind is bytes and value[:1] != MARK)


def is_text(value: str) -> bool:
    """Return True if a text has no lone surrogates, which UTF-8 cannot encode."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def tree(value: Any, names: Mapping[type, str]) -> Any:
    """Convert a value to JSON data.

    Raises
    ------
    Unstorable: the value, or a part of it, has an unknown class.
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
        return {kind.__name__: _time_to_json(value)}
    if kind in names:
        return _known_to_json(value, names[kind], names)
    raise Unstorable(f"{value!r:.100} of class {kind.__qualname__}")


def _known_to_json(value: Any, name: str, names: Mapping[type, str]) -> Any:
    """Return an enumeration's member or a record as JSON data with the name of its class."""
    if isinstance(value, Enum):
        if value.name in type(value).__members__:
            return {"enum": [name, value.name]}
        return {"flag": [name, value.value]}
    fields = {field: tree(getattr(value, field), names) for field in members(type(value))}
    return {"record": [name, fields]}


def _time_to_json(value: Any) -> list[Any]:
    """Return a time as text without its zone, the zone, and the fold.

    Raises `Unstorable` if the zone has neither a name nor a fixed offset.
    """
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


def _time_from_json(kind: Any, parts: list[Any]) -> Any:
    """Return the `datetime` or `time` that `_time_to_json` has written as `parts`."""
    plain, zone, fold = parts
    found: Any = None
    if isinstance(zone, str):
        from zoneinfo import ZoneInfo

        found = ZoneInfo(zone)
    elif zone is not None:
        found = timezone(timedelta(*zone))
    return canonical(kind.fromisoformat(plain).replace(tzinfo=found, fold=fold))


def untree(stored: Any, classes: Mapping[str, type]) -> Any:
    """Restore a value from JSON data.

    Raises
    ------
    Unstorable: it has an unknown class, or a field that its class no longer has.
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
    return _known_from_json(word, inside, classes)


def _known_from_json(word: str, inside: Any, classes: Mapping[str, type]) -> Any:
    """Return a record, or an enumeration's member, of its class's name and content.

    Raises `Unstorable` if the class is unknown, or has no such member or field.
    """
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
    """Return a record of its fields; the fields themselves if its class is `AS_MAPPING`.

    Raises `Unstorable` if the class is None, lacks a field, or refuses the fields.
    """
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
    """The marker class for a record that is to be read as a dictionary of its fields."""


def class_names(names: Mapping[str, type]) -> dict[type, str]:
    """Return the name of each class."""
    return {kind: name for name, kind in names.items()}


def can_be_known(kind: type) -> bool:
    """Return True if a class is described by its name and fields, or its name and member."""
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
    Jsonb: str,
    range: lambda value: [value.start, value.stop, value.step],
}
OF_TEXTS: Mapping[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
    "date": date.fromisoformat,
    "datetime": lambda parts: _time_from_json(datetime, parts),
    "time": lambda parts: _time_from_json(time, parts),
    "timedelta": lambda parts: timedelta(*parts),
    "int": lambda text: int(text, 16),
    "Decimal": Decimal,
    "Fraction": Fraction,
    "UUID": UUID,
    "Jsonb": Jsonb.parse,
    "range": lambda parts: range(*parts),
}
MADE: Mapping[str, Callable[[Any], Any]] = {"tuple": tuple, "frozenset": frozenset, "set": set}


PLAIN = "plain"
ENUM = "enum "
"""The start of the kind of an enumeration's column; its name follows."""
TESTS: Mapping[Any, str] = {
    int: "{v}.__class__ is int and LEAST <= {v} <= MOST",
    float: "{v}.__class__ is float and {v} == {v}",
    str: "{v}.__class__ is str and ({v}.isascii() or is_text({v}))",
    bytes: "{v}.__class__ is bytes and {v}[:1] != MARK",
}
"""The expression that is true if a value has its declared type and is stored unchanged."""
OTHERWISE = "is_plain({v})"
KINDS: Mapping[str, tuple[str, str]] = {
    "bool": ("{v}.__class__ is bool", "(1 if {v} else 0)"),
    "Decimal": ("{v}.__class__ is Decimal", "str({v})"),
    "UUID": ("{v}.__class__ is UUID", "str({v})"),
    "date": ("{v}.__class__ is date", "{v}.isoformat()"),
    "time": (
        "{v}.__class__ is time and {v}.tzinfo is None and not {v}.fold",
        "{v}.isoformat()",
    ),
    "datetime": (
        "{v}.__class__ is datetime and ({v}.tzinfo is None or {v}.tzinfo is utc) and not {v}.fold",
        "{v}.isoformat()",
    ),
}
"""The test for the declared type, and the expression of its stored form, by class."""
READS: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "Decimal": Decimal,
    "UUID": UUID,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}
"""The functions that read such stored forms."""
NAMES: Mapping[str, Any] = {
    **{kind.__name__: kind for kind in (Decimal, UUID, date, time, datetime)},
    "utc": UTC,
    "LEAST": LEAST,
    "MOST": MOST,
    "MARK": MARK,
    "is_text": is_text,
    "is_plain": is_stored_unchanged,
}
"""The objects that these expressions refer to."""


@dataclass(frozen=True, slots=True)
class Writing:
    """Expressions that write the values of a field, over a variable `{v}`.

    is_usual: true if the value is as declared.
    written: the stored form of such a value.
    """

    is_usual: str
    written: str


def stored_kind(hint: Any, names: Mapping[type, str]) -> str:
    """Return the word for the stored form of an annotation's values.

    >>> stored_kind(Decimal | None, {}), stored_kind(int, {})
    ('Decimal', 'plain')
    """
    parts: list[Any] = [part for part in alternatives(hint) if part is not type(None)] or [None]
    only: Any = parts[0]
    if len(parts) > 1 or not isinstance(only, type):
        return PLAIN
    if issubclass(only, Enum) and not issubclass(only, Flag) and only in names:
        return ENUM + names[only]
    name: str = only.__name__
    return name if name in KINDS and only in (bool, NAMES.get(name)) else PLAIN


def write_expressions(kind: str, hint: Any) -> Writing:
    """Return the expressions that write the values of a field."""
    if kind.startswith(ENUM):
        return Writing("{v}.__class__ is {kind}", "{v}.name")
    if kind in KINDS:
        return Writing(*KINDS[kind])
    found = [TESTS[part] for part in alternatives(hint) if part in TESTS]
    return Writing(found[0] if len(found) == 1 else OTHERWISE, "{v}")


def writer(
    kind: str, names: Mapping[type, str], classes: Mapping[str, type], *, is_key: bool
) -> Callable[[Any], Any]:
    """Return the function that encodes any value of a field.

    The function raises `Unstorable` for a value that cannot be stored.

    >>> write = writer("bool", {}, {}, is_key=False)
    >>> write(True), write(1), write(None)
    (1, b'\\xff1', None)
    """
    how, values = write_expressions(kind, None), BoundValues()
    enum = classes.get(kind.removeprefix(ENUM))
    values.by_name |= {**NAMES, "enum": enum, "null": mark_value(None, {}) if is_key else None}
    otherwise = pack_value if kind == PLAIN else mark_value
    values.by_name["otherwise"] = lambda value: otherwise(value, names)
    is_usual = how.is_usual.format(v="v", kind="enum")
    text = f"{how.written.format(v='v')} if {is_usual} else otherwise(v)"
    return build("write", f"def write(v):\n    return null if v is None else {text}\n", values)


def reader(kind: str, classes: Mapping[str, type]) -> Callable[[Any], Any]:
    """Return the function that decodes the stored values of a field.

    >>> reader("Decimal", {})("1.50"), reader("Decimal", {})(None), reader("plain", {})(2)
    (Decimal('1.50'), None, 2)
    """
    of, stored = decoder_of(kind, classes), stored_class(kind)
    if of is None:
        return lambda value: unpack_value(value, classes)
    return lambda value: of(value) if value.__class__ is stored else unpack_value(value, classes)


def decoder_of(kind: str, classes: Mapping[str, type]) -> Callable[[Any], Any] | None:
    """Return the decoder for values of the declared type; None if they are stored unchanged."""
    if not kind.startswith(ENUM):
        return READS.get(kind)
    name = kind.removeprefix(ENUM)
    return lambda member: _member_of(classes.get(name), name, member)


def stored_class(kind: str) -> type:
    """Return the class of the stored form of a value of the declared type."""
    return int if kind == "bool" else str


def _member_of(enum: Any, name: str, member: str) -> Any:
    """Return the member of an enumeration; its name if the class is unknown.

    Raises `Unstorable` if the class has no such member.
    """
    if enum is None:
        return member
    try:
        return enum[member]
    except KeyError:
        raise Unstorable(f"{member!r}, which {name} has no more") from None


ANYTHING = ("Any", "object")


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation itself."""
    if get_origin(hint) is Annotated:
        return alternatives(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(part for each in get_args(hint) for part in alternatives(each))
    return (type(None) if hint is None else hint,)


def type_text(hint: Any) -> str:
    """Return an annotation as text in a canonical form.

    >>> from typing import Optional
    >>> type_text(Optional[int]), type_text(tuple[str, ...]), type_text(Any)
    ('int | None', 'tuple[str, ...]', 'Any')
    """
    if isinstance(hint, str):
        return hint
    parts = sorted(
        {*map(_alternative_name, alternatives(hint))}, key=lambda text: (text == "None", text)
    )
    return " | ".join(parts)


def _alternative_name(hint: Any) -> str:
    """Return one alternative of an annotation as text, its parts in canonical form."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is ...:
        return "..."
    if hint is type(None):
        return "None"
    if origin is None or not inside:
        return getattr(hint, "__name__", None) or str(hint).removeprefix("typing.")
    parts = ", ".join(type_text(part) if not _is_literal(part) else repr(part) for part in inside)
    return f"{getattr(origin, '__name__', str(origin))}[{parts}]"


def _is_literal(part: Any) -> bool:
    return isinstance(part, str | int | bytes | bool) and not isinstance(part, type)


def holds_all(new: str, old: str) -> bool:
    """Return True if a field of type `new` can hold every value of type `old`.

    >>> holds_all("int | None", "int"), holds_all("float", "int"), holds_all("int", "int | None")
    (True, True, False)
    """
    if new in ANYTHING or old == new:
        return True
    wanted, given = _split_union(new), _split_union(old)
    return all(part in wanted or (part == "int" and "float" in wanted) for part in given)


def _split_union(text: str) -> list[str]:
    """Split a union at its top level."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in ")]")
        if letter == "|" and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]
