"""Objects that changed without anybody's noticing: whose attributes are not what their rows say.

    vars(order)["total"] = 9      no assignment that could be seen
    object.__setattr__(...)       neither
    a value that changed itself   neither

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
"""Values of a list that are looked at for silent changes as fast as one object is."""


class Silent(NamedTuple):
    """An object that changed silently.

    object: the object.
    table: the name of a table that has it.
    attributes: those that are not what the row says.

    >>> Silent("an object", "orders", ("total",)).attributes
    ('total',)
    """

    object: Any
    table: str
    attributes: tuple[str, ...]


def check_silent(engine: Any) -> list[Silent]:
    """All objects that changed silently."""
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
    """Look at all objects of some tables from now on; whether there are any.

    Cost: O(objects).
    """
    for table in tables:
        table._store.unseen = list(table._store.by_key)
    return any(table._store.unseen for table in tables)


def check_one(table: Any, random: Random) -> int:
    """Look at one of the objects of a table that nobody has looked at in this round.

    -> about what the look has cost, in looks at an object without containers; -1 if there is none.

    Raises
    ------
    TableError: it has changed silently.

    Cost: O(1) but for its containers.
    """
    row = _next(table._store, random)
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
    """How many looks at an object are as much as one at a container."""
    return len(container) if container._counts else len(container) // AS_ONE


def _next(store: Any, random: Random) -> Any:
    """The row of an object that has not been looked at in this round; None if there is none."""
    keys = store.unseen
    while keys:
        place = random.randrange(len(keys))
        keys[place], keys[-1] = keys[-1], keys[place]
        row = store.by_key.get(keys.pop())
        if row is not None:
            return row
    return None


def _silent(table: Any, record: ObjectRecord) -> Silent | None:
    names = record.changed_unseen()
    return Silent(record.object, table.name, tuple(names)) if names else None
