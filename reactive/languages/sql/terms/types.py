"""The types of SQL, and the Python classes whose instances are their values."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import field, replace
from decimal import Decimal
from types import GenericAlias, NoneType
from typing import Annotated, Any, Literal, Optional, TypeAlias

from optimizer.kinds import kind as kinds
from optimizer.kinds.kind import (
    ANYTHING,
    Choice,
    Either,
    Instance,
    Items,
    Scalar,
    Struct,
    admits_none,
    kind_of,
    without_none,
)
from optimizer.record import record
from reactive.engine.collections.jsonb import Jsonb

Kind: TypeAlias = Literal[
    "null",
    "bool",
    "int",
    "float",
    "decimal",
    "text",
    "bytes",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
    "json",
    "jsonb",
    "array",
    "map",
    "struct",
    "any",
]


@record
class SqlType:
    """A SQL type.

    Decimals have `precision` and `scale`, integers a `size` in bytes. `items` are the type of the
    elements of an array (one), those of the keys and the values of a map, whose values are tuples
    of pairs, or the types of the fields of a struct, which `names` names. For an
    object ("any") `record` is the kind of its class, whose fields a text may read, or None.

    In SQLite, `affinity` is that of a column or a CAST, `collation` orders texts, and `is_collated`
    says that the expression has a COLLATE.
    """

    kind: Kind
    precision: int | None = None
    scale: int | None = None
    items: tuple[SqlType, ...] = ()
    names: tuple[str, ...] = ()
    size: int | None = None
    affinity: str | None = field(default=None, repr=False)
    collation: str | None = field(default=None, repr=False)
    is_collated: bool = field(default=False, repr=False)
    record: Struct | None = field(default=None, repr=False)


NULL = SqlType("null")
BOOL = SqlType("bool")
INT = SqlType("int")
FLOAT = SqlType("float")
DECIMAL = SqlType("decimal")
TEXT = SqlType("text")
BYTES = SqlType("bytes")
DATE = SqlType("date")
TIME = SqlType("time")
TIMESTAMP = SqlType("timestamp")
INSTANT = SqlType("timestamptz")
"""TIMESTAMPTZ."""
MOMENT = SqlType("timestamp", names=("any zone",))
"""A field that is declared as `datetime`: its values may have a time zone or not."""
UNSIGNED = ("unsigned",)
"""The names of an integer type without a sign."""
INTERVAL = SqlType("interval")
UUID = SqlType("uuid")
JSON = SqlType("json")
"""A JSON text."""
JSONB = SqlType("jsonb")
"""A document: `Jsonb`."""
ANY = SqlType("any")
"""An unknown type."""

NUMBERS = frozenset({"int", "float", "decimal"})
NESTED = frozenset({"array", "map", "struct"})
"""Kinds whose values are tuples of other values."""
OF_PYTHON: dict[Any, SqlType] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    Decimal: DECIMAL,
    str: TEXT,
    bytes: BYTES,
    datetime.datetime: MOMENT,
    datetime.date: DATE,
    datetime.time: TIME,
    datetime.timedelta: INTERVAL,
    uuid.UUID: UUID,
    Jsonb: JSONB,
    NoneType: NULL,
}


HINTS: dict[str, Any] = {kind.kind: hint for hint, kind in OF_PYTHON.items()}
HINTS["timestamptz"] = Annotated[datetime.datetime, datetime.UTC]
HINTS["json"] = str
OF_AFFINITIES: dict[str, Any] = {
    "TEXT": str | bytes,
    "REAL": float | str | bytes,
    "BLOB": int | float | str | bytes,
}
"""Classes that a column of SQLite keeps, by affinity; INTEGER and NUMERIC are as BLOB."""


_SAMPLES: dict[str, Any] = {
    "bool": True,
    "int": 1,
    "float": 1.0,
    "decimal": Decimal(1),
    "text": "1",
    "bytes": b"1",
    "date": datetime.date(2000, 1, 1),
    "time": datetime.time(1),
    "timestamp": datetime.datetime(2000, 1, 1),
    "timestamptz": datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC),
    "interval": datetime.timedelta(1),
    "uuid": uuid.UUID(int=1),
    "json": "1",
    "jsonb": Jsonb(1),
}


def has_sample(kind: SqlType) -> bool:
    """Return True if all values of a type are of one class, so that `sample_of` has one."""
    if kind.kind in NESTED:
        return bool(kind.items) and all(map(has_sample, kind.items))
    return kind.kind in _SAMPLES and kind != MOMENT and kind.affinity is None


def sample_of(kind: SqlType) -> Any:
    """Return a value of a type.

    >>> sample_of(SqlType("array", items=(INT,)))
    (1,)
    """
    if kind.kind in NESTED:
        parts = tuple(map(sample_of, kind.items))
        return (parts,) if kind.kind == "map" else parts
    return _SAMPLES[kind.kind]


RANGES: dict[int, int] = {1: 7, 2: 15, 4: 31, 8: 63, 16: 127}
"""The number of bits of an integer beside the sign, by its size."""


def range_of(kind: SqlType) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    bits = RANGES[kind.size or 8]
    return (0, (2 << bits) - 1) if kind.names == UNSIGNED else (-(1 << bits), (1 << bits) - 1)


def is_written_apart(of: SqlType) -> bool:
    """Return True for REAL, and of decimals with no digits before the point."""
    if of.kind == "decimal":
        return of.precision is not None and of.precision == of.scale
    return of.kind == "float" and of.size == 4


def hint_of(kind: SqlType, *, nullable: bool) -> Any:
    """Return the annotation of a column of a table.

    >>> hint_of(INT, nullable=False)
    <class 'int'>
    """
    hint = tuple if kind.kind in NESTED else HINTS.get(kind.kind, Any)
    if kind.affinity is not None and kind.kind == "any":
        hint = OF_AFFINITIES.get(kind.affinity, OF_AFFINITIES["BLOB"])
    return Optional[hint] if nullable and hint is not Any else hint  # noqa: UP045


def full_hint_of(kind: SqlType) -> Any:
    """Return the annotation of values of a type, with the types inside an array or struct.

    >>> full_hint_of(SqlType("array", items=(INT,)))
    tuple[int, ...]
    """
    if kind.kind == "array" and kind.items:
        return GenericAlias(tuple, (full_hint_of(kind.items[0]), ...))
    if kind.kind == "struct":
        return GenericAlias(tuple, tuple(map(full_hint_of, kind.items)))
    if kind.kind == "map":
        return GenericAlias(tuple, (GenericAlias(tuple, tuple(map(full_hint_of, kind.items))), ...))
    return hint_of(kind, nullable=False)


def type_of_value(value: Any) -> SqlType:
    """Return the type of a Python value.

    >>> type_of_value(3).kind, type_of_value((1, 2)).kind
    ('int', 'array')
    """
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return SqlType("array", items=(type_of_value(value[0]) if value else ANY,))
    if isinstance(value, datetime.datetime):
        return TIMESTAMP if value.tzinfo is None else INSTANT
    return next((OF_PYTHON[kind] for kind in type(value).__mro__ if kind in OF_PYTHON), ANY)


def type_of_hint(hint: Any) -> tuple[SqlType, bool]:
    """Return the type that an annotation says, and whether None is among its values.

    >>> kind, nullable = type_of_hint(int | None)
    >>> kind.kind, nullable
    ('int', True)
    """
    kind = kind_of(hint)
    if kind == Items(tuple, ANYTHING) and isinstance(hint, type):
        return ANY, False  # an array, or a struct
    return _type_of_kind(without_none(kind)), admits_none(kind)


def _type_of_kind(kind: kinds.Kind) -> SqlType:
    """Return the type of the values of a kind that are not None."""
    match kind:
        case Scalar(zone=zone) if zone is not None:
            return INSTANT
        case Scalar(python) | Instance(python):
            return OF_PYTHON.get(python, ANY)
        case Items(python, item) if python is tuple:
            return SqlType("array", items=(_type_of_kind(without_none(item)),))
        case Choice(values):
            return _only_type({type_of_value(value) for value in values})
        case Either(options):
            return _only_type({_type_of_kind(each) for each in options})
        case Struct():
            return SqlType("any", record=kind)
        case _:
            return ANY


def fields_of(kind: SqlType) -> dict[str, SqlType]:
    """Return the types of the fields of a struct, or of an object of a known class, by their names.

    >>> fields_of(SqlType("struct", items=(INT, TEXT), names=("a", "b")))["a"].kind
    'int'
    """
    if kind.record is None:
        return dict(zip(kind.names, kind.items, strict=True)) if kind.kind == "struct" else {}
    return {name: type_of_hint(hint)[0] for name, hint in kind.record.hints.items()}


def _only_type(types: set[SqlType]) -> SqlType:
    """Return the type of values of several types; unknown if they differ."""
    return types.pop() if len(types) == 1 else ANY


OF_SQL: dict[str, SqlType] = {
    "TINYINT": SqlType("int", size=1),
    "SMALLINT": SqlType("int", size=2),
    **dict.fromkeys(("INT", "MEDIUMINT", "SERIAL"), SqlType("int", size=4)),
    **dict.fromkeys(("BIGINT", "BIGSERIAL"), SqlType("int", size=8)),
    **dict.fromkeys(("INT128", "HUGEINT"), SqlType("int", size=16)),
    "UTINYINT": SqlType("int", size=1, names=UNSIGNED),
    "USMALLINT": SqlType("int", size=2, names=UNSIGNED),
    "UINT": SqlType("int", size=4, names=UNSIGNED),
    "UBIGINT": SqlType("int", size=8, names=UNSIGNED),
    "UINT128": SqlType("int", size=16, names=UNSIGNED),
    **dict.fromkeys(("DOUBLE",), FLOAT),
    **dict.fromkeys(("FLOAT",), SqlType("float", size=4)),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "NCHAR", "NVARCHAR", "BPCHAR", "NAME"), TEXT),
    "UUID": UUID,
    "JSON": JSON,
    "JSONB": JSONB,
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB", "BYTEA"), BYTES),
    **dict.fromkeys(("BOOLEAN", "BIT"), BOOL),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME", "DATETIME2"), TIMESTAMP),
    "TIMESTAMP_S": SqlType("timestamp", scale=0),
    "TIMESTAMP_MS": SqlType("timestamp", scale=3),
    "TIMESTAMP_NS": SqlType("timestamp", scale=9),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), INSTANT),
    "DATE": DATE,
    "TIME": TIME,
    "INTERVAL": INTERVAL,
    "NULL": NULL,
    "UNKNOWN": ANY,
}
"""Types by sqlglot's names of them; decimals, arrays and structs have more to say."""


