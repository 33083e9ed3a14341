"""Objects that changed without anybody's noticing: whose attributes are not what their rows say.

    vars(order)["total"] = 9      no assignment that could be seen
    object.__setattr__(...)       neither
    a value that changed itself   neither

State:  none.
Cost:   O(attributes) of each object.
"""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any, NamedTuple

from reactive.errors import TableError
from reactive.objects.records import Record


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


def check_one(table: Any, random: Random) -> None:
    """Look at one object of a table.

    Raises
    ------
    TableError: it has changed silently.
    """
    rows = table._store.by_key
    if not rows:
        return
    place = random.randrange(len(rows))
    row = next(islice(rows.values(), place, None))
    found = _silent(table, row._record_)
    if found is not None:
        names = ", ".join(found.attributes)
        raise TableError(
            f"{found.object!r:.200} of table {found.table!r} was changed without notice: {names}\n"
            "  assign to its attributes, or tell of it by db.touch(object); "
            "db.check_silent() names all such objects"
        )


def _silent(table: Any, record: Record) -> Silent | None:
    names = record.changed_unseen()
    return Silent(record.object, table.name, tuple(names)) if names else None
