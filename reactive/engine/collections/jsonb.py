"""Immutable, hashable JSON document, ordered and written as `jsonb` of Postgres.

    Jsonb({"b": 1, "aa": [1.0, None]})      {"b": 1, "aa": [1.0, null]}     short keys first
    Jsonb.parse('{"a": 1, "a": 2}')         {"a": 2}                        the last of equal keys
    Jsonb(1) == Jsonb(1.0), Jsonb(1) != Jsonb(True)

    null < text < number < boolean < array < object, each by its length, then by its parts

Inside, arrays are tuples, objects are dictionaries in the order of their keys, and numbers are
`int` or `Decimal`.

Source: PostgreSQL documentation, "JSON Types".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import total_ordering
from typing import Any

MOST_LEVELS = 200
"""Levels of arrays and objects inside of each other."""
TOO_DEEP = f"JSON is nested deeper than {MOST_LEVELS} levels"
_MOST_DIGITS, _MOST_PLACES = 131_072, 16_383
"""Digits of a number before its point, and behind it."""


@total_ordering
class Jsonb:
    """A JSON document as an immutable value: `Jsonb({"tags": ["a"], "size": 1})`.

    Parameters
    ----------
    value: dict with keys of text, list or tuple, text, bool, None, or a finite number.

    Raises
    ------
    TypeError: a part of it is of another class.
    ValueError: a number is not finite, a text has NUL or half of a surrogate pair, or the parts
        are nested deeper than 200 levels.

    >>> document = Jsonb({"size": 1, "tags": ["a", None]})
    >>> str(document), document.value
    ('{"size": 1, "tags": ["a", null]}', {'size': 1, 'tags': ['a', None]})
    >>> Jsonb.parse('{"tags": ["a", null], "size": 1.0}') == document, len({document, document})
    (True, 1)
    """

    __slots__ = ("_hash", "_key", "data")

    _hash: int | None
    _key: tuple[Any, ...] | None
    data: Any
    """The document of tuples, dictionaries, texts and numbers; not to be changed."""

    def __init__(self, value: Any = None) -> None:
        self._set(value.data if isinstance(value, Jsonb) else _freeze(value, 0))

    def _set(self, data: Any) -> None:
        for name, each in (("data", data), ("_key", None), ("_hash", None)):
            object.__setattr__(self, name, each)

    @classmethod
    def parse(cls, text: str) -> Jsonb:
        """Return the document that a text spells.

        Raises
        ------
        ValueError: the text is no JSON, or a value of it has no place in a document.
        """
        return cls.of(parse_document(text))

    @classmethod
    def of(cls, data: Any) -> Jsonb:
        """Return the document of frozen data, which is trusted."""
        made = cls.__new__(cls)
        made._set(data)
        return made

    @property
    def value(self) -> Any:
        """The document as new lists and dictionaries; numbers with a point are `Decimal`."""
        return _thaw(self.data)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot set {name!r}: a Jsonb is immutable")

    def __str__(self) -> str:
        return write_document(self.data)

    def __repr__(self) -> str:
        return f"Jsonb.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Jsonb) and self._sort_key() == other._sort_key()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Jsonb):
            return NotImplemented
        return bool(self._sort_key() < other._sort_key())

    def __hash__(self) -> int:
        found = self._hash
        if found is None:
            found = hash(self._sort_key())
            object.__setattr__(self, "_hash", found)
        return found

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Jsonb.parse, (str(self),)

    def _sort_key(self) -> tuple[Any, ...]:
        """Return what the document is compared by; an empty array is less than any scalar."""
        key = self._key
        if key is None:
            key = (-1,) if self.data == () else sort_key_of(self.data)
            object.__setattr__(self, "_key", key)
        return key


def sort_key_of(data: Any) -> tuple[Any, ...]:
    """Return what a part of a document is compared by.

    >>> sort_key_of("z") < sort_key_of(1) < sort_key_of(False) < sort_key_of(())
    True
    """
    match data:
        case None:
            return (0,)
        case str():
            return (1, data)
        case bool():
            return (3, data)
        case int() | Decimal():
            return (2, data)
        case tuple():
            return (4, len(data), *map(sort_key_of, data))
        case _:
            pairs = [part for key, each in data.items() for part in (key, sort_key_of(each))]
            return (5, len(data), *pairs)


def in_key_order(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its keys in order: by their bytes, shorter ones first."""
    return dict(sorted(items.items(), key=lambda pair: (len(code := pair[0].encode()), code)))


