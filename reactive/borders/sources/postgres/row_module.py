"""Text of a module with the classes of the rows of tables of Postgres.

    create table orders (id int primary key, born date)

    class Orders(NamedTuple):
        id: int
        born: date | None

The classes have the names, fields and annotations of those that `PostgresSource.row_class` makes.
A type whose name is that of a field or of a class is imported by another name: `date as _date`. No
field of a named tuple begins with `_`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from datetime import UTC
from types import GenericAlias, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from optimizer.kinds.names import field_names
from reactive.borders.sources.postgres.connection import Connection, asking
from reactive.borders.sources.postgres.rows import class_name, row_fields
from reactive.borders.sources.postgres.schema import Schema, Types, read_schema
from reactive.errors import SourceError

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
"""Methods of named tuples that a field of the same name replaces, which type checkers refuse."""


class RowClass(NamedTuple):
    """A class of rows to be written."""

    name: str
    schema: Schema
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
        types = Types(connection)
        schemas = [read_schema(connection, each, types, is_queried=is_queried) for each in names]
    return text_of(_row_classes(schemas))


def text_of(classes: Sequence[RowClass]) -> str:
    """Return the text of a module with these classes."""
    taken = {each.name for each in classes} | {n for each in classes for n, _ in each.fields}
    types = _TypeNames(taken)
    bodies = [_body(each, types) for each in classes]
    return "\n".join([HEADER, *types.imports(), "", "", "\n\n\n".join(bodies)]) + "\n"


def _all_tables(connection: Connection) -> list[str]:
    found = [str(name) for (name,) in connection.rows(TABLES)]
    if not found:
        raise SourceError(
            "there is no table in the schemas of the search path\n"
            "  name the tables: shop.orders, shop.users"
        )
    return found


def _row_classes(schemas: Sequence[Schema]) -> list[RowClass]:
    """Return the classes. Tables of one name, of several schemas, have classes of both names."""
    names = [class_name(schema) for schema in schemas]
    whole = [
        f"{schema.schema.capitalize()}{name}" if names.count(name) > 1 else name
        for schema, name in zip(schemas, names, strict=True)
    ]
    return [
        RowClass(name, schema, row_fields(schema, schema.generated), schema.generated)
        for name, schema in zip(field_names(whole, of_tuple=True), schemas, strict=True)
    ]


def _body(kind: RowClass, types: _TypeNames) -> str:
    lines = [f"class {kind.name}({types.named(NamedTuple)}):", f"    {_docstring(kind)}", ""]
    for name, hint in kind.fields:
        is_refused = name in OF_TUPLE and hint is not Any
        comment = "  # type: ignore[assignment]" if is_refused else ""
        lines.append(f"    {name}: {types.named(hint)}{comment}")
    return "\n".join(lines)


def _docstring(kind: RowClass) -> str:
    """Return a docstring that names the table, its key, and what is left out."""
    text = f"Table {kind.schema.name!r}"
    if kind.schema.primary:
        columns = [c.name for c in kind.schema.columns if c.name in kind.schema.primary]
        text += f"; primary key: {_listed(columns)}"
    if kind.left_out:
        text += f"; without what is generated: {_listed(kind.left_out)}"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"""{escaped}."""'


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name if name.isidentifier() else repr(name) for name in names)


class _TypeNames:
    """The names of types in a module, and what it imports for them."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._imports: dict[str, dict[str, str]] = {}

    def named(self, hint: Any) -> str:
        """Return the text of an annotation."""
        origin, inside = get_origin(hint), get_args(hint)
        if origin in (UnionType, Union):
            return " | ".join("None" if i is type(None) else self.named(i) for i in inside)
        if isinstance(hint, GenericAlias):
            return f"{self.named(origin)}[{', '.join(map(self._argument, inside))}]"
        if origin is Annotated:
            return f"{self.named(Annotated)}[{', '.join(map(self.named, inside))}]"
        if hint is UTC:
            return self._imported("datetime", "UTC")
        return self._imported(hint.__module__, getattr(hint, "__name__", repr(hint)))

    def imports(self) -> list[str]:
        """Return the lines that import the types."""
        return [
            f"from {module} import {', '.join(self._imports[module][n] for n in sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]

    def _argument(self, hint: Any) -> str:
        return "..." if hint is ... else self.named(hint)

    def _imported(self, module: str, name: str) -> str:
        is_taken = name in self._taken
        if module == builtins.__name__ and not is_taken:
            return name
        called = f"_{name}" if is_taken else name
        imported = f"{name} as {called}" if is_taken else name
        self._imports.setdefault(module, {})[name] = imported
        return called
