"""`sqlite_master` and the functions of pragmas, of SQLite and partly of DuckDB.

    pragma_table_info('t')     pragma_index_list('t')     pragma_foreign_key_list('t')
    pragma_index_info('i')

Their rows have a column more, `of_name`, the name that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.languages.sql.sqlite.functions import declared_name
from reactive.languages.sql.system.columns import Columns
from reactive.languages.sql.system.duckdb import information_schema_columns, statement_of
from reactive.languages.sql.system.listing import Listing, column_type
from reactive.languages.sql.system.relations import NamedRelation
from reactive.languages.sql.terms.types import sql_name

Row = dict[str, Any]
Rows = Callable[[Listing], Iterator[Row]]


@record
class SqliteIndex:
    """An index with its name in SQLite, and the reason why it is there: c, u or pk."""

    name: str
    relation: NamedRelation
    columns: tuple[str, ...]
    places: tuple[int, ...]
    is_unique: bool
    origin: str
    is_partial: bool
    statement: str | None


def _indexes(listing: Listing) -> list[SqliteIndex]:
    """Return the indexes, those of constraints first; an INTEGER PRIMARY KEY has none."""
    is_sqlite = listing.around.dialect.name == "sqlite"
    of_constraints = {each.name: each.kind for each in listing.constraints}
    found, counts = list[SqliteIndex](), dict[str, int]()
    for index in listing.indexes:
        kind, own = of_constraints.get(index.name), index.relation
        name, statement = index.name, None
        if kind is None:
            statement = index.definition(listing.around.dialect.name) + ("" if is_sqlite else ";")
        elif not is_sqlite or (index.is_primary and _is_rowid(index.columns, own, listing)):
            continue
        else:
            counts[own.name] = counts.get(own.name, 0) + 1
            name = f"sqlite_autoindex_{own.inside}_{counts[own.name]}"
        origin = "c" if kind is None else "pk" if index.is_primary else "u"
        is_partial = index.predicate is not None
        found.append(
            SqliteIndex(
                *(name, own, index.columns, index.places(), index.is_unique, origin),
                *(is_partial, statement),
            )
        )
    return found


def _is_rowid(columns: tuple[str, ...], relation: NamedRelation, listing: Listing) -> bool:
    """Return True if a key is the number of the row."""
    own = next((n for n, _, _ in relation.columns if n.casefold() == columns[0].casefold()), None)
    node = None if own is None else column_type(relation, own, listing)[3]
    declared = getattr(node, "kind", None)
    return (
        len(columns) == 1
        and declared is not None
        and str(declared.sql("sqlite")).upper() == "INTEGER"
    )


def _master(listing: Listing) -> Iterator[Row]:
    for relation in listing.relations.values():
        yield {
            "type": "table" if relation.kind == "BASE TABLE" else "view",
            "name": relation.inside,
            "tbl_name": relation.inside,
            "rootpage": 0,
            "sql": statement_of(relation, listing),
        }
    for index in _indexes(listing):
        yield {
            "type": "index",
            "name": index.name,
            "tbl_name": index.relation.inside,
            "rootpage": 0,
            "sql": index.statement,
        }


def _nothing(listing: Listing) -> Iterator[Row]:
    return iter(())


def _index_list(listing: Listing) -> Iterator[Row]:
    counts = dict[str, int]()
    for index in reversed(_indexes(listing)):
        name = index.relation.name.casefold()
        counts[name] = counts.get(name, -1) + 1
        yield {
            "seq": counts[name],
            "name": index.name,
            "unique": int(index.is_unique),
            "origin": index.origin,
            "partial": int(index.is_partial),
            "of_name": name,
        }


def _index_infos(listing: Listing) -> Iterator[Row]:
    for index in _indexes(listing):
        pairs = zip(index.columns, index.places, strict=True)
        for number, (name, place) in enumerate(pairs):
            yield {
                "seqno": number,
                "cid": place - 1 if place else -2,
                "name": name if place else None,
                "desc": 0,
                "coll": "BINARY",
                "key": 1,
                "of_name": index.name.casefold(),
            }


def _references(listing: Listing) -> Iterator[Row]:
    counts = dict[str, int]()
    for each in reversed([c for c in listing.constraints if c.kind == "FOREIGN KEY"]):
        name = each.table.casefold()
        counts[name] = counts.get(name, -1) + 1
        pairs = zip(each.columns, each.target_columns, strict=False)
        for number, (column, target) in enumerate(pairs):
            yield {
                "id": counts[name],
                "seq": number,
                "table": each.target,
                "from": column,
                "to": target,
                **dict.fromkeys(("on_update", "on_delete"), "NO ACTION"),
                "match": "NONE",
                "of_name": name,
            }


def _table_infos(listing: Listing) -> Iterator[Row]:
    """Yield the rows of `pragma table_info` for each table and each way to write its name."""
    around = listing.around
    is_sqlite = around.dialect.name == "sqlite"
    from_schema = information_schema_columns(listing)
    for relation in listing.relations.values():
        keys = [c for c in listing.constraints if c.table == relation.name]
        key = next((each.columns for each in keys if each.kind == "PRIMARY KEY"), ())
        folded = [each.casefold() for each in key]
        for place, (name, kind, _) in enumerate(relation.columns):
            row = from_schema[relation.schema, relation.inside, name]
            node = column_type(relation, name, listing)[3]
            declared = getattr(node, "kind", None)
            is_key = name.casefold() in folded
            shown = sql_name(kind)
            if is_sqlite:
                written = (kind.affinity or "") if node is None else ""
                shown = written if declared is None else declared_name(declared).upper()
            made = {
                "cid": place,
                "name": name,
                "type": shown,
                "notnull": row["is_nullable"] == "NO",
                "dflt_value": row["column_default"],
                "pk": is_key,
            }
            if is_sqlite:
                found = None if node is None else node.find(exp.NotNullColumnConstraint)
                made["notnull"] = int(found is not None and not found.args.get("allow_null"))
                made["hidden"] = 0
                made["pk"] = folded.index(name.casefold()) + 1 if is_key else 0
            for written in dict.fromkeys((relation.name, f"{relation.schema}.{relation.inside}")):
                yield {**made, "of_name": written.casefold()}


def _table_list(listing: Listing) -> Iterator[Row]:
    for relation in listing.relations.values():
        yield {
            "schema": relation.schema,
            "name": relation.inside,
            "type": "table" if relation.kind == "BASE TABLE" else "view",
            "ncol": len(relation.columns),
            "wr": 0,
            "strict": 0,
        }


MASTER: Columns = (
    *(("type", "t"), ("name", "t"), ("tbl_name", "t"), ("rootpage", "n"), ("sql", "t")),
)
INFO: Columns = (
    *(("cid", "n"), ("name", "t"), ("type", "t"), ("notnull", "b"), ("dflt_value", "t")),
    *(("pk", "b"), ("of_name", "t")),
)
INFO_OF_SQLITE: Columns = (
    *((name, "n" if letter == "b" else letter) for name, letter in INFO),
    ("hidden", "n"),
)
LIST: Columns = (
    *(("schema", "t"), ("name", "t"), ("type", "t"), ("ncol", "n"), ("wr", "n"), ("strict", "n")),
)
INDEX_LIST: Columns = (
    *(("seq", "n"), ("name", "t"), ("unique", "n"), ("origin", "t"), ("partial", "n")),
    ("of_name", "t"),
)
INDEX_INFO: Columns = (
    *(("seqno", "n"), ("cid", "n"), ("name", "t"), ("desc", "n"), ("coll", "t"), ("key", "n")),
    ("of_name", "t"),
)
REFERENCES: Columns = (
    *(("id", "n"), ("seq", "n"), ("table", "t"), ("from", "t"), ("to", "t"), ("on_update", "t")),
    *(("on_delete", "t"), ("match", "t"), ("of_name", "t")),
)
TABLES: dict[str, tuple[Columns, Rows]] = {
    "sqlite_master": (MASTER, _master),
    "sqlite_schema": (MASTER, _master),
    "sqlite_temp_master": (MASTER, _nothing),
    "sqlite_temp_schema": (MASTER, _nothing),
    "pragma_table_info()": (INFO, _table_infos),
    "sqlite_table_info()": (INFO_OF_SQLITE, _table_infos),
    "sqlite_index_list()": (INDEX_LIST, _index_list),
    "sqlite_index_info()": (INDEX_INFO, _index_infos),
    "sqlite_foreign_key_list()": (REFERENCES, _references),
    "pragma_table_list()": (LIST, _table_list),
}