def type_of_sql(declared: Any, *, exact: bool = True) -> SqlType | None:
    """Return the type of sqlglot's `DataType`; None if it is not known.

    Without `exact` there are no decimals, as in SQLite: these are floats, or integers.

    >>> from sqlglot import exp
    >>> type_of_sql(exp.DataType.build("decimal(8, 2)")).scale
    2
    """
    name = getattr(declared.this, "value", str(declared.this))
    if name in ("DECIMAL", "DECIMAL32", "DECIMAL64", "DECIMAL128", "BIGDECIMAL"):
        numbers = [int(each.name) for each in declared.expressions]
        precision, scale = (*numbers, 0)[:2] if numbers else (None, None)
        return SqlType("decimal", precision, scale) if exact else ANY
    if name in ("ARRAY", "LIST"):
        items = [type_of_sql(each, exact=exact) for each in declared.expressions[:1]]
        return (
            None
            if None in items
            else SqlType("array", items=(items[0] or ANY,))
            if (items)
            else SqlType("array", items=(ANY,))
        )
    if name == "MAP" and len(declared.expressions) == 2:
        of_map = [type_of_sql(each, exact=exact) for each in declared.expressions]
        return SqlType("map", items=tuple(kind or ANY for kind in of_map))
    if name == "STRUCT":
        fields = [
            (each.name, type_of_sql(each.args["kind"], exact=exact))
            for each in declared.expressions
        ]
        kinds = tuple(kind or ANY for _, kind in fields)
        return SqlType("struct", items=kinds, names=tuple(name for name, _ in fields))
    if name in ("DOUBLE", "FLOAT"):  # FLOAT(53) says how many binary digits
        _ = [each.name for each in declared.expressions]
    return OF_SQL.get(name)


