"""Rows of an earlier class: which differences from the class of today they may have, and as what
they come back.

    a new field             its default; without one `migrate=` is asked for
    a field that is gone, or may hold less than it did      `migrate=`
    the same fields in another order, or that may hold more     as they are

`migrate` is a callable, dictionary of the fields as they were -> row, or dictionary of the fields
of today, or None to leave the row out.

State:  none.
Cost:   of a table whose class differs, O(rows) once: its rows are written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from optimizer.errors import PlanError
from optimizer.kinds.fields import is_record, members
from reactive.borders.durable.refusals import DAMAGED
from reactive.borders.durable.rows.columns import reader
from reactive.borders.durable.rows.declared import Declared, needed
from reactive.borders.durable.rows.type_text import holds_all
from reactive.borders.durable.rows.values import AS_MAPPING, Damaged
from reactive.borders.durable.store import Column, Schema, Values

Migrate = Callable[[dict[str, Any]], Any]


def differences(old: Schema, new: Schema, known: Declared | None) -> list[str]:
    """What of an earlier class does not fit the class of today, unless `migrate` sees to it.

    known: what is known of the class of today; None of a codec.
    """
    before, now = _fields(old), _fields(new)
    found = [f"field {name!r} is gone" for name in before if name not in now]
    for name, hint in now.items():
        if name in before and not holds_all(hint, before[name]):
            found.append(f"field {name!r} was {before[name]}, and is {hint}")
        elif name not in before and _is_needed(name, known):
            found.append(f"field {name!r} is new, and has no default")
    return [*found, *_inner_differences(old, new)]


def _is_needed(name: str, known: Declared | None) -> bool:
    return known is None or known.shape != "record" or name in needed(known.kind)


def _inner_differences(old: Schema, new: Schema) -> Iterator[str]:
    """Of records and enumerations that fields hold."""
    classes: Mapping[str, Mapping[str, str]] = _about(new)
    for name, before in _about(old).items():
        now = classes.get(name)
        if now is not None:
            for field, hint in before.items():
                if field not in now or not holds_all(now[field], hint):
                    yield f"{name}.{field} is gone, or holds less than it did"


def _about(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(schema.about or "{}").get("classes", {})
    return found


def _fields(schema: Schema) -> dict[str, str]:
    """The fields with their types, without the column of a key that is none."""
    return {column.name: column.type for column in schema.columns if not _is_key(schema, column)}


def _is_key(schema: Schema, column: Column) -> bool:
    """Whether a column was added for a key that is no field."""
    return column.name == schema.key and bool(json.loads(schema.about or "{}").get("added"))


def refusal(table: str, store: str, row_type: Any, found: Sequence[str]) -> str:
    """What to say of a table whose rows do not fit its class."""
    called = getattr(row_type, "__name__", str(row_type))
    return (
        f"the rows of table {table!r} in {store} are not those of {called}: {'; '.join(found)}\n"
        f"  give db.table(..., migrate=): a callable, dictionary of the old fields -> {called}; or "
        "give new fields a default"
    )


def migrated(
    old: Schema, known: Declared | None, migrate: Migrate | None, rows: Sequence[Values]
) -> Iterator[tuple[Any, int]]:
    """The rows as they are today, each with its place among those that are given.

    Raises
    ------
    PlanError: a row cannot be made of one that is stored.
    """
    for place, fields in enumerate(_as_mappings(old, known, migrate, rows)):
        try:
            row = fields if migrate is None else migrate(dict(fields))
            if row is not None:
                yield _row_of(row, known), place
        except Exception as error:
            error.add_note(f"  a row of table {old.table!r} that is stored: {fields!r:.300}")
            raise


def _as_mappings(
    old: Schema, known: Declared | None, migrate: Migrate | None, rows: Sequence[Values]
) -> Iterator[dict[str, Any]]:
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
            raise Damaged(f"{row!r:.200}, which this library has not written") from error
        yield fields


def _is_other(name: str, old: Schema, classes: Mapping[str, Any]) -> bool:
    """Whether a record inside rows is to be given as a dictionary: its class is not what it was."""
    kind = classes.get(name)
    if kind is None:
        return True
    return is_record(kind) and not {*_about(old)[name]} <= {*members(kind)}


def _row_of(fields: Any, known: Declared | None) -> Any:
    """A row of the fields that it has; what is a row already is left as it is."""
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
