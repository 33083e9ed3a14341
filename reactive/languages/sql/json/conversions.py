"""Values of DuckDB made JSON, and JSON made values, by their types.

    encoder(struct of a integer)((1,))                  JsonPairs([("a", 1)])
    decoder(list of integer)(["7", 1.5])                (7, 2)

A scalar that has no form of its own in JSON is written as its text, and read from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from optimizer.record import record
from reactive.languages.sql.json import trees
from reactive.languages.sql.json.trees import ABSENT, LEAST, MOST, JsonPairs
from reactive.languages.sql.terms.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    TEXT,
    SqlType,
    is_row,
)

Maker = Callable[[SqlType, SqlType], "Callable[..., Any] | None"]
"""Function from two types to the cast between them; None if the value stays."""
_OWN = frozenset({"int", "float", "bool", "text", "null"})
"""Kinds whose values JSON has."""


# To JSON.


@record
class Encoder:
    """Makes a tree of JSON of a value: by the encoders of its parts, or by its text."""

    kind: SqlType
    parts: tuple[Encoder, ...] = ()
    write: Callable[..., Any] | None = None

    def __call__(self, value: Any) -> Any:
        if value is None:
            return None
        match self.kind.kind:
            case "json":
                return trees.parse(value)
            case "decimal":
                return float(value)
            case "array":
                return list(map(self.parts[0], value))
            case "map":
                key, inside = self.parts
                return JsonPairs((key.key_of(k), inside(v)) for k, v in value)
            case "struct":
                made = [part(each) for part, each in zip(self.parts, value, strict=True)]
                return (
                    made
                    if is_row(self.kind)
                    else JsonPairs(zip(self.kind.names, made, strict=True))
                )
            case "any":
                return _tree_of_any(value)
            case _:
                return value if self.write is None else self.write(value)

    def key_of(self, value: Any) -> str:
        """Return a value as the key of an object."""
        made = self(value)
        return made if isinstance(made, str) else trees.write(made)


def _tree_of_any(value: Any) -> Any:
    """Return the tree of a value whose type is not declared."""
    if isinstance(value, Mapping):
        return JsonPairs((str(key), _tree_of_any(each)) for key, each in value.items())
    if isinstance(value, tuple | list):
        return list(map(_tree_of_any, value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


def encoder(kind: SqlType, make: Maker) -> Encoder:
    """Return the encoder of values of a type."""
    if kind.items:
        return Encoder(kind, tuple(encoder(each, make) for each in kind.items))
    if kind.kind == "array":
        return Encoder(SqlType("array", items=(ANY,)), (Encoder(ANY),))
    write = None if kind.kind in _OWN | {"any", "json", "decimal"} else make(kind, TEXT)
    return Encoder(kind, (), write)


@record
class JsonWriter:
    """Makes JSON text of a value."""

    encode: Encoder

    def __call__(self, value: Any) -> str:
        return trees.write(self.encode(value))


@record
class JsonArrayWriter:
    """Makes JSON text of several values (JSON_ARRAY)."""

    encoders: tuple[Encoder, ...]

    def __call__(self, *values: Any) -> str:
        return trees.write([e(v) for e, v in zip(self.encoders, values, strict=True)])


@record
class JsonObjectWriter:
    """Makes JSON text of keys and values in turn (JSON_OBJECT)."""

    encoders: tuple[Encoder, ...]

    def __call__(self, *values: Any) -> str:
        pairs = JsonPairs()
        for encode, key, value in zip(self.encoders, values[::2], values[1::2], strict=True):
            if key is None:
                raise ValueError("the key of a JSON object cannot be NULL")
            pairs.append((key, encode(value)))
        return trees.write(pairs)


@record
class GroupedArray:
    """Makes JSON text of the values of a group (JSON_GROUP_ARRAY)."""

    encode: Encoder

    def __call__(self, values: Any) -> str | None:
        return trees.write(list(map(self.encode, values))) if values else None


@record
class GroupedObject:
    """Makes JSON text of the pairs of a group (JSON_GROUP_OBJECT)."""

    key: Encoder
    value: Encoder

    def __call__(self, values: Any) -> str | None:
        if any(key is None for key, _ in values):
            raise ValueError("json_group_object key cannot be NULL")
        made = JsonPairs((self.key.key_of(k), self.value(v)) for k, v in values)
        return trees.write(made) if values else None


# From JSON.


@record
class Decoder:
    """Makes a value of a tree of JSON: by the decoders of its parts, or by casts of a scalar.

    A `lenient` one gives NULL for what it cannot make, and for keys that are not there; an `exact`
    one refuses unknown keys.
    """

    kind: SqlType
    parts: tuple[Decoder, ...] = ()
    casts: tuple[Callable[..., Any] | None, ...] = ()
    lenient: bool = False
    exact: bool = False

    def __call__(self, tree: Any) -> Any:
        if tree is None:
            return None
        if not self.lenient:
            return self._made(tree)
        try:
            return self._made(tree)
        except (ValueError, ArithmeticError, TypeError):
            return None

    def _made(self, tree: Any) -> Any:
        is_object = isinstance(tree, JsonPairs)
        match self.kind.kind:
            case "json":
                return trees.write(tree)
            case "text" | "any":
                return trees.text_of(tree)
            case "array" if isinstance(tree, list) and not is_object:
                return tuple(map(self.parts[0], tree))
            case "map" if isinstance(tree, JsonPairs):
                return _unique(self.parts[0], tree, self.parts[1])
            case "struct" if isinstance(tree, JsonPairs):
                return self._fields(tree)
            case "struct" if self.lenient:
                return (None,) * len(self.kind.names)
            case "array" | "map" | "struct":
                raise ValueError(f"expected {self.kind.kind}, and got {trees.write(tree):.60}")
        if isinstance(tree, list):
            raise ValueError(f"cannot cast {trees.write(tree):.60} to {self.kind.kind}")
        if self.kind.kind == "decimal" and isinstance(tree, bool):
            tree = int(tree)
        place = _PLACES[type(tree)]
        function = self.casts[place]
        return tree if function is None else function(tree)

    def _fields(self, tree: JsonPairs) -> tuple[Any, ...]:
        names = self.kind.names
        if self.exact:
            known = set(names)
            for key, _ in tree:
                if key not in known:
                    raise ValueError(f"object {trees.write(tree):.60} has unknown key {key!r:.40}")
        if not self.lenient and len({key for key, _ in tree}) < len(tree):
            keys = [key for key, _ in tree]
            for name in names:
                if keys.count(name) > 1:
                    raise ValueError(f"object {trees.write(tree):.60} has duplicate key {name!r}")
        found = [tree.first(name) for name in names]
        if not self.lenient and any(each is ABSENT for each in found):
            raise ValueError(f"object {trees.write(tree):.60} lacks a key")
        return tuple(
            None if each is ABSENT else part(each)
            for part, each in zip(self.parts, found, strict=True)
        )


def _unique(key: Decoder, tree: JsonPairs, inside: Decoder) -> tuple[Any, ...]:
    """Return the pairs of a map."""
    made = tuple((key(name), inside(each)) for name, each in tree)
    if len({name for name, _ in made}) < len(made):
        raise ValueError(f"map keys must be unique: {trees.write(tree):.60}")
    return made


_PLACES = {str: 0, int: 1, float: 2, bool: 3}


def decoder(kind: SqlType, make: Maker, *, lenient: bool, exact: bool = False) -> Decoder:
    """Return the decoder of values of a type."""
    if kind.kind in ("array", "map", "struct"):
        parts = [decoder(e, make, lenient=lenient, exact=exact) for e in kind.items]
        return Decoder(kind, tuple(parts), (), lenient, exact)
    if kind.kind in ("text", "json", "any", "null"):
        return Decoder(kind, (), (), lenient)
    casts: list[Callable[..., Any] | None] = [make(TEXT, kind), _refuse, _refuse, _refuse]
    if kind.kind in ("int", "float", "decimal", "bool"):
        casts[1:] = [make(INT, kind), make(FLOAT, kind), make(BOOL, kind)]
    if kind.kind == "bool":
        casts[0] = Word(casts[0])
        casts[1], casts[2] = Finite(casts[1]), Finite(casts[2])
    elif kind.kind in _SPELLED:
        casts[0] = Spelled(casts[0], _SPELLED[kind.kind])
    return Decoder(kind, (), tuple(casts), lenient)


@record
class Word:
    """Reads a boolean from a word; digits are none."""

    function: Callable[..., Any] | None

    def __call__(self, text: str) -> Any:
        if text in ("0", "1") or self.function is None:
            _refuse(text)
        return None if self.function is None else self.function(text)


@record
class Finite:
    """Reads a boolean from a number that is an integer of 64 bits or a finite float."""

    function: Callable[..., Any] | None

    def __call__(self, number: Any) -> Any:
        large = math.isinf(number) if isinstance(number, float) else not LEAST <= number <= MOST
        if large or self.function is None:
            _refuse(number)
        return None if self.function is None else self.function(number)


_SPELLED = {
    "int": re.compile(r"\s*(?:-?(?:0|[1-9]\d*)|0[xX][0-9a-fA-F]+)\s*"),
    "float": re.compile(r"\s*(?!\+|0\d)[^_\s]+"),
}
"""The texts of JSON that casts to a number take, fewer than those of a VARCHAR."""


@record
class Spelled:
    """Reads a number from a text."""

    function: Callable[..., Any] | None
    form: re.Pattern[str]

    def __call__(self, text: str) -> Any:
        if self.form.fullmatch(text) is None or self.function is None:
            _refuse(text)
        return None if self.function is None else self.function(text)


def _refuse(value: Any) -> Any:
    raise ValueError(f"cannot cast {value!r:.60}")


@record
class Read:
    """Makes a value of JSON text."""

    decode: Decoder

    def __call__(self, text: str) -> Any:
        return self.decode(trees.parse(text))


def type_of_structure(structure: Any, type_of: Callable[[str], SqlType | None]) -> SqlType:
    """Return the type that the structure of FROM_JSON describes.

    Raises
    ------
    ValueError: it describes none.
    """
    match structure:
        case str():
            kind = type_of(structure)
            if kind is None:
                raise ValueError(f"there is no type {structure!r:.60}")
            return kind
        case JsonPairs() if structure:
            kinds = tuple(type_of_structure(each, type_of) for _, each in structure)
            return SqlType("struct", items=kinds, names=tuple(name for name, _ in structure))
        case [inner]:
            return SqlType("array", items=(type_of_structure(inner, type_of),))
        case _:
            raise ValueError(f"{trees.write(structure):.60} is no structure of types")
