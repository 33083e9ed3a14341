"""NEXMark's tables with few rows: people, their auctions, bids on these, in some minutes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

from tests.languages.sql.script import Record, Script, read
from tests.languages.sql.tpch import FOLDER

TABLES = {
    "person": "id bigint primary key, name varchar not null, city varchar not null, state varchar"
    " not null, moment timestamp not null",
    "auction": "id bigint primary key, item varchar not null, seller bigint not null, category"
    " bigint not null, moment timestamp not null, expires timestamp not null",
    "bid": "id bigint primary key, auction bigint not null, bidder bigint not null, price bigint"
    " not null, channel varchar, url varchar not null, moment timestamp not null, extra varchar not"
    " null",
    "side": "key bigint primary key, name varchar not null",
}
STATES = ("OR", "ID", "CA", "NY", "WA")
CHANNELS = ("Google", "apple", "Baidu", "channel-7", "channel-9")
BEGIN = datetime(2024, 5, 1, 17, 58)


def script(random: Random, people: int = 10, auctions: int = 20, bids: int = 110) -> Script:
    """Return a script of tables with the given numbers of rows, and all queries."""
    made = [f"create table {name} ({columns})" for name, columns in TABLES.items()]
    made += [f"insert into side values ({key}, 'side {key}')" for key in range(4)]
    made += _people(people, random)
    made += _auctions(auctions, people, random)
    made += _bids(bids, auctions, people, random)
    records = [Record("statement", text, 0, ("duckdb",)) for text in made]
    queries = [Record("query", r.text, r.line, ("duckdb",)) for r in _queries()]
    return Script("nexmark.test", (*records, *queries))


def _queries() -> tuple[Record, ...]:
    return read(FOLDER / "nexmark.test").records


def _moment(random: Random) -> datetime:
    return BEGIN + timedelta(seconds=random.randrange(300))


def _people(count: int, random: Random) -> Iterator[str]:
    for key in range(count):
        yield (
            f"insert into person values ({key}, 'person {key}', 'city {key % 3}',"
            f" '{random.choice(STATES)}', '{_moment(random)}')"
        )


def _auctions(count: int, people: int, random: Random) -> Iterator[str]:
    for key in range(count):
        begins = _moment(random)
        ends = begins + timedelta(seconds=random.randint(20, 200))
        yield (
            f"insert into auction values ({key}, 'item {key}', {random.randrange(people)},"
            f" {random.randint(1, 4)}, '{begins}', '{ends}')"
        )


def _bids(count: int, auctions: int, people: int, random: Random) -> Iterator[str]:
    for key in range(count):
        channel = random.choice(CHANNELS)
        ending = f"&channel_id={random.randint(1, 9)}" if random.random() < 0.5 else ""
        yield (
            f"insert into bid values ({key}, {random.randrange(auctions)},"
            f" {random.randrange(people)}, {random.randint(1, 999)}, '{channel}',"
            f" 'https://shop.example/a{key % 4}/b{key % 3}/item?x=1{ending}', '{_moment(random)}',"
            f" '{'abcc' * random.randint(0, 3)}')"
        )