def length_of_sql(declared: Any) -> int | None:
    """Return the number in VARCHAR(n) or CHAR(n); None of other types.

    >>> from sqlglot import exp
    >>> length_of_sql(exp.DataType.build("varchar(8)"))
    8
    """
    if type_of_sql(declared) is not TEXT:
        return None
    numbers = [int(each.name) for each in declared.expressions if each.name.isdigit()]
    return numbers[0] if numbers else None


def common(left: SqlType, right: SqlType) -> SqlType:
    """Return the type that values of both can be made, as for the two sides of a comparison.

    >>> common(INT, FLOAT).kind, common(DATE, TIMESTAMP).kind, common(NULL, TEXT).kind
    ('float', 'timestamp', 'text')
    """
    if left == right or right.kind == "null":
        return left
    if left.kind == "null":
        return right
    kinds = {left.kind, right.kind}
    if "any" in kinds:
        return ANY
    if kinds <= NUMBERS | {"bool"}:
        return _common_number(left, right)
    if kinds <= {"date", "timestamp", "timestamptz"}:
        return (
            INSTANT if "timestamptz" in kinds else MOMENT if MOMENT in (left, right) else TIMESTAMP
        )
    if kinds in ({"array"}, {"map"}) and left.items and right.items:
        parts = zip(left.items, right.items, strict=True)
        return SqlType(left.kind, items=tuple(common(*pair) for pair in parts))
    if "text" in kinds:
        return right if left.kind == "text" else left
    return left


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    """Return the type of both numbers: float, a decimal with their digits, or the larger int."""
    kinds = {left.kind, right.kind}
    if "float" in kinds:
        return FLOAT
    if "decimal" not in kinds:
        sizes = (left.size or 8, right.size or 8)
        return INT if "int" not in kinds else SqlType("int", size=max(sizes))
    digits = [(_whole_digits(each), each.scale or 0) for each in (left, right)]
    if any(each.kind == "decimal" and each.scale is None for each in (left, right)):
        return DECIMAL
    whole, scale = max(d for d, _ in digits), max(s for _, s in digits)
    return SqlType("decimal", min(38, whole + scale), scale)


