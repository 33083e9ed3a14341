"""Functions of `jsonb` in Postgres.

    field(Jsonb({"a": [1, 2]}), "a")                     Jsonb([1, 2])
    at_path(Jsonb({"a": [1, 2]}), ("a", "-1"))           Jsonb(2)
    contains(Jsonb([1, [2]]), Jsonb([[2]]))              True
    replaced(Jsonb({"a": 1}), ("b",), Jsonb(2))          Jsonb({"a": 1, "b": 2})

A scalar at the top is an array of one element to `->`, `@>`, `?` and `||`, as in Postgres.

Cost:   the parts on the way of a path; the size of the documents for the others.
Source: PostgreSQL documentation, "JSON Functions and Operators".
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from reactive.engine.collections.jsonb import (
    Jsonb,
    in_key_order,
    sort_key_of,
    write_document,
    write_text,
)
from reactive.languages.sql.postgres import forms

Path = Sequence[str | None]
_INDENT = "    "


def as_document(value: Any) -> Jsonb:
    """Return a value of unknown type as a document: a text is parsed, others are parts of one."""
    if isinstance(value, Jsonb):
        return value
    return Jsonb.parse(value) if isinstance(value, str) else Jsonb(value)


def kind_of(data: Any) -> str:
    """Return the name of the kind of a part (JSONB_TYPEOF)."""
    match data:
        case None:
            return "null"
        case str():
            return "string"
        case bool():
            return "boolean"
        case tuple():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def is_scalar(data: Any) -> bool:
    return not isinstance(data, tuple | dict)


def text_of_part(data: Any) -> str | None:
    """Return a part as `->>` does: a text without quotes, null as None."""
    if data is None:
        return None
    return data if isinstance(data, str) else write_document(data)


# Parts.


def field(document: Jsonb, name: str) -> Jsonb | None:
    """Return the field of an object (`-> text`); None if there is none."""
    data = document.data
    if not isinstance(data, dict) or name not in data:
        return None
    return Jsonb.of(data[name])


def field_text(document: Jsonb, name: str) -> str | None:
    """Return the field of an object as a text (`->> text`)."""
    data = document.data
    return text_of_part(data.get(name)) if isinstance(data, dict) else None


def element(document: Jsonb, place: int) -> Jsonb | None:
    """Return an element of an array, negative places from its end (`-> int`); None if absent."""
    items = _items(document.data)
    if items is None or not -len(items) <= place < len(items):
        return None
    return Jsonb.of(items[place])


def element_text(document: Jsonb, place: int) -> str | None:
    """Return an element of an array as a text (`->> int`)."""
    found = element(document, place)
    return None if found is None else text_of_part(found.data)


def _items(data: Any) -> tuple[Any, ...] | None:
    """Return the elements of an array, or a scalar as its only one; None of an object."""
    if isinstance(data, dict):
        return None
    return data if isinstance(data, tuple) else (data,)


ABSENT: Any = object()
"""Stands for a part that is not there."""


def place_of(step: str, count: int) -> int | None:
    """Return the place that a step of a path names in an array; None if it names none."""
    try:
        place = int(step) if "_" not in step and not step[-1:].isspace() else None
    except ValueError:
        return None
    if place is None or not -count <= place < count:
        return None
    return place + count if place < 0 else place


def part_at(data: Any, path: Path) -> Any:
    """Return the part at a path; `ABSENT` if there is none."""
    for step in path:
        if step is None:
            return ABSENT
        if isinstance(data, dict):
            data = data.get(step, ABSENT)
        elif isinstance(data, tuple):
            place = place_of(step, len(data))
            data = ABSENT if place is None else data[place]
        else:
            return ABSENT
        if data is ABSENT:
            return ABSENT
    return data


def at_path(document: Jsonb, path: Path) -> Jsonb | None:
    """Return the part at a path (`#>`, JSONB_EXTRACT_PATH); None if there is none."""
    found = part_at(document.data, path)
    return None if found is ABSENT else Jsonb.of(found)


def at_path_text(document: Jsonb, path: Path) -> str | None:
    """Return the part at a path as a text (`#>>`)."""
    found = part_at(document.data, path)
    return None if found is ABSENT else text_of_part(found)


# Conditions.


def contains(document: Jsonb, part: Jsonb) -> bool:
    """Return True if all of `part` is in a document (`@>`)."""
    one, other = document.data, part.data
    if isinstance(one, dict) or isinstance(other, dict):
        return isinstance(one, dict) and isinstance(other, dict) and _contains(one, other)
    if is_scalar(one) and not is_scalar(other):
        return False
    return _contains(_items(one), _items(other))


def _contains(one: Any, other: Any) -> bool:
    """Return True if an object or array contains another of the same kind."""
    if isinstance(other, dict):
        return all(key in one and _matches(one[key], part) for key, part in other.items())
    scalars = {sort_key_of(each) for each in one if is_scalar(each)}
    nested = [each for each in one if not is_scalar(each)]
    return all(
        sort_key_of(part) in scalars
        if is_scalar(part)
        else any(_matches(each, part) for each in nested)
        for part in other
    )


def _matches(one: Any, other: Any) -> bool:
    if is_scalar(one) or is_scalar(other):
        return is_scalar(one) and is_scalar(other) and sort_key_of(one) == sort_key_of(other)
    return isinstance(one, dict) is isinstance(other, dict) and _contains(one, other)


def contained(part: Jsonb, document: Jsonb) -> bool:
    """Return True if all of `part` is in a document (`<@`)."""
    return contains(document, part)


def has_key(document: Jsonb, key: str) -> bool:
    """Return True for a key of an object, or a text of an array (`?`)."""
    data = document.data
    return key in data if isinstance(data, dict) else key in (_items(data) or ())


def has_any_key(document: Jsonb, keys: Path) -> bool:
    """Return True if one of the keys is there (`?|`); NULL is no key."""
    return any(key is not None and has_key(document, key) for key in keys)


def has_all_keys(document: Jsonb, keys: Path) -> bool:
    """Return True if all keys are there (`?&`); NULL is no key."""
    return all(key is None or has_key(document, key) for key in keys)


# Changes.


def joined(one: Jsonb, other: Jsonb) -> Jsonb:
    """Return the fields of both objects, or the elements of both arrays (`||`)."""
    if isinstance(one.data, dict) and isinstance(other.data, dict):
        return Jsonb.of(in_key_order({**one.data, **other.data}))
    return Jsonb.of((*_as_array(one.data), *_as_array(other.data)))


def _as_array(data: Any) -> tuple[Any, ...]:
    return data if isinstance(data, tuple) else (data,)


def without_key(document: Jsonb, key: str) -> Jsonb:
    """Return a document without a field, or the texts of an array (`- text`)."""
    return without_keys(document, (key,))


def without_keys(document: Jsonb, keys: Path) -> Jsonb:
    """Return a document without fields, or texts of an array (`- text[]`)."""
    data = document.data
    if is_scalar(data):
        raise ValueError("cannot delete from scalar")
    if isinstance(data, dict):
        return Jsonb.of({key: each for key, each in data.items() if key not in keys})
    dropped = {key for key in keys if key is not None}
    kept = [each for each in data if not (isinstance(each, str) and each in dropped)]
    return Jsonb.of(tuple(kept))


def without_element(document: Jsonb, place: int) -> Jsonb:
    """Return an array without one element (`- int`); unchanged if there is none."""
    data = document.data
    if is_scalar(data):
        raise ValueError("cannot delete from scalar")
    if isinstance(data, dict):
        raise ValueError("cannot delete from object using integer index")
    if not -len(data) <= place < len(data):
        return document
    place %= len(data)
    return Jsonb.of((*data[:place], *data[place + 1 :]))


def without_path(document: Jsonb, path: Path) -> Jsonb:
    """Return a document without the part at a path (`#-`)."""
    if is_scalar(document.data):
        raise ValueError("cannot delete path in scalar")
    if not path or not document.data:
        return document
    return Jsonb.of(_changed(document.data, path, 0, _delete))


def replaced(document: Jsonb, path: Path, new: Jsonb, creates: bool = True) -> Jsonb:
    """Return a document with another part at a path (JSONB_SET), added there if `creates`."""
    if is_scalar(document.data):
        raise ValueError("cannot set path in scalar")
    if not path or (not creates and document.data in ((), {})):
        return document
    return Jsonb.of(_changed(document.data, path, 0, _Put(new.data, creates)))


def inserted(document: Jsonb, path: Path, new: Jsonb, after: bool = False) -> Jsonb:
    """Return a document with a new field or element at a path (JSONB_INSERT)."""
    if is_scalar(document.data):
        raise ValueError("cannot set path in scalar")
    if not path:
        return document
    return Jsonb.of(_changed(document.data, path, 0, _Insert(new.data, after)))


def _changed(data: Any, path: Path, level: int, change: Any) -> Any:
    """Return a part with its own part at a path changed."""
    step, is_last = path[level], level == len(path) - 1
    if step is None:
        raise ValueError(f"path element at position {level + 1} is null")
    if isinstance(data, dict):
        if is_last:
            return change.of_object(data, step)
        if step not in data:
            return data
        return {**data, step: _changed(data[step], path, level + 1, change)}
    if not isinstance(data, tuple):
        return data
    place = _whole_place(step, level)
    if is_last:
        return change.of_array(data, place)
    if not -len(data) <= place < len(data):
        return data
    place %= len(data)
    return (*data[:place], _changed(data[place], path, level + 1, change), *data[place + 1 :])


def _whole_place(step: str, level: int) -> int:
    try:
        if "_" in step or step[-1:].isspace():
            raise ValueError
        return int(step)
    except ValueError:
        told = f"path element at position {level + 1} is not an integer: {step!r:.60}"
        raise ValueError(told) from None


class _Delete:
    """The removal of a part."""

    def of_object(self, data: dict[str, Any], key: str) -> Any:
        return {name: each for name, each in data.items() if name != key}

    def of_array(self, data: tuple[Any, ...], place: int) -> Any:
        if not -len(data) <= place < len(data):
            return data
        place %= len(data)
        return (*data[:place], *data[place + 1 :])


_delete = _Delete()


class _Put:
    """The replacement of a part; of an absent one only if it `creates`."""

    def __init__(self, new: Any, creates: bool) -> None:
        self._new, self._creates = new, creates

    def of_object(self, data: dict[str, Any], key: str) -> Any:
        if key in data:
            return {**data, key: self._new}
        return in_key_order({**data, key: self._new}) if self._creates else data

    def of_array(self, data: tuple[Any, ...], place: int) -> Any:
        if -len(data) <= place < len(data):
            place %= len(data)
            return (*data[:place], self._new, *data[place + 1 :])
        if not self._creates:
            return data
        return (self._new, *data) if place < 0 else (*data, self._new)


class _Insert:
    """The insertion of a part, before the place of an array, or `after` it."""

    def __init__(self, new: Any, after: bool) -> None:
        self._new, self._after = new, after

    def of_object(self, data: dict[str, Any], key: str) -> Any:
        if key in data:
            raise ValueError(f"cannot replace existing key {key!r:.60}")
        return in_key_order({**data, key: self._new})

    def of_array(self, data: tuple[Any, ...], place: int) -> Any:
        place = max(place + len(data), -1) if place < 0 else min(place, len(data))
        if place < 0:
            return (self._new, *data)
        place += self._after and place < len(data)
        return (*data[:place], self._new, *data[place:])


# Functions.


def type_name(document: Jsonb) -> str:
    """Return the kind of a document (JSONB_TYPEOF)."""
    return kind_of(document.data)


def length(document: Jsonb) -> int:
    """Return the number of elements of an array (JSONB_ARRAY_LENGTH)."""
    if isinstance(document.data, tuple):
        return len(document.data)
    is_object = isinstance(document.data, dict)
    raise ValueError(f"cannot get array length of a {'non-array' if is_object else 'scalar'}")


def elements(document: Jsonb) -> tuple[Any, ...]:
    """Return the elements of an array (JSONB_ARRAY_ELEMENTS)."""
    return tuple(map(Jsonb.of, _elements(document)))


def element_texts(document: Jsonb) -> tuple[str | None, ...]:
    """Return the elements of an array as texts (JSONB_ARRAY_ELEMENTS_TEXT)."""
    return tuple(map(text_of_part, _elements(document)))


def _elements(document: Jsonb) -> tuple[Any, ...]:
    if isinstance(document.data, tuple):
        return document.data
    is_object = isinstance(document.data, dict)
    raise ValueError(f"cannot extract elements from {'an object' if is_object else 'a scalar'}")


def _fields(document: Jsonb, name: str) -> dict[str, Any]:
    if isinstance(document.data, dict):
        return document.data
    told = "an array" if isinstance(document.data, tuple) else "a scalar"
    raise ValueError(f"cannot call {name}() on {told}")


def pairs(document: Jsonb) -> tuple[Any, ...]:
    """Return the keys and values of an object (JSONB_EACH)."""
    return tuple((k, Jsonb.of(v)) for k, v in _fields(document, "jsonb_each").items())


def text_pairs(document: Jsonb) -> tuple[Any, ...]:
    """Return the keys and values of an object, these as texts (JSONB_EACH_TEXT)."""
    found = _fields(document, "jsonb_each_text").items()
    return tuple((k, text_of_part(v)) for k, v in found)


def keys(document: Jsonb) -> tuple[str, ...]:
    """Return the keys of an object (JSONB_OBJECT_KEYS)."""
    return tuple(_fields(document, "jsonb_object_keys"))


def without_nulls(document: Jsonb) -> Jsonb:
    """Return a document without the fields that are null (JSONB_STRIP_NULLS)."""
    return Jsonb.of(_strip(document.data))


def _strip(data: Any) -> Any:
    if isinstance(data, tuple):
        return tuple(map(_strip, data))
    if isinstance(data, dict):
        return {key: _strip(each) for key, each in data.items() if each is not None}
    return data


def pretty(document: Jsonb) -> str:
    """Return a document in lines, each level indented by four blanks (JSONB_PRETTY)."""
    return _pretty(document.data, "\n")


def _pretty(data: Any, line: str) -> str:
    if is_scalar(data):
        return write_document(data)
    inner = line + _INDENT
    if isinstance(data, tuple):
        parts, ends = [_pretty(each, inner) for each in data], "[]"
    else:
        parts = [f"{write_text(k)}: {_pretty(v, inner)}" for k, v in data.items()]
        ends = "{}"
    shown = f",{inner}".join(parts)
    return f"{ends[0]}{inner if parts else line}{shown}{line if parts else ''}{ends[1]}"


# Casts.


def _only(document: Jsonb, kind: str, to: str) -> Any:
    """Return the value of a document that is of a kind; refuse another."""
    found = kind_of(document.data)
    if found != kind:
        told = found if is_scalar(document.data) else f"{found}"
        raise ValueError(f"cannot cast jsonb {told} to type {to}")
    return document.data


def as_boolean(document: Jsonb) -> bool:
    """Return the boolean of a document."""
    return bool(_only(document, "boolean", "boolean"))


def as_numeric(document: Jsonb, precision: int | None = None, scale: int | None = None) -> Decimal:
    """Return the number of a document, with the digits of a type."""
    return forms.decimal(Decimal(_only(document, "number", "numeric")), precision, scale)


def as_integer(document: Jsonb) -> int:
    """Return the number of a document, rounded."""
    return forms.integer_of_numeric(Decimal(_only(document, "number", "integer")))


def as_real(document: Jsonb) -> float:
    """Return the number of a document as a float of four bytes."""
    return forms.real_of_text(str(_only(document, "number", "real")))


def as_float(document: Jsonb) -> float:
    """Return the number of a document as a float."""
    return forms.float_(str(_only(document, "number", "double precision")))