def _freeze(value: Any, depth: int) -> Any:
    """Return the frozen data of Python values."""
    if depth > MOST_LEVELS:
        raise ValueError(TOO_DEEP)
    match value:
        case Jsonb():
            return value.data
        case None | bool():
            return value
        case str():
            return check_text(str(value))
        case int():
            return int(value)
        case float() | Decimal():
            number = Decimal(repr(float(value))) if isinstance(value, float) else value
            return check_number(number)
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError("keys of a JSON object are texts")
            made = {check_text(k): _freeze(v, depth + 1) for k, v in value.items()}
            return in_key_order(made)
        case bytes() | bytearray():
            pass
        case Sequence():
            return tuple(_freeze(each, depth + 1) for each in value)
    raise TypeError(
        f"{value!r:.60} of {type(value).__name__} is no JSON: give text, numbers, "
        "True, False, None, lists and dictionaries"
    )


def _thaw(data: Any) -> Any:
    if isinstance(data, tuple):
        return [_thaw(each) for each in data]
    return {k: _thaw(v) for k, v in data.items()} if isinstance(data, dict) else data


def check_text(text: str) -> str:
    """Return a text; refuse NUL and halves of surrogate pairs."""
    if "\0" in text:
        raise ValueError("\\u0000 cannot be a part of a text")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair cannot be a part of a text") from None
    return text


def check_number(number: Decimal) -> int | Decimal:
    """Return a number; refuse NaN, infinite and huge ones."""
    if not number.is_finite():
        raise ValueError(f"{number} is no number of JSON")
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if number.adjusted() >= _MOST_DIGITS or -exponent > _MOST_PLACES:
        raise ValueError("a number of JSON has too many digits")
    if exponent > 0:
        return int(number)
    if not number:
        return abs(number) if exponent else 0
    return number


def read_number(text: str) -> int | Decimal:
    """Return the number that a text spells, with its digits behind the point."""
    if len(text) < 1_000 and text.lstrip("-").isdigit():
        return int(text)
    try:
        return check_number(Decimal(text))
    except InvalidOperation:
        raise ValueError("a number of JSON has too many digits") from None


def _refuse_word(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return in_key_order({key: _read_part(value) for key, value in pairs})


def _read_part(value: Any) -> Any:
    return tuple(map(_read_part, value)) if isinstance(value, list) else value


_DECODER = json.JSONDecoder(
    parse_float=read_number,
    parse_int=read_number,
    parse_constant=_refuse_word,
    object_pairs_hook=_read_object,
)


def parse_document(text: str) -> Any:
    """Return the frozen data that a text spells; of equal keys the last."""
    check_json(text)
    made = _read_part(_DECODER.decode(text))
    if "\\u" in text:
        _check_texts(made)
    return made


def _check_texts(data: Any) -> None:
    match data:
        case str():
            check_text(data)
        case tuple():
            for each in data:
                _check_texts(each)
        case dict():
            for key, each in data.items():
                check_text(key)
                _check_texts(each)


_CHECKER = json.JSONDecoder(
    parse_float=str, parse_int=str, parse_constant=_refuse_word, object_pairs_hook=tuple
)


def check_json(text: str) -> str:
    """Return a text that is JSON.

    Raises
    ------
    ValueError: it is not, or it is nested deeper than 200 levels.
    """
    check_depth(text)
    try:
        _CHECKER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{text!r:.60} is no JSON: {error.msg} at letter {error.pos + 1}"
        ) from None
    return text


def check_depth(text: str) -> None:
    """Refuse a text with more than 200 levels of brackets."""
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return
    depth, inside, skips = 0, False, False
    for letter in text:
        if inside:
            inside, skips = skips or letter != '"', not skips and letter == "\\"
        elif letter == '"':
            inside = True
        else:
            depth += (letter in "[{") - (letter in "]}")
            if depth > MOST_LEVELS:
                raise ValueError(TOO_DEEP)


_write_text = json.JSONEncoder(ensure_ascii=False).encode


def write_text(text: str) -> str:
    """Return a text as JSON."""
    return _write_text(text)


def write_number(number: int | Decimal) -> str:
    """Return a number as JSON, without an exponent."""
    if isinstance(number, int):
        return str(number) if -(10**4000) < number < 10**4000 else format(Decimal(number), "f")
    return format(number, "f")


def write_document(data: Any) -> str:
    """Return frozen data as JSON, with blanks behind commas and colons."""
    match data:
        case None:
            return "null"
        case str():
            return _write_text(data)
        case bool():
            return "true" if data else "false"
        case int() | Decimal():
            return write_number(data)
        case tuple():
            return f"[{', '.join(map(write_document, data))}]"
        case _:
            pairs = [f"{_write_text(k)}: {write_document(v)}" for k, v in data.items()]
            return f"{{{', '.join(pairs)}}}"
