"""Commands: SHOW TABLES, DESCRIBE, EXPLAIN, and prepared statements, as queries and statements.

    show tables              select table_name as name from information_schema.tables ...
    describe t               select column_name, ... from information_schema.columns ...
    explain select ...       the lines of `relation.explain()`; with ANALYZE those of its view
    prepare q as ...         keeps the text, which `execute q(1, 'a')` runs with `$1` and `$2`

State:  the texts of prepared statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.expr import Constant
from reactive.languages.sql.queries.grouping import evaluated_constant
from reactive.languages.sql.system.relations import named_place, tables_shown
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.text.read import LEFT_ALONE, parse_statement

Asked: TypeAlias = tuple[str, Mapping[str, Any]]
"""A text and its parameters."""
REST = r"\b\s*(.*?)[\s;]*\Z"
QUERY = re.compile(r"\s*(show|describe|desc|explain|execute|pragma)" + REST, re.I | re.DOTALL)
STATEMENT = re.compile(
    r"\s*(prepare|execute|deallocate|refresh|set|reset|use|pragma)" + REST, re.I | re.DOTALL
)
SHOWN_TABLES = re.compile(r'tables(?:\s+from\s+"?([^"]+)"?)?', re.I)
PREPARED = re.compile(r"(\w+)\s*(?:\([^)]*\)\s*)?as\s+(.*)\Z", re.I | re.DOTALL)
EXECUTED = re.compile(r"(\w+)\s*(?:\((.*)\))?\Z", re.DOTALL)
PLACE = re.compile(LEFT_ALONE + r"|\$(\d+)|(\?)(\d*)", re.DOTALL)


def as_query(
    word: str, rest: str, around: Scope, explain: Callable[[str, bool], list[str]]
) -> Asked:
    """Return the query that a command stands for.

    explain: returns the lines for a query; the second argument asks for a run.
    """
    match word.lower():
        case "show" if found := SHOWN_TABLES.fullmatch(rest):
            return tables_shown(around, found[1] or "")
        case "show" | "describe" if (around.dialect.name, " ".join(rest.lower().split())) in SHOWN:
            return SHOWN[around.dialect.name, " ".join(rest.lower().split())], {}
        case "describe" | "desc":
            name = rest.removeprefix("table ").strip().strip('"')
            schema, name = named_place(name, around)
            return DESCRIBED, {"described": name, "of_schema": schema}
        case "explain":
            is_run = re.match(r"analy[sz]e\b", rest, re.I)
            lines = explain(rest[is_run.end() :] if is_run else rest, bool(is_run))
            rows = [
                f"({n}, '{line.replace(chr(39), chr(39) * 2)}')" for n, line in enumerate(lines)
            ]
            return f"select line from (values {', '.join(rows)}) as t(n, line) order by n", {}
        case "execute":
            return executed(rest, around)
        case "show" if re.fullmatch(r"[\w. ]+", rest):
            return _settings().shown(rest, around)  # type: ignore[no-any-return]
        case "pragma":
            return _settings().pragma(rest, around)  # type: ignore[no-any-return]
    raise PlanError(f"{word.upper()} {rest[:40]} is not supported\n  show tables; describe t")


ALL_TABLES = """select database_name as database, schema_name as schema, table_name as name,
        list(column_name order by column_index) as column_names,
        list(data_type order by column_index) as column_types, false as temporary
    from duckdb_columns() group by database_name, schema_name, table_name order by 1, 2, 3"""
SHOWN = {
    ("duckdb", ""): ALL_TABLES,
    ("duckdb", "all tables"): ALL_TABLES,
    ("duckdb", "schemas"): """select database_name, schema_name,
            schema_name = current_schema() as current
        from duckdb_schemas() where database_name = current_database() order by 1, 2""",
    ("duckdb", "databases"): "select database_name from duckdb_databases() where not internal",
    ("postgres", "all"): """select name, setting, short_desc as description
        from pg_settings order by 1""",
}
"""Queries of SHOW, by dialect and the words after it."""
DESCRIBED = """select column_name, data_type as column_type, is_nullable, column_default
    from information_schema.columns where lower(table_name) = :described
    and lower(table_schema) = :of_schema
    order by ordinal_position"""


def run_command(word: str, rest: str, around: Scope) -> Asked | None:
    """Run a command about prepared statements or settings.

    Return the statement of EXECUTE, else None.
    """
    catalog, prepared = around.environment.catalog, around.environment.session.prepared
    match word.lower():
        case "prepare":
            found = PREPARED.match(rest)
            if found is None:
                raise PlanError("PREPARE takes a name and a statement\n  prepare q as select ...")
            if found[1].casefold() in prepared:
                raise PlanError(f"there is a prepared statement {found[1]!r} already")
            prepared[found[1].casefold()] = found[2]
        case "deallocate":
            name = rest.split()[-1].casefold() if rest else ""
            if name == "all":
                prepared.clear()
            elif prepared.pop(name, None) is None:
                raise _unknown(name, prepared)
        case "refresh":
            name = rest.split()[-1] if rest else ""
            if catalog.find(name.strip('"')) is None or "view" not in rest.lower():
                raise PlanError(f"REFRESH {rest[:40]} is not supported: views are always fresh")
        case "execute":
            return executed(rest, around)
        case "set":
            _settings().set_value(rest, around)
        case "use":
            _settings().set_value(f"schema = {rest}", around)
        case "reset":
            _settings().reset(rest, around)
        case "pragma":
            _settings().pragma(rest, around)
    return None


def executed(rest: str, around: Scope) -> Asked:
    """Return the text of a prepared statement, and the values that EXECUTE gives."""
    prepared, found = around.environment.session.prepared, EXECUTED.match(rest)
    if found is None:
        raise PlanError("EXECUTE takes the name of a prepared statement\n  execute q(1, 'a')")
    text = prepared.get(found[1].casefold())
    if text is None:
        raise _unknown(found[1], prepared)
    values = []
    if (found[2] or "").strip():
        around = around.of_text(f"select {found[2]}", around.constants)
        tree = parse_statement(around.text, around.dialect)
        values = [evaluated_constant(each, around, None) for each in tree.expressions]
    count = 0

    def name(place: re.Match[str]) -> str:
        nonlocal count
        if not place[1] and not place[2]:
            return place[0]
        number = int(place[1] or place[3] or count + 1)
        count = max(count, number)
        return f":value_{number}"

    named = PLACE.sub(name, text)
    if count != len(values):
        raise PlanError(f"prepared statement {found[1]!r} takes {count} values, not {len(values)}")
    return named, {f"value_{place}": value for place, value in enumerate(values, 1)}


def _unknown(name: str, prepared: Mapping[str, str]) -> PlanError:
    return PlanError(
        f"there is no prepared statement {name!r}{nearest(name, prepared)}\n"
        "  prepare q as select ..."
    )


OF_SETTINGS = "current_setting()"
OF_POSTGRES = "15.0 (reactive-collections)"
"""The version of Postgres whose functions its dialect has."""


def _settings() -> Any:
    """Return the module of settings, which few programs need."""
    from reactive.languages.sql.statements import settings

    return settings


def _setting(node: Any, around: Scope) -> Any:
    """Return the value of `current_setting(name)`; NULL for an unknown one that may be missing."""
    name, *rest = node.expressions
    value = around.value(name).expr
    if not isinstance(value, Constant) or not isinstance(value.value, str):
        raise around.error(node, "current_setting() takes the name of a setting")
    around.environment.from_catalog.add(OF_SETTINGS)  # no table: the query is read each time
    try:
        return exp.Literal.string(_settings().value_of(value.value, around))
    except PlanError:
        if rest and isinstance(rest[0], exp.Boolean) and rest[0].this:
            return exp.null()
        raise


def _of_postgres(node: Any, around: Scope) -> Any:
    """Return the value of a system function of Postgres; None of another function."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if around.dialect.name == "sqlite" or not name.startswith(OF_SYSTEM):
        return None
    from reactive.languages.sql.system.functions import function_value

    return function_value(name, node, around)


