"""Declared classes of stored rows, and the migration of rows of an earlier class.

The class of a table's rows declares the columns, and the classes that values may have:

    dataclasses, named tuples, attrs, msgspec, pydantic     a column for each field
    tuple[int, str]                                         a column for each place
    others                                                  the column "value"

Rows of an earlier class are converted by comparing the two classes:

    a new field                         its default; without one, `migrate=` is needed
    a removed field, or a narrower type `migrate=` is needed
    another order, or a wider type      unchanged

`migrate` is a callable: it takes a dictionary of the old fields, and returns a row, a dictionary of
the new fields, or None to leave the row out.

`StoredKinds` records the classes of the values read, column by column:

    [(1, "Bonn"), (2, None)]        {int}, {str, None}

If none of them is bytes, values of plain columns need no decoding. NaN is stored as bytes. So the
rows of a class that keeps its arguments unchanged are known to be plain (`storage/plain_rows.py`).

State:  `StoredKinds` a few classes for each column; the rest none.
Cost:   a table whose class differs is rewritten once, O(rows); `StoredKinds` some 30 ns per value.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from operator import itemgetter
from typing import Any
from uuid import UUID

from optimizer.errors import PlanError
from optimizer.kinds.fields import as_written, compared_names, hints, is_record, members
from optimizer.kinds.kind import (
    Kind,
    Struct,
    class_of,
    class_written,
    inside_of,
    kind_of,
    places_of,
)
from reactive.borders.durable.refusals import DAMAGED
from reactive.borders.durable.rows.values import (
    AS_MAPPING,
    DamagedValue,
    Unstorable,
    can_be_known,
    holds_all,
    reader,
    type_text,
)
from reactive.borders.durable.store import Column, Schema, Values
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.frozen_object import FrozenObject
from reactive.engine.collections.jsonb import Jsonb
from reactive.engine.storage import plain_rows

VALUE = "value"
"""The column of rows without fields."""
STORABLE = frozenset(
    {int, float, str, bytes, bool, complex, type(None), object}
    | {date, datetime, time, timedelta, Decimal, Fraction, UUID, range}
    | {tuple, frozenset, list, set, dict, Bag, FrozenObject, Jsonb}
)
"""The classes whose values are stored without a name."""


@dataclass(frozen=True)
class DeclaredRows:
    """The declared class of the rows of a table.

    shape: "record", "tuple" or "value".
    fields: the annotation of each column.
    classes: the classes that values may have, by name.
    """

    row_type: Any
    shape: str
    fields: dict[str, Any]
    classes: dict[str, type] = field(default_factory=dict)

    @property
    def kind(self) -> Any:
        """The class without its type arguments."""
        return class_written(self.row_type)


def declared_by(row_type: Any) -> DeclaredRows:
    """Read the declaration of a class of rows.

    Raises
    ------
    Unstorable: a field has a type that cannot be stored without a codec.
    """
    kind = class_written(row_type)
    shape, fields = VALUE, {VALUE: row_type}
    if is_record(kind):
        shape, fields = "record", record_annotations(kind)
    elif kind is tuple and (parts := places_of(row_type)):
        shape, fields = "tuple", {str(place): part for place, part in enumerate(parts)}
    found = DeclaredRows(row_type, shape, fields)
    for name, hint in fields.items():
        try:
            _collect_classes(kind_of(hint), found.classes)
        except Unstorable as misfit:
            where = f"field {name!r}" if shape != VALUE else "a row"
            raise Unstorable(f"{where} is {misfit}") from None
    return found


def record_annotations(kind: Any) -> dict[str, Any]:
    """Return the annotations of a record's fields; as text if a name in them is unknown."""
    known = hints(kind)
    if not known:
        written = as_written(kind)
        known = {name: written.get(name, Any) for name in compared_names(kind)}
    return {name: known.get(name, Any) for name in members(kind)}


def about_classes(classes: dict[str, type]) -> dict[str, dict[str, str]]:
    """Describe the fields of records with their types, and the members of enumerations."""
    found: dict[str, dict[str, str]] = {}
    for name, kind in sorted(classes.items()):
        if issubclass(kind, Enum):
            found[name] = dict.fromkeys(kind.__members__, "")
        else:
            found[name] = {f: type_text(hint) for f, hint in record_annotations(kind).items()}
    return found


