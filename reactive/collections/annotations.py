"""What the annotations of a row's class say about the values that its rows hold.

They are trusted, as a type checker makes sure of them.
"""

from __future__ import annotations

from collections.abc import Set
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from optimizer.kinds.fields import compared


def declared(kind: Any) -> dict[str, Any]:
    """The types of the fields by which rows of a class are equal.

    Of dataclasses, named tuples, `msgspec.Struct`, attrs classes and pydantic models; nothing for
    other classes. As text, where a name in it is not known.

    >>> from typing import NamedTuple
    >>> declared(NamedTuple("Point", [("x", int), ("names", tuple[str, ...])]))
    {'x': <class 'int'>, 'names': tuple[str, ...]}
    """
    names = compared(kind) if isinstance(kind, type) else ()
    if not names:
        return {}
    hints = _hints(kind)
    return {name: hints.get(name, Any) for name in names}


def is_made_of(annotation: Any, kinds: Set[type]) -> bool:
    """Return True if it says that a value is of these types, or a tuple or frozen set of such.

    >>> is_made_of(tuple[str | None, ...], {str, type(None)}), is_made_of("int | float", {int})
    (True, False)
    """
    if isinstance(annotation, str):
        names = {"None" if kind is type(None) else kind.__name__ for kind in kinds}
        return all(part.strip() in names for part in annotation.split("|"))
    if get_origin(annotation) in (Union, UnionType, tuple, frozenset):
        return all(part is ... or is_made_of(part, kinds) for part in get_args(annotation))
    return annotation in kinds


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


def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except Exception:  # whatever evaluating an annotation may raise
        bases = reversed(kind.__mro__)
        return {name: hint for base in bases for name, hint in _own(base).items()}


def _own(kind: type) -> dict[str, Any]:
    own: dict[str, Any] = vars(kind).get("__annotations__", {})
    return own
