"""Rows of Postgres as objects of a class; and modules of row classes, as source text.

Rows are made from the texts of columns:

    columns  id, name, born        matched to fields by name; other columns are ignored
    class    User(id, name)

`module_text` returns a module with the row classes of tables:

    create table orders (id int primary key, born date)

    class Orders(NamedTuple):
        id: int
        born: date | None

The classes have the names, fields and annotations of `PostgresSource.row_class`. A
type with the name of a field or class is imported under another name: `date as _date`. No field of
a named tuple begins with `_`.

State:  two functions, generated for the class: for texts, and for values of the driver.
Cost:   O(fields) per row.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from keyword import iskeyword
from types import GenericAlias, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, Union, get_args, get_origin

from optimizer.kinds.kind import admits_none, hints_of, kind_of, name_of, with_none
from optimizer.kinds.texts import columns_of, field_names
from reactive.api.table import Table
from reactive.borders.sources.batch import Refused
from reactive.borders.sources.postgres.schema import (
    Connection,
    PostgresColumn,
    PostgresSchema,
    PostgresTypes,
    asking,
    read_schema,
)
from reactive.borders.sources.postgres.values import NATIVE, TIMESTAMPTZ, Conversion, fit_conversion
from reactive.engine.codegen.functions import BoundValues as Names
from reactive.engine.codegen.functions import build
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import SourceError

Make = Callable[[Sequence[Any]], Any]
"""Make a row from the values of columns, or a `Refused` with the reason."""


class ColumnField(NamedTuple):
    """A field of the class, with its column."""

    name: str
    column: PostgresColumn
    conversion: Conversion
    by_name: bool


Values: TypeAlias = Sequence[tuple[ColumnField, Any]]
"""Fields with the values of their columns: texts, or values of the driver."""


def column_fields(schema: PostgresSchema, row_type: Any) -> tuple[ColumnField, ...]:
    """Return the fields of a class with their columns.

    Raises
    ------
    SourceError: the class has no fields, or a field without a column or with one of another type.
    """
    hints = hints_of(row_type) if isinstance(row_type, type) else {}
    parameters = _named_parameters(schema, row_type)
    places = columns_of([name for name, _ in parameters], [c.name for c in schema.columns])
    columns = {name: schema.columns[place] for name, place in places.items()}
    found = [
        ColumnField(name, *_fit(schema, row_type, columns, name, hints.get(name, Any)), by_name)
        for name, by_name in parameters
    ]
    return tuple(found)


def nullable(schema: PostgresSchema, row_type: Any, fields: Sequence[ColumnField]) -> Iterator[str]:
    """Return messages for columns that may be NULL over a field that may not be None."""
    hints = hints_of(row_type) if isinstance(row_type, type) else {}
    for field in fields:
        kind = kind_of(hints.get(field.name, Any))
        if not field.column.not_null and not admits_none(kind):
            yield (
                f"column {field.column.name!r} of {schema.name!r} may be NULL, and field "
                f"{field.name!r} of {row_type.__name__} is declared {name_of(kind)}\n"
                f"  declare `{field.name}: {with_none(kind)}`, or ALTER TABLE {schema.sql} ALTER "
                f'COLUMN "{field.column.name}" SET NOT NULL'
            )


def native_types(fields: Sequence[ColumnField]) -> frozenset[int]:
    """Return the types of columns that the driver may convert."""
    changed = {field.column.type for field in fields if not _is_default_conversion(field)}
    return NATIVE - changed


def row_function(
    schema: PostgresSchema,
    row_type: Any,
    fields: Sequence[ColumnField],
    places: Sequence[int],
    native: Collection[int] = (),
    key: Callable[[Values], Any] | None = None,
) -> Make:
    """Return a function that makes a row from the values of columns.

    Parameters
    ----------
    places: the position of the column of each field.
    native: the types whose values the driver has converted already.
    key: fields with their values -> key, for values that cannot be converted to a row.
    """
    values = Names()
    make = values.name(row_type, "kind")
    arguments: list[str] = []
    for field, place in zip(fields, places, strict=True):
        text = f"v[{place}]"
        if field.conversion.call is not None and field.column.type not in native:
            call = values.name(field.conversion.call, "to_value")
            text = f"None if {text} is None else {call}({text})"
        arguments.append(f"{field.name}={text}" if field.by_name else text)
    code = f"def make(v):\n    return {make}({', '.join(arguments)})\n"
    made: Make = build("make", code, values)

    def convert_checked(found: Sequence[Any]) -> Any:
        try:
            return made(found)
        except Exception as error:
            reraise_asynchronous(error)
            refusal = _row_refusal(schema, fields, places, found, error)
            refusal.__cause__ = error
            some = [(field, found[place]) for field, place in zip(fields, places, strict=True)]
            return Refused(show_values(some), refusal, None if key is None else key(some))

    return convert_checked


def show_values(given: Values) -> str:
    """Show values in converted form, or as text if that fails; equal for snapshot and stream.

    >>> from reactive.borders.sources.postgres.values import BUILT_IN
    >>> day = PostgresColumn("day", 1082, BUILT_IN[1082], False)
    >>> show_values([(ColumnField("day", day, day.conversion, False), "infinity")])
    "day='infinity'"
    """
    return ", ".join(f"{field.name}={_shown_value(field, value)!r}" for field, value in given)


def _shown_value(field: ColumnField, value: Any) -> Any:
    """Return a text of Postgres as a value; the text itself if it cannot be converted."""
    call = field.conversion.call
    if not isinstance(value, str) or call is None:
        return value
    try:
        return call(value)
    except Exception as error:
        reraise_asynchronous(error)
        return value


def key_of_values(
    schema: PostgresSchema, table: Table[Any], fields: Sequence[ColumnField]
) -> tuple[Callable[[Any], Any], frozenset[str]]:
    """Return the key function of a table, and the fields that it reads.

    Raises
    ------
    SourceError: changes do not include these fields, or several rows may have the same key.
    """
    assert table.plan.key is not None
    call = table.plan.key.function
    reads = _AttributeReads()
    try:
        call(reads)
    except Exception as error:
        reraise_asynchronous(error)
    names = frozenset(reads._read)
    columns = {field.name: field.column.name for field in fields}
    _check_key_fields(schema, table.name, frozenset(columns.get(name, name) for name in names))
    return call, names


class KeyValues:
    """The values of some fields as attributes, the argument of a key function."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


