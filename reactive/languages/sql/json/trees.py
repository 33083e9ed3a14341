"""JSON in DuckDB: texts, which are read into values and written again.

    extract('{"a": [1, 2.50]}', "$.a")       '[1,2.5]'
    extract_text('{"a": "x"}', "a")          'x'
    found_at('[{"a": 1}, {"a": 2}]', "$[*].a")     ('1', '2')

Objects are `JsonPairs`, whose keys may repeat, arrays are lists.

Cost:   the text is read at each call.
Source: DuckDB documentation, "JSON Processing Functions".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from reactive.engine.collections.jsonb import check_depth, write_text

Steps: TypeAlias = "tuple[tuple[str, Any], ...]"


class JsonPairs(list[tuple[str, Any]]):
    """The keys and values of an object, in their order."""

    def first(self, key: str) -> Any:
        """Return the value of the first pair with a key; `ABSENT` if there is none."""
        return next((value for name, value in self if name == key), ABSENT)


LEAST, MOST = -(1 << 63), (1 << 64) - 1
"""Integers beyond have the type of a float."""
ABSENT: Any = object()
"""Stands for a part that is not there."""
_DECODER = json.JSONDecoder(object_pairs_hook=JsonPairs)
_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=[^\s\[{,:])\s*,(?=\s*[\]}])', re.DOTALL)


def parse(text: str) -> Any:
    """Return the value that a text spells; commas may stand before closing brackets.

    Raises
    ------
    ValueError: the text is no JSON.
    """
    check_depth(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        try:
            return _DECODER.decode(_COMMA.sub(_without_comma, text))
        except json.JSONDecodeError:
            raise ValueError(f"Malformed JSON at letter {error.pos + 1}: {text!r:.60}") from None


def _without_comma(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else ""


def check(text: str) -> str:
    """Return a text that is JSON."""
    parse(text)
    return text


def is_valid(text: str) -> bool:
    """Return True for a text that is JSON (JSON_VALID)."""
    try:
        parse(text)
    except ValueError:
        return False
    return True


def write_float(number: float) -> str:
    """Return a number as JSON of DuckDB.

    >>> write_float(1e16), write_float(1e25), write_float(2.5e-7)
    ('10000000000000000.0', '1e25', '2.5e-7')
    """
    if not math.isfinite(number):
        return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    exact = Decimal(repr(number))
    size = exact.adjusted() if exact else 0
    if -7 < size < 21:
        text = format(exact, "f")
        return text if "." in text else f"{text}.0"
    sign, digits, _ = exact.normalize().as_tuple()
    head, tail = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{head}{'.' * bool(tail)}{tail}e{size}"


def write(value: Any) -> str:
    """Return a value as JSON without blanks."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return write_text(value)
        case float():
            return write_float(value)
        case JsonPairs():
            return f"{{{','.join(f'{write_text(k)}:{write(v)}' for k, v in value)}}}"
        case list():
            return f"[{','.join(map(write, value))}]"
        case _:
            return str(value)


def compact(text: str) -> str:
    """Return a text without blanks, its numbers and texts in their usual form (JSON)."""
    return write(parse(text))


def text_of(value: Any) -> str | None:
    """Return a value as `->>` does: a text without quotes, null as None."""
    return value if value is None or isinstance(value, str) else write(value)


# Paths.

_STEP = re.compile(
    r'\.\.(?P<deep>"[^"]*"|[^.\["*]+)|\.(?P<all>\*)|\.(?P<key>"[^"]*"|[^.\["*]+)'
    r"|\[(?P<items>\*)\]|\[(?P<back>#-|-)?(?P<place>\d+)\]"
)


@lru_cache(maxsize=2_000)
def read_steps(path: str | int) -> Steps:
    """Return the steps of a path: `$.a[0]`, `/a/0`, a key, or a place.

    Raises
    ------
    ValueError: the text is no path.
    """
    if isinstance(path, int):
        return (("place", path),)
    if path == "":
        return ()
    if path.startswith("/"):
        parts = path[1:].split("/")
        return tuple(("pointer", part.replace("~1", "/").replace("~0", "~")) for part in parts)
    if not path.startswith("$"):
        return (("key", path),)
    steps, place = list[tuple[str, Any]](), 1
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            raise ValueError(f"JSON path error near {path[place:]!r:.40}")
        place = found.end()
        if found["place"] is not None:
            number = int(found["place"])
            steps.append(("place", -number if found["back"] else number))
        elif found["items"] or found["all"]:
            steps.append(("items" if found["items"] else "values", None))
        else:
            name = found["key"] or found["deep"]
            kind = "key" if found["key"] else "deep"
            steps.append((kind, name[1:-1] if name.startswith('"') else name))
    return tuple(steps)


_WILD = frozenset({"items", "values", "deep"})


def is_wild(path: str | int) -> bool:
    """Return True for a path that finds several parts."""
    return any(kind in _WILD for kind, _ in read_steps(path))


