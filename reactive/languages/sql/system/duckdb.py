"""System functions of DuckDB: `duckdb_tables()`, `duckdb_columns()` and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.statements import settings
from reactive.languages.sql.system import information_schema
from reactive.languages.sql.system.listing import (
    Listing,
    column_type,
    number_of,
    relation_number,
    schema_number,
)
from reactive.languages.sql.system.relations import (
    SCHEMAS,
    ListedConstraint,
    NamedRelation,
    view_query,
    with_written_names,
)
from reactive.languages.sql.terms.types import sql_name
from reactive.languages.sql.text.schemas import schema_names

Row = dict[str, Any]
Rows = Callable[[Listing], Iterator[Row]]


def _place(listing: Listing, relation: NamedRelation) -> Row:
    """Return the columns that name the schema of a table or view."""
    return {
        "database_name": SCHEMAS[listing.around.dialect.name][0],
        "database_oid": 5,
        "schema_name": relation.schema,
        "schema_oid": schema_number(relation.schema, listing.around),
    }


def _in_table(listing: Listing, relation: NamedRelation) -> Row:
    """Return the columns that name a table."""
    return {
        **_place(listing, relation),
        "table_name": relation.inside,
        "table_oid": relation_number(relation.name, listing.around),
    }


def statement_of(relation: NamedRelation, listing: Listing) -> str | None:
    """Return the statement that makes a table or view, as it is now; None if Python made it."""
    around = listing.around
    if relation.kind != "BASE TABLE":
        tree = view_query(relation.name, around)
    else:
        definition = listing.tree(relation.name)
        copied = None if definition is None else definition.create.copy()
        tree = copied if copied is None else with_written_names(copied, around)
    return None if tree is None else tree.sql(dialect=around.dialect.name) + _end(listing)


def _end(listing: Listing) -> str:
    """Return the end of a statement that DuckDB shows."""
    return ";" if listing.around.dialect.name == "duckdb" else ""


def _tables(listing: Listing) -> Iterator[Row]:
    for relation in listing.relations.values():
        if relation.kind == "BASE TABLE":
            own = [each for each in listing.constraints if each.table == relation.name]
            keys = [each for each in own if each.kind in ("PRIMARY KEY", "UNIQUE")]
            indexes = [i for i in listing.indexes if i.relation.name == relation.name]
            yield {
                **_in_table(listing, relation),
                "has_primary_key": any(each.kind == "PRIMARY KEY" for each in keys),
                "estimated_size": 0,
                "column_count": len(relation.columns),
                "index_count": len(indexes) + sum(each.kind == "FOREIGN KEY" for each in own),
                "check_constraint_count": sum(each.kind == "CHECK" for each in own),
                "sql": statement_of(relation, listing),
            }


def _views(listing: Listing) -> Iterator[Row]:
    for relation in listing.relations.values():
        if relation.kind != "BASE TABLE":
            yield {
                **_place(listing, relation),
                "view_name": relation.inside,
                "view_oid": relation_number(relation.name, listing.around),
                "column_count": len(relation.columns),
                "sql": statement_of(relation, listing),
                "is_bound": True,
            }


def _columns(listing: Listing) -> Iterator[Row]:
    from_schema = information_schema_columns(listing)
    for relation in listing.relations.values():
        for name, kind, _ in relation.columns:
            row = from_schema[relation.schema, relation.inside, name]
            yield {
                **_in_table(listing, relation),
                "column_name": name,
                "column_index": row["ordinal_position"],
                "column_default": row["column_default"],
                "is_nullable": row["is_nullable"] == "YES",
                "data_type": sql_name(kind),
                "data_type_id": column_type(relation, name, listing)[0],
                "numeric_precision": row.get("numeric_precision"),
                "numeric_precision_radix": row.get("numeric_precision_radix"),
                "numeric_scale": row.get("numeric_scale"),
                "is_generated": row["is_generated"] == "ALWAYS",
            }


def information_schema_columns(listing: Listing) -> dict[tuple[str, str, str], Row]:
    """Return the rows of `information_schema.columns` by schema, table and column."""
    rows = information_schema.ROWS["columns"](listing)
    return {(r["table_schema"], r["table_name"], r["column_name"]): r for r in rows}


def _schemas(listing: Listing) -> Iterator[Row]:
    around = listing.around
    catalog, usual = SCHEMAS[around.dialect.name]
    every = [(catalog, usual, True)]
    every += [(catalog, name, False) for name in schema_names(around.environment.catalog)]
    every += [("system", name, True) for name in ("information_schema", "main", "pg_catalog")]
    every += [("temp", "main", True)]
    for database, name, internal in every:
        is_own = database == catalog
        yield {
            "oid": schema_number(name, around) if is_own else number_of(around, database, name),
            "database_name": database,
            "database_oid": 5 if is_own else 0,
            "schema_name": name,
            "internal": internal,
        }


def _databases(listing: Listing) -> Iterator[Row]:
    catalog = SCHEMAS[listing.around.dialect.name][0]
    for number, name in ((5, catalog), (0, "system"), (1, "temp")):
        yield {
            "database_name": name,
            "database_oid": number,
            "internal": number != 5,
            "type": "duckdb",
        }


def _constraints(listing: Listing) -> Iterator[Row]:
    for relation in listing.relations.values():
        own = [each for each in listing.constraints if each.table == relation.name]
        for number, each in enumerate(own):
            yield {**_in_table(listing, relation), **_constraint(number, each, relation, listing)}
        if relation.kind == "BASE TABLE":
            missing = [place for place, column in enumerate(relation.columns) if not column[2]]
            for number, place in enumerate(missing, len(own)):
                name = relation.columns[place][0]
                yield {
                    **_in_table(listing, relation),
                    "constraint_index": number,
                    "constraint_type": "NOT NULL",
                    "constraint_text": "NOT NULL",
                    "constraint_column_indexes": (place,),
                    "constraint_column_names": (name,),
                    "constraint_name": f"{relation.inside}_{name}_not_null",
                    "referenced_column_names": (),
                }


def _constraint(
    number: int, each: ListedConstraint, relation: NamedRelation, listing: Listing
) -> Row:
    """Return what DuckDB says of a constraint."""
    columns = each.columns
    expression = None
    text = f"{each.kind}({', '.join(columns)})"
    target = listing.find(each.target)
    if each.kind == "CHECK":
        columns = tuple(dict.fromkeys(c.name for c in each.node.find_all(exp.Column)))
        expression = f"({each.node.this.sql(dialect='duckdb')})"
        text = f"CHECK({expression})"
    elif each.target:
        of_target = ", ".join(each.target_columns)
        shown = each.target if target is None else target.inside
        text = f"FOREIGN KEY ({', '.join(columns)}) REFERENCES {shown}({of_target})"
    places = listing.places(relation, columns)
    return {
        "constraint_index": number,
        "constraint_type": each.kind,
        "constraint_text": text,
        "expression": expression,
        "constraint_column_indexes": tuple(place - 1 for place in places),
        "constraint_column_names": columns,
        "constraint_name": each.name,
        "referenced_table": None if target is None else target.inside,
        "referenced_column_names": each.target_columns,
    }


def _indexes(listing: Listing) -> Iterator[Row]:
    of_constraints = {each.name for each in listing.constraints}
    for index in listing.indexes:
        if index.name not in of_constraints:
            yield {
                **_in_table(listing, index.relation),
                "index_name": index.name,
                "index_oid": index.number(listing.around),
                "is_unique": index.is_unique,
                "is_primary": False,
                "expressions": f"[{', '.join(index.columns)}]",
                "sql": f"{index.definition('duckdb')};",
            }


def _settings(listing: Listing) -> Iterator[Row]:
    for name, value in settings.every(listing.around).items():
        yield {
            "name": name,
            "value": value,
            "input_type": "VARCHAR",
            "scope": "LOCAL",
            "aliases": (),
            "typed_value": value,
        }


ROWS: dict[str, Rows] = {
    "duckdb_tables": _tables,
    "duckdb_columns": _columns,
    "duckdb_views": _views,
    "duckdb_schemas": _schemas,
    "duckdb_databases": _databases,
    "duckdb_constraints": _constraints,
    "duckdb_indexes": _indexes,
    "duckdb_settings": _settings,
}
