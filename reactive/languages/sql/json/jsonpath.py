"""Paths of Postgres (`jsonpath`), followed in documents.

    query_path(Jsonb([1, 2, 3]), "$[*] ? (@ > 1)")       (Jsonb(2), Jsonb(3))
    matches_path(Jsonb({"a": 1}), "$.a == 1")            True

In the mode `lax`, which is usual, an array stands for its elements where a step needs no array, and
a part that is not there is no error.

Source: PostgreSQL documentation, "The SQL/JSON Path Language".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from reactive.engine.collections.jsonb import Jsonb, check_number
from reactive.languages.sql.json.documents import is_scalar, kind_of
from reactive.languages.sql.json.path_reader import PREDICATES, JsonPath, PathStep, read_path
from reactive.languages.sql.postgres import forms, numerics

NO_VARIABLES = Jsonb({})
_ORDERED = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0), "==": (0,), "!=": (-1, 1)}
_ARITHMETIC = {
    "+": numerics.numeric_sum,
    "-": numerics.numeric_difference,
    "*": numerics.numeric_product,
    "/": numerics.numeric_quotient,
    "%": numerics.numeric_remainder,
}
_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE, "q": 0}


class PathError(ValueError):
    """A step of a path does not fit the document."""


def query_path(
    document: Jsonb, path: str, variables: Jsonb = NO_VARIABLES, silent: bool = False
) -> tuple[Jsonb, ...]:
    """Return the parts that a path finds (JSONB_PATH_QUERY)."""
    return tuple(map(Jsonb.of, _found(document, path, variables, silent=silent)))


def query_path_array(
    document: Jsonb, path: str, variables: Jsonb = NO_VARIABLES, silent: bool = False
) -> Jsonb:
    """Return the parts that a path finds as an array (JSONB_PATH_QUERY_ARRAY)."""
    return Jsonb.of(tuple(_found(document, path, variables, silent=silent)))


def query_path_first(
    document: Jsonb, path: str, variables: Jsonb = NO_VARIABLES, silent: bool = False
) -> Jsonb | None:
    """Return the first part that a path finds (JSONB_PATH_QUERY_FIRST)."""
    found = _found(document, path, variables, silent=silent)
    return Jsonb.of(found[0]) if found else None


def path_exists(
    document: Jsonb, path: str, variables: Jsonb = NO_VARIABLES, silent: bool = False
) -> bool | None:
    """Return True if a path finds a part (JSONB_PATH_EXISTS); None of a silent error."""
    try:
        return _run(document, path, variables).finds_some()
    except PathError:
        if silent:
            return None
        raise


def matches_path(
    document: Jsonb, path: str, variables: Jsonb = NO_VARIABLES, silent: bool = False
) -> bool | None:
    """Return the only value that a path finds, a boolean (JSONB_PATH_MATCH)."""
    found = _found(document, path, variables, silent=silent)
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if silent:
        return None
    raise ValueError("single boolean result is expected")


def has_path(document: Jsonb, path: str) -> bool | None:
    """Return True if a path finds a part; None of an error (`@?`)."""
    return path_exists(document, path, silent=True)


def has_match(document: Jsonb, path: str) -> bool | None:
    """Return the boolean that a path finds; None of an error (`@@`)."""
    return matches_path(document, path, silent=True)


_NOTHING: Any = object()


def _found(document: Jsonb, path: str, variables: Jsonb, *, silent: bool) -> list[Any]:
    found: list[Any] = []
    try:
        found.extend(_run(document, path, variables))
    except PathError:
        if not silent:
            raise
    return found  # what was found before a silent error, too


def _run(document: Jsonb, path: str, variables: Jsonb) -> _Walk:
    if not isinstance(variables.data, dict):
        raise ValueError('"vars" argument is not an object')
    return _Walk(read_path(path), document.data, variables.data)


class _Walk:
    """One evaluation of a path, and the parts that it finds."""

    def __init__(self, path: JsonPath, root: Any, variables: dict[str, Any]) -> None:
        self._path, self._root, self._variables, self.lax = path.root, root, variables, path.lax

    def __iter__(self) -> Iterator[Any]:
        return self._walk(self._path, self._root, None)

    def finds_some(self) -> bool:
        """Return True if the path finds a part."""
        return self._finds_some(self._path, self._root, None)

    def _finds_some(self, step: PathStep, current: Any, last: int | None) -> bool:
        """Return True if a step finds a part; in the mode `lax` nothing behind it is read."""
        if not self.lax:
            return bool(list(self._walk(step, current, last)))
        if step.kind == "sign":  # which passes over other parts then
            parts = self._unwrapped(step.of[0], current, last)
            return any(kind_of(part) == "number" for part in parts)
        return next(self._walk(step, current, last), _NOTHING) is not _NOTHING

    def _walk(self, step: PathStep, current: Any, last: int | None) -> Iterator[Any]:
        """Yield the parts that a step finds; `current` is `@`, `last` the last place."""
        if step.kind in PREDICATES:
            yield self._is_true(step, current, last)
            return
        match step.kind:
            case "root":
                yield self._root
            case "current":
                yield current
            case "literal":
                yield step.more[0]
            case "variable":
                if step.more[0] not in self._variables:
                    raise ValueError(f"could not find jsonpath variable {step.more[0]!r}")
                yield self._variables[step.more[0]]
            case "last":
                if last is None:
                    raise ValueError("LAST is allowed only in array subscripts")
                yield last
            case "arithmetic":
                yield self._calculated(step, current, last)
            case "sign":
                for part in self._unwrapped(step.of[0], current, last):
                    if kind_of(part) != "number":
                        raise PathError("operand of unary jsonpath operator is not a number")
                    yield -part if step.more[0] == "-" else part
            case kind:
                for part in self._walk(step.of[0], current, last):
                    yield from self._follow(kind, step, part, last)

    def _follow(self, kind: str, step: PathStep, part: Any, last: int | None) -> Iterator[Any]:
        """Yield what one step finds in one part."""
        is_array = isinstance(part, tuple)
        if is_array and self.lax and kind in _OF_ELEMENTS:
            for each in part:
                yield from self._follow_one(kind, step, each, last)
        else:
            yield from self._follow_one(kind, step, part, last)

    def _follow_one(self, kind: str, step: PathStep, part: Any, last: int | None) -> Iterator[Any]:
        match kind:
            case "key" if isinstance(part, dict) and step.more[0] in part:
                yield part[step.more[0]]
            case "key" | "values" if not isinstance(part, dict):
                self._refuse(step, "jsonpath accessor can only be applied to an object")
            case "key":
                self._refuse(step, f"JSON object does not contain key {step.more[0]!r}")
            case "values":
                yield from part.values()
            case "levels":
                yield from _levels(part, 0, *step.more)
            case "items" if isinstance(part, tuple):
                yield from part
            case "items" | "places" if not isinstance(part, tuple):
                self._refuse(step, "jsonpath array accessor can only be applied to an array")
                yield from (part,) if kind == "items" else self._places(step, (part,), part)
            case "places":
                yield from self._places(step, part, part)
            case "filter":
                if self._is_true(step.of[1], part, last) is True:
                    yield part
            case "type":
                yield kind_of(part)
            case "size":
                if not isinstance(part, tuple):
                    self._refuse(
                        step, "jsonpath item method .size() can only be applied to an array"
                    )
                yield len(part) if isinstance(part, tuple) else 1
            case _:
                yield _method(kind, part)

    def _refuse(self, step: PathStep, told: str) -> None:
        """Raise an error in the mode `strict`, but for steps behind `**`."""
        if not self.lax and not _is_behind_levels(step):
            raise PathError(told)

    def _places(self, step: PathStep, items: tuple[Any, ...], current: Any) -> Iterator[Any]:
        for first, end in step.more:
            begin = self._place(first, current, len(items) - 1)
            stop = begin if end is None else self._place(end, current, len(items) - 1)
            if begin < 0 or begin > stop or stop >= len(items):
                self._refuse(step, "jsonpath array subscript is out of bounds")
            yield from items[max(begin, 0) : max(stop + 1, 0)]

    def _place(self, step: PathStep, current: Any, last: int) -> int:
        found = list(self._walk(step, current, last))
        if len(found) != 1 or kind_of(found[0]) != "number":
            raise PathError("jsonpath array subscript is not a single numeric value")
        if not -(2**31) <= found[0] < 2**31:
            raise PathError("jsonpath array subscript is out of integer range")
        return int(found[0])

    def _unwrapped(self, step: PathStep, current: Any, last: int | None) -> Iterator[Any]:
        """Yield what a step finds; in the mode `lax` the elements of arrays."""
        for part in self._walk(step, current, last):
            if self.lax and isinstance(part, tuple):
                yield from part
            else:
                yield part

    def _calculated(self, step: PathStep, current: Any, last: int | None) -> Any:
        values = []
        for side, name in zip(step.of, ("left", "right"), strict=True):
            found = list(self._unwrapped(side, current, last))
            if len(found) != 1 or kind_of(found[0]) != "number":
                raise PathError(f"{name} operand of jsonpath operator is not a single number")
            values.append(Decimal(found[0]))
        try:
            return check_number(_ARITHMETIC[step.more[0]](*values))
        except ArithmeticError as error:
            raise PathError(str(error)) from None

    # Conditions: True, False, or None for unknown.

    def _is_true(self, step: PathStep, current: Any, last: int | None) -> bool | None:
        match step.kind:
            case "and" | "or":
                found = [self._is_true(each, current, last) for each in step.of]
                decisive = step.kind == "or"
                return decisive if decisive in found else None if None in found else not decisive
            case "not":
                inner = self._is_true(step.of[0], current, last)
                return None if inner is None else not inner
            case "unknown":
                return self._is_true(step.of[0], current, last) is None
            case "exists":
                try:
                    return self._finds_some(step.of[0], current, last)
                except PathError:
                    return None
            case _:
                return self._compares(step, current, last)

    def _compares(self, step: PathStep, current: Any, last: int | None) -> bool | None:
        """Return True if a condition is true of one pair of what its sides find."""
        try:
            left = list(self._unwrapped(step.of[0], current, last))
            right = [_NOTHING]
            if step.kind != "regex":
                right = list(self._unwrapped(step.of[1], current, last))
        except PathError:
            return None
        results = []
        for one in left:
            for other in right:
                found = _compare(step, one, other)
                if (found and self.lax) or (found is None and not self.lax):
                    return found
                results.append(found)
        return True if True in results else None if None in results else False


def _is_behind_levels(step: PathStep) -> bool:
    """Return True if a step before this one is `**`."""
    while step.of:
        step = step.of[0]
        if step.kind == "levels":
            return True
    return False


_OF_ELEMENTS = frozenset({"key", "values", "filter", "double", "ceiling", "floor", "abs"})
"""Steps that are applied to the elements of an array."""


def _levels(part: Any, level: int, first: int, last: int | None) -> Iterator[Any]:
    """Yield a part and the parts inside, if their levels are from `first` to `last`."""
    inside: Sequence[Any] = ()
    if not is_scalar(part):
        inside = part if isinstance(part, tuple) else tuple(part.values())
    is_wanted = first <= level and (last is None or level <= last)
    if is_wanted if first >= 0 else level and is_scalar(part):
        yield part
    if last is None or level < last:
        for each in inside:
            yield from _levels(each, level + 1, first, last)


def _method(kind: str, part: Any) -> Any:
    if kind == "double" and isinstance(part, str):
        try:
            return check_number(forms.decimal(forms.float_(part)))
        except (ValueError, ArithmeticError):
            raise PathError("string argument of .double() is not a number") from None
    if kind_of(part) != "number":
        raise PathError(f"jsonpath item method .{kind}() can only be applied to a numeric value")
    match kind:
        case "double":
            return _in_range(part)
        case "abs":
            return abs(part)
        case "floor":
            return int(part // 1) - (part < 0 and part % 1 != 0)
        case _:
            return -(int(-part // 1) - (-part < 0 and -part % 1 != 0))


def _in_range(number: Any) -> Any:
    """Return a number that a float may be."""
    try:
        forms.float_(str(number))
    except ArithmeticError:
        raise PathError("numeric argument of .double() is out of range") from None
    return number


def _compare(step: PathStep, one: Any, other: Any) -> bool | None:
    if step.kind == "regex":
        if not isinstance(one, str):
            return None
        return _pattern(*step.more).search(one) is not None
    if step.kind == "starts":
        if not (isinstance(one, str) and isinstance(other, str)):
            return None
        return one.startswith(other)
    symbol, kind = step.more[0], kind_of(one)
    if kind != kind_of(other):
        return symbol == "!=" if None in (one, other) else None
    if kind in ("array", "object"):
        return None
    sign = 0 if one == other else 1 if one is not None and one > other else -1
    return sign in _ORDERED[symbol]


@lru_cache(maxsize=500)
def _pattern(pattern: str, flags: str) -> re.Pattern[str]:
    """Return the pattern of LIKE_REGEX; refuse one that Python cannot read."""
    if "q" in flags:
        pattern = re.escape(pattern)
    number = 0
    for flag in flags:
        number |= _FLAGS.get(flag, 0)
    try:
        return re.compile(pattern, number)
    except re.error as error:
        raise ValueError(f"{pattern!r:.60} is no regular expression: {error}") from None
