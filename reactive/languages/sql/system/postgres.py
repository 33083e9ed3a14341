"""`pg_catalog`: the rows of its tables, as psql, SQLAlchemy and other clients ask them.

    pg_class         tables, views and indexes       pg_attribute    their columns
    pg_namespace     schemas                         pg_constraint   keys, checks and references

Numbers of objects are given when they are first listed, by name, and are not stored. Tables of
features that are not there, such as triggers, have their columns and no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.statements import settings
from reactive.languages.sql.system.listing import (
    OWN_SCHEMAS,
    Listing,
    column_type,
    number_of,
    relation_number,
    schema_number,
)
from reactive.languages.sql.system.postgres_types import DEFAULT_COLLATION, TEXTS, TYPES, type_of
from reactive.languages.sql.system.postgres_types import type_rows as types
from reactive.languages.sql.system.relations import (
    SCHEMAS,
    ListedConstraint,
    NamedRelation,
    view_query,
)
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import TEXT
from reactive.languages.sql.text.schemas import schema_names

Row = dict[str, Any]
OWNER = 10
BTREE, HEAP = 403, 2
KINDS = {"BASE TABLE": "r", "VIEW": "v", "MATERIALIZED VIEW": "m"}
OF_CONSTRAINTS = {"PRIMARY KEY": "p", "UNIQUE": "u", "CHECK": "c", "FOREIGN KEY": "f"}


# Tables of objects.


def _namespaces(listing: Listing) -> Iterator[Row]:
    around = listing.around
    usual = SCHEMAS[around.dialect.name][1]
    for name in (*OWN_SCHEMAS, usual, *schema_names(around.environment.catalog)):
        yield {"oid": schema_number(name, around), "nspname": name, "nspowner": OWNER}


def _classes(listing: Listing) -> Iterator[Row]:
    around = listing.around
    indexed = {index.relation.name for index in listing.indexes}
    references = [each for each in listing.constraints if each.kind == "FOREIGN KEY"]
    targets = [listing.find(each.target) for each in references]
    bound = {each.table for each in references} | {each.name for each in targets if each}
    for name, relation in listing.relations.items():
        number, of = relation_number(name, around), KINDS[relation.kind]
        own = [each for each in listing.constraints if each.table == name]
        yield {
            "oid": number,
            "relname": relation.inside,
            "relnamespace": schema_number(relation.schema, around),
            "reltype": number_of(around, "type", name.casefold()),
            "relam": 0 if of == "v" else HEAP,
            "relfilenode": 0 if of == "v" else number,
            "relhasindex": name in indexed,
            "relkind": of,
            "relnatts": len(relation.columns),
            "relchecks": sum(each.kind == "CHECK" for each in own),
            "relhasrules": of != "r",
            "relhastriggers": name in bound,
            "relreplident": "n" if of == "v" else "d",
        }
    for index in listing.indexes:
        yield {
            "oid": index.number(around),
            "relname": index.name,
            "relnamespace": schema_number(index.relation.schema, around),
            "relam": BTREE,
            "relfilenode": index.number(around),
            "relkind": "i",
            "relnatts": len(index.columns),
            "reltuples": 0.0,
            "relreplident": "n",
        }


def _columns(listing: Listing) -> Iterator[tuple[NamedRelation, int, str, bool, Any]]:
    """Yield each column: its relation, number, name, whether it may be NULL, and its type."""
    for relation in listing.relations.values():
        for number, (name, _, nullable) in enumerate(relation.columns, 1):
            yield relation, number, name, nullable, column_type(relation, name, listing)


def _attributes(listing: Listing) -> Iterator[Row]:
    for relation, number, name, nullable, (oid, modifier, default, node) in _columns(listing):
        generated = None if node is None else node.find(exp.ComputedColumnConstraint)
        yield {
            "attrelid": relation_number(relation.name, listing.around),
            "attname": name,
            "attnum": number,
            "atttypmod": modifier,
            "attnotnull": not nullable and relation.kind == "BASE TABLE",
            "atthasdef": default is not None,
            "attidentity": _identity(node),
            "attgenerated": "" if generated is None else "s",
            **_of_type(oid),
        }
    for index in listing.indexes:
        for number, (name, place) in enumerate(zip(index.columns, index.places(), strict=True), 1):
            own = index.relation.columns[place - 1][0] if place else None
            of = column_type(index.relation, own, listing)[:2] if own else type_of(TEXT)
            yield {
                "attrelid": index.number(listing.around),
                "attname": name if place else "expr",
                "attnum": number,
                "atttypmod": of[1],
                **_of_type(of[0]),
            }


def _of_type(oid: int) -> Row:
    """Return the columns of `pg_attribute` that follow from a type."""
    found = TYPES.get(oid)
    length = -1 if found is None else found.length
    return {
        "atttypid": oid,
        "attlen": length,
        "attndims": int(found is not None and found.element != 0),
        "attbyval": found is not None and found.is_by_value,
        "attstorage": "m" if oid == 1700 else "p" if length > 0 else "x",
        "attcollation": DEFAULT_COLLATION if oid in TEXTS else 0,
    }


def _identity(node: Any) -> str:
    """Return 'a' for GENERATED ALWAYS AS IDENTITY, 'd' for BY DEFAULT, else ''."""
    found = None if node is None else node.find(exp.GeneratedAsIdentityColumnConstraint)
    return "" if found is None else "a" if found.args.get("this") else "d"


def _defaults(listing: Listing) -> Iterator[Row]:
    around = listing.around
    for relation, number, name, _, (*_, default, _node) in _columns(listing):
        if default is not None:
            yield {
                "oid": number_of(around, "default", relation.name.casefold(), name.casefold()),
                "adrelid": relation_number(relation.name, around),
                "adnum": number,
                "adbin": default,
            }


def _index_rows(listing: Listing) -> Iterator[Row]:
    for index in listing.indexes:
        count = len(index.columns)
        yield {
            "indexrelid": index.number(listing.around),
            "indrelid": relation_number(index.relation.name, listing.around),
            "indnatts": count,
            "indnkeyatts": count,
            "indisunique": index.is_unique,
            "indisprimary": index.is_primary,
            "indkey": index.places(),
            "indcollation": (0,) * count,
            "indclass": (0,) * count,
            "indoption": (0,) * count,
            "indexprs": None if all(index.places()) else ", ".join(index.columns),
            "indpred": index.predicate,
        }


def constraint_number(each: ListedConstraint, around: Scope) -> int:
    """Return the number of a constraint."""
    return number_of(around, "constraint", each.table.casefold(), each.name.casefold())


def _constraint_rows(listing: Listing) -> Iterator[Row]:
    around = listing.around
    for each in listing.constraints:
        relation, target = listing.relations.get(each.table), listing.find(each.target)
        if relation is None:
            continue
        index, is_reference = listing.index_of(each), each.kind == "FOREIGN KEY"
        places = listing.places(relation, each.columns)
        if each.kind == "CHECK":
            named = dict.fromkeys(c.name for c in each.node.find_all(exp.Column))
            places = listing.places(relation, tuple(named))
        yield {
            "oid": constraint_number(each, around),
            "conname": each.name,
            "connamespace": schema_number(relation.schema, around),
            "contype": OF_CONSTRAINTS[each.kind],
            "conrelid": relation_number(each.table, around),
            "conindid": 0 if index is None else index.number(around),
            "confrelid": relation_number(target.name, around) if target is not None else 0,
            "confupdtype": "a" if is_reference else " ",
            "confdeltype": "a" if is_reference else " ",
            "confmatchtype": "s" if is_reference else " ",
            "connoinherit": each.kind != "CHECK",
            "conkey": places,
            "confkey": None if target is None else listing.places(target, each.target_columns),
            "conbin": check_text(each, around) if each.kind == "CHECK" else None,
        }


def check_text(each: ListedConstraint, around: Scope) -> str:
    """Return the condition of a CHECK."""
    return str(each.node.this.sql(dialect=around.dialect.name))


# Tables for readers.


def _tables(listing: Listing) -> Iterator[Row]:
    for row, each in zip(_classes(listing), listing.relations.values(), strict=False):
        if each.kind == "BASE TABLE":
            yield {
                "schemaname": each.schema,
                "tablename": each.inside,
                "tableowner": "postgres",
                "hasindexes": row["relhasindex"],
                "hastriggers": row["relhastriggers"],
            }


def view_text(name: str, around: Scope) -> str | None:
    """Return the query of a view that SQL made, as one statement."""
    tree = view_query(name, around)
    return None if tree is None else f" {tree.expression.sql(dialect=around.dialect.name)};"


def _views(listing: Listing) -> Iterator[Row]:
    for each in listing.relations.values():
        if each.kind == "VIEW":
            yield {
                "schemaname": each.schema,
                "viewname": each.inside,
                "viewowner": "postgres",
                "definition": view_text(each.name, listing.around),
            }


def _materialized_views(listing: Listing) -> Iterator[Row]:
    for each in listing.relations.values():
        if each.kind == "MATERIALIZED VIEW":
            yield {
                "schemaname": each.schema,
                "matviewname": each.inside,
                "matviewowner": "postgres",
                "ispopulated": True,
                "definition": view_text(each.name, listing.around),
            }


def _indexes(listing: Listing) -> Iterator[Row]:
    for index in listing.indexes:
        yield {
            "schemaname": index.relation.schema,
            "tablename": index.relation.inside,
            "indexname": index.name,
            "indexdef": index.definition(),
        }


def _settings(listing: Listing) -> Iterator[Row]:
    for name, value in settings.every(listing.around).items():
        yield {
            "name": name,
            "setting": value,
            "context": "user",
            "vartype": "string",
            "source": "default",
            "boot_val": value,
            "reset_val": value,
        }


def _user_tables(listing: Listing) -> Iterator[Row]:
    for each in listing.relations.values():
        if each.kind == "BASE TABLE":
            yield {
                "relid": relation_number(each.name, listing.around),
                "schemaname": each.schema,
                "relname": each.inside,
            }


def _database(listing: Listing) -> Iterator[Row]:
    yield {
        "oid": 5,
        "datname": SCHEMAS[listing.around.dialect.name][0],
        "datdba": OWNER,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C",
        "datctype": "C",
    }


def _roles(listing: Listing) -> Iterator[Row]:
    yield {
        "oid": OWNER,
        "rolname": "postgres",
        **dict.fromkeys(("rolsuper", "rolinherit", "rolcreaterole", "rolcreatedb"), True),
        **dict.fromkeys(("rolcanlogin", "rolreplication", "rolbypassrls"), True),
        "rolconnlimit": -1,
        "rolpassword": "********",
    }


def _constant(*rows: Row) -> Callable[[Listing], Iterator[Row]]:
    """Return a function that yields rows that are the same in each database."""
    return lambda listing: iter(rows)


ROWS: dict[str, Callable[[Listing], Iterator[Row]]] = {
    "pg_namespace": _namespaces,
    "pg_class": _classes,
    "pg_attribute": _attributes,
    "pg_attrdef": _defaults,
    "pg_type": lambda listing: types(),
    "pg_index": _index_rows,
    "pg_constraint": _constraint_rows,
    "pg_database": _database,
    "pg_settings": _settings,
    "pg_tables": _tables,
    "pg_views": _views,
    "pg_matviews": _materialized_views,
    "pg_indexes": _indexes,
    "pg_stat_user_tables": _user_tables,
    "pg_roles": _roles,
    "pg_user": _constant(
        {
            "usename": "postgres",
            "usesysid": OWNER,
            **dict.fromkeys(("usecreatedb", "usesuper", "userepl", "usebypassrls"), True),
            "passwd": "********",
        }
    ),
    "pg_am": _constant(
        {"oid": HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"},
        {"oid": BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"},
    ),
    "pg_collation": _constant(
        {"oid": DEFAULT_COLLATION, "collname": "default", "collnamespace": 11, "collprovider": "d"},
        {"oid": 950, "collname": "C", "collnamespace": 11, "collprovider": "c"},
    ),
    "pg_tablespace": _constant(
        {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER},
        {"oid": 1664, "spcname": "pg_global", "spcowner": OWNER},
    ),
    "pg_language": _constant({"oid": 14, "lanname": "sql", "lanowner": OWNER}),
}
USUAL_VALUES: dict[str, Row] = {
    "pg_class": {
        "relowner": OWNER,
        "reltuples": -1.0,
        "relpersistence": "p",
        "relispopulated": True,
        "relfrozenxid": 0,
        "relminmxid": 0,
    },
    "pg_attribute": {
        "attstattarget": -1,
        "attcacheoff": -1,
        "attalign": "i",
        "attislocal": True,
    },
    "pg_index": {
        **dict.fromkeys(("indimmediate", "indisvalid", "indisready", "indislive"), True),
    },
    "pg_constraint": {"convalidated": True, "conislocal": True},
    "pg_collation": {"collowner": OWNER, "collisdeterministic": True, "collencoding": -1},
}
"""Values of columns that a row does not give, where they are no usual ones."""
