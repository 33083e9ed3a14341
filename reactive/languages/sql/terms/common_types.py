"""Common types of two operands, and what dialects of SQL disagree about.

The common type of two operands: one table, by dialect, place and types.

    column      UNION, INTERSECT, EXCEPT, and the steps of a recursion
    choice      CASE, COALESCE, LEAST, VALUES, elements of arrays
    equality    =, <>, IN (list), NULLIF, IS DISTINCT FROM, USING
    order       <, BETWEEN, IN (query), ANY (query)

    duckdb      column    choice    equality  order        postgres    all places
    number and number     the wider of both                the wider of both
    boolean, integer      integer                          none
    boolean, double       double    none      double none  none
    date, timestamp       timestamp                        timestamp
    varchar, other        varchar   none      other  none  none
    varchar, blob         blob      none      blob   none  none
    arrays                of the common type of elements   the same; not compared

DuckDB compares elements of arrays by = as in columns. A constant text is of the type of the other
operand, except in columns of DuckDB. An unknown type (`ANY`) is compatible with all. In SQLite a
value keeps its type, whatever the other operand is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from sqlglot import exp

from optimizer.record import record
from reactive.engine.runtime.sql_names import DialectName
from reactive.languages.sql.terms.types import (
    ANY,
    FLOAT,
    INTERVAL,
    NESTED,
    NULL,
    NUMBERS,
    SqlType,
    common,
    innermost,
    is_row,
)

Place: TypeAlias = Literal["column", "choice", "equality", "order"]
VERBS: dict[Place, str] = {
    "column": "unite",
    "choice": "mix",
    "equality": "compare",
    "order": "compare",
}
"""Verbs of messages, by the place of the operands."""
MOMENTS = frozenset({"date", "timestamp", "timestamptz"})
COMPARED: frozenset[Place] = frozenset({"equality", "order"})
OVER_TEXT = frozenset({"bytes", "uuid"})
"""Kinds that a text becomes in a column of DuckDB; beside the others the column has texts."""


def common_type(dialect: str, place: Place, left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type that values of both types have in a place; None where there is none.

    >>> from reactive.languages.sql.terms.types import BOOL, INT, TEXT
    >>> common_type("duckdb", "column", TEXT, INT).kind, common_type("duckdb", "choice", TEXT, INT)
    ('text', None)
    >>> common_type("duckdb", "equality", TEXT, INT).kind
    'int'
    >>> common_type("postgres", "column", BOOL, INT), common_type("postgres", "order", INT, FLOAT)
    (None, SqlType(kind='float', precision=None, scale=None, items=(), names=(), size=None))
    """
    if left.kind == right.kind == "json" and dialect == "postgres" and place in COMPARED:
        return None
    if left.kind == "null" or left == right:
        return right
    if right.kind == "null":
        return left
    kinds = {left.kind, right.kind}
    if "any" in kinds:
        return ANY
    if kinds == {"array"}:
        return _common_array(dialect, place, left, right)
    if kinds == {"map"}:
        inner: Place = "column" if place == "equality" else place
        parts = zip(left.items, right.items, strict=True)
        made = [common_type(dialect, inner, *pair) for pair in parts]
        items = tuple(each for each in made if each is not None)
        return SqlType("map", items=items) if len(items) == len(made) else None
    if kinds == {"struct"} and dialect == "duckdb":
        return _common_struct(place, left, right)
    if kinds <= NUMBERS:
        return _common_number_of_dialect(dialect, place, left, right)
    if kinds <= MOMENTS or len(kinds) == 1:
        return common(left, right)
    if dialect == "postgres":
        return INTERVAL if place in COMPARED and kinds == {"time", "interval"} else None
    if kinds <= NUMBERS | {"bool"}:
        is_exact = kinds == {"bool", "int"} or place in ("column", "equality")
        return _common_number_of_dialect(dialect, place, left, right) if is_exact else None
    if kinds == {"text", "json"}:
        return left if left.kind == "json" else right
    return _beside_text(place, left, right) if "text" in kinds and "json" not in kinds else None


def _common_number_of_dialect(dialect: str, place: Place, left: SqlType, right: SqlType) -> SqlType:
    """Return the type that two numbers of a dialect have in a place together."""
    floats = [each for each in (left, right) if each.kind == "float"]
    if len(floats) == 1 and not (dialect == "postgres" and place in COMPARED):
        return floats[0]  # also REAL beside a number that has more digits
    if floats:
        return FLOAT
    made = common(left, right)
    return SqlType("decimal") if dialect == "postgres" and made.kind == "decimal" else made


