"""Annotations as text that is stored, and compared with that of a later class.

    Optional[int]  ->  "int | None"          tuple["Line", ...]  ->  "tuple[Line, ...]"

A field may hold more than it did: what was an `int` may be an `int | None`, or a `float`.
"""

from __future__ import annotations

from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

ANYTHING = ("Any", "object")


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation itself."""
    if get_origin(hint) is Annotated:
        return alternatives(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(part for each in get_args(hint) for part in alternatives(each))
    return (type(None) if hint is None else hint,)


def type_text(hint: Any) -> str:
    """An annotation as text, the same however it is written.

    >>> from typing import Optional
    >>> type_text(Optional[int]), type_text(tuple[str, ...]), type_text(Any)
    ('int | None', 'tuple[str, ...]', 'Any')
    """
    if isinstance(hint, str):
        return hint
    parts = sorted({*map(_one, alternatives(hint))}, key=lambda text: (text == "None", text))
    return " | ".join(parts)


def _one(hint: Any) -> str:
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
    """Whether a field of one type may hold all that a field of another may.

    >>> holds_all("int | None", "int"), holds_all("float", "int"), holds_all("int", "int | None")
    (True, True, False)
    """
    if new in ANYTHING or old == new:
        return True
    wanted, given = _parts(new), _parts(old)
    return all(part in wanted or (part == "int" and "float" in wanted) for part in given)


def _parts(text: str) -> list[str]:
    """The members of a union, of which one may have others inside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in ")]")
        if letter == "|" and not depth:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()]
