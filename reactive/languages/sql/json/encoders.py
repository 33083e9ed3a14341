"""Values of SQL as JSON of Postgres: data of a document, or text.

    DataEncoder(row(int, text))((1, "a"))        {"f1": 1, "f2": "a"}
    TextEncoder(array of float)((1.5, nan))      '[1.5,"NaN"]'

Numbers, booleans and JSON stay what they are, arrays and rows become arrays and objects; other
values are texts, times in the form of ISO 8601.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from optimizer.record import record
from reactive.engine.collections.jsonb import (
    Jsonb,
    check_number,
    check_text,
    in_key_order,
    parse_document,
    read_number,
    write_document,
    write_text,
)
from reactive.languages.sql.postgres.forms import float_text, numeric_text, real_text, text_of
from reactive.languages.sql.terms.types import ANY, SqlType, is_row, type_of_value


def _zone_of(name: str) -> Any:
    from zoneinfo import ZoneInfo

    return dt.UTC if name == "UTC" else ZoneInfo(name)


def _moment_text(value: Any, zone: str) -> str:
    """Return a date or time in the form of ISO 8601, without needless zeros of a fraction."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(_zone_of(zone))
    text: str = value.isoformat()
    if getattr(value, "microsecond", 0):
        head, _, tail = text.partition(".")
        digits, rest = tail[:6].rstrip("0"), tail[6:]
        text = f"{head}.{digits}{rest}"
    return text


def field_names(kind: SqlType) -> tuple[str, ...]:
    """Return the names of the fields of a struct: of a row `f1`, `f2`, ..."""
    if is_row(kind):
        return tuple(f"f{place}" for place in range(1, len(kind.names) + 1))
    return kind.names


def _item(kind: SqlType) -> SqlType:
    return kind.items[0] if kind.items else ANY


def _scalar_text(value: Any, kind: SqlType, zone: str) -> str:
    if isinstance(value, dt.date | dt.datetime):
        return _moment_text(value, zone)
    return text_of(value)


def _number_text(value: Any, kind: SqlType) -> str:
    if isinstance(value, float):
        return real_text(value) if kind.size == 4 else float_text(value)
    return numeric_text(value) if isinstance(value, Decimal) else str(value)


@record
class DataEncoder:
    """Makes data of a document of values of a type."""

    kind: SqlType
    zone: str = "UTC"

    def __call__(self, value: Any) -> Any:
        return _data_of(value, self.kind, self.zone)


def _data_of(value: Any, kind: SqlType, zone: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Jsonb):
        return value.data
    match kind.kind:
        case "json":
            return parse_document(value)
        case "int":
            return int(value)
        case "float" | "decimal" if not _is_finite(value):
            return _number_text(value, kind)
        case "float":
            return read_number(_number_text(value, kind))
        case "decimal":
            return check_number(Decimal(value))
        case "array":
            return tuple(_data_of(each, _item(kind), zone) for each in value)
        case "struct":
            parts = zip(field_names(kind), value, kind.items, strict=True)
            return in_key_order({name: _data_of(each, of, zone) for name, each, of in parts})
        case "any" if isinstance(value, Mapping):
            return Jsonb(value).data
        case "any" if type_of_value(value).kind != "any":
            return _data_of(value, type_of_value(value), zone)
        case _:
            return check_text(_scalar_text(value, kind, zone))


def _is_finite(value: Any) -> bool:
    return bool(value - value == 0)


@record
class TextEncoder:
    """Makes JSON texts of values of a type."""

    kind: SqlType
    zone: str = "UTC"

    def __call__(self, value: Any) -> str:
        return _text_of(value, self.kind, self.zone)


def _text_of(value: Any, kind: SqlType, zone: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Jsonb):
        return str(value)
    match kind.kind:
        case "json":
            return str(value)
        case "int" | "float" | "decimal":
            text = _number_text(value, kind)
            return text if text[-1:].isdigit() else write_text(text)
        case "array":
            return f"[{','.join(_text_of(each, _item(kind), zone) for each in value)}]"
        case "struct":
            parts = zip(field_names(kind), value, kind.items, strict=True)
            shown = [f"{write_text(name)}:{_text_of(v, of, zone)}" for name, v, of in parts]
            return f"{{{','.join(shown)}}}"
        case "any" if isinstance(value, Mapping):
            return write_document(Jsonb(value).data)
        case "any" if type_of_value(value).kind != "any":
            return _text_of(value, type_of_value(value), zone)
        case _:
            return write_text(_scalar_text(value, kind, zone))


# Objects and arrays of several values.


@record
class Document:
    """TO_JSONB."""

    encode: DataEncoder

    def __call__(self, value: Any) -> Jsonb:
        return Jsonb.of(self.encode(value))


@record
class BuiltArray:
    """JSONB_BUILD_ARRAY."""

    encoders: tuple[DataEncoder, ...]

    def __call__(self, *values: Any) -> Jsonb:
        return Jsonb.of(tuple(e(v) for e, v in zip(self.encoders, values, strict=True)))


