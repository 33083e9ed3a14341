"""`create_engine(db)`: an engine of SQLAlchemy for a database of this process.

Its `text(...)` is SQL in the dialect of the database; tables and columns can be looked up. Names
and types of expressions are written as SQLite has them in that dialect, else as Postgres has them.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy
from sqlalchemy import pool, types
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDDLCompiler, PGTypeCompiler
from sqlalchemy.engine import default
from sqlalchemy.engine.interfaces import IsolationLevel
from sqlglot import exp

from reactive.api.internal_interface import engine_of
from reactive.languages.sql.dbapi import names
from reactive.languages.sql.dbapi.connection import SqlConnection, check_database, connect
from reactive.languages.sql.entry import catalog_of
from reactive.languages.sql.statements.table_definition import (
    CHECKED,
    IS_KEY,
    UNIQUE,
    NamedConstraint,
)
from reactive.languages.sql.terms.types import SqlType

TYPES: dict[str, Any] = {
    "bool": types.BOOLEAN(),
    "int": types.BIGINT(),
    "float": types.DOUBLE(),
    "text": types.VARCHAR(),
    "bytes": types.BLOB(),
    "date": types.DATE(),
    "time": types.TIME(),
    "timestamp": types.TIMESTAMP(),
    "timestamptz": types.TIMESTAMP(timezone=True),
    "interval": types.Interval(),
    "uuid": types.Uuid(),
}


def create_engine(db: Any, **options: Any) -> sqlalchemy.Engine:
    """Return an engine of SQLAlchemy whose connections ask and change a database.

    pandas, notebooks and everything else that takes an engine can use it.

    Parameters
    ----------
    db: a `Database`.
    options: those of `sqlalchemy.create_engine`, such as `echo`.

    A transaction of the engine is one of the database: its statements are one commit, and a query
    in it, after a statement, is refused, since it does not see what the transaction has changed.

    >>> from reactive import Database
    >>> from sqlalchemy import text
    >>> engine = create_engine(Database())
    >>> with engine.begin() as con:
    ...     _ = con.execute(text("create table towns (name text primary key, people int)"))
    ...     _ = con.execute(text("insert into towns values (:name, 3)"), [{"name": "Bonn"}])
    >>> with engine.connect() as con:
    ...     con.execute(text("select name from towns where people > :n"), {"n": 2}).all()
    [('Bonn',)]
    """
    check_database(db)
    sqlalchemy.dialects.registry.register("reactive", __name__, "DialectOfDatabase")
    options = {"poolclass": pool.NullPool, **options}
    return sqlalchemy.create_engine(
        "reactive://", creator=lambda: connect(db, autocommit=False), **options
    )


class TablesOfDatabase(PGDDLCompiler):
    """Writes CREATE TABLE, whose integer keys are not numbered by a sequence."""

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        """Return the name, type, default and NOT NULL of a column."""
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        default = self.get_column_default_string(column)
        return (
            f"{self.preparer.format_column(column)} {kind}"
            + ("" if default is None else f" DEFAULT {default}")
            + ("" if column.nullable else " NOT NULL")
        )


class DialectOfDatabase(default.DefaultDialect):
    """The dialect of SQLAlchemy for databases of this process."""

    name = "reactive"
    driver = "reactive"
    statement_compiler = PGCompiler
    ddl_compiler = TablesOfDatabase
    type_compiler_cls = PGTypeCompiler
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    supports_multivalues_insert = True
    postfetch_lastrowid = False
    default_paramstyle = "named"
    max_identifier_length = 1_000
    max_index_name_length = 1_000
    default_schema_name = None
    default_isolation_level = "SERIALIZABLE"
    _backslash_escapes = False
    _supports_create_index_concurrently = False
    _supports_drop_index_concurrently = False

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the module of PEP 249."""
        return names

    def initialize(self, connection: Any) -> None:
        """Ask the database nothing: all is known."""

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[IsolationLevel]:
        """Return the values of the option `isolation_level` of an execution."""
        return ["AUTOCOMMIT", "SERIALIZABLE"]

    def get_default_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        """Return the level of transactions: other writers wait."""
        return "SERIALIZABLE"

    def get_isolation_level(self, dbapi_connection: Any) -> IsolationLevel:
        """Return AUTOCOMMIT if each statement is a commit."""
        return "AUTOCOMMIT" if dbapi_connection.autocommit else "SERIALIZABLE"

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Make each statement a commit, or end that."""
        dbapi_connection.autocommit = level == "AUTOCOMMIT"

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the names of the tables."""
        _catalog(connection)
        return [table.name for table in _of(connection).db.tables() if table.name is not None]

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the names of the views that SQL has made."""
        catalog = _catalog(connection)
        return [*catalog.views, *catalog.kept]

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """Return an empty list: a database has no schemas."""
        return []

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Return True if a table, or a view, has the name."""
        engine = engine_of(_of(connection).db)
        return catalog_of(engine).find(table_name) is not None

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns of a table or view."""
        if not self.has_table(connection, table_name):
            raise sqlalchemy.exc.NoSuchTableError(table_name)
        quoted = self.identifier_preparer.quote_identifier(table_name)
        found = _of(connection).db.sql(f"select * from {quoted}").schema
        return [
            {"name": c.name, "type": _type_of(c.type), "nullable": c.nullable, "default": None}
            for c in found.columns
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return the columns of the PRIMARY KEY; none of a table that was made in Python."""
        for each in _constraints(connection, table_name):
            if isinstance(each.node, IS_KEY):
                return {"constrained_columns": [*each.columns], "name": each.name}
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns that reference those of other tables."""
        found = []
        for each in _constraints(connection, table_name):
            node: Any = each.node
            if isinstance(node, (exp.ForeignKey, exp.Reference)):
                reference = node.args["reference"] if isinstance(node, exp.ForeignKey) else node
                named = reference.this
                is_listed = isinstance(named, exp.Schema)
                parent = named.this.name if is_listed else named.name
                listed = [column.name for column in named.expressions] if is_listed else None
                key = self.get_pk_constraint(connection, parent)["constrained_columns"]
                found.append(
                    {
                        "name": each.name,
                        "constrained_columns": [*each.columns],
                        "referred_schema": None,
                        "referred_table": parent,
                        "referred_columns": listed or key,
                        "options": {},
                    }
                )
        return found

    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns of UNIQUE constraints."""
        return [
            {"name": each.name, "column_names": [*each.columns]}
            for each in _constraints(connection, table_name)
            if isinstance(each.node, UNIQUE)
        ]

    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the conditions of CHECK."""
        dialect = engine_of(_of(connection).db).dialect
        return [
            {"name": each.name, "sqltext": each.node.this.sql(dialect=dialect)}
            for each in _constraints(connection, table_name)
            if isinstance(each.node, CHECKED)
        ]

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return no text: tables have no comments."""
        return {"text": None}

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return an empty list: indexes are made for queries, and have no names."""
        return []


def _of(connection: Any) -> SqlConnection:
    """Return the connection of PEP 249 that SQLAlchemy has wrapped."""
    found: SqlConnection = connection.connection.dbapi_connection
    return found


def _catalog(connection: Any) -> Any:
    """Return the names of the database, with what its file defines."""
    catalog = catalog_of(engine_of(_of(connection).db))
    if catalog.stored is not None:
        catalog.stored.open_all()
    return catalog


def _constraints(connection: Any, name: str) -> list[NamedConstraint]:
    """Return the constraints of a table that SQL has made."""
    catalog = _catalog(connection)
    table = catalog.table(name)
    definition = None if table is None else catalog.definitions.get(table.plan.number)
    return [] if definition is None else definition.folded().constraints()


def _type_of(kind: SqlType) -> Any:
    """Return SQLAlchemy's type of a type."""
    if kind.kind == "decimal":
        return types.DECIMAL(kind.precision, kind.scale)
    if kind.kind == "array":
        return types.ARRAY(_type_of(kind.items[0]))
    return TYPES.get(kind.kind, types.NullType())