def _common_array(dialect: str, place: Place, left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type that two arrays have together; None if their elements have none."""
    if not (left.items and right.items):
        return left if left.items else right
    mine, theirs = left.items[0], right.items[0]
    if dialect == "postgres" and (mine.kind == "array") is not (theirs.kind == "array"):
        # its types do not say how deep an array is
        inner = common_type(dialect, place, innermost(mine), innermost(theirs))
        return (
            None if inner is None else SqlType("array", items=(SqlType("array", items=(inner,)),))
        )
    is_equality = dialect == "duckdb" and place == "equality"
    made = common_type(dialect, "column" if is_equality else place, mine, theirs)
    if dialect == "postgres" and place in COMPARED and not _is_one_type(mine, theirs):
        return None
    return None if made is None else SqlType("array", items=(made,))


def _common_struct(place: Place, left: SqlType, right: SqlType) -> SqlType | None:
    """Return the fields of both structs by name, those of the left first.

    Rows have no names: their fields are matched by place. A missing field is NULL.

    >>> from reactive.languages.sql.terms.types import INT, TEXT
    >>> one = SqlType("struct", items=(INT,), names=("x",))
    >>> other = SqlType("struct", items=(TEXT, FLOAT), names=("y", "X"))
    >>> made = _common_struct("choice", one, other)
    >>> made.names, [item.kind for item in made.items]
    (('x', 'y'), ['float', 'text'])
    """
    inner: Place = "column" if place == "equality" else place
    if is_row(left) or is_row(right):
        if len(left.items) != len(right.items):
            return None
        names = right.names if is_row(left) else left.names
        pairs = [*zip(left.items, right.items, strict=True)]
    else:
        mine = {name.casefold(): kind for name, kind in zip(left.names, left.items, strict=True)}
        more = {name.casefold(): kind for name, kind in zip(right.names, right.items, strict=True)}
        names = (*left.names, *(name for name in right.names if name.casefold() not in mine))
        folded = [name.casefold() for name in names]
        pairs = [(mine.get(name, NULL), more.get(name, NULL)) for name in folded]
    made = [common_type("duckdb", inner, *pair) for pair in pairs]
    items = [each for each in made if each is not None]
    if len(items) < len(made):
        return None
    return SqlType("struct", items=tuple(items), names=names)


def _is_one_type(left: SqlType, right: SqlType) -> bool:
    """Return True unless the types are known to differ; Python's integers have no known size."""
    if left.kind == right.kind == "int":
        return left.size == right.size or None in (left.size, right.size)
    if left.kind == right.kind == "float":
        return left.size == right.size
    return left.kind == right.kind or bool({left.kind, right.kind} & {"any", "null"})


def _beside_text(place: Place, left: SqlType, right: SqlType) -> SqlType | None:
    """Return the type that a text and another value have in a place; None if there is none."""
    text, other = (left, right) if left.kind == "text" else (right, left)
    if other.kind in NESTED:
        return None
    if place == "column":
        return other if other.kind in OVER_TEXT else text
    return other if place == "equality" else None


def common_of_all(dialect: str, place: Place, kinds: Iterable[SqlType]) -> SqlType | None:
    """Return the common type of several types, from left to right; None if there is none."""
    made: SqlType | None = NULL
    for kind in kinds:
        if made is None:
            return None
        made = common_type(dialect, place, made, kind)
    return made


def goes_on(dialect: str, first: SqlType, following: SqlType) -> bool:
    """Return True if a column of a recursion that begins with `first` may have `following` next.

    DuckDB casts to the first type; Postgres takes it only if it is the common type of both,
    which has no digits beside NULL or a constant text.
    """
    if "any" in (first.kind, following.kind):
        return True
    if following.kind == "null":
        return dialect == "duckdb" or first.scale is None
    if dialect == "duckdb":
        if (first.kind, following.kind) == ("time", "timestamp"):
            return True
        return common_type(dialect, "column", first, following) is not None
    made = common_type(dialect, "column", first, following)
    if made is None or made.kind != first.kind:
        return False
    if first.kind == "decimal":  # digits are part of the type
        return first.scale is None or first == following
    return _is_one_type(innermost(made), innermost(first))


# What dialects of SQL disagree about.


@record
class Dialect:
    """`name` is what sqlglot calls it."""

    name: DialectName
    integer_division: bool
    """True if `7 / 2` is 3."""
    zero_division: Literal["infinity", "null", "error"]
    """The result of `/` for a number and zero."""
    exact_literals: bool
    """True if `1.5` is a decimal and not a float."""
    total_rows: bool
    """True if a row with a NULL is compared as one value, with NULL last."""
    numeric_booleans: bool
    """True if TRUE is written as 1."""
    timezone: str = "UTC"
    """The time zone of the database, for showing instants and for texts without a zone."""

    @property
    def dotted_fields(self) -> bool:
        """True if `home.city` may be the field of a column; else it is written `(home).city`."""
        return self.name == "duckdb"


OWN_SCHEMAS = ("main", "memory", "public", "postgres")
"""Names of the schema and the catalog that tables without one are in, in all dialects."""
OF_SYSTEM = ("sqlite_", "pg_", "duckdb_", "pragma_")
"""Beginnings of names that may be those of system tables."""
SCHEMA = "schema"
"""Key in the notes of a table: the node of the schema that was written for it."""
DUCKDB = Dialect("duckdb", False, "infinity", True, True, False)
POSTGRES = Dialect("postgres", True, "error", True, False, False)
SQLITE = Dialect("sqlite", True, "null", False, False, True)
DIALECTS = {each.name: each for each in (DUCKDB, POSTGRES, SQLITE)}


# The schema that a name has.


def strange_schema(node: exp.Expr) -> exp.Expr | None:
    """Return the schema or catalog that a table or column names, if it is not the only one."""
    named = [part for part in map(node.args.get, ("catalog", "db")) if part is not None]
    others = [part for part in named if part.name.casefold() not in OWN_SCHEMAS]
    return others[0] if others else None


def is_bare(column: exp.Expr) -> bool:
    """Return True if a column is written without a table, schema or catalog: it may be an alias."""
    return not column.text("table") and strange_schema(column) is None
