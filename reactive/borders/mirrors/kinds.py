"""What is mirrored: a mapped class, or the table of a many-to-many relationship, and its reading.

    Order      select orders.id, orders.total, ... from orders [where orders.id in (...)]
               is read again if a key of `orders` was touched

Of a class that inherits by a join the statement has several tables, and a key of each is a key of
the class. What is read are values as SQLAlchemy gives them.

Cost: of a reading by keys one statement per `CHUNK` keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, starmap
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    CursorResult,
    Select,
    Table,
    bindparam,
    inspect,
    select,
    tuple_,
)
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import Mapper

from optimizer.errors import PlanError
from reactive.borders.mirrors.frozen import frozen
from reactive.borders.mirrors.records import (
    RecordClass,
    field_of,
    record_of_class,
    record_of_columns,
)

CHUNK = 500
"""Keys that one statement asks for."""
FETCHED = 1000
"""Rows that are fetched at a time."""
KEYS = "mirrored_keys"
Key = tuple[Any, ...]
"""The values of the key columns of a table, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What is mirrored.

    Parameters
    ----------
    name: of its table.
    owner: the mapped class, or the SQL table.
    record: the class of its rows.
    key: the names of the fields that are its key.
    columns: the columns of the key, in the statement.
    statement: gives all rows.
    chosen: gives those whose keys are the parameter `KEYS`.
    places: of each SQL table that it reads, where in a key of that table each value of its own key
        is; None if the one does not follow from the other.
    """

    name: str
    owner: Any
    record: RecordClass
    key: tuple[str, ...]
    columns: tuple[Any, ...]
    statement: Select[Any]
    chosen: Select[Any]
    places: dict[Table, tuple[int, ...] | None]

    def rows(self, connection: Connection) -> list[Any]:
        """All rows."""
        return self._records(connection.execute(self.statement))

    def rows_of(self, connection: Connection, keys: Iterable[Key]) -> list[Any]:
        """The rows that there are of some keys."""
        found: list[Any] = []
        for chunk in chunks(list(keys)):
            values = [key[0] for key in chunk] if len(self.columns) == 1 else chunk
            found += self._records(connection.execute(self.chosen, {KEYS: values}))
        return found

    def _records(self, result: CursorResult[Any]) -> list[Any]:
        rows = chain.from_iterable(result.partitions(FETCHED))
        if not self.record.mutable:
            return list(starmap(self.record.row, rows))
        return [self.record.row(*self._frozen(values)) for values in rows]

    def _frozen(self, values: Sequence[Any]) -> list[Any]:
        made = list(values)
        for place in self.record.mutable:
            made[place] = frozen(made[place])
        return made


def kind_of(given: Any, taken: Iterable[str]) -> Kind:
    """What is mirrored of a mapped class, or of a table.

    Parameters
    ----------
    given: a mapped class or a `sqlalchemy.Table`.
    taken: names that are taken by others of this mirror.

    Raises
    ------
    PlanError: it is neither, or its rows cannot be followed; the message says why.
    """
    if isinstance(given, Table):
        return _kind_of_table(given)
    mapper = _mapper(given)
    _check(mapper)
    record = record_of_class(mapper)
    statement = select(*[getattr(mapper.class_, name) for name in record.fields])
    columns = tuple(mapper.primary_key)
    key = tuple([mapper.get_property_by_column(column).key for column in columns])
    local: Any = mapper.local_table
    name = local.name if local.name not in taken else mapper.class_.__name__
    places = {table: _places(mapper, table) for table in mapper.tables if isinstance(table, Table)}
    chosen = _chosen(statement, columns)
    return Kind(name, mapper.class_, record, key, columns, statement, chosen, places)


def key_columns(table: Table) -> tuple[Column[Any], ...]:
    """The columns that tell rows of a table apart: its primary key, or else all."""
    return tuple(table.primary_key.columns) or tuple(table.columns)


def among(columns: Sequence[Any], keys: Sequence[Key]) -> Any:
    """The condition that columns have one of some keys."""
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return tuple_(*columns).in_(keys)


def chunks(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """The keys, as many at a time as a statement may ask for."""
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


def own_key(key: Key, places: tuple[int, ...]) -> Any:
    """The key of a row of a kind, from the key of one of its tables; a single value as it is."""
    return itemgetter(*places)(key)


def _kind_of_table(table: Table) -> Kind:
    columns = key_columns(table)
    record = record_of_columns(table.name, list(table.columns))
    key = tuple(map(field_of, columns))
    statement = select(*table.columns)
    chosen = _chosen(statement, columns)
    places: dict[Table, tuple[int, ...] | None] = {table: tuple(range(len(columns)))}
    return Kind(table.name, table, record, key, columns, statement, chosen, places)


def _chosen(statement: Select[Any], columns: Sequence[Any]) -> Select[Any]:
    key: Any = columns[0] if len(columns) == 1 else tuple_(*columns)
    return statement.where(key.in_(bindparam(KEYS, expanding=True)))


def _mapper(given: Any) -> Mapper[Any]:
    try:
        found = inspect(given)
    except NoInspectionAvailable:
        found = None
    if not isinstance(found, Mapper) and hasattr(given, "_meta"):
        raise PlanError(
            f"{given!r:.100} cannot be mirrored: it is a model of Django, whose bulk operations "
            "tell nobody which rows they change\n"
            "  change tables in db.transaction(commit_with='default'), and have them read again by "
            "db.table(..., reread=callable)"
        )
    if not isinstance(found, Mapper):
        raise PlanError(
            f"mirror takes mapped classes, not {given!r:.100}\n"
            "  write mirror(db, Session, Order, Customer) with classes that SQLAlchemy maps"
        )
    return found


def _check(mapper: Mapper[Any]) -> None:
    """Refuse classes whose rows do not follow from rows of tables by their keys."""
    name = mapper.class_.__name__
    if not isinstance(mapper.local_table, Table):
        raise PlanError(
            f"{name} cannot be mirrored: it is mapped to a query, not to a table\n"
            "  mirror the classes of its tables, and make the query over them"
        )
    if mapper.concrete and mapper.with_polymorphic is not None:
        raise PlanError(
            f"{name} cannot be mirrored: its objects are in the tables of several classes\n"
            "  mirror the classes that inherit from it, and unite them: a.union(b)"
        )


def _places(mapper: Mapper[Any], table: Table) -> tuple[int, ...] | None:
    own = list(key_columns(table))
    found = []
    for column in mapper.primary_key:
        same = [column, *mapper.get_property_by_column(column).columns]
        place = next((own.index(each) for each in same if each in set(own)), None)
        if place is None:
            return None
        found.append(place)
    return tuple(found)
