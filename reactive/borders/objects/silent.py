"""Silent changes: objects whose attributes differ from their rows without a tracked assignment.

    vars(order)["total"] = 9      bypasses `__setattr__`
    object.__setattr__(...)       bypasses it too
    an untracked mutable value    changes itself

State:  none.
Cost:   O(attributes) of each object.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

from reactive.borders.objects.containers.container import Container
from reactive.borders.objects.records import ObjectRecord
from reactive.errors import TableError

AS_ONE = 50
"""The values of a list that are checked in the time of one object."""


class Silent(NamedTuple):
    """An object that changed silently.

    object: the object.
    table: the name of a table that has it.
    attributes: the attributes that differ from the row.

    >>> Silent("an object", "orders", ("total",)).attributes
    ('total',)
    """

    object: Any
    table: str
    attributes: tuple[str, ...]


def check_silent(engine: Any) -> list[Silent]:
    """Return all objects that changed silently."""
    objects = engine.objects
    if objects is None:
        return []
    with engine.inside():
        return [
            found
            for table in objects.tables
            for row in list(table._store.by_key.values())
            if (found := _silent(table, row._record_)) is not None
        ]


def begin_round(tables: Iterable[Any]) -> bool:
    """Schedule a check of all objects of some tables. Return True if there are any.

    Cost: O(objects).
    """
    for table in tables:
        table._store.unseen = list(table._store.by_key)
    return any(table._store.unseen for table in tables)


def check_one(table: Any, random: Random) -> int:
    """Check one object of a table that was not checked in this round.

    Return the cost of the check, in checks of an object without containers; -1 without an object.

    Raises
    ------
    TableError: the object has changed silently.

    Cost: O(1), and its containers.
    """
    row = _next_unseen(table._store, random)
    if row is None:
        return -1
    record = row._record_
    suspects = record.suspects()
    found = [name for name in suspects if record.is_other(name)]
    if found:
        raise TableError(
            f"{record.object!r:.200} of table {table.name!r} was changed without notice: "
            f"{', '.join(found)}\n"
            "  assign to its attributes, or tell of it by db.touch(object); "
            "db.check_silent() names all such objects"
        )
    values = [record.shape.read(record.object, name) for name in suspects]
    return sum(_looks(value) for value in values if isinstance(value, Container))


def _looks(container: Any) -> int:
    """Return the cost of checking a container, in checks of an object."""
    return len(container) if container._counts else len(container) // AS_ONE


def _next_unseen(store: Any, random: Random) -> Any:
    """Return the row of an object that was not checked in this round; None without one."""
    keys = store.unseen
    while keys:
        place = random.randrange(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        row = store.by_key.get(keys.pop())
        if row is not None:
            return row
    return None


def _silent(table: Any, record: ObjectRecord) -> Silent | None:
    """Return the report on an object that has changed silently; None if it has not."""
    names = record.changed_unseen()
    return Silent(record.object, table.name, tuple(names)) if names else None
