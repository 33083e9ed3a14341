"""The rows of a mapped class: frozen records with its columns as fields, by the same names.

    columns, deferred ones too      fields, of the types that the columns give
    column_property                 a field, if it is computed of the columns of its own row
    synonym, composite              read of the fields that they stand for
    hybrid_property                 called with the record
    relationship, association_proxy, others      not read: the error says what to write instead

A class that inherits has the columns it inherits; a class that others inherit from has rows for
their objects too, with its own columns.

Records are pickled by their mapped class and their values, and those of a table by its columns: who
reads them needs the class to be importable, and no mirror.

State:  the record class of each mapped class, as an attribute of its mapper, so that both go
        together; of tables, those that were asked for last.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, make_dataclass
from operator import attrgetter
from typing import Any, TypeAlias, get_args, get_origin

from sqlalchemy import Column, Select, TypeDecorator, inspect
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
from optimizer.expressions.members import Unreadable
from optimizer.kinds.class_facts import class_maker
from optimizer.kinds.kind import ANYTHING, Kind, evaluated_apart, kind_of, name_of
from optimizer.kinds.names import field_names
from optimizer.kinds.values import admits_none, with_none

IMMUTABLE = (
    *(int, str, float, bool, bytes, complex, decimal.Decimal, uuid.UUID, enum.Enum),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
)
"""What columns of these types give stays as it is."""


KNOWN = "_reactive_record"
"""The attribute of a mapper that has the record class, and what was mapped when it was made."""
Fields: TypeAlias = tuple[tuple[str, Any], ...]
"""Names of fields, each with its annotation."""


@dataclass(frozen=True, slots=True)
class RecordClass:
    """The class of records of a mapped class, or of a table.

    Parameters
    ----------
    row: the class.
    fields: names of its fields, as attributes of the mapped class or columns of the table.
    mutable: the places of the fields whose values are frozen.
    """

    row: type
    fields: tuple[str, ...]
    mutable: tuple[int, ...]


def record_of_class(mapper: Mapper[Any]) -> RecordClass:
    """The record class of a mapped class."""
    kept, others = [], dict(_others(mapper))
    declared = _declared(mapper.class_)
    for prop in mapper.column_attrs:
        why = _why_left_out(prop, mapper)
        if why is None:
            _check_nullable(mapper, prop, declared.get(prop.key, ANYTHING))
            kept.append((prop.key, prop.columns[0]))
        else:
            others[prop.key] = Unreadable(f"{mapper.class_.__name__}.{prop.key} {why}")
    owner = mapper.class_
    mapped = [*((key, id(column)) for key, column in kept), *others]
    known, made = vars(mapper).get(KNOWN, (None, None))
    if known == mapped:
        found: RecordClass = made
        return found

    def reduced(row: Any) -> Any:
        return _unpickled, (owner, [getattr(row, key) for key, _ in kept])

    fields = tuple([(key, annotation(column)) for key, column in kept])
    row = _row_class(owner.__name__, owner.__module__, fields, others, reduced)
    found = RecordClass(row, tuple([key for key, _ in kept]), _mutable([each for _, each in kept]))
    setattr(mapper, KNOWN, (mapped, found))
    return found


def record_of_columns(name: str, columns: list[Column[Any]]) -> RecordClass:
    """The record class of a table that no class is mapped to."""
    fields = tuple([(field_of(column), annotation(column)) for column in columns])
    return RecordClass(
        _row_of_table(name, fields), tuple([key for key, _ in fields]), _mutable(columns)
    )


def field_of(column: Column[Any]) -> str:
    """The field of a column that no class has as an attribute: `class_` of `class`."""
    keys = [each.key for each in column.table.columns]
    return field_names(keys)[keys.index(column.key)]


@class_maker
def _row_of_table(name: str, fields: Fields) -> type:
    def reduced(row: Any) -> Any:
        return _unpickled_of_table, (name, fields, [getattr(row, key) for key, _ in fields])

    return _row_class(name, __name__, fields, {}, reduced)


def _unpickled(owner: type, values: Sequence[Any]) -> Any:
    return record_of_class(inspect(owner)).row(*values)


def _unpickled_of_table(name: str, fields: Fields, values: Sequence[Any]) -> Any:
    return _row_of_table(name, fields)(*values)


def _row_class(
    name: str,
    module: str,
    fields: Fields,
    others: dict[str, Any],
    reduced: Callable[[Any], Any],
) -> type:
    # a field of its own each, as a class has attributes that would be taken for defaults: `mro`
    apart = [(key, kind, field()) for key, kind in fields]
    try:
        row = make_dataclass(name, apart, namespace=others, frozen=True, slots=True)
    except TypeError as error:  # of automap, say, whose attributes are called as columns are
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


def _declared(kind: type) -> dict[str, Kind]:
    """Return the kinds of the attributes of a mapped class whose annotation can be evaluated."""
    found: dict[str, Kind] = {}
    for name, hint in evaluated_apart(kind).items():
        is_mapped = isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapped)
        found[name] = kind_of(get_args(hint)[0] if is_mapped else hint)
    return found


def _check_nullable(mapper: Mapper[Any], prop: ColumnProperty[Any], kind: Kind) -> None:
    """Refuse a column that may be NULL over an attribute that is not optional.

    Raises
    ------
    PlanError: it is one.
    """
    column = prop.columns[0]
    if isinstance(column, Column) and column.nullable and not admits_none(kind):
        name = mapper.class_.__name__
        raise PlanError(
            f"{name} cannot be mirrored: column {column.name!r} may be NULL, and {name}.{prop.key} "
            f"is declared {name_of(kind)}\n"
            f"  declare `{prop.key}: Mapped[{with_none(kind)}]`, or the column as nullable=False"
        )


def annotation(column: Any) -> Any:
    """What the values of a column are, as an annotation; `object` if that is not certain."""
    python = _python_type(column)
    if python is object or not getattr(column, "nullable", True):
        return python
    return python | None


def _python_type(column: Any) -> type:
    if isinstance(column.type, TypeDecorator):
        return object
    try:
        found = column.type.python_type
    except NotImplementedError:
        return object
    return found if isinstance(found, type) and issubclass(found, IMMUTABLE) else object


def _may_change(column: Any) -> bool:
    return _python_type(column) is object


def _why_left_out(prop: ColumnProperty[Any], mapper: Mapper[Any]) -> str | None:
    """Why a column property is no field; None if it is one."""
    expression = prop.columns[0]
    if isinstance(expression, Column):
        return None
    if ("query_expression", True) in (prop.strategy_key or ()):
        return "has a value only in queries that give it one\n  compute it in the query"
    parts = list(visitors.iterate(expression))
    tables = {part.table for part in parts if isinstance(part, Column)}
    if any(isinstance(part, Select) for part in parts) or not tables <= set(mapper.tables):
        return (
            "is computed of rows of other tables, whose changes the mirror could not tell\n"
            "  mirror their classes too, and compute it in the query"
        )
    return None


def _others(mapper: Mapper[Any]) -> Iterator[tuple[str, Any]]:
    """What a record has beside its fields."""
    name = mapper.class_.__name__
    for prop in mapper.attrs:
        match prop:
            case RelationshipProperty():
                yield prop.key, Unreadable(_RELATIONSHIP.format(name, prop.key))
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
            yield key, Unreadable(_PROXY.format(name, key))


def _composite(prop: CompositeProperty[Any]) -> Callable[[Any], Any]:
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
