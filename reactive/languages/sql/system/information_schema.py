"""`information_schema`: tables, columns, constraints and views, as Postgres and DuckDB have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.system.listing import Listing, column_type
from reactive.languages.sql.system.postgres_types import TYPES, format_type
from reactive.languages.sql.system.relations import SCHEMAS, ListedConstraint, view_query
from reactive.languages.sql.terms.types import SqlType, sql_name
from reactive.languages.sql.text.schemas import schema_names

Row = dict[str, Any]
BITS = {1: 8, 2: 16, 4: 32, 8: 64, 16: 127}
"""The precision of integers by their bytes."""
MOST_OCTETS = 1 << 30
"""The greatest size of a text in Postgres."""


def _catalog(listing: Listing) -> str:
    return SCHEMAS[listing.around.dialect.name][0]


def _tables(listing: Listing) -> Iterator[Row]:
    is_postgres = listing.around.dialect.name == "postgres"
    for each in listing.relations.values():
        if is_postgres and each.kind == "MATERIALIZED VIEW":
            continue
        is_table = each.kind == "BASE TABLE"
        yield {
            "table_catalog": _catalog(listing),
            "table_schema": each.schema,
            "table_name": each.inside,
            "table_type": "BASE TABLE" if is_table else "VIEW",
            "is_insertable_into": "YES" if is_table else "NO",
            "is_typed": "NO",
        }


def _columns(listing: Listing) -> Iterator[Row]:
    is_postgres = listing.around.dialect.name == "postgres"
    for relation in listing.relations.values():
        if is_postgres and relation.kind == "MATERIALIZED VIEW":
            continue
        for number, (name, kind, nullable) in enumerate(relation.columns, 1):
            oid, modifier, default, node = column_type(relation, name, listing)
            generated = None if node is None else node.find(exp.ComputedColumnConstraint)
            row = {
                "table_catalog": _catalog(listing),
                "table_schema": relation.schema,
                "table_name": relation.inside,
                "column_name": name,
                "ordinal_position": number,
                "column_default": default,
                "is_nullable": "YES" if nullable or relation.kind != "BASE TABLE" else "NO",
                "data_type": sql_name(kind),
                "is_generated": "NEVER" if generated is None else "ALWAYS",
                **_digits(kind, is_postgres=is_postgres),
            }
            if is_postgres:
                row |= _of_postgres(listing, oid, modifier, kind, is_base=node is not None)
                row["dtd_identifier"] = str(number)
            yield row


def _digits(kind: SqlType, *, is_postgres: bool) -> Row:
    """Return the digits of a number."""
    if kind.kind == "int":
        return {
            "numeric_precision": BITS.get(kind.size or 8),
            "numeric_precision_radix": 2,
            "numeric_scale": 0,
        }
    if kind.kind == "decimal":
        digits = (None, None) if is_postgres else (18, 3)
        precision, scale = (kind.precision or digits[0], kind.scale)
        if precision is not None and scale is None:
            scale = 0 if kind.precision else digits[1]
        return {
            "numeric_precision": precision,
            "numeric_precision_radix": 10,
            "numeric_scale": scale,
        }
    if kind.kind == "float":
        bits = 24 if kind.size == 4 else 53
        of_scale = {} if is_postgres else {"numeric_scale": 0}
        return {"numeric_precision": bits, "numeric_precision_radix": 2, **of_scale}
    return {}


def _of_postgres(listing: Listing, oid: int, modifier: int, kind: SqlType, *, is_base: bool) -> Row:
    """Return the columns of a column that only Postgres has."""
    found = TYPES.get(oid)
    is_array = found is not None and found.element != 0
    length = modifier - 4 if oid in (1042, 1043) and modifier > 0 else None
    octets = None if kind.kind != "text" else MOST_OCTETS if length is None else 4 * length
    is_timed = kind.kind in ("timestamp", "timestamptz", "time", "interval")
    return {
        "data_type": "ARRAY" if is_array else format_type(oid),
        "character_maximum_length": length,
        "character_octet_length": octets,
        "datetime_precision": 6 if is_timed else 0 if kind.kind == "date" else None,
        "udt_catalog": _catalog(listing),
        "udt_schema": "pg_catalog",
        "udt_name": None if found is None else found.name,
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "identity_cycle": "NO",
        "is_updatable": "YES" if is_base else "NO",
    }


def _schemata(listing: Listing) -> Iterator[Row]:
    around = listing.around
    dialect, (catalog, usual) = around.dialect.name, SCHEMAS[around.dialect.name]
    of_system = [("information_schema", catalog), ("pg_catalog", catalog)]
    if dialect == "duckdb":
        system = [(name, "system") for name in ("information_schema", "main", "pg_catalog")]
        of_system = [*system, ("main", "temp")]
    own = [(name, catalog) for name in (usual, *schema_names(around.environment.catalog))]
    for name, of_catalog in (*own, *of_system):
        yield {"catalog_name": of_catalog, "schema_name": name, "schema_owner": dialect}


def _views(listing: Listing) -> Iterator[Row]:
    for each in listing.relations.values():
        tree = None if each.kind == "BASE TABLE" else view_query(each.name, listing.around)
        dialect = listing.around.dialect.name
        if each.kind == "VIEW" or (each.kind == "MATERIALIZED VIEW" and dialect != "postgres"):
            shown = tree if tree is None or dialect != "postgres" else tree.expression
            yield {
                "table_catalog": _catalog(listing),
                "table_schema": each.schema,
                "table_name": each.inside,
                "view_definition": None if shown is None else f"{shown.sql(dialect=dialect)};",
                "check_option": "NONE",
                **dict.fromkeys(("is_updatable", "is_insertable_into"), "NO"),
                **dict.fromkeys(("is_trigger_updatable", "is_trigger_deletable"), "NO"),
                "is_trigger_insertable_into": "NO",
            }


def _named(listing: Listing, each: ListedConstraint) -> Row:
    """Return the columns that name a constraint."""
    relation = listing.relations[each.table]
    return {
        "constraint_catalog": _catalog(listing),
        "constraint_schema": relation.schema,
        "constraint_name": each.name,
    }


def _in_table(listing: Listing, each: ListedConstraint) -> Row:
    """Return the columns that name a constraint and its table."""
    relation = listing.relations[each.table]
    return {
        **_named(listing, each),
        "table_catalog": _catalog(listing),
        "table_schema": relation.schema,
        "table_name": relation.inside,
    }


def _table_constraints(listing: Listing) -> Iterator[Row]:
    is_duckdb = listing.around.dialect.name == "duckdb"
    for each in listing.constraints:
        yield {
            **_in_table(listing, each),
            "constraint_type": each.kind,
            "is_deferrable": "NO",
            "initially_deferred": "NO",
            "enforced": "YES",
            "nulls_distinct": "YES" if each.kind == "UNIQUE" or is_duckdb else None,
        }


def _key_columns(listing: Listing) -> Iterator[Row]:
    for each in listing.constraints:
        for number, column in enumerate(each.columns, 1):
            if each.kind != "CHECK":
                yield {
                    **_in_table(listing, each),
                    "column_name": column,
                    "ordinal_position": number,
                    "position_in_unique_constraint": number if each.target else None,
                }


def _references(listing: Listing) -> Iterator[Row]:
    for each in listing.constraints:
        index = listing.index_of(each) if each.kind == "FOREIGN KEY" else None
        if index is not None:
            yield {
                **_named(listing, each),
                "unique_constraint_catalog": _catalog(listing),
                "unique_constraint_schema": index.relation.schema,
                "unique_constraint_name": index.name,
                "match_option": "NONE",
                "update_rule": "NO ACTION",
                "delete_rule": "NO ACTION",
            }


def _columns_used(listing: Listing) -> Iterator[Row]:
    for each in listing.constraints:
        relation = listing.find(each.target) if each.target else listing.relations[each.table]
        columns = each.target_columns if each.target else each.columns
        if each.kind == "CHECK":
            columns = tuple(dict.fromkeys(c.name for c in each.node.find_all(exp.Column)))
        for column in columns if relation is not None else ():
            assert relation is not None
            yield {
                **_in_table(listing, each),
                "table_schema": relation.schema,
                "table_name": relation.inside,
                "column_name": column,
                "constraint_type": each.kind,
            }


def _checks(listing: Listing) -> Iterator[Row]:
    for each in listing.constraints:
        if each.kind == "CHECK":
            text = each.node.this.sql(dialect=listing.around.dialect.name)
            yield {**_named(listing, each), "check_clause": f"({text})"}


ROWS: dict[str, Callable[[Listing], Iterator[Row]]] = {
    "tables": _tables,
    "columns": _columns,
    "schemata": _schemata,
    "views": _views,
    "table_constraints": _table_constraints,
    "key_column_usage": _key_columns,
    "referential_constraints": _references,
    "constraint_column_usage": _columns_used,
    "check_constraints": _checks,
}