def _follow(value: Any, steps: Steps) -> Iterator[Any]:
    """Yield the parts that the steps of a path lead to."""
    if not steps:
        yield value
        return
    (kind, what), rest = steps[0], steps[1:]
    match kind:
        case "key" if isinstance(value, JsonPairs):
            inner: list[Any] = [value.first(what)]
        case "pointer" if isinstance(value, JsonPairs):
            inner = [value.first(what)]
        case "pointer" if isinstance(value, list) and what.isdigit():
            inner = value[int(what) :][:1]
        case "place" if isinstance(value, list) and not isinstance(value, JsonPairs):
            inner = [value[what]] if -len(value) <= what < len(value) else []
        case "items" if isinstance(value, list) and not isinstance(value, JsonPairs):
            inner = value
        case "values" if isinstance(value, JsonPairs):
            inner = [each for _, each in value]
        case "deep":
            inner = list(_deep(value, what))
        case _:
            inner = []
    for each in inner:
        if each is not ABSENT:
            yield from _follow(each, rest)


def _deep(value: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at all levels, level by level."""
    waiting = [value]
    for each in waiting:  # which grows
        if isinstance(each, JsonPairs):
            found = each.first(key)
            if found is not ABSENT:
                yield found
            waiting += [inner for _, inner in each]
        elif isinstance(each, list):
            waiting += each


def part_of(value: Any, path: str | int) -> Any:
    """Return the part at a path; `ABSENT` if there is none."""
    return next(_follow(value, read_steps(path)), ABSENT)


def extract(text: str, path: str | int) -> str | None:
    """Return the part at a path as JSON (`->`, JSON_EXTRACT); None if there is none."""
    found = part_of(parse(text), path)
    return None if found is ABSENT else write(found)


def item(text: str, key: str | int) -> str | None:
    """Return the field of an object or the element of an array as JSON (`j['a']`, `j[0]`)."""
    found = next(_follow(parse(text), (("key" if isinstance(key, str) else "place", key),)), ABSENT)
    return None if found is ABSENT else write(found)


def extract_text(text: str, path: str | int) -> str | None:
    """Return the part at a path as a text (`->>`, JSON_EXTRACT_STRING)."""
    found = part_of(parse(text), path)
    return None if found is ABSENT else text_of(found)


def found_at(text: str, path: str) -> tuple[str, ...]:
    """Return the parts that a path with wildcards finds, as JSON."""
    return tuple(map(write, _follow(parse(text), read_steps(path))))


def texts_at(text: str, path: str) -> tuple[str | None, ...]:
    """Return the parts that a path with wildcards finds, as texts."""
    return tuple(map(text_of, _follow(parse(text), read_steps(path))))


def exists(text: str, path: str | int) -> bool:
    """Return True if there is a part at a path (JSON_EXISTS)."""
    return part_of(parse(text), path) is not ABSENT


def scalar_at(text: str, path: str | int) -> str | None:
    """Return the scalar at a path as JSON (JSON_VALUE); None of an array, object or null."""
    found = part_of(parse(text), path)
    return None if found is ABSENT or found is None or isinstance(found, list) else write(found)


# Functions.


def kind_of(value: Any) -> str:
    """Return the name of the type of a value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() if LEAST <= value <= MOST:
            return "BIGINT" if value < 0 else "UBIGINT"
        case int():
            return "DOUBLE"
        case float():
            return "DOUBLE"
        case str():
            return "VARCHAR"
        case _:
            return "OBJECT" if isinstance(value, JsonPairs) else "ARRAY"


def type_at(text: str, path: str | int = "$") -> str | None:
    """Return the name of the type of a part (JSON_TYPE)."""
    found = part_of(parse(text), path)
    return None if found is ABSENT else kind_of(found)


def length_at(text: str, path: str | int = "$") -> int | None:
    """Return the number of elements of an array (JSON_ARRAY_LENGTH); 0 of another value."""
    found = part_of(parse(text), path)
    if found is ABSENT:
        return None
    return len(found) if isinstance(found, list) and not isinstance(found, JsonPairs) else 0


def keys_at(text: str, path: str | int = "$") -> tuple[str, ...] | None:
    """Return the keys of an object (JSON_KEYS); none of another value."""
    found = part_of(parse(text), path)
    if found is ABSENT:
        return None
    return tuple(key for key, _ in found) if isinstance(found, JsonPairs) else ()


def contains(text: str, part: str) -> bool:
    """Return True if a value is in another, at any level (JSON_CONTAINS)."""
    return _contains(parse(text), parse(part))


def _contains(value: Any, part: Any) -> bool:
    if _is_like(value, part):
        return True
    inside = [each for _, each in value] if isinstance(value, JsonPairs) else value
    return isinstance(inside, list) and any(_contains(each, part) for each in inside)


def _is_like(value: Any, part: Any) -> bool:
    """Return True if all that is in `part` is in a value of the same kind."""
    if isinstance(part, JsonPairs):
        return isinstance(value, JsonPairs) and all(
            (found := value.first(key)) is not ABSENT and _is_like(found, each)
            for key, each in part
        )
    if isinstance(part, list):
        is_array = isinstance(value, list) and not isinstance(value, JsonPairs)
        return is_array and all(any(_is_like(v, each) for v in value) for each in part)
    return type(value) is type(part) and bool(value == part)


def structure(text: str) -> str:
    """Return the types inside of a value as JSON (JSON_STRUCTURE)."""
    return write(_structure(parse(text)))


def _structure(value: Any) -> Any:
    if isinstance(value, JsonPairs):
        fields: dict[str, Any] = {}
        for key, each in value:
            inner = _structure(each)
            fields[key] = _merge(fields[key], inner) if key in fields else inner
        return JsonPairs(fields.items()) if fields else "JSON"
    if isinstance(value, list):
        merged: Any = "NULL"
        for each in value:
            merged = _merge(merged, _structure(each))
        return [merged]
    return kind_of(value)


_INTEGERS = frozenset({"BIGINT", "UBIGINT", "HUGEINT"})


def _merge(one: Any, other: Any) -> Any:
    """Return the structure of values of two structures."""
    if one == other or other == "NULL":
        return one
    if one == "NULL":
        return other
    if isinstance(one, JsonPairs) and isinstance(other, JsonPairs):
        fields = dict(one)
        for key, each in other:
            fields[key] = _merge(fields[key], each) if key in fields else each
        return JsonPairs(fields.items())
    if isinstance(one, list) and isinstance(other, list) and type(one) is type(other):
        return [_merge(one[0], other[0])]
    if isinstance(one, str) and isinstance(other, str) and {one, other} <= _INTEGERS | {"DOUBLE"}:
        return "DOUBLE" if "DOUBLE" in (one, other) else "HUGEINT"
    return "JSON"


def patched(text: str | None, *patches: str | None) -> str | None:
    """Return a value with others merged into it (JSON_MERGE_PATCH); None of a patch of NULL."""
    made = ABSENT if text is None else parse(text)
    for patch in patches:
        if patch is None:
            made = ABSENT
            continue
        change = parse(patch)
        is_object = isinstance(made, JsonPairs) and isinstance(change, JsonPairs)
        made = _patch(made, change) if is_object else change
    return None if made is ABSENT else write(made)


def _patch(value: Any, change: Any) -> Any:
    if not isinstance(change, JsonPairs):
        return change
    known = value if isinstance(value, JsonPairs) else JsonPairs()
    changed = {key for key, _ in change}
    made = JsonPairs((key, each) for key, each in known if key not in changed)
    for key, each in change:
        if each is not None:
            made.append((key, _patch(known.first(key), each)))
    return made


def pretty(text: str) -> str:
    """Return a value in lines, each level indented by four blanks (JSON_PRETTY)."""
    return _pretty(parse(text), "\n")


def _pretty(value: Any, line: str) -> str:
    if not isinstance(value, list) or not value:
        return write(value)
    inner = f"{line}    "
    if isinstance(value, JsonPairs):
        parts = [f"{write_text(key)}: {_pretty(each, inner)}" for key, each in value]
        return f"{{{inner}{f',{inner}'.join(parts)}{line}}}"
    return f"[{inner}{f',{inner}'.join(_pretty(each, inner) for each in value)}{line}]"


# Rows.

_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def rows(text: str, path: str = "$") -> tuple[Any, ...]:
    """Return a row for each part of an array or object, or for a scalar (JSON_EACH)."""
    return tuple(_rows(text, path, deep=False))


def all_rows(text: str, path: str = "$") -> tuple[Any, ...]:
    """Return a row for a value and for each part inside of it (JSON_TREE)."""
    return tuple(_rows(text, path, deep=True))


def _rows(text: str, path: str, *, deep: bool) -> Iterator[Any]:
    value = parse(text)
    found = part_of(value, path)
    if found is ABSENT:
        return
    numbers: dict[int, int] = {}
    _number(value, numbers, 0)
    shown = path if path.startswith("$") else f"$.{path}"
    number = numbers.get(id(found), 0)
    is_scalar = not isinstance(found, list)
    if deep or is_scalar:
        yield _row(None, found, number, None, shown, shown)
    if not is_scalar:
        yield from _inner_rows(found, number if deep else None, number, shown, deep=deep)


def _number(value: Any, numbers: dict[int, int], last: int) -> int:
    """Write the numbers of arrays and objects, in the order of the text; keys count, too."""
    if not isinstance(value, list):
        return last
    numbers[id(value)] = last
    for each in value:
        if isinstance(value, JsonPairs):
            last, each = last + 1, each[1]
        last = _number(each, numbers, last + 1)
    return last


def _inner_rows(
    value: list[Any], parent: int | None, number: int, path: str, *, deep: bool
) -> Iterator[Any]:
    for place, each in enumerate(value):
        if isinstance(value, JsonPairs):
            key, part = each
            number += 2
            full = f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}."{key}"'
        else:
            key, part = str(place), each
            number += 1
            full = f"{path}[{place}]"
        yield _row(key, part, number, parent, full, path)
        if deep and isinstance(part, list):
            yield from _inner_rows(part, number, number, full, deep=True)
        number = _number(part, {}, number)


def _row(key: str | None, value: Any, number: int, parent: int | None, full: str, path: str) -> Any:
    atom = None if isinstance(value, list) or value is None else write(value)
    return key, write(value), kind_of(value), atom, number, parent, full, path