OF_SYSTEM = (
    *("pg_", "has_", "to_reg", "format_type", "obj_description", "col_description"),
    *("shobj_description", "inet_", "set_config"),
)
"""Beginnings of the names of system functions."""


def object_value(node: Any, around: Scope) -> Any:
    """Return the value of a cast to a number or name of an object, such as `x::regclass`."""
    from reactive.languages.sql.system import functions

    return functions.object_value(node, around)


def _sqlite_version() -> str:
    """Return the version of SQLite whose functions the dialect has: that of Python's module."""
    from sqlite3 import sqlite_version

    return sqlite_version


def _current_schemas(node: Any, name: str, around: Scope) -> Any:
    """Return the first schema of the path that is there, or with `current_schemas` all of them."""
    from reactive.languages.sql.system.search_path import current_schemas

    environment = around.environment
    environment.from_catalog.add(OF_SETTINGS)
    found = current_schemas(around.dialect, environment.catalog, environment.session)
    if name == "currentschema":
        return exp.Literal.string(found[0]) if found else exp.null()
    given = node.expressions or [node.args.get("this")]
    if len(given) != 1 or not isinstance(given[0], exp.Boolean):
        raise around.error(node, "current_schemas() takes TRUE or FALSE")
    if given[0].this and around.dialect.name == "postgres":
        found = ["pg_catalog", *found]
    return exp.array(*map(exp.Literal.string, found))


def system_value(node: Any, around: Scope) -> Any:
    """Return the constant of a function that clients ask at connection; None of another node."""
    name = getattr(node, "key", "")
    if isinstance(node, exp.Anonymous):
        name = node.name.lower().replace("_", "")
        name = "currentversion" if name == "version" else name
    if name == "currentsetting" and 0 < len(node.expressions) < 3:
        return _setting(node, around)
    if name in ("currentschema", "currentschemas"):
        return _current_schemas(node, name, around)
    found = _of_postgres(node, around)
    if found is not None or node.args.get("expressions"):
        return found
    if name == "sqliteversion" and around.dialect.name == "sqlite":
        return exp.Literal.string(_sqlite_version())
    is_postgres = around.dialect.name == "postgres"
    value = {
        "currentversion": f"PostgreSQL {OF_POSTGRES}" if is_postgres else "reactive-collections",
        "currentdatabase": "postgres" if around.dialect.name == "postgres" else "memory",
        "currentcatalog": "postgres" if around.dialect.name == "postgres" else "memory",
        "currentuser": around.dialect.name,
        "sessionuser": around.dialect.name,
    }.get(name)
    return None if value is None else exp.Literal.string(value)
