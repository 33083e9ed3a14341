"""NEXMark's queries as methods and as SQL equal DuckDB, after each batch of bids and auctions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.budget import seeds
from tests.languages.sql.oracles import insert_rows
from tests.scenarios.nexmark import (
    DUCKDB,
    LATENESS,
    METHODS,
    SQL,
    Auction,
    Batch,
    Bid,
    House,
    Person,
    Side,
)

BEGIN = datetime(2024, 5, 1, 23, 58, 30)
BATCHES, NEVER = 8, 99
CREATE = (
    "create table person (id bigint, name varchar, city varchar, state varchar, moment timestamp)",
    "create table auction (id bigint, item varchar, seller bigint, category bigint,"
    " moment timestamp, expires timestamp)",
    "create table bid (id bigint, auction bigint, bidder bigint, price bigint, channel varchar,"
    " url varchar, moment timestamp, extra varchar, batch bigint, processed timestamp)",
    "create table side (key bigint, name varchar, since bigint, until bigint)",
)


class Feed:
    """The same batches in a database of views, and in DuckDB."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.house = House()
        self.duck = pytest.importorskip("duckdb").connect()
        for text in CREATE:
            self.duck.execute(text)
        self._newest: datetime | None = None
        self.late: list[Bid] = []
        self._ids = 0

    def batches(self) -> Iterator[int]:
        """Yield after each batch; between two of them the clock goes on by 20 seconds."""
        for number in range(BATCHES):
            now = BEGIN + number * timedelta(seconds=20)
            with self.house.db.transaction():
                self.house.batch.upsert(Batch(0, now))
                self._change_people(now, number)
                self._change_auctions(now, number)
                self._change_side(number)
                self._bid(now, number)
            yield number

    def _moment(self, now: datetime, seconds: int = 25) -> datetime:
        return now + timedelta(seconds=self._random.randrange(seconds) - 4)

    def _put(self, table: Any, name: str, row: Any) -> None:
        table.upsert(row)
        key = astuple(row)[0]
        self.duck.execute(f"delete from {name} where id = ?", [key])
        marks = ", ".join("?" * len(astuple(row)))
        self.duck.execute(f"insert into {name} values ({marks})", astuple(row))

    def _change_people(self, now: datetime, number: int) -> None:
        for key in range(4 * number, 4 * number + 4):
            state = self._random.choice(("OR", "ID", "CA", "NY", "WA"))
            row = Person(key, f"person {key}", f"city {key % 3}", state, self._moment(now))
            self._put(self.house.people, "person", row)
        if number % 3 == 2:
            self.house.people.delete(number)
            self.duck.execute("delete from person where id = ?", [number])

    def _change_auctions(self, now: datetime, number: int) -> None:
        pick = self._random.randrange
        for key in (*range(5 * number, 5 * number + 5), *[pick(5) for _ in range(number % 2)]):
            moment = self._moment(now)
            expires = moment + timedelta(seconds=10 + pick(60))
            seller = pick(4 * number + 4)
            row = Auction(key, f"item {key}", seller, 1 + pick(4), moment, expires)
            self._put(self.house.auctions, "auction", row)

    def _change_side(self, number: int) -> None:
        for key in range(4) if number == 0 else [self._random.randrange(4)]:
            row = Side(key, f"side {key} since {number}")
            self.house.side.upsert(row)
            self.duck.execute(f"update side set until = {number} where key = {key} and until > 50")
            self.duck.execute(
                "insert into side values (?, ?, ?, ?)", [*astuple(row), number, NEVER]
            )

    def _bid(self, now: datetime, number: int) -> None:
        mark = None if self._newest is None else self._newest - LATENESS
        bids = [self._make_bid(now, number) for _ in range(45)]
        self.house.bids.add_all(bids[:30])
        for bid in bids[30:]:
            self.house.bids.add(bid)
        in_time = [bid for bid in bids if mark is None or bid.moment >= mark]
        self.late += [bid for bid in bids if bid not in in_time]
        rows = [[*astuple(bid), number, now] for bid in in_time]
        insert_rows(self.duck, "bid", rows)
        self._newest = max([bid.moment for bid in in_time] + [self._newest or BEGIN])

    def _make_bid(self, now: datetime, number: int) -> Bid:
        pick = self._random.randrange
        self._ids += 1
        channel = self._random.choice(("Google", "apple", "Baidu", "channel-7", "channel-9"))
        ending = f"&channel_id={pick(9)}" if pick(2) else ""
        url = f"https://shop.example/a{pick(4)}/b{pick(3)}/item?x=1{ending}"
        bid = Bid(
            *(self._ids, pick(5 * number + 5), pick(12), 1 + pick(999), channel, url),
            *(self._moment(now), "abcc" * pick(3)),
        )
        return replace(bid, moment=now - timedelta(seconds=90)) if pick(20) == 0 else bid


def rounded(rows: Any) -> Counter[Any]:
    """Count the rows, with floats to nine digits."""
    return Counter(
        tuple(float(f"{v:.9g}") if isinstance(v, float) else v for v in row) for row in rows
    )


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")  # auctions do not close
@pytest.mark.parametrize("seed", seeds(3, 1))
def test_the_queries_equal_duckdb_after_each_batch(seed: int) -> None:
    feed = Feed(seed)
    views = {(name, "methods"): make(feed.house) for name, make in METHODS.items()}
    views |= {(name, "SQL"): feed.house.db.sql(text) for name, text in SQL.items()}
    views = {names: view.materialize() for names, view in views.items()}
    late = feed.house.bids.late.materialize()
    for number in feed.batches():
        expected = {name: feed.duck.execute(text).fetchall() for name, text in DUCKDB.items()}
        for (name, language), view in views.items():
            assert rounded(view) == rounded(expected[name]), (name, language, number)
    assert all(len(view) for view in views.values())
    assert Counter(late) == Counter(feed.late) and feed.late


def test_all_queries_are_there() -> None:
    assert METHODS.keys() == SQL.keys() == DUCKDB.keys() == {f"q{number}" for number in range(23)}
