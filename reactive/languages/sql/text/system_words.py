"""Words of clients' queries of system tables: `pg_catalog.` before names, and calls in FROM.

    pg_catalog.pg_get_expr(a, b)            pg_get_expr(a, b)
    c.relname OPERATOR(pg_catalog.~) 't'    c.relname ~ 't'
    from duckdb_tables()                    from "duckdb_tables()" as duckdb_tables
    from pragma_table_info('t')             from (select ... where of_name = 't')

Letters keep their places in the text.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

WORDS = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/
    |(?<!\btable\s)(?<!\bview\s)(?<!\binto\s)(?P<schema>(?:"pg_catalog"|\bpg_catalog)\s*\.\s*)
    |(?P<collate>\bcollate\s+(?:"pg_catalog"|pg_catalog)\s*\.\s*"?default"?)
    |\boperator\s*\(\s*(?:(?:"pg_catalog"|pg_catalog)\s*\.\s*)?(?P<operator>[^\s)\w"]+)\s*\)
    |(?P<char>::\s*"char")
    |"[^"]*\"""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
CALLS = frozenset(
    {
        *("duckdb_tables", "duckdb_columns", "duckdb_views", "duckdb_schemas", "duckdb_types"),
        *("duckdb_databases", "duckdb_constraints", "duckdb_indexes", "duckdb_sequences"),
        *("duckdb_settings", "pragma_table_list"),
    }
)
INFO = ("cid", "name", "type", "notnull", "dflt_value", "pk")
INDEX_INFO = ("seqno", "cid", "name")
OF_NAMES = {
    "pragma_table_info": ("table_info", INFO),
    "pragma_table_xinfo": ("table_info", (*INFO, "hidden")),
    "pragma_index_list": ("index_list", ("seq", "name", "unique", "origin", "partial")),
    "pragma_index_info": ("index_info", INDEX_INFO),
    "pragma_index_xinfo": ("index_info", (*INDEX_INFO, "desc", "coll", "key")),
    "pragma_foreign_key_list": (
        "foreign_key_list",
        ("id", "seq", "table", "from", "to", "on_update", "on_delete", "match"),
    ),
}
"""Tables and columns of the functions that take a name; DuckDB has only the first."""


def without_catalog(text: str) -> str:
    """Return a text in which names of `pg_catalog` have no schema, and operators are plain."""

    def plain(found: re.Match[str]) -> str:
        whole = found[0]
        if found["schema"] or found["collate"]:
            return " " * len(whole)
        if found["char"]:
            return "::text".ljust(len(whole))
        return f" {found['operator']}".ljust(len(whole)) if found["operator"] else whole

    return WORDS.sub(plain, text)


def with_calls(tree: Any, dialect: str) -> Any:
    """Return a statement in which calls of system functions in FROM are tables or queries."""
    for node in list(tree.find_all(exp.Table)):
        call = node.this
        name = str(call.this).casefold() if isinstance(call, exp.Anonymous) else ""
        is_known = name in OF_NAMES and (dialect == "sqlite" or name == "pragma_table_info")
        if is_known and len(call.expressions) == 1:
            _replace_info(node, name, call.expressions[0], dialect)
        elif name in CALLS and not call.expressions and dialect != "postgres":
            node.set("this", exp.to_identifier(f"{name}()", quoted=True))
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return tree


def _replace_info(node: Any, name: str, argument: Any, dialect: str) -> None:
    """Put a query of the columns of a table in the place of a call, which may read other tables."""
    table, columns = OF_NAMES[name]
    table = f"sqlite_{table}()" if dialect == "sqlite" else "pragma_table_info()"
    own = exp.column("of_name", table="_infos")
    made = exp.select(*(exp.column(each, table="_infos", quoted=True) for each in columns))
    named = exp.Table(this=exp.to_identifier(table, quoted=True))
    made = made.from_(exp.alias_(named, "_infos", table=True))
    text = argument.copy() if dialect == "sqlite" else exp.cast(argument.copy(), "text")
    folded: Any = exp.Lower(this=text)
    if dialect != "duckdb":
        folded = exp.Anonymous(this="lower", expressions=[text])
    made = made.where(exp.EQ(this=own, expression=folded))
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    inner: Any = exp.Subquery(this=made, alias=alias)
    if next(argument.find_all(exp.Column), None) is not None and isinstance(node.parent, exp.Join):
        inner = exp.Lateral(this=exp.Subquery(this=made), alias=alias)
    node.replace(inner)
