"""Types as Postgres numbers and names them: `pg_type`, `format_type`, `atttypmod`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optimizer.record import record
from reactive.languages.sql.terms.types import SqlType

WRITTEN = """
16 bool 1 B boolean 1000 1
17 bytea -1 U bytea 1001 0
18 char 1 Z "char" 1002 1
19 name 64 S name 1003 0
20 int8 8 N bigint 1016 1
21 int2 2 N smallint 1005 1
22 int2vector -1 A int2vector 1006 0
23 int4 4 N integer 1007 1
24 regproc 4 N regproc 1008 1
25 text -1 S text 1009 0
26 oid 4 N oid 1028 1
30 oidvector -1 A oidvector 1013 0
114 json -1 U json 199 0
142 xml -1 U xml 143 0
700 float4 4 N real 1021 1
701 float8 8 N double precision 1022 1
705 unknown -2 X unknown 0 0
790 money 8 N money 791 1
869 inet -1 I inet 1041 0
1042 bpchar -1 S character 1014 0
1043 varchar -1 S character varying 1015 0
1082 date 4 D date 1182 1
1083 time 8 D time without time zone 1183 1
1114 timestamp 8 D timestamp without time zone 1115 1
1184 timestamptz 8 D timestamp with time zone 1185 1
1186 interval 16 T interval 1187 0
1266 timetz 12 D time with time zone 1270 0
1560 bit -1 V bit 1561 0
1700 numeric -1 N numeric 1231 0
2205 regclass 4 N regclass 2210 1
2206 regtype 4 N regtype 2211 1
2249 record -1 P record 2287 0
2278 void 4 P void 0 1
2950 uuid 16 U uuid 2951 0
3802 jsonb -1 U jsonb 3807 0
"""
"""Number, name, length, category, name in texts, number of the array type, 1 if by value."""
PREFERRED = frozenset({16, 25, 26, 701, 869, 1184, 1186})
TEXTS = frozenset({25, 1042, 1043})
"""Types whose columns have the collation of the database."""
DEFAULT_COLLATION = 100
OF_KINDS = {
    "bool": 16,
    "bytes": 17,
    "text": 25,
    "json": 114,
    "jsonb": 3802,
    "float": 701,
    "date": 1082,
    "time": 1083,
    "timestamp": 1114,
    "timestamptz": 1184,
    "interval": 1186,
    "decimal": 1700,
    "uuid": 2950,
    "struct": 2249,
    "null": 25,
}
OF_SIZES = {1: 21, 2: 21, 4: 23, 8: 20, 16: 1700}
"""Types of integers by their bytes."""
UNKNOWN = 705


@record
class PostgresType:
    """A row of `pg_type`, of which only some columns are kept."""

    oid: int
    name: str
    length: int
    category: str
    shown: str
    array: int
    is_by_value: bool
    element: int = 0


def _types() -> Iterator[PostgresType]:
    """Yield the types, and the types of arrays of them."""
    for line in WRITTEN.strip().splitlines():
        number, name, length, category, *shown, array, by_value = line.split()
        text = " ".join(shown)
        made = PostgresType(
            int(number), name, int(length), category, text, int(array), by_value == "1"
        )
        yield made
        if made.array:
            yield PostgresType(made.array, f"_{name}", -1, "A", f"{text}[]", 0, False, made.oid)


TYPES = {each.oid: each for each in _types()}
BY_NAMES = {
    **{each.name: each.oid for each in TYPES.values()},
    **{each.shown: each.oid for each in TYPES.values()},
    "int": 23,
    "decimal": 1700,
    "float": 701,
    "timestamp": 1114,
    "time": 1083,
}


def type_of(kind: SqlType, length: int | None = None, declared: str = "") -> tuple[int, int]:
    """Return the number of a type, and its modifier: digits or a length, -1 without them.

    declared: the word of CREATE TABLE, which tells VARCHAR and CHAR from TEXT.
    """
    if kind.kind == "array":
        inner = type_of(kind.items[0])[0] if kind.items else UNKNOWN
        found = TYPES.get(inner)
        return (found.array if found is not None and found.array else UNKNOWN), -1
    if kind.kind == "int":
        return OF_SIZES.get(kind.size or 8, 20), -1
    if kind.kind == "float" and kind.size == 4:
        return 700, -1
    if kind.kind == "decimal" and kind.precision is not None:
        return 1700, ((kind.precision << 16) | (kind.scale or 0)) + 4
    if kind.kind == "text":
        number = {"VARCHAR": 1043, "CHAR": 1042, "BPCHAR": 1042, "NAME": 19}.get(declared, 25)
        return number, -1 if length is None or number == 25 else length + 4
    return OF_KINDS.get(kind.kind, UNKNOWN), -1


def format_type(oid: int | None, modifier: int | None = None) -> str | None:
    """Return the name of a type in texts, with its modifier.

    >>> format_type(1700, ((8 << 16) | 2) + 4), format_type(1015), format_type(1)
    ('numeric(8,2)', 'character varying[]', '???')
    """
    if oid is None:
        return None
    found = TYPES.get(oid)
    if found is None:
        return "-" if oid == 0 else "???"
    if modifier is None or modifier < 4:
        return found.shown
    if oid == 1700:
        return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
    return f"{found.shown}({modifier - 4})" if oid in (1042, 1043) else found.shown


def type_rows() -> Iterator[dict[str, Any]]:
    """Yield the rows of `pg_type`."""
    for each in TYPES.values():
        element = each.element or each.oid
        yield {
            "oid": each.oid,
            "typname": each.name,
            "typnamespace": 11,
            "typowner": 10,
            "typlen": each.length,
            "typbyval": each.is_by_value,
            "typtype": "p" if each.category in "PX" else "b",
            "typcategory": each.category,
            "typispreferred": each.oid in PREFERRED,
            "typisdefined": True,
            "typdelim": ",",
            "typelem": each.element,
            "typarray": each.array,
            "typcollation": DEFAULT_COLLATION if element in TEXTS else 0,
            "typalign": "i",
            "typstorage": "p" if each.length > 0 else "x",
            "typtypmod": -1,
            "typinput": f"{each.name}in",
            "typoutput": f"{each.name}out",
        }
