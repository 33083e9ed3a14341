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
from reactive.languages.sql.entry import catalog_of, dialect_of, scope_of
from reactive.languages.sql.system.listing import Listing, column_type
from reactive.languages.sql.system.relations import (
    SCHEMAS,
    ListedConstraint,
    NamedRelation,
    flat_name,
    place_of,
    view_query,
)
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType
from reactive.languages.sql.text.schemas import schema_names

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
        """Return the names of the tables of a schema, or of those without one."""
        found = _in_schema(_listing(connection), schema)
        return [each.inside for each in found if each.kind == "BASE TABLE"]

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the names of the views that SQL has made."""
        listing = _listing(connection)
        catalog = listing.around.environment.catalog
        made = {*catalog.views, *catalog.kept}
        found = _in_schema(listing, schema)
        return [each.inside for each in found if each.name.casefold() in made]

    def get_view_definition(
        self, connection: Any, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """Return the query of a view that SQL has made."""
        listing = _listing(connection)
        found = _relation(listing, view_name, schema)
        tree = view_query(found.name, listing.around)
        if tree is None:
            raise sqlalchemy.exc.NoSuchTableError(view_name)
        return str(tree.expression.sql(dialect=listing.around.dialect.name))

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """Return the schemas: those that SQL has made, and the one of tables without a schema."""
        around = _scope(connection)
        usual = SCHEMAS[around.dialect.name][1]
        return sorted([usual, *schema_names(around.environment.catalog)])

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Return True if a table, or a view, has the name."""
        written = table_name if schema is None else f"{schema}.{table_name}"
        return flat_name(written, _scope(connection)) is not None

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns of a table or view."""
        listing = _listing(connection)
        found = _relation(listing, table_name, schema)
        return [
            {
                "name": name,
                "type": _type_of(kind),
                "nullable": nullable,
                "default": column_type(found, name, listing)[2],
            }
            for name, kind, nullable in found.columns
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return the columns of the PRIMARY KEY; none of a table that was made in Python."""
        for each in _constraints(connection, table_name, schema, "PRIMARY KEY"):
            return {"constrained_columns": [*each.columns], "name": each.name}
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the columns that reference those of other tables."""
        found, around = list[Any](), _scope(connection)
        for each in _constraints(connection, table_name, schema, "FOREIGN KEY"):
            of, parent = place_of(each.target or "", around)
            found.append(
                {
                    "name": each.name,
                    "constrained_columns": [*each.columns],
                    "referred_schema": None if parent == each.target else of,
                    "referred_table": parent,
                    "referred_columns": [*each.target_columns],
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
            for each in _constraints(connection, table_name, schema, "UNIQUE")
        ]

    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the conditions of CHECK."""
        dialect = engine_of(_of(connection).db).dialect
        return [
            {"name": each.name, "sqltext": each.node.this.sql(dialect=dialect)}
            for each in _constraints(connection, table_name, schema, "CHECK")
        ]

    def get_table_comment(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """Return no text: tables have no comments."""
        return {"text": None}

    def get_indexes(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Return the indexes that CREATE INDEX has declared; queries make their own."""
        listing = _listing(connection)
        found = _relation(listing, table_name, schema)
        of_constraints = {each.name for each in listing.constraints}
        return [
            {"name": each.name, "column_names": [*each.columns], "unique": each.is_unique}
            for each in listing.indexes
            if each.relation.name == found.name and each.name not in of_constraints
        ]


def _of(connection: Any) -> SqlConnection:
    """Return the connection of PEP 249 that SQLAlchemy has wrapped."""
    found: SqlConnection = connection.connection.dbapi_connection
    return found


def _scope(connection: Any) -> Scope:
    """Return the scope around a text of a connection."""
    own = _of(connection)
    engine = engine_of(own.db)
    return scope_of(
        exp.Null(), "", dialect_of(engine), catalog_of(engine), {}, session=own._session
    )


def _listing(connection: Any) -> Listing:
    """Return the objects of the database."""
    return Listing(_scope(connection))


def _in_schema(listing: Listing, schema: str | None) -> list[NamedRelation]:
    """Return the tables and views of a schema, or of those without one."""
    folded = (schema or SCHEMAS[listing.around.dialect.name][1]).casefold()
    return [each for each in listing.relations.values() if each.schema.casefold() == folded]


def _relation(listing: Listing, name: str, schema: str | None) -> NamedRelation:
    """Return a table or view; refuse an unknown one, as SQLAlchemy does."""
    flat = flat_name(name if schema is None else f"{schema}.{name}", listing.around)
    found = listing.find(flat)
    if found is None:
        raise sqlalchemy.exc.NoSuchTableError(name)
    return found


def _constraints(
    connection: Any, name: str, schema: str | None, kind: str
) -> list[ListedConstraint]:
    """Return the constraints of a kind of a table that SQL made."""
    listing = _listing(connection)
    found = _relation(listing, name, schema)
    return [c for c in listing.constraints if c.table == found.name and c.kind == kind]


def _type_of(kind: SqlType) -> Any:
    """Return SQLAlchemy's type of a type."""
    if kind.kind == "decimal":
        return types.DECIMAL(kind.precision, kind.scale)
    if kind.kind == "array":
        return types.ARRAY(_type_of(kind.items[0]))
    return TYPES.get(kind.kind, types.NullType())
