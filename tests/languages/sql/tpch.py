"""TPC-H's tables with few rows, made as `dbgen` makes them: its words, its keys, its dates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from random import Random

from tests.languages.sql.script import Record, Script, read

TABLES = {
    "region": "r_regionkey integer primary key, r_name varchar not null, r_comment varchar",
    "nation": "n_nationkey integer primary key, n_name varchar not null, n_regionkey integer not"
    " null, n_comment varchar",
    "supplier": "s_suppkey integer primary key, s_name varchar not null, s_address varchar not"
    " null, s_nationkey integer not null, s_phone varchar not null, s_acctbal decimal(15,2) not"
    " null, s_comment varchar not null",
    "part": "p_partkey integer primary key, p_name varchar not null, p_mfgr varchar not null,"
    " p_brand varchar not null, p_type varchar not null, p_size integer not null, p_container"
    " varchar not null, p_retailprice decimal(15,2) not null, p_comment varchar not null",
    "partsupp": "ps_partkey integer not null, ps_suppkey integer not null, ps_availqty integer not"
    " null, ps_supplycost decimal(15,2) not null, ps_comment varchar not null,"
    " primary key (ps_partkey, ps_suppkey)",
    "customer": "c_custkey integer primary key, c_name varchar not null, c_address varchar not"
    " null, c_nationkey integer not null, c_phone varchar not null, c_acctbal decimal(15,2) not"
    " null, c_mktsegment varchar not null, c_comment varchar not null",
    "orders": "o_orderkey integer primary key, o_custkey integer not null, o_orderstatus varchar"
    " not null, o_totalprice decimal(15,2) not null, o_orderdate date not null, o_orderpriority"
    " varchar not null, o_clerk varchar not null, o_shippriority integer not null, o_comment"
    " varchar not null",
    "lineitem": "l_orderkey integer not null, l_partkey integer not null, l_suppkey integer not"
    " null, l_linenumber integer not null, l_quantity decimal(15,2) not null, l_extendedprice"
    " decimal(15,2) not null, l_discount decimal(15,2) not null, l_tax decimal(15,2) not null,"
    " l_returnflag varchar not null, l_linestatus varchar not null, l_shipdate date not null,"
    " l_commitdate date not null, l_receiptdate date not null, l_shipinstruct varchar not null,"
    " l_shipmode varchar not null, l_comment varchar not null,"
    " primary key (l_orderkey, l_linenumber)",
}
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    *(("SAUDI ARABIA", 4), ("BRAZIL", 1), ("CANADA", 1), ("FRANCE", 3), ("GERMANY", 3)),
    *(("CHINA", 2), ("INDIA", 2), ("KENYA", 0)),
)
"""Eight of the 25, so that few suppliers and customers are enough to meet in one."""
CODES = (13, 31, 23, 29, 30, 18, 17, 25)
COLOURS = ("green", "forest", "ivory", "plum", "azure")
TYPES = (
    *("ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "MEDIUM POLISHED NICKEL"),
    *("STANDARD PLATED BRASS", "SMALL BRUSHED BRASS"),
)
KINDS = (
    *(("Brand#12", "SM CASE"), ("Brand#23", "MED BOX"), ("Brand#34", "LG PACK")),
    *(("Brand#23", "MED BOX"), ("Brand#45", "WRAP JAR")),
)
"""Brands with the containers that Q17 and Q19 ask for together."""
SIZES = (5, 3, 14, 15, 15, 49, 1)
SEGMENTS = ("BUILDING", "AUTOMOBILE", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("AIR", "AIR REG", "MAIL", "SHIP", "RAIL")
INSTRUCTIONS = ("DELIVER IN PERSON", "DELIVER IN PERSON", "COLLECT COD", "NONE")
TODAY = date(1995, 6, 17)
FOLDER = Path(__file__).parent / "benchmarks"


def script(random: Random, orders: int = 70) -> Script:
    """Return a script of tables with `orders` orders, and all queries."""
    made = [f"create table {name} ({columns})" for name, columns in TABLES.items()]
    made += _fixed(random)
    for key in range(1, orders + 1):
        made += _order(key, random)
    records = [Record("statement", text, 0, ("duckdb",)) for text in made]
    queries = [Record("query", r.text, r.line, ("duckdb",)) for r in _queries()]
    return Script("tpch.test", (*records, *queries))


def _queries() -> tuple[Record, ...]:
    return read(FOLDER / "tpch.test").records


SUPPLIERS, PARTS, CUSTOMERS = 8, 12, 16


def _fixed(random: Random) -> Iterator[str]:
    pick = random.choice
    for key, name in enumerate(REGIONS):
        yield f"insert into region values ({key}, '{name}', null)"
    for key, (name, region) in enumerate(NATIONS):
        yield f"insert into nation values ({key}, '{name}', {region}, 'none')"
    for key in range(1, SUPPLIERS + 1):
        comment = pick(("quick", "Customer never has Complaints", "slow"))
        nation = (key - 1) % len(NATIONS)
        yield (
            f"insert into supplier values ({key}, 'Supplier#{key:09}', 'street {key}', {nation},"
            f" '{10 + nation}-123', {_money(random, -900, 9900)}, '{comment}')"
        )
    for key in range(1, PARTS + 1):
        brand, container = KINDS[key % len(KINDS)]
        colour = "forest" if key % 3 == 0 else pick(COLOURS)
        made = f"'{brand}', '{TYPES[key % len(TYPES)]}', {SIZES[key % len(SIZES)]}, '{container}'"
        yield (
            f"insert into part values ({key}, '{colour} {pick(COLOURS)}',"
            f" 'Manufacturer#{key % 3}', {made}, {900 + key}.50, 'none')"
        )
        for supplier in _suppliers(key):
            yield (
                f"insert into partsupp values ({key}, {supplier}, {random.randint(1, 90)},"
                f" {_money(random, 1, 1000)}, 'none')"
            )
    for key in range(1, CUSTOMERS + 1):
        nation = random.randrange(len(NATIONS))
        yield (
            f"insert into customer values ({key}, 'Customer#{key:09}', 'road {key}', {nation},"
            f" '{CODES[nation]}-{key}', {_money(random, -500, 9900)}, '{pick(SEGMENTS)}', 'none')"
        )


def _suppliers(part: int) -> list[int]:
    """Return the suppliers of a part."""
    return [(part + step) % SUPPLIERS + 1 for step in (0, 2, 5)]


def _order(key: int, random: Random) -> Iterator[str]:
    pick = random.choice
    day = date(1993, 1, 1) + timedelta(random.randrange(1400))
    comment = pick(("fine", "special gift requests", "no special wish", "packed"))
    status = "F" if day < TODAY - timedelta(100) else "O"
    customer = random.randint(1, CUSTOMERS - 3)  # some have no orders
    yield (
        f"insert into orders values ({key}, {customer}, '{status}', {_money(random, 900, 90000)},"
        f" date '{day}', '{pick(PRIORITIES)}', 'Clerk#{key % 5}', 0, '{comment}')"
    )
    for line in range(1, random.randint(1, 5) + 1):
        ships = day + timedelta(random.randint(1, 121))
        commits = day + timedelta(random.randint(30, 90))
        arrives = ships + timedelta(random.randint(1, 30))
        flag = pick("RA") if arrives <= TODAY else "N"
        part = random.randint(1, PARTS)
        yield (
            f"insert into lineitem values ({key}, {part}, {pick(_suppliers(part))}, {line},"
            f" {random.randint(1, 50)},"
            f" {_money(random, 900, 9000)}, 0.0{random.randint(0, 9)}, 0.0{random.randint(0, 8)},"
            f" '{flag}', '{'O' if ships > TODAY else 'F'}', date '{ships}', date '{commits}',"
            f" date '{arrives}', '{pick(INSTRUCTIONS)}', '{pick(MODES)}', 'none')"
        )


def _money(random: Random, least: int, most: int) -> str:
    return f"{random.randint(least, most)}.{random.randrange(100):02}"