OF_KINDS = {"int": "INTEGER", "float": "REAL", "text": "TEXT", "bytes": "BLOB", "bool": "NUMERIC"}
"""The affinity that fields of classes of Python have in SQLite, by the kinds of their types."""


def with_affinity(kind: SqlType) -> SqlType:
    """Return the type of a field, with its affinity in SQLite."""
    return replace(kind, affinity=OF_KINDS.get(kind.kind), collation="BINARY")


DIGITS_OF_SIZE = {1: 3, 2: 5, 4: 10, 8: 19, 16: 38}


def _whole_digits(kind: SqlType) -> int:
    """Return the most digits before the point."""
    if kind.kind == "decimal":
        return (kind.precision or 18) - (kind.scale or 0)
    return DIGITS_OF_SIZE.get(kind.size or 8, 19)


def is_row(kind: SqlType) -> bool:
    """Return True if a struct is of `row(a, b)` or `(a, b)`, which names no fields."""
    return kind.names == tuple(f"column{place}" for place in range(len(kind.names)))


def innermost(kind: SqlType) -> SqlType:
    """Return the type of the elements of an array, or of arrays of arrays.

    >>> innermost(SqlType("array", items=(SqlType("array", items=(INT,)),))).kind
    'int'
    """
    while kind.kind == "array":
        kind = kind.items[0] if kind.items else ANY
    return kind


def sql_name(kind: SqlType) -> str:
    """Return DuckDB's name of a type.

    >>> sql_name(SqlType("decimal", 8, 2)), sql_name(INT)
    ('DECIMAL(8,2)', 'BIGINT')
    """
    match kind.kind:
        case "int":
            sizes = {1: "TINYINT", 2: "SMALLINT", 4: "INTEGER", 16: "HUGEINT"}
            return "U" * (kind.names == UNSIGNED) + sizes.get(kind.size or 8, "BIGINT")
        case "float" if kind.size == 4:
            return "FLOAT"
        case "decimal":
            return f"DECIMAL({kind.precision or 18},{kind.scale or 0})"
        case "array":
            return f"{sql_name(kind.items[0])}[]"
        case "map":
            return f"MAP({', '.join(map(sql_name, kind.items))})"
        case "struct" if is_row(kind):
            return f"TUPLE({', '.join(map(sql_name, kind.items))})"
        case "struct":
            parts = zip(kind.names, map(sql_name, kind.items), strict=True)
            return f"STRUCT({', '.join(f'{name} {of}' for name, of in parts)})"
        case other:
            return _NAMES.get(other, other.upper())


_NAMES = {
    "text": "VARCHAR",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "bytes": "BLOB",
    "null": '"NULL"',
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}
