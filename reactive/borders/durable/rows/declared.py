"""What the class of a table's rows says of them: their fields, and the classes that these mention.

dataclasses, named tuples, attrs, msgspec, pydantic     a column for each field
tuple[int, str]                                         a column for each place
others                                                  the column "value"
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

from optimizer.kinds.fields import as_written, compared, hints, is_record, members
from optimizer.kinds.kind import (
    Kind,
    Struct,
    class_of,
    class_written,
    inside_of,
    kind_of,
    places_of,
)
from reactive.borders.durable.rows.type_text import type_text
from reactive.borders.durable.rows.values import Unstorable, can_be_known
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.frozen_object import FrozenObject

VALUE = "value"
"""The column of rows that have no fields."""
STORABLE = frozenset(
    {int, float, str, bytes, bool, complex, type(None), object}
    | {date, datetime, time, timedelta, Decimal, Fraction, UUID, range}
    | {tuple, frozenset, list, set, dict, Bag, FrozenObject}
)
"""Classes whose values are stored without being known by name."""


@dataclass(frozen=True)
class Declared:
    """What is known of a class of rows.

    shape: "record", "tuple" or "value".
    fields: the annotation of each column.
    classes: those that values may be of, by name.
    """

    row_type: Any
    shape: str
    fields: dict[str, Any]
    classes: dict[str, type] = field(default_factory=dict)

    @property
    def kind(self) -> Any:
        """The class itself, without what is in brackets after it."""
        return class_written(self.row_type)


def declared_by(row_type: Any) -> Declared:
    """What a class of rows says.

    Raises
    ------
    Unstorable: a field is declared to hold what cannot be stored without a codec.
    """
    kind = class_written(row_type)
    shape, fields = VALUE, {VALUE: row_type}
    if is_record(kind):
        shape, fields = "record", fields_of(kind)
    elif kind is tuple and (parts := places_of(row_type)):
        shape, fields = "tuple", {str(place): part for place, part in enumerate(parts)}
    found = Declared(row_type, shape, fields)
    for name, hint in fields.items():
        try:
            _find(kind_of(hint), found.classes)
        except Unstorable as misfit:
            where = f"field {name!r}" if shape != VALUE else "a row"
            raise Unstorable(f"{where} is {misfit}") from None
    return found


def fields_of(kind: Any) -> dict[str, Any]:
    """The annotations of a record's fields; as text where a name in it is not known."""
    known = hints(kind)
    if not known:
        written = as_written(kind)
        known = {name: written.get(name, Any) for name in compared(kind)}
    return {name: known.get(name, Any) for name in members(kind)}


def about_classes(classes: dict[str, type]) -> dict[str, dict[str, str]]:
    """The fields of records with their types, and the members of enumerations."""
    found: dict[str, dict[str, str]] = {}
    for name, kind in sorted(classes.items()):
        if issubclass(kind, Enum):
            found[name] = dict.fromkeys(kind.__members__, "")
        else:
            found[name] = {f: type_text(hint) for f, hint in fields_of(kind).items()}
    return found


def needed(kind: Any) -> Iterator[str]:
    """The fields of a record that have no default."""
    for name, parameter in parameters(kind).items():
        if parameter.default is inspect.Parameter.empty:
            yield name


def parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """What a record is made of: the parameters of its class, by the names of fields."""
    by_alias = {a.alias: a.name for a in getattr(kind, "__attrs_attrs__", ())}
    try:
        found = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return {}
    return {by_alias.get(name, name): parameter for name, parameter in found.items()}


def _find(kind: Kind, classes: dict[str, type]) -> None:
    """Note the classes that a kind mentions."""
    inside = kind.arguments if isinstance(kind, Struct) else inside_of(kind)
    for each in inside:
        _find(kind_of(each), classes)
    python = class_of(kind)
    if python is not None and python not in STORABLE and not _is_abstract(python):
        _note(python, classes)


def _note(kind: type, classes: dict[str, type]) -> None:
    if not can_be_known(kind):
        raise Unstorable(f"a {kind.__qualname__}")
    name = kind.__name__
    if name in classes:
        if classes[name] is not kind:
            raise Unstorable(f"of one of two classes that are called {name}")
        return
    classes[name] = kind
    if not issubclass(kind, Enum):
        for hint in fields_of(kind).values():
            _find(kind_of(hint), classes)


def _is_abstract(kind: type) -> bool:
    return inspect.isabstract(kind) or kind.__module__ in ("typing", "collections.abc")
