"""System functions of Postgres: `format_type`, `pg_get_viewdef`, `to_regclass`, `x::regclass`.

Objects are looked up when the query is read. `'t'::regclass` is the number of a table where it is
compared, and its name where it is shown: as a column of the whole query, or as a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from sqlglot import exp

from optimizer.expr import Call, Constant
from optimizer.record import record
from reactive.languages.sql.statements import settings
from reactive.languages.sql.system import postgres
from reactive.languages.sql.system.listing import (
    OWN_SCHEMAS,
    Listing,
    listing_of,
    quoted,
    relation_number,
    schema_number,
)
from reactive.languages.sql.system.postgres_types import BY_NAMES, TYPES, format_type, type_of
from reactive.languages.sql.system.relations import SCHEMAS
from reactive.languages.sql.system.search_path import current_schemas
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import BOOL, INT, TEXT, SqlType
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    is_null,
    literal_value,
    nullable_value,
)
from reactive.languages.sql.text.schemas import schema_names

SYSTEM_TABLES = {
    "pg_class": 1259,
    "pg_attribute": 1249,
    "pg_type": 1247,
    "pg_proc": 1255,
    "pg_namespace": 2615,
    "pg_constraint": 2606,
    "pg_index": 2610,
    "pg_attrdef": 2604,
    "pg_description": 2609,
    "pg_database": 1262,
    "pg_trigger": 2620,
    "pg_rewrite": 2618,
    "pg_sequence": 2224,
    "pg_depend": 2608,
    "pg_authid": 1260,
    "pg_inherits": 2611,
    "pg_am": 2601,
    "pg_collation": 3456,
    "pg_tablespace": 1213,
    "pg_enum": 3501,
}
"""Numbers of system tables, with which descriptions and dependencies name them."""


@record
class ConstantTable:
    """A function that returns the value of its first argument in a table, or None."""

    pairs: tuple[tuple[Any, Any], ...]
    table: dict[Any, Any] = field(compare=False, repr=False)

    def __call__(self, key: Any, *_: Any) -> Any:
        return self.table.get(key)


def _lookup(table: dict[Any, Any], kind: SqlType, *of: TypedValue) -> TypedValue:
    """Return the value of a table for an argument; NULL for others."""
    function = ConstantTable(tuple(table.items()), table)
    return _called(function, kind, *of)


def _called(function: Any, kind: SqlType, *of: TypedValue) -> TypedValue:
    """Return a call of a function that may return None, and takes it."""
    return nullable_value(Call(callee(function), tuple(map(as_optional, of))), kind)


# Functions.


def function_value(name: str, node: Any, around: Scope) -> TypedValue | None:
    """Return the value of a call of a system function; None of another function."""
    arguments = node.expressions
    if name in CONSTANTS or name.startswith(("has_", "pg_stat_get_")):
        for each in arguments:
            around.value(each)
        _note(around)
        return CONSTANTS.get(name, literal_value(value=name.startswith("has_") or 0))
    found = OF_OBJECTS.get(name)
    if found is not None and arguments:
        kind, table = found
        _note(around)
        values = [around.value(each) for each in arguments]
        if name == "pg_get_viewdef" and values[0].type.kind == "text":
            values[0] = _number(values[0], node, around, _relation_numbers(around))
        if name == "pg_get_indexdef" and len(values) > 1:
            return _called(_indexed(around), TEXT, *values)
        return _lookup(table(listing_of(around)), kind, *values)
    match name:
        case "pg_get_expr" | "pg_partition_ancestors" if arguments:
            for each in arguments[1:]:
                around.value(each)
            return around.value(arguments[0])
        case "format_type" if 0 < len(arguments) < 3:
            return _called(format_type, TEXT, *map(around.value, arguments))
        case "set_config" if len(arguments) == 3:
            return _configure(arguments, node, around)
        case "pg_typeof" if len(arguments) == 1:
            kind = around.value(arguments[0]).type
            shown = "unknown" if kind.kind == "null" else format_type(type_of(kind)[0])
            return literal_value(shown)
        case "pg_size_pretty" if len(arguments) == 1:
            return _called(_size, TEXT, around.value(arguments[0]))
        case "to_regclass" | "to_regtype" | "to_regnamespace" if len(arguments) == 1:
            _note(around)
            return _object(name[3:], arguments[0], node, around, is_sure=False)
    return None


def _configure(arguments: list[Any], node: Any, around: Scope) -> TypedValue:
    """Set a setting when the query is read, and return its value."""
    name, value, *_ = (around.value(each).expr for each in arguments)
    texts = [each.value for each in (name, value) if isinstance(each, Constant)]
    if len(texts) != 2 or not all(isinstance(each, str) for each in texts):
        raise around.error(node, "set_config() takes the name of a setting and a text")
    _note(around)
    setting, text = texts
    settings.assign(setting, text, around)
    return literal_value(text)


def _note(around: Scope) -> None:
    """Note that the query reads system tables, so that it is read each time."""
    around.environment.from_catalog.add("information_schema")


def _size(size: int | None) -> str | None:
    return None if size is None else f"{size} bytes"


TRUE, FALSE, ZERO = literal_value(True), literal_value(False), literal_value(0)
NO_TEXT = TypedValue(NULL_VALUE.expr, TEXT, NULL_VALUE.nulls)
CONSTANTS: dict[str, TypedValue] = {
    "pg_get_userbyid": literal_value("postgres"),
    "pg_encoding_to_char": literal_value("UTF8"),
    "pg_client_encoding": literal_value("UTF8"),
    "pg_tablespace_location": literal_value(""),
    **dict.fromkeys(("pg_type_is_visible", "pg_function_is_visible"), TRUE),
    **dict.fromkeys(("pg_collation_is_visible", "pg_opclass_is_visible", "pg_has_role"), TRUE),
    **dict.fromkeys(("pg_is_in_recovery", "pg_is_other_temp_schema"), FALSE),
    **dict.fromkeys(("pg_relation_is_publishable", "pg_relation_is_updatable"), FALSE),
    **dict.fromkeys(("pg_my_temp_schema", "pg_relation_size", "pg_table_size"), ZERO),
    **dict.fromkeys(("pg_total_relation_size", "pg_indexes_size", "pg_database_size"), ZERO),
    "pg_backend_pid": literal_value(1),
    **dict.fromkeys(("obj_description", "col_description", "shobj_description"), NO_TEXT),
    **dict.fromkeys(("pg_get_serial_sequence", "pg_get_triggerdef", "pg_get_ruledef"), NO_TEXT),
    **dict.fromkeys(("pg_get_partkeydef", "pg_get_functiondef"), NO_TEXT),
    **dict.fromkeys(("pg_get_function_result", "pg_get_function_arguments"), NO_TEXT),
    **dict.fromkeys(("pg_get_function_identity_arguments", "inet_server_addr"), NO_TEXT),
    **dict.fromkeys(("pg_get_statisticsobjdef_columns", "inet_client_addr"), NO_TEXT),
}


def _constraint_texts(listing: Listing) -> dict[int, str]:
    """Return the definitions of constraints by their numbers."""
    return {
        postgres.constraint_number(each, listing.around): _constraint_text(each, listing)
        for each in listing.constraints
    }


def _constraint_text(each: Any, listing: Listing) -> str:
    """Return a constraint as it stands in CREATE TABLE."""
    if each.kind == "CHECK":
        return f"CHECK ({postgres.check_text(each, listing.around)})"
    text = f"{each.kind} ({', '.join(map(quoted, each.columns))})"
    target = listing.find(each.target)
    if target is None:
        return text
    of_target = ", ".join(map(quoted, each.target_columns))
    return f"{text} REFERENCES {shown_name(target, listing.around)}({of_target})"


def _index_texts(listing: Listing) -> dict[int, str]:
    """Return the definitions of indexes by their numbers."""
    return {index.number(listing.around): index.definition() for index in listing.indexes}


@record
class IndexedText:
    """A function that returns the definition of an index, or one of its columns by number."""

    texts: ConstantTable
    short: ConstantTable
    columns: ConstantTable

    def __call__(self, number: Any, column: Any, is_short: Any = False) -> Any:
        if column:
            return self.columns(number, column)
        return self.short(number) if is_short else self.texts(number)


@record
class ColumnTable(ConstantTable):
    """A function that returns the value of two arguments in a table, or None."""

    def __call__(self, key: Any, *more: Any) -> Any:
        return self.table.get((key, *more))


def _indexed(around: Scope) -> IndexedText:
    """Return the function of `pg_get_indexdef(index, column, pretty)`."""
    listing = listing_of(around)
    texts = _index_texts(listing)
    short = {
        index.number(around): index.definition(on=shown_name(index.relation, around))
        for index in listing.indexes
    }
    columns = {
        (index.number(around), place): name
        for index in listing.indexes
        for place, name in enumerate(index.columns, 1)
    }
    made = ColumnTable(tuple(columns.items()), columns)
    of_texts, of_short = (ConstantTable(tuple(each.items()), each) for each in (texts, short))
    return IndexedText(of_texts, of_short, made)


def _view_texts(listing: Listing) -> dict[int, str | None]:
    """Return the queries of views by their numbers."""
    return {
        relation_number(name, listing.around): postgres.view_text(name, listing.around)
        for name, relation in listing.relations.items()
        if relation.kind != "BASE TABLE"
    }


def _visible(listing: Listing) -> dict[int, bool]:
    """Return whether tables, views and indexes are found without a schema, by their numbers."""
    around = listing.around
    found = {
        relation_number(name, around): is_visible(relation, around)
        for name, relation in listing.relations.items()
    }
    for index in listing.indexes:
        found[index.number(around)] = is_visible(index.relation, around)
    return found


OF_OBJECTS: dict[str, tuple[SqlType, Callable[[Listing], dict[Any, Any]]]] = {
    "pg_get_constraintdef": (TEXT, _constraint_texts),
    "pg_get_indexdef": (TEXT, _index_texts),
    "pg_get_viewdef": (TEXT, _view_texts),
    "pg_table_is_visible": (BOOL, _visible),
}


def is_visible(relation: Any, around: Scope) -> bool:
    """Return True if a table or view is found without its schema."""
    environment = around.environment
    path = current_schemas(around.dialect, environment.catalog, environment.session)
    return relation.schema.casefold() in path


def shown_name(relation: Any, around: Scope) -> str:
    """Return the name of a table or view, with its schema if it is not found without."""
    inside = quoted(relation.inside)
    return inside if is_visible(relation, around) else f"{quoted(relation.schema)}.{inside}"


# Numbers and names of objects.


def object_value(node: Any, around: Scope) -> TypedValue:
    """Return the value of `x::regclass` and the like: a number, or a name where it is shown."""
    kind = str(node.args["to"].this).lower()
    _note(around)
    if kind == "oid":
        return _number(around.value(node.this), node, around, {})
    return _object(kind, node.this, node, around, is_sure=True)


def _object(kind: str, argument: Any, node: Any, around: Scope, *, is_sure: bool) -> TypedValue:
    """Return the number or the name of an object that an argument names or numbers."""
    numbers, names = _known(kind, around)
    number = _number(around.value(argument), node, around, numbers, is_sure=is_sure)
    if not _is_shown(node) or not names:
        return number
    return _called(ShownName(tuple(names.items()), names), TEXT, number)


@record
class ShownName(ConstantTable):
    """A function that returns the name of an object; of an unknown one its number."""

    def __call__(self, key: Any, *_: Any) -> Any:
        return None if key is None else self.table.get(key, str(key))


def _is_shown(node: Any) -> bool:
    """Return True for a column of the whole query, and for what is cast to a text."""
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return isinstance(parent.args.get("to"), exp.DataType) and parent.to.is_type(
            *exp.DataType.TEXT_TYPES, exp.DataType.Type.NAME
        )
    if isinstance(parent, exp.Alias):
        parent = parent.parent
    return isinstance(parent, exp.Select) and parent.parent is None


def _known(kind: str, around: Scope) -> tuple[dict[str, int], dict[int, str]]:
    """Return the numbers of objects by the ways to write their names, and their names."""
    if kind == "regclass":
        return _relation_numbers(around), _relation_names(around)
    if kind == "regtype":
        return BY_NAMES, {each.oid: each.shown for each in TYPES.values()}
    if kind == "regnamespace":
        usual = SCHEMAS[around.dialect.name][1]
        every = [usual, *OWN_SCHEMAS, *schema_names(around.environment.catalog)]
        numbers = {name: schema_number(name, around) for name in every}
        return numbers, {number: quoted(name) for name, number in numbers.items()}
    if kind == "regrole":
        return {"postgres": postgres.OWNER}, {postgres.OWNER: "postgres"}
    return {}, {}


def _relation_numbers(around: Scope) -> dict[str, int]:
    """Return the numbers of tables, views and indexes by the ways to write their names."""
    listing = listing_of(around)
    found = dict(SYSTEM_TABLES)
    placed = [(each, each.inside, relation_number(n, around)) for n, each in _each(listing)]
    placed += [(i.relation, i.name, i.number(around)) for i in listing.indexes]
    for relation, inside, number in placed:
        found[f"{relation.schema}.{inside}".casefold()] = number
    for schema in reversed(_path(around)):
        for relation, inside, number in placed:
            if relation.schema.casefold() == schema:
                found[inside.casefold()] = number
    return found


def _each(listing: Listing) -> list[tuple[str, Any]]:
    return list(listing.relations.items())


def _path(around: Scope) -> list[str]:
    environment = around.environment
    return current_schemas(around.dialect, environment.catalog, environment.session)


def _relation_names(around: Scope) -> dict[int, str]:
    """Return the names of tables, views and indexes by their numbers."""
    listing = listing_of(around)
    found = {number: name for name, number in SYSTEM_TABLES.items()}
    for name, relation in listing.relations.items():
        found[relation_number(name, around)] = shown_name(relation, around)
    for index in listing.indexes:
        inside, schema = quoted(index.name), quoted(index.relation.schema)
        is_found = is_visible(index.relation, around)
        found[index.number(around)] = inside if is_found else f"{schema}.{inside}"
    return found


def _number(
    value: TypedValue, node: Any, around: Scope, numbers: dict[str, int], *, is_sure: bool = True
) -> TypedValue:
    """Return the number of an object by its name, or by a text of its number.

    Raises
    ------
    PlanError: a constant names no object, and `is_sure` says that there must be one.
    """
    if value.type.kind != "text" or is_null(value):
        return value if value.type.kind != "text" else NULL_VALUE
    if not isinstance(value.expr, Constant):
        return _called(NamedNumber(tuple(numbers.items()), numbers), INT, value)
    written = value.expr.value
    found = NamedNumber((), numbers)(written)
    if found is None and is_sure:
        known = nearest(str(written), numbers)
        raise around.error(node, f"relation {written!r} does not exist{known}")
    return NULL_VALUE if found is None else literal_value(found)


@record
class NamedNumber(ConstantTable):
    """A function that returns the number of an object by its name, or the number of a text."""

    def __call__(self, key: Any, *_: Any) -> Any:
        if key is None:
            return None
        if key.isdigit():
            return int(key)
        return self.table.get(_plain(key))


def _plain(written: str) -> str:
    """Return a name as it is looked up: folded, without quotes and without `pg_catalog`."""
    return written.replace('"', "").strip().casefold().removeprefix("pg_catalog.")
