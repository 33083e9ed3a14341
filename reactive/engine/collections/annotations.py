"""What the annotations of a row's class say about the values that its rows hold.

They are trusted, as a type checker makes sure of them.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from optimizer.kinds.fields import compared
from optimizer.kinds.kind import Choice, Either, Items, Kind, Places, class_of, hints_of, kind_of


def declared(kind: Any) -> dict[str, Kind]:
    """The kinds of the fields by which rows of a class are equal.

    Of dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models; nothing for
    other classes.

    >>> from typing import NamedTuple
    >>> list(declared(NamedTuple("Point", [("x", int), ("names", tuple[str, ...])])))
    ['x', 'names']
    """
    names = compared(kind) if isinstance(kind, type) else ()
    hints = hints_of(kind) if names else {}
    return {name: kind_of(hints[name]) for name in names}


def is_made_of(kind: Kind, classes: Set[type]) -> bool:
    """Return True if values are of these classes, or tuples or frozen sets of such.

    >>> is_made_of(kind_of(tuple[str | None, ...]), {str, type(None)})
    True
    >>> is_made_of(kind_of(int | float), {int})
    False
    """
    match kind:
        case Either(inner) | Places(inner):
            return all(is_made_of(each, classes) for each in inner)
        case Items(item=item) if class_of(kind) in (tuple, frozenset):
            return is_made_of(item, classes)
        case Choice(values):
            return all(type(value) in classes for value in values)
        case _:
            return class_of(kind) in classes


def is_hashable(kind: Any) -> bool:
    """Whether all rows of a class have a hash, which then need not be tried.

    >>> from typing import NamedTuple
    >>> is_hashable(NamedTuple("Point", [("x", int)])), is_hashable(tuple)
    (True, False)
    """
    if kind in _HASHABLE:
        return True
    fields = declared(kind)
    is_plain = getattr(kind, "__hash__", None) is getattr(tuple, "__hash__")  # noqa: B009
    return is_plain and fields != {} and all(is_made_of(f, _HASHABLE) for f in fields.values())


_HASHABLE: frozenset[type] = frozenset({int, float, str, bytes, bool, type(None)})
