"""Mirrored classes and tables: how their rows are read, and their rows as frozen records.

A `MirrorKind` is a mapped class, or the table of a many-to-many relationship:

    Order      select orders.id, orders.total, ... from orders [where orders.id in (...)]
               is read again if a key of `orders` was touched

For a class that inherits by a join, the statement reads several tables, and a key of each is a key
of the class. Values are read as SQLAlchemy returns them.

Rows are frozen records, with the columns of the mapped class as fields of the same names:

    columns, deferred ones too      fields, with the types of the columns
    column_property                 a field, if it is computed from the columns of its own row
    synonym, composite              read from the fields that they combine
    hybrid_property                 called with the record
    relationship, association_proxy, others      an error that says what to write instead

A class has the columns that it inherits; a base class has rows for the objects of its subclasses
too, with its own columns.

Records are pickled by their mapped class and values, or by the columns of their table: unpickling
needs the class to be importable, but no mirror.

Mutable values of columns (JSON, arrays) are frozen, with everything inside them:

    list -> tuple      set -> frozenset      bytearray -> bytes      dict -> FrozenDict

State:  the record class of each mapped class, as an attribute of its mapper, so that both are freed
        together; the record classes of recently used tables.
Cost:   reading by keys takes one statement per `CHUNK` keys.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, make_dataclass
from itertools import chain, starmap
from operator import attrgetter, itemgetter
from typing import Any, NoReturn, TypeAlias, TypeVar, get_args, get_origin

import sqlalchemy as sa
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.ext.hybrid import HybridExtensionType
from sqlalchemy.orm import (
    ColumnProperty,
    CompositeProperty,
    Mapped,
    Mapper,
    RelationshipProperty,
    SynonymProperty,
)
from sqlalchemy.sql import visitors

from optimizer.errors import PlanError
from optimizer.expressions.members import MissingAttribute
from optimizer.kinds.fields import class_maker
from optimizer.kinds.kind import ANYTHING, admits_none, evaluated_apart, name_of, with_none
from optimizer.kinds.kind import Kind as ValueKind
from optimizer.kinds.kind import kind_of as value_kind_of
from optimizer.kinds.texts import field_names

CHUNK = 500
"""The most keys in one statement."""
FETCHED = 1000
"""The rows that are fetched at a time."""
KEYS = "mirrored_keys"
Key = tuple[Any, ...]
"""The values of the key columns of a table, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class MirrorKind:
    """A mapped class or table that is mirrored, and the statements that read it.

    Parameters
    ----------
    name: the name of its table.
    owner: the mapped class, or the SQL table.
    record: the class of its rows.
    key: the names of the fields that are its key.
    columns: the columns of the key, in the statement.
    statement: selects all rows.
    chosen: selects the rows whose keys are the parameter `KEYS`.
    places: for each SQL table that it reads, the positions of its own key values in a key of that
        table; None if they are not all in it.
    """

    name: str
    owner: Any
    record: RecordClass
    key: tuple[str, ...]
    columns: tuple[Any, ...]
    statement: sa.Select[Any]
    chosen: sa.Select[Any]
    places: dict[sa.Table, tuple[int, ...] | None]

    def rows(self, connection: sa.Connection) -> list[Any]:
        """Read all rows."""
        return self._records(connection.execute(self.statement))

    def rows_of(self, connection: sa.Connection, keys: Iterable[Key]) -> list[Any]:
        """Read the rows with some keys; a key without a row is left out."""
        found: list[Any] = []
        for chunk in chunks(list(keys)):
            values = [key[0] for key in chunk] if len(self.columns) == 1 else chunk
            found += self._records(connection.execute(self.chosen, {KEYS: values}))
        return found

    def _records(self, result: sa.CursorResult[Any]) -> list[Any]:
        """Return the rows of a result as records, with mutable values frozen."""
        rows = chain.from_iterable(result.partitions(FETCHED))
        if not self.record.mutable:
            return list(starmap(self.record.row, rows))
        return [self.record.row(*self._frozen(values)) for values in rows]

    def _frozen(self, values: Sequence[Any]) -> list[Any]:
        """Return a copy of the values in which those of mutable columns are frozen."""
        made = list(values)
        for place in self.record.mutable:
            made[place] = freeze_value(made[place])
        return made


