"""Functions of `json` in Postgres: texts, whose parts keep their spelling.

    field('{"a": [1,  2.0]}', "a")       '[1,  2.0]'
    field('{"a": 1, "a": 2}', "a")       '2'             the last of equal keys

Cost:   the text is read at each call.
Source: PostgreSQL documentation, "JSON Functions and Operators".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from reactive.engine.collections.jsonb import check_text, write_text
from reactive.languages.sql.json.documents import place_of

_BLANKS = " \t\n\r"
_SCAN = json.JSONDecoder(parse_float=str, parse_int=str, object_pairs_hook=tuple).raw_decode
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}


def _behind_blanks(text: str, place: int) -> int:
    while text[place] in _BLANKS:
        place += 1
    return place


def kind_of(text: str) -> str:
    """Return the name of the kind of a text (JSON_TYPEOF)."""
    return _KINDS.get(text[_behind_blanks(text, 0)], "number")


def _parts(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the texts of the elements of an array, or of the fields of an object, with its keys."""
    place = _behind_blanks(text, 0)
    is_object = text[place] == "{"
    place = _behind_blanks(text, place + 1)
    while text[place] not in "]}":
        key = None
        if is_object:
            key, place = scanstring(text, place + 1)
            place = _behind_blanks(text, _behind_blanks(text, place) + 1)
        _, end = _SCAN(text, place)
        yield key, text[place:end]
        place = _behind_blanks(text, end)
        if text[place] == ",":
            place = _behind_blanks(text, place + 1)


def text_of_part(text: str) -> str | None:
    """Return a part as `->>` does: a text without quotes, null as None."""
    kind = kind_of(text)
    if kind == "string":
        return check_text(json.loads(text))
    return None if kind == "null" else text


def _as_text(text: str | None) -> str | None:
    return None if text is None else text_of_part(text)


# Parts.


def field(text: str, name: str) -> str | None:
    """Return the field of an object (`-> text`); None if there is none."""
    found = None
    if kind_of(text) == "object":
        for key, part in _parts(text):
            if key == name:
                found = part
    return found


def field_text(text: str, name: str) -> str | None:
    """Return the field of an object as a text (`->> text`)."""
    return _as_text(field(text, name))


def element(text: str, place: int) -> str | None:
    """Return an element of an array, negative places from its end (`-> int`); None if absent."""
    if kind_of(text) != "array":
        return None
    items = [part for _, part in _parts(text)]
    return items[place] if -len(items) <= place < len(items) else None


def element_text(text: str, place: int) -> str | None:
    """Return an element of an array as a text (`->> int`)."""
    return _as_text(element(text, place))


def at_path(text: str, path: Sequence[str | None]) -> str | None:
    """Return the part at a path (`#>`, JSON_EXTRACT_PATH); None if there is none.

    Of equal keys, the last that has the rest of the path counts.
    """
    if not path:
        return text
    step, rest = path[0], path[1:]
    if step is None:
        return None
    if kind_of(text) == "array":
        place = place_of(step, length(text))
        part = None if place is None else element(text, place)
        return None if part is None else at_path(part, rest)
    found = None
    if kind_of(text) == "object":
        for key, part in _parts(text):
            if key == step:
                found = at_path(part, rest) or found
    return found


def at_path_text(text: str, path: Sequence[str | None]) -> str | None:
    """Return the part at a path as a text (`#>>`)."""
    return _as_text(at_path(text, path))


# Functions.


def length(text: str) -> int:
    """Return the number of elements of an array (JSON_ARRAY_LENGTH)."""
    kind = kind_of(text)
    if kind != "array":
        raise ValueError(
            f"cannot get array length of a {'non-array' if kind == 'object' else 'scalar'}"
        )
    return sum(1 for _ in _parts(text))


def elements(text: str) -> tuple[str, ...]:
    """Return the elements of an array (JSON_ARRAY_ELEMENTS)."""
    kind = kind_of(text)
    if kind != "array":
        name = "json_array_elements"
        raise ValueError(f"cannot call {name} on a {'non-array' if kind == 'object' else 'scalar'}")
    return tuple(part for _, part in _parts(text))


def element_texts(text: str) -> tuple[str | None, ...]:
    """Return the elements of an array as texts (JSON_ARRAY_ELEMENTS_TEXT)."""
    return tuple(map(text_of_part, elements(text)))


def _fields(text: str, name: str) -> list[tuple[Any, str]]:
    kind = kind_of(text)
    if kind != "object":
        raise ValueError(f"cannot call {name}() on {'an array' if kind == 'array' else 'a scalar'}")
    return list(_parts(text))


def pairs(text: str) -> tuple[Any, ...]:
    """Return the keys and values of an object (JSON_EACH)."""
    return tuple(_fields(text, "json_each"))


def text_pairs(text: str) -> tuple[Any, ...]:
    """Return the keys and values of an object, these as texts (JSON_EACH_TEXT)."""
    return tuple((key, text_of_part(part)) for key, part in _fields(text, "json_each_text"))


def keys(text: str) -> tuple[str, ...]:
    """Return the keys of an object (JSON_OBJECT_KEYS)."""
    return tuple(key for key, _ in _fields(text, "json_object_keys"))


def without_nulls(text: str) -> str:
    """Return a text without blanks and fields that are null (JSON_STRIP_NULLS)."""
    kind = kind_of(text)
    if kind == "array":
        return f"[{','.join(without_nulls(part) for _, part in _parts(text))}]"
    if kind != "object":
        return write_text(json.loads(text)) if kind == "string" else text.strip(_BLANKS)
    kept = [(key, part) for key, part in _parts(text) if kind_of(part) != "null"]
    return f"{{{','.join(f'{write_text(str(k))}:{without_nulls(v)}' for k, v in kept)}}}"
