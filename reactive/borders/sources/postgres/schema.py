"""What the catalogs of Postgres say of a table: its columns, and what tells its rows apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reactive.borders.sources.postgres.connection import Connection
from reactive.borders.sources.postgres.values import BUILT_IN, TEXT, Conversion, array_of
from reactive.engine.runtime.postgres import driver
from reactive.engine.runtime.sql_names import quoted
from reactive.errors import SourceError

FULL, NOTHING = "f", "n"
TABLE = """
    select c.oid::int8, n.nspname, c.relname, c.relkind, c.relreplident
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)
"""
COLUMNS = """
    select attname, atttypid::int8, attnotnull, attgenerated <> '' from pg_attribute
    where attrelid = %s and attnum > 0 and not attisdropped order by attnum
"""
KEYS = """
    select i.indexrelid = any(array(
             select k.indexrelid from pg_index k where k.indrelid = i.indrelid and
             case %s when 'd' then k.indisprimary when 'i' then k.indisreplident else false end
             and k.indimmediate)),
           array(select a.attname::text from pg_attribute a
                 where a.attrelid = i.indrelid and a.attnum = any(i.indkey)), i.indisprimary
    from pg_index i where i.indrelid = %s and i.indisunique and i.indpred is null
    and i.indexprs is null and i.indisvalid
"""
LEAVES = """
    select relid::regclass::text, c.relreplident, exists(
        select 1 from pg_index where indrelid = relid and indisprimary and indimmediate)
    from pg_partition_tree(%s) t join pg_class c on c.oid = t.relid where isleaf
"""
TYPE = "select typtype, typbasetype::int8, typelem::int8, typcategory from pg_type where oid = %s"


NO_COLUMNS = frozenset[str]()


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and what its texts become."""

    name: str
    type: int
    conversion: Conversion
    not_null: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """A table of Postgres.

    name: as it was asked for.
    number: that the server has for it, and for no other one that may come to be called so.
    identity: the columns whose values a change tells of the row that was; all of them if `is_full`.
    uniques: the columns of each unique index.
    primary: those of the primary key.
    generated: the columns that Postgres computes and does not replicate, not in `columns`.
    """

    name: str
    number: int
    schema: str
    table: str
    is_partitioned: bool
    columns: tuple[Column, ...]
    identity: frozenset[str]
    is_full: bool
    uniques: tuple[frozenset[str], ...]
    primary: frozenset[str]
    generated: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The table as SQL has it."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    @property
    def rows_sql(self) -> str:
        """Its rows: those of partitions too, but not those of tables that inherit of it, whose
        changes are told as theirs."""
        return self.sql if self.is_partitioned else f"ONLY {self.sql}"


def read_schema(
    connection: Connection, name: str, types: Types, *, is_queried: bool = False
) -> Schema:
    """Read the columns and keys of a table from the catalogs.

    Parameters
    ----------
    is_queried: True if rows come by queries only, which give generated columns too; the stream of
        changes does not.

    Raises
    ------
    SourceError: there is none of this name, or it is no table.
    """
    errors = driver().errors
    try:
        found = connection.rows(TABLE, [name])
    except (errors.InvalidName, errors.SyntaxError, errors.FeatureNotSupported):
        found = []  # it cannot be the name of a table
    if not found:
        raise SourceError(
            f"there is no table {name!r} in the database\n"
            '  a name is as in SQL: "shop.orders" of another schema, quotes around capitals'
        )
    number, schema, table, kind, identity = found[0]
    if kind not in ("r", "p"):
        raise SourceError(
            f"{name!r} is no table of rows that are stored\n"
            "  changes of views and of foreign tables are not told; name the tables they read"
        )
    told = connection.rows(COLUMNS, [number])
    columns = tuple(
        Column(column, kind, types.conversion(kind), not_null)
        for column, kind, not_null, is_generated in told
        if is_queried or not is_generated
    )
    found_keys = connection.rows(KEYS, [identity, number])
    keys = [(is_chosen, frozenset(names), first) for is_chosen, names, first in found_keys]
    chosen = {names for is_chosen, names, _ in keys if is_chosen}
    primary = {names for _, names, is_primary in keys if is_primary}
    is_full = identity == FULL
    if kind == "p":
        _check_leaves(connection, name, number, is_full=is_full)
    return Schema(
        name,
        number,
        schema,
        table,
        kind == "p",
        columns,
        frozenset(column.name for column in columns) if is_full else next(iter(chosen), NO_COLUMNS),
        is_full,
        tuple(names for _, names, _ in keys),
        next(iter(primary), NO_COLUMNS),
        () if is_queried else tuple(each[0] for each in told if each[3]),
    )


def check_identity(schema: Schema) -> None:
    """Raise `SourceError` if changes do not tell which row they are of."""
    if not schema.identity:
        raise SourceError(
            f"changes of {schema.name!r} do not tell which row they are of: it has no primary key "
            "that is its replica identity, and Postgres would refuse updates of it\n"
            f"  ALTER TABLE {schema.sql} ADD PRIMARY KEY (...); "
            f"or ALTER TABLE {schema.sql} REPLICA IDENTITY FULL"
        )


def _check_leaves(connection: Connection, name: str, number: int, *, is_full: bool) -> None:
    for leaf, identity, has_key in connection.rows(LEAVES, [number]):
        if (
            (identity == FULL) != is_full
            or identity == NOTHING
            or (identity == "d" and not has_key)
        ):
            raise SourceError(
                f"partition {leaf} of {name!r} has another replica identity than {name!r}, or "
                f"none\n  ALTER TABLE {leaf} REPLICA IDENTITY {'FULL' if is_full else 'DEFAULT'}"
            )


class Types:
    """What texts of the types of a database become."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[int, Conversion] = dict(BUILT_IN)

    def conversion(self, number: int) -> Conversion:
        """That of a type: of a domain as its base, of an array by its items, else a text."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._looked_up(number)
        return found

    def _looked_up(self, number: int) -> Conversion:
        rows: list[Any] = self._connection.rows(TYPE, [number])
        if not rows:
            return TEXT
        kind, base, item, category = rows[0]
        if kind == "d":
            return self.conversion(base)
        if category == "A" and item:
            return array_of(self.conversion(item))
        return TEXT