def mirror_kind_of(given: Any, taken: Iterable[str]) -> MirrorKind:
    """Return the kind of a mapped class or table.

    Parameters
    ----------
    given: a mapped class or a `sqlalchemy.Table`.
    taken: names of other kinds of this mirror.

    Raises
    ------
    PlanError: it is neither, or its rows cannot be followed; the message says why.
    """
    if isinstance(given, sa.Table):
        return _kind_of_table(given)
    mapper = _mapper(given)
    _check_mapper(mapper)
    record = record_of_class(mapper)
    statement = sa.select(*[getattr(mapper.class_, name) for name in record.fields])
    columns = tuple(mapper.primary_key)
    key = tuple([mapper.get_property_by_column(column).key for column in columns])
    local: Any = mapper.local_table
    name = local.name if local.name not in taken else mapper.class_.__name__
    places = {
        table: _key_places(mapper, table) for table in mapper.tables if isinstance(table, sa.Table)
    }
    chosen = _select_by_keys(statement, columns)
    return MirrorKind(name, mapper.class_, record, key, columns, statement, chosen, places)


def key_columns(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """Return the columns that identify rows of a table: its primary key, or else all."""
    return tuple(table.primary_key.columns) or tuple(table.columns)


def keys_condition(columns: Sequence[Any], keys: Sequence[Key]) -> Any:
    """Return the condition that columns have one of some keys."""
    if len(columns) == 1:
        return columns[0].in_([key[0] for key in keys])
    return sa.tuple_(*columns).in_(keys)


def chunks(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Split keys into chunks for one statement each."""
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


def own_key(key: Key, places: tuple[int, ...]) -> Any:
    """Return the key of a row of a kind, from the key of one of its tables; a single value bare."""
    return itemgetter(*places)(key)


def _kind_of_table(table: sa.Table) -> MirrorKind:
    """Return the kind of a table that no class maps; its records have its columns."""
    columns = key_columns(table)
    record = record_of_columns(table.name, list(table.columns))
    key = tuple(map(column_field, columns))
    statement = sa.select(*table.columns)
    chosen = _select_by_keys(statement, columns)
    places: dict[sa.Table, tuple[int, ...] | None] = {table: tuple(range(len(columns)))}
    return MirrorKind(table.name, table, record, key, columns, statement, chosen, places)


def _select_by_keys(statement: sa.Select[Any], columns: Sequence[Any]) -> sa.Select[Any]:
    """Return the query, restricted to the keys that are given when it runs."""
    key: Any = columns[0] if len(columns) == 1 else sa.tuple_(*columns)
    return statement.where(key.in_(sa.bindparam(KEYS, expanding=True)))


def _mapper(given: Any) -> Mapper[Any]:
    """Return the mapper of a class. Raises `PlanError` if SQLAlchemy does not map it."""
    try:
        found = sa.inspect(given)
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


def _check_mapper(mapper: Mapper[Any]) -> None:
    """Refuse classes whose rows cannot be determined from rows of tables by their keys."""
    name = mapper.class_.__name__
    if not isinstance(mapper.local_table, sa.Table):
        raise PlanError(
            f"{name} cannot be mirrored: it is mapped to a query, not to a table\n"
            "  mirror the classes of its tables, and make the query over them"
        )
    if mapper.concrete and mapper.with_polymorphic is not None:
        raise PlanError(
            f"{name} cannot be mirrored: its objects are in the tables of several classes\n"
            "  mirror the classes that inherit from it, and unite them: a.union(b)"
        )


def _key_places(mapper: Mapper[Any], table: sa.Table) -> tuple[int, ...] | None:
    """Return the places of a class's key in the key of one of its tables; None if it lacks some."""
    own = list(key_columns(table))
    found = []
    for column in mapper.primary_key:
        same = [column, *mapper.get_property_by_column(column).columns]
        place = next((own.index(each) for each in same if each in set(own)), None)
        if place is None:
            return None
        found.append(place)
    return tuple(found)


IMMUTABLE = (
    *(int, str, float, bool, bytes, complex, decimal.Decimal, uuid.UUID, enum.Enum),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
)
"""The types of values that are immutable."""


KNOWN = "_reactive_record"
"""The attribute of a mapper with the record class, and the mapped attributes at its creation."""
Fields: TypeAlias = tuple[tuple[str, Any], ...]
"""Names of fields, each with its annotation."""


@dataclass(frozen=True, slots=True)
class RecordClass:
    """The class of records of a mapped class, or of a table.

    Parameters
    ----------
    row: the class.
    fields: the names of its fields, as attributes of the mapped class or columns of the table.
    mutable: the positions of fields whose values are frozen.
    """

    row: type
    fields: tuple[str, ...]
    mutable: tuple[int, ...]


def record_of_class(mapper: Mapper[Any]) -> RecordClass:
    """Return the record class of a mapped class."""
    kept, others = [], dict(_other_members(mapper))
    declared = _declared_kinds(mapper.class_)
    for prop in mapper.column_attrs:
        why = _why_left_out(prop, mapper)
        if why is None:
            _check_nullable(mapper, prop, declared.get(prop.key, ANYTHING))
            kept.append((prop.key, prop.columns[0]))
        else:
            others[prop.key] = MissingAttribute(f"{mapper.class_.__name__}.{prop.key} {why}")
    owner = mapper.class_
    mapped = [*((key, id(column)) for key, column in kept), *others]
    known, made = vars(mapper).get(KNOWN, (None, None))
    if known == mapped:
        found: RecordClass = made
        return found

    def reduce_row(row: Any) -> Any:
        return _unpickled, (owner, [getattr(row, key) for key, _ in kept])

    fields = tuple([(key, annotation(column)) for key, column in kept])
    row = _row_class(owner.__name__, owner.__module__, fields, others, reduce_row)
    found = RecordClass(row, tuple([key for key, _ in kept]), _mutable([each for _, each in kept]))
    setattr(mapper, KNOWN, (mapped, found))
    return found


def record_of_columns(name: str, columns: list[sa.Column[Any]]) -> RecordClass:
    """Return the record class of a table without a mapped class."""
    fields = tuple([(column_field(column), annotation(column)) for column in columns])
    return RecordClass(
        _row_of_table(name, fields), tuple([key for key, _ in fields]), _mutable(columns)
    )


def column_field(column: sa.Column[Any]) -> str:
    """Return the field name of a column without an attribute: `class_` for `class`."""
    keys = [each.key for each in column.table.columns]
    return field_names(keys)[keys.index(column.key)]


@class_maker
def _row_of_table(name: str, fields: Fields) -> type:
    """Return the record class of a table, whose rows are pickled by name and fields."""

    def reduce_row(row: Any) -> Any:
        return _unpickled_of_table, (name, fields, [getattr(row, key) for key, _ in fields])

    return _row_class(name, __name__, fields, {}, reduce_row)


def _unpickled(owner: type, values: Sequence[Any]) -> Any:
    return record_of_class(sa.inspect(owner)).row(*values)


def _unpickled_of_table(name: str, fields: Fields, values: Sequence[Any]) -> Any:
    return _row_of_table(name, fields)(*values)


def _row_class(
    name: str,
    module: str,
    fields: Fields,
    others: dict[str, Any],
    reduced: Callable[[Any], Any],
) -> type:
    """Return a frozen dataclass of rows.

    Raises `PlanError` if a name clashes with one of `others`.
    """
    # a field object each: class attributes such as `mro` would be taken for defaults
    apart = [(key, kind, field()) for key, kind in fields]
    try:
        row = make_dataclass(name, apart, namespace=others, frozen=True, slots=True)
    except TypeError as error:  # e.g. of automap, where names clash
        raise PlanError(
            f"{name} cannot be mirrored: {error}\n"
            "  map the column to another attribute: class_ = mapped_column('class')"
        ) from None
    row.__module__ = module
    row.__doc__ = f"What the columns of {name} hold."
    row.__reduce__ = reduced  # type: ignore[method-assign, assignment]
    return row


def _mutable(columns: Sequence[Any]) -> tuple[int, ...]:
    return tuple([place for place, column in enumerate(columns) if _may_change(column)])


def _declared_kinds(kind: type) -> dict[str, ValueKind]:
    """Return the kinds of the attributes of a mapped class whose annotation can be evaluated."""
    found: dict[str, ValueKind] = {}
    for name, hint in evaluated_apart(kind).items():
        is_mapped = isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapped)
        found[name] = value_kind_of(get_args(hint)[0] if is_mapped else hint)
    return found


def _check_nullable(mapper: Mapper[Any], prop: ColumnProperty[Any], kind: ValueKind) -> None:
    """Refuse a column that may be NULL over an attribute that is not optional.

    Raises
    ------
    PlanError: the column is nullable, and the attribute is not optional.
    """
    column = prop.columns[0]
    if isinstance(column, sa.Column) and column.nullable and not admits_none(kind):
        name = mapper.class_.__name__
        raise PlanError(
            f"{name} cannot be mirrored: column {column.name!r} may be NULL, and {name}.{prop.key} "
            f"is declared {name_of(kind)}\n"
            f"  declare `{prop.key}: Mapped[{with_none(kind)}]`, or the column as nullable=False"
        )


def annotation(column: Any) -> Any:
    """Return the annotation of a column's values; `object` if that is not certain."""
    python = _python_type(column)
    if python is object or not getattr(column, "nullable", True):
        return python
    return python | None


def _python_type(column: Any) -> type:
    """Return the class of a column's values; `object` if it is unknown or mutable."""
    if isinstance(column.type, sa.TypeDecorator):
        return object
    try:
        found = column.type.python_type
    except NotImplementedError:
        return object
    return found if isinstance(found, type) and issubclass(found, IMMUTABLE) else object


def _may_change(column: Any) -> bool:
    return _python_type(column) is object


def _why_left_out(prop: ColumnProperty[Any], mapper: Mapper[Any]) -> str | None:
    """Return the reason why a column property is no field; None if it is one."""
    expression = prop.columns[0]
    if isinstance(expression, sa.Column):
        return None
    if ("query_expression", True) in (prop.strategy_key or ()):
        return "has a value only in queries that give it one\n  compute it in the query"
    parts = list(visitors.iterate(expression))
    tables = {part.table for part in parts if isinstance(part, sa.Column)}
    if any(isinstance(part, sa.Select) for part in parts) or not tables <= set(mapper.tables):
        return (
            "is computed of rows of other tables, whose changes the mirror could not tell\n"
            "  mirror their classes too, and compute it in the query"
        )
    return None


def _other_members(mapper: Mapper[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a record beside its fields."""
    name = mapper.class_.__name__
    for prop in mapper.attrs:
        match prop:
            case RelationshipProperty():
                yield prop.key, MissingAttribute(_RELATIONSHIP.format(name, prop.key))
            case SynonymProperty():
                yield prop.key, property(attrgetter(prop.name))
            case CompositeProperty():
                yield prop.key, property(_composite(prop))
    descriptors: dict[str, Any] = dict(mapper.all_orm_descriptors)
    for key, descriptor in descriptors.items():
        if key in mapper.attrs:
            continue
        if descriptor.extension_type is HybridExtensionType.HYBRID_PROPERTY:
            yield key, property(descriptor.fget)
        elif descriptor.extension_type is HybridExtensionType.HYBRID_METHOD:
            yield key, descriptor.func
        elif descriptor.extension_type.name == "ASSOCIATION_PROXY":
            yield key, MissingAttribute(_PROXY.format(name, key))


def _composite(prop: CompositeProperty[Any]) -> Callable[[Any], Any]:
    """Return the function that makes the composite value of a record, from its columns."""
    keys = [each.key for each in prop.props]
    make = prop.composite_class
    return lambda row: make(*[getattr(row, key) for key in keys])


_RELATIONSHIP = (
    "{0}.{1} is a relationship, and rows of a mirror have columns only\n"
    "  join with it: m.related({0}.{1}) gives each row with what it leads to"
)
_PROXY = (
    "{0}.{1} leads through a relationship, and rows of a mirror have columns only\n"
    "  join with it: m.related({0}...) gives each row with what a relationship leads to"
)


K = TypeVar("K")
V = TypeVar("V")
PLAIN = frozenset({int, str, float, bool, bytes, type(None)})


class FrozenDict(dict[K, V]):
    """An immutable, hashable dictionary. It equals dictionaries.

    >>> size = FrozenDict(width=2)
    >>> size["width"], size == {"width": 2}, hash(size) == hash(FrozenDict(width=2))
    (2, True, True)
    >>> size["width"] = 3
    Traceback (most recent call last):
    TypeError: a dictionary in a row does not change: change that of the object
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a dictionary in a row does not change: change that of the object")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (dict(self),)


def freeze_value(value: Any) -> Any:
    """Return an equal value that is immutable.

    >>> freeze_value({"sizes": [1, 2], "tags": {"a"}})
    {'sizes': (1, 2), 'tags': frozenset({'a'})}
    """
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, Mapping):
        return FrozenDict((key, freeze_value(each)) for key, each in value.items())
    if isinstance(value, list) or type(value) is tuple:
        return tuple([freeze_value(each) for each in value])
    if isinstance(value, AbstractSet):
        return frozenset(map(freeze_value, value))
    return bytes(value) if isinstance(value, bytearray) else value