class _AttributeReads:
    """A recorder of the attributes that a key function reads."""

    def __init__(self) -> None:
        self._read: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self._read.append(name)
        return 0


def _check_key_fields(schema: PostgresSchema, table: str, names: frozenset[str]) -> None:
    """Raise `SourceError` if a table's key is not sent with changes, or not unique in Postgres."""
    if not names <= schema.identity:
        raise SourceError(
            f"the key of table {table!r} reads {_listing(names)}, and changes of {schema.name!r} "
            f"tell {_listing(schema.identity)} of the row that was\n"
            f"  have the same key in both, or ALTER TABLE {schema.sql} REPLICA IDENTITY FULL"
        )
    is_unique = any(unique <= names for unique in schema.uniques)
    if not is_unique and (schema.uniques or not schema.is_full):
        raise SourceError(
            f"the key of table {table!r} reads {_listing(names) or 'nothing'}, and {schema.name!r} "
            "may have several rows with one key\n"
            f"  a key that is unique there: {' or '.join(map(_listing, schema.uniques))}"
        )


def _listing(names: Collection[str]) -> str:
    return ", ".join(sorted(names))


def _named_parameters(schema: PostgresSchema, row_type: Any) -> list[tuple[str, bool]]:
    """Return the parameters of the class, with True for keyword-only ones.

    Raises `SourceError` if the class has no named parameters.
    """
    plain = row_type in (tuple, dict, object, str, int, float)
    try:
        found = () if plain else tuple(inspect.signature(row_type).parameters.values())
    except (TypeError, ValueError):
        found = ()
    odd = [p for p in found if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    named = [(p.name, p.kind is p.KEYWORD_ONLY) for p in found if p not in odd]
    if not named:
        raise SourceError(
            f"rows of {schema.name!r} are to be of {row_type!r:.100}, which has no fields\n"
            "  take a dataclass, a NamedTuple, or the class that source.row_class() makes"
        )
    return named


def _fit(
    schema: PostgresSchema,
    row_type: Any,
    columns: dict[str, PostgresColumn],
    name: str,
    hint: Any,
) -> tuple[PostgresColumn, Conversion]:
    """Return the column of a field, and the conversion to its annotation.

    Raises `SourceError` if the column is missing or generated, or its values do not fit.
    """
    column = columns.get(name)
    if name in {*schema.generated, *field_names(schema.generated)}:
        raise SourceError(
            f"cannot follow column {name!r} of {schema.name!r}: it is generated, and Postgres does "
            f"not replicate its values\n  leave field {name!r} out of {row_type.__name__}, and "
            "compute it in a query\n  NotifySource, which reads rows by queries, takes it"
        )
    if column is None:
        names = ", ".join(each.name for each in schema.columns)
        raise SourceError(
            f"field {name!r} of {row_type.__name__} is no column of {schema.name!r}, which has "
            f"{names}\n  leave it out of the class, or add the column"
        )
    found = fit_conversion(column.conversion, hint)
    if found is None:
        raise SourceError(
            f"field {name!r} of {row_type.__name__} is declared as {hint}, and column {name!r} of "
            f"{schema.name!r} gives {column.conversion.python}\n"
            "  declare it so; declared as str it is the text that Postgres writes"
        )
    return column, found


def _is_default_conversion(field: ColumnField) -> bool:
    return field.conversion is field.column.conversion


def _row_refusal(
    schema: PostgresSchema,
    fields: Sequence[ColumnField],
    places: Sequence[int],
    found: Sequence[Any],
    error: Exception,
) -> SourceError:
    """Return the error for a row: it names the column that cannot be converted, and the key."""
    keys = [f for f in zip(fields, places, strict=True) if f[0].column.name in schema.identity]
    row = ", ".join(f"{field.column.name}={found[place]}" for field, place in keys[:4])
    for field, place in zip(fields, places, strict=True):
        value, call = found[place], field.conversion.call
        try:
            if isinstance(value, str) and call is not None:
                call(value)
        except Exception as raised:
            reraise_asynchronous(raised)
            return SourceError(
                f"column {field.column.name!r} of {schema.name!r}, row {row}: {value!r:.100} is no "
                f"{_python_name(field.conversion.python)} ({raised})\n"
                "  declare the field as str to take the text as it is, or leave it out of the class"
            )
    return SourceError(f"row {row} of {schema.name!r} cannot be made: {error}")


def _python_name(python: Any) -> str:
    return str(getattr(python, "__name__", python))


def postgres_row_class(schema: PostgresSchema, without: Collection[str] = ()) -> type[Any]:
    """Make a class of rows, a named tuple, with a field per column that is not left out."""
    made: type[Any] = NamedTuple(row_class_name(schema), row_fields(schema, without))  # type: ignore[misc]
    return made


def row_class_name(schema: PostgresSchema) -> str:
    """Return the name of the class of the rows of a table."""
    name = "".join(part.capitalize() for part in schema.table.split("_"))
    return name if name.isidentifier() and not iskeyword(name) else "Row"


def row_fields(schema: PostgresSchema, without: Collection[str] = ()) -> list[tuple[str, Any]]:
    """Return the names and annotations of the fields of a class of rows.

    Raises
    ------
    SourceError: a column is generated and not left out, or `without` names no column.
    """
    _check_left_out(schema, without)
    columns = [column for column in schema.columns if column.name not in without]
    names = field_names([column.name for column in columns], of_tuple=True)
    return list(zip(names, map(_hint, columns), strict=True))


def _check_left_out(schema: PostgresSchema, without: Collection[str]) -> None:
    """Raise `SourceError` unless `without` leaves out every generated column.

    It must name columns of the table only, as a list, and not all of them.
    """
    if isinstance(without, str):
        raise SourceError(
            f"without takes names of columns, not {without!r}\n  without=[{without!r}]"
        )
    generated = [name for name in schema.generated if name not in without]
    if generated:
        raise SourceError(
            f"cannot make a class of all columns of {schema.name!r}: "
            f"{', '.join(map(repr, generated))} is generated, and Postgres does not replicate its "
            f"values\n  leave it out, and compute it in a query: row_class({schema.name!r}, "
            f"without={[*without, *generated]!r})\n"
            "  NotifySource, which reads rows by queries, takes a class with this column"
        )
    names = [column.name for column in schema.columns] + list(schema.generated)
    for name in without:
        if name not in names:
            raise SourceError(
                f"cannot leave out {name!r}: it is no column of {schema.name!r}, which has "
                f"{', '.join(names)}\n  name one of these"
            )
    if len(set(without) - set(schema.generated)) == len(schema.columns):
        raise SourceError(
            f"cannot leave out all columns of {schema.name!r}\n  keep those of its primary key"
        )


def _hint(column: PostgresColumn) -> Any:
    """Return the annotation of a column's field; for a timestamptz, with its zone."""
    python = column.conversion.python
    if column.type == TIMESTAMPTZ:
        python = Annotated[datetime, UTC]
    return python if python is Any or column.not_null else python | None


HEADER = '''"""Rows of tables of Postgres.

Written by `python -m reactive.sources.postgres`, which writes it again: do not edit.
"""
'''
TABLES = """
    select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p') and not c.relispartition and pg_table_is_visible(c.oid)
    and n.nspname <> 'information_schema' and n.nspname not like 'pg\\_%'
    and exists (select 1 from pg_attribute where attrelid = c.oid and attnum > 0
                and not attisdropped and attgenerated = '')
    order by c.relname
"""
OF_TUPLE: Final = frozenset(name for name in dir(tuple) if not name.startswith("_"))
"""The methods of named tuples: a field of the same name replaces one, and type checkers object."""


class RowClass(NamedTuple):
    """A row class to be written."""

    name: str
    schema: PostgresSchema
    fields: Sequence[tuple[str, Any]]
    left_out: Sequence[str]


def module_text(dsn: str, tables: Sequence[str] = (), *, is_queried: bool = False) -> str:
    """Return the text of a module with a class for each of the tables, or for all of the database.

    Parameters
    ----------
    is_queried: True for the columns that `NotifySource` reads, with generated ones.

    Raises
    ------
    SourceError: the server gives no answer, or has no such table.
    """
    with asking(dsn) as connection:
        names = list(dict.fromkeys(tables)) or _all_tables(connection)
        types = PostgresTypes(connection)
        schemas = [read_schema(connection, each, types, is_queried=is_queried) for each in names]
    return classes_text(_row_classes(schemas))


def classes_text(classes: Sequence[RowClass]) -> str:
    """Return the text of a module with the given classes."""
    taken = {each.name for each in classes} | {n for each in classes for n, _ in each.fields}
    types = _TypeNames(taken)
    bodies = [_class_body(each, types) for each in classes]
    return "\n".join([HEADER, *types.imports(), "", "", "\n\n\n".join(bodies)]) + "\n"


def _all_tables(connection: Connection) -> list[str]:
    """Return the tables of the search path. Raises `SourceError` if there is none."""
    found = [str(name) for (name,) in connection.rows(TABLES)]
    if not found:
        raise SourceError(
            "there is no table in the schemas of the search path\n"
            "  name the tables: shop.orders, shop.users"
        )
    return found


def _row_classes(schemas: Sequence[PostgresSchema]) -> list[RowClass]:
    """Return the classes; tables of equal names in several schemas get the schema in the name."""
    names = [row_class_name(schema) for schema in schemas]
    whole = [
        f"{schema.schema.capitalize()}{name}" if names.count(name) > 1 else name
        for schema, name in zip(schemas, names, strict=True)
    ]
    return [
        RowClass(name, schema, row_fields(schema, schema.generated), schema.generated)
        for name, schema in zip(field_names(whole, of_tuple=True), schemas, strict=True)
    ]


def _class_body(kind: RowClass, types: _TypeNames) -> str:
    """Return the text of a class of rows, and note the imports of its annotations in `types`."""
    lines = [f"class {kind.name}({types.name_type(NamedTuple)}):", f"    {_docstring(kind)}", ""]
    for name, hint in kind.fields:
        is_refused = name in OF_TUPLE and hint is not Any
        comment = "  # type: ignore[assignment]" if is_refused else ""
        lines.append(f"    {name}: {types.name_type(hint)}{comment}")
    return "\n".join(lines)


def _docstring(kind: RowClass) -> str:
    """Return a docstring that names the table, its key, and the omitted columns."""
    text = f"Table {kind.schema.name!r}"
    if kind.schema.primary:
        columns = [c.name for c in kind.schema.columns if c.name in kind.schema.primary]
        text += f"; primary key: {_literal_list(columns)}"
    if kind.left_out:
        text += f"; without what is generated: {_literal_list(kind.left_out)}"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}."""'


def _literal_list(names: Iterable[str]) -> str:
    return ", ".join(name if name.isidentifier() else repr(name) for name in names)


class _TypeNames:
    """The names of types in a module, and the imports for them."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._imports: dict[str, dict[str, str]] = {}

    def name_type(self, hint: Any) -> str:
        """Return the text of an annotation."""
        origin, inside = get_origin(hint), get_args(hint)
        if origin in (UnionType, Union):
            return " | ".join("None" if i is type(None) else self.name_type(i) for i in inside)
        if isinstance(hint, GenericAlias):
            return f"{self.name_type(origin)}[{', '.join(map(self._argument, inside))}]"
        if origin is Annotated:
            return f"{self.name_type(Annotated)}[{', '.join(map(self.name_type, inside))}]"
        if hint is UTC:
            return self._import_name("datetime", "UTC")
        return self._import_name(hint.__module__, getattr(hint, "__name__", repr(hint)))

    def imports(self) -> list[str]:
        """Return the lines that import the types."""
        return [
            f"from {module} import {', '.join(self._imports[module][n] for n in sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]

    def _argument(self, hint: Any) -> str:
        return "..." if hint is ... else self.name_type(hint)

    def _import_name(self, module: str, name: str) -> str:
        """Return the name of a type, and note its import; a taken name gets an underscore."""
        is_taken = name in self._taken
        if module == builtins.__name__ and not is_taken:
            return name
        called = f"_{name}" if is_taken else name
        imported = f"{name} as {called}" if is_taken else name
        self._imports.setdefault(module, {})[name] = imported
        return called
