"""What a snapshot holds of the value of an attribute: something that does not change.

    plain values, frozen records     as they are, NaN as the one that all rows have
    lists, dictionaries, sets        what they hold now (`containers`)
    objects that are tracked         their snapshots, which are made anew when these change
    others                           refused, unless the table promises `identity=True`

State:  which classes do not change in place.
Cost:   a look at the class of a value; of a tuple, at those of its items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from optimizer.expressions.knowledge import Foldable
from optimizer.kinds.class_facts import by_recent_class
from reactive.borders.objects.containers.wrapping import is_same
from reactive.borders.objects.shapes import MISSING, is_tracked, is_twin
from reactive.engine.collections.zset import canonical
from reactive.engine.storage.immutable import PLAIN, check_objects, may_hold_objects, why_changeable
from reactive.errors import TableError

INSTEAD: dict[type, str] = {deque: "put in a list", bytearray: "put in bytes"}
"""What to use in the place of classes that cannot be followed."""

EVENTED = {"EventedList": "list", "EventedDict": "dict", "EventedSet": "set"}
"""Containers of psygnal, and what is followed in their place."""


def frozen(value: Any, nested: Callable[[Any], Any], where: str, *, trusted: bool) -> Any:
    """What a snapshot holds of a value.

    Parameters
    ----------
    nested: the snapshot of an object that is tracked.
    where: the attribute, for messages.
    trusted: whether it was promised that values of other classes do not change.

    Raises
    ------
    TableError: the value may change, and nobody would notice.
    """
    kind = value.__class__
    if kind in PLAIN:
        return canonical(value)
    if value is MISSING:
        return value
    if is_lasting(kind):
        check_objects(value, where)
        return value
    if kind is tuple or issubclass(kind, tuple):
        items = [frozen(item, nested, where, trusted=trusted) for item in value]
        if all(map(_is, items, value)):
            return value
        return kind(*items) if hasattr(kind, "_fields") else tuple(items)
    if is_tracked(kind):
        return nested(value)
    if trusted:
        return value
    if kind.__name__ in EVENTED and kind.__module__.startswith("psygnal."):
        raise TableError(
            f"{where} is a {kind.__name__}: its signals come after a change, in no transaction, "
            "and can be blocked\n  so that a refused change could not be undone; hold a "
            f"{EVENTED[kind.__name__]}, which is followed"
        )
    why = why_changeable(kind) or "it has no hash"
    raise TableError(
        f"{where} is or holds a {kind.__name__}, which may change in place ({why}), and no view "
        f"would notice\n  {_instead(kind)}, leave the attribute out by "
        "tracked(exclude=...)\n  or promise that such values never change: "
        "db.table(..., identity=True)"
    )


def _instead(kind: type) -> str:
    """What may be there in the place of a value that changes."""
    if kind in (list, dict, set):
        return f"a {kind.__name__} is followed in attributes, not in tuples: put in a tuple"
    for followed in (list, dict, set):
        if issubclass(kind, followed):
            return f"of those only a {followed.__name__} itself is followed: put in one"
    if issubclass(kind, Foldable):
        return "as a key or in a set, put in a tuple or frozenset"
    return INSTEAD.get(kind) or f"make {kind.__name__} @tracked or frozen"


def differs(value: Any, old: Any) -> bool:
    """Whether a value of a snapshot is another one than that of an older snapshot."""
    if value is old:
        return False
    kind = value.__class__
    if kind is old.__class__ and isinstance(value, Foldable):
        return not is_same(value, old)
    if kind is not old.__class__ or issubclass(kind, tuple):
        return kind is not old.__class__ or not _are_same(value, old)
    return kind not in PLAIN or value != old


def _are_same(items: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    return len(items) == len(others) and not any(map(differs, items, others))


def _is(one: Any, other: Any) -> bool:
    return one is other


@by_recent_class(64)
def is_settled(kind: Any) -> bool:
    """Whether values of a class are held as they are: none holds an object that is tracked."""
    return is_lasting(kind) and kind not in PLAIN and not may_hold_objects(kind)


@by_recent_class(64)
def is_lasting(kind: Any) -> bool:
    """Whether what is of a class stays as it is, with all that it holds."""
    if is_twin(kind):
        return True
    if is_tracked(kind) or issubclass(kind, tuple) or kind.__hash__ is None:
        return False
    return why_changeable(kind) is None