def required_fields(kind: Any) -> Iterator[str]:
    """Yield the fields of a record that have no default."""
    for name, parameter in constructor_parameters(kind).items():
        if parameter.default is inspect.Parameter.empty:
            yield name


def constructor_parameters(kind: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of the constructor of a record, by field name."""
    by_alias = {a.alias: a.name for a in getattr(kind, "__attrs_attrs__", ())}
    try:
        found = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return {}
    return {by_alias.get(name, name): parameter for name, parameter in found.items()}


def _collect_classes(kind: Kind, classes: dict[str, type]) -> None:
    """Add the records and enumerations that a kind mentions to `classes`, by name."""
    inside = kind.arguments if isinstance(kind, Struct) else inside_of(kind)
    for each in inside:
        _collect_classes(kind_of(each), classes)
    python = class_of(kind)
    if python is not None and python not in STORABLE and not _is_abstract(python):
        _add_class(python, classes)


def _add_class(kind: type, classes: dict[str, type]) -> None:
    """Add a class, and those of its fields, to `classes` by name.

    Raises `Unstorable` for a class of unknown parts, or a second class of the same name.
    """
    if not can_be_known(kind):
        raise Unstorable(f"a {kind.__qualname__}")
    name = kind.__name__
    if name in classes:
        if classes[name] is not kind:
            raise Unstorable(f"of one of two classes that are called {name}")
        return
    classes[name] = kind
    if not issubclass(kind, Enum):
        for hint in record_annotations(kind).values():
            _collect_classes(kind_of(hint), classes)


def _is_abstract(kind: type) -> bool:
    return inspect.isabstract(kind) or kind.__module__ in ("typing", "collections.abc")


Migrate = Callable[[dict[str, Any]], Any]


def class_differences(old: Schema, new: Schema, known: DeclaredRows | None) -> list[str]:
    """Return the differences between an earlier class and the current one that need `migrate`.

    known: the declaration of the current class; None for a codec.
    """
    before, now = _field_types(old), _field_types(new)
    found = [f"field {name!r} is gone" for name in before if name not in now]
    for name, hint in now.items():
        if name in before and not holds_all(hint, before[name]):
            found.append(f"field {name!r} was {before[name]}, and is {hint}")
        elif name not in before and _is_needed(name, known):
            found.append(f"field {name!r} is new, and has no default")
    return [*found, *_inner_differences(old, new)]


def _is_needed(name: str, known: DeclaredRows | None) -> bool:
    return known is None or known.shape != "record" or name in required_fields(known.kind)


def _inner_differences(old: Schema, new: Schema) -> Iterator[str]:
    """Yield a text for each field of an inner record or enumeration that no longer fits."""
    classes: Mapping[str, Mapping[str, str]] = _about(new)
    for name, before in _about(old).items():
        now = classes.get(name)
        if now is not None:
            for field, hint in before.items():
                if field not in now or not holds_all(now[field], hint):
                    yield f"{name}.{field} is gone, or holds less than it did"


def _about(schema: Schema) -> dict[str, Any]:
    """Return the stored fields of inner records, and members of enumerations, by class name."""
    found: dict[str, Any] = json.loads(schema.about or "{}").get("classes", {})
    return found


def _field_types(schema: Schema) -> dict[str, str]:
    """Return the fields with their types, without an added key column."""
    return {column.name: column.type for column in schema.columns if not _is_key(schema, column)}


def _is_key(schema: Schema, column: Column) -> bool:
    """Return True if the column was added for a key that is not a field."""
    return column.name == schema.key and bool(json.loads(schema.about or "{}").get("added"))


def misfit_message(table: str, store: str, row_type: Any, found: Sequence[str]) -> str:
    """Return the message for a table whose stored rows do not fit its class."""
    called = getattr(row_type, "__name__", str(row_type))
    return (
        f"the rows of table {table!r} in {store} are not those of {called}: {'; '.join(found)}\n"
        f"  give db.table(..., migrate=): a callable, dictionary of the old fields -> {called}; or "
        "give new fields a default"
    )


def migrate_rows(
    old: Schema, known: DeclaredRows | None, migrate: Migrate | None, rows: Sequence[Values]
) -> Iterator[tuple[Any, int]]:
    """Yield rows of the current class, each with the position of its stored row.

    known: the declaration of the current class, None for a codec; migrate: None to convert by
    fields.

    Raises
    ------
    PlanError: a stored row cannot be converted.
    """
    for place, fields in enumerate(_stored_mappings(old, known, migrate, rows)):
        try:
            row = fields if migrate is None else migrate(dict(fields))
            if row is not None:
                yield _build_row(row, known), place
        except Exception as error:
            error.add_note(f"  a row of table {old.table!r} that is stored: {fields!r:.300}")
            raise


def _stored_mappings(
    old: Schema, known: DeclaredRows | None, migrate: Migrate | None, rows: Sequence[Values]
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each stored row by name.

    With `migrate`, inner records whose class has changed are dictionaries, too. Raises
    `DamagedValue` for values that this library has not written.
    """
    classes: dict[str, Any] = {} if known is None else dict(known.classes)
    if migrate is not None:
        gone = {
            name: AS_MAPPING for name, _ in _about(old).items() if _is_other(name, old, classes)
        }
        classes |= gone
    columns = [column for column in old.columns if not _is_key(old, column)]
    reads = [reader(column.kind, classes) for column in columns]
    for row in rows:
        try:
            fields = {c.name: read(v) for c, read, v in zip(columns, reads, row, strict=False)}
        except DAMAGED as error:
            raise DamagedValue(f"{row!r:.200}, which this library has not written") from error
        yield fields


def _is_other(name: str, old: Schema, classes: Mapping[str, Any]) -> bool:
    """Return True if an inner record must be a dictionary, because its class has changed."""
    kind = classes.get(name)
    if kind is None:
        return True
    return is_record(kind) and not {*_about(old)[name]} <= {*members(kind)}


def _build_row(fields: Any, known: DeclaredRows | None) -> Any:
    """Return a row made of its fields; an object that is a row already is returned unchanged.

    Raises `PlanError` if the class refuses the fields.
    """
    if known is None or not isinstance(fields, dict):
        return fields
    if known.shape == "record":
        try:
            return known.kind(**fields)
        except TypeError as error:
            raise PlanError(
                f"no {known.kind.__name__} can be made of a row: {error}\n"
                "  give db.table(..., migrate=): a callable, dictionary -> row"
            ) from None
    values = list(fields.values())
    return tuple(values) if known.shape == "tuple" else values[0]


class StoredKinds:
    """The classes of the values read so far, by column.

    >>> from reactive.borders.durable.store import Column
    >>> kinds = StoredKinds(Schema("pairs", (Column("a", "int", "plain"),), None, ""))
    >>> kinds.are_plain([(1,), (2,)]), kinds.are_plain([(b"1",)]), kinds.are_plain([(3,)])
    (True, False, False)
    """

    def __init__(self, schema: Schema) -> None:
        self._names = [column.name for column in schema.columns]
        self._readers = [itemgetter(place) for place in range(len(self._names))]
        self._kinds: list[set[type]] | None = [set() for _ in self._names]

    def are_plain(self, batch: Sequence[Values]) -> bool:
        """Return True if these values, and all earlier ones, need no decoding."""
        if self._kinds is None:
            return False
        for kinds, read in zip(self._kinds, self._readers, strict=True):
            kinds.update(map(type, map(read, batch)))
        if any(bytes in kinds for kinds in self._kinds):
            self._kinds = None
        return self._kinds is not None

    def test_of(self, rows: Sequence[Any]) -> plain_rows.PlainTest | None:
        """Return the test that all rows made of the given values pass; None if that is unknown."""
        if self._kinds is None or not rows:
            return None
        kind: Any = type(rows[0])
        if self._names != list(plain_rows.plain_fields(kind) or ()):
            return None
        if set(map(type, rows)) != {kind}:
            return None
        return plain_rows.plain_test_of(kind, tuple(map(frozenset, self._kinds)))