@record
class BuiltArrayText:
    """JSON_BUILD_ARRAY."""

    encoders: tuple[TextEncoder, ...]

    def __call__(self, *values: Any) -> str:
        return f"[{', '.join(e(v) for e, v in zip(self.encoders, values, strict=True))}]"


NO_KEY = "null value not allowed for object key"


def _key_text(value: Any, kind: SqlType, zone: str) -> str:
    """Return a value as a key; refuse NULL and values with parts."""
    if value is None:
        raise ValueError(NO_KEY)
    if kind.kind in ("array", "struct", "json", "jsonb"):
        raise ValueError("key value must be scalar, not array, composite, or json")
    text = _text_of(value, kind, zone)
    return _scalar_text(value, kind, zone) if text.startswith('"') else text


@record
class BuiltObject:
    """JSONB_BUILD_OBJECT, of keys and values in turn."""

    encoders: tuple[DataEncoder, ...]

    def __call__(self, *values: Any) -> Jsonb:
        made: dict[str, Any] = {}
        for place in range(0, len(values), 2):
            key, value = self.encoders[place], self.encoders[place + 1]
            name = check_text(_key_text(values[place], key.kind, key.zone))
            made[name] = value(values[place + 1])
        return Jsonb.of(in_key_order(made))


@record
class BuiltObjectText:
    """JSON_BUILD_OBJECT, of keys and values in turn."""

    encoders: tuple[TextEncoder, ...]

    def __call__(self, *values: Any) -> str:
        parts = []
        for place in range(0, len(values), 2):
            key, value = self.encoders[place], self.encoders[place + 1]
            name = _key_text(values[place], key.kind, key.zone)
            parts.append(f"{write_text(name)} : {value(values[place + 1])}")
        return f"{{{', '.join(parts)}}}"


def object_of_texts(array: tuple[Any, ...]) -> Jsonb:
    """Return the object of keys and values in turn, or in pairs (JSONB_OBJECT)."""
    return Jsonb.of(in_key_order(dict(_text_pairs(array))))


def object_text_of_texts(array: tuple[Any, ...]) -> str:
    """Return the text of an object of keys and values in turn, or in pairs (JSON_OBJECT)."""
    return _object_text(_text_pairs(array))


def object_of_both(keys: tuple[Any, ...], values: tuple[Any, ...]) -> Jsonb:
    """Return the object of keys and of values, which are texts (JSONB_OBJECT)."""
    return Jsonb.of(in_key_order(dict(_paired(keys, values))))


def object_text_of_both(keys: tuple[Any, ...], values: tuple[Any, ...]) -> str:
    """Return the text of an object of keys and of values, which are texts (JSON_OBJECT)."""
    return _object_text(_paired(keys, values))


def _object_text(pairs: list[tuple[str, Any]]) -> str:
    shown = [f"{write_text(k)} : {'null' if v is None else write_text(v)}" for k, v in pairs]
    return f"{{{', '.join(shown)}}}"


def _text_pairs(array: tuple[Any, ...]) -> list[tuple[str, Any]]:
    if array and isinstance(array[0], tuple):
        if any(len(each) != 2 for each in array):
            raise ValueError("array must have two columns")
        return _paired(*zip(*array, strict=True))
    if len(array) % 2:
        raise ValueError("array must have even number of elements")
    return _paired(array[::2], array[1::2])


def _paired(keys: tuple[Any, ...], values: tuple[Any, ...]) -> list[tuple[str, Any]]:
    if len(keys) != len(values):
        raise ValueError("mismatched array dimensions")
    if any(key is None for key in keys):
        raise ValueError("null value not allowed for object key")
    return list(zip(keys, values, strict=True))


# Aggregates, of the values of a group in their order.


@record
class CollectedArray:
    """JSONB_AGG; None of nothing."""

    encode: DataEncoder

    def __call__(self, values: Any) -> Jsonb | None:
        return Jsonb.of(tuple(map(self.encode, values))) if values else None


@record
class CollectedArrayText:
    """JSON_AGG; None of nothing. Rows and arrays begin lines."""

    encode: TextEncoder

    def __call__(self, values: Any) -> str | None:
        if not values:
            return None
        begins = "\n " * (self.encode.kind.kind in ("struct", "array"))
        parts = [
            begins * (place > 0 and v is not None) + self.encode(v)
            for place, v in enumerate(values)
        ]
        return f"[{', '.join(parts)}]"


@record
class CollectedObject:
    """JSONB_OBJECT_AGG of pairs; None of nothing."""

    built: BuiltObject

    def __call__(self, values: Any) -> Jsonb | None:
        made: dict[str, Any] = {}
        for pair in values:
            made |= self.built(*pair).data
        return Jsonb.of(in_key_order(made)) if values else None


@record
class CollectedObjectText:
    """JSON_OBJECT_AGG of pairs; None of nothing."""

    built: BuiltObjectText

    def __call__(self, values: Any) -> str | None:
        shown = [self.built(*pair)[1:-1] for pair in values]
        return f"{{ {', '.join(shown)} }}" if values else None
