"""The 23 queries of NEXMark over a stream of bids and tables of people and auctions.

`METHODS` has the queries as methods, `SQL` as live SQL, and `DUCKDB` for DuckDB, which computes
them anew. Their windows are of ten seconds. Q10 writes to files, whose rows these are; Q12 is of
the time of processing, the moment of each batch; Q13 looks bids up in a table as of their batch.

Source: NEXMark, queries 0 to 8 (Tucker et al., 2002); 9 to 22 are those of Apache Beam and Flink.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reactive import (
    Avg,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Sum,
    asc,
    desc,
    hopping,
    session,
    tumbling,
)

Queried = Callable[["House"], Any]
TEN = timedelta(seconds=10)
LATENESS = timedelta(seconds=15)
EURO = 0.908


@dataclass(frozen=True)
class Person:
    id: int
    name: str
    city: str
    state: str
    moment: datetime


@dataclass(frozen=True)
class Auction:
    id: int
    item: str
    seller: int
    category: int
    moment: datetime
    expires: datetime


@dataclass(frozen=True)
class Bid:
    id: int
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    moment: datetime
    extra: str


@dataclass(frozen=True)
class Side:
    key: int
    name: str


@dataclass(frozen=True)
class Batch:
    """The present batch: the only row of its table."""

    key: int
    processed: datetime


class House:
    """The tables, the stream of bids, and the moment at which a batch is processed."""

    def __init__(self) -> None:
        self.db = Database(dialect="duckdb")
        self.people = self.db.table(Person, name="person", key="id")
        self.auctions = self.db.table(Auction, name="auction", key="id")
        self.side = self.db.table(Side, name="side", key="key")
        self.bids = self.db.stream(Bid, at="moment", lateness=LATENESS, name="bid")
        self.batch = self.db.table(Batch, name="batch", key="key")


def q0(h: House) -> Any:
    return h.bids.select(lambda b: (b.auction, b.bidder, b.price, b.moment, b.extra))


def q1(h: House) -> Any:
    return h.bids.select(lambda b: (b.auction, b.bidder, b.price * EURO, b.moment))


def q2(h: House) -> Any:
    return h.bids.where(lambda b: b.auction % 7 == 0).select(lambda b: (b.auction, b.price))


def q3(h: House) -> Any:
    sold = h.auctions.join(h.people, on=lambda a, p: a.seller == p.id)
    some = sold.where(lambda a, p: a.category == 3 and p.state in ("OR", "ID", "CA"))
    return some.select(lambda a, p: (p.name, p.city, p.state, a.id))


def _valid(h: House) -> Any:
    """Bids beside their auctions, while these were open."""
    return h.bids.join(
        h.auctions, on=lambda b, a: b.auction == a.id and a.moment <= b.moment <= a.expires
    )


def q4(h: House) -> Any:
    of_auction = _valid(h).group_by(lambda b, a: (a.id, a.category))
    final = of_auction.aggregate(Max(lambda b, a: b.price))
    return final.group_by(lambda key, price: key[1]).aggregate(Avg(lambda key, price: price))


def q5(h: House) -> Any:
    hops = h.bids.window(hopping(TEN, every=timedelta(seconds=2)), at="moment")
    counts = hops.group_by(lambda b, w: (b.auction, w)).aggregate(Count())
    most: Any = counts.group_by(lambda key, n: key[1]).aggregate(Max(lambda key, n: n))
    hot = counts.join(most, on=lambda key, n, other: key[1] == other[0] and n >= other[1])
    return hot.select(lambda key, n, other: (key[0], n, key[1].start))


def _won(h: House) -> Any:
    """The winning bid of each auction: the first one of the highest price."""
    best = [desc(lambda b, a: b.price), asc(lambda b, a: b.moment), asc(lambda b, a: b.id)]
    ranked = _valid(h).over(by=lambda b, a: a.id, order=best)
    return ranked.where(lambda b, a, w: w.row_number() <= 1).select(lambda b, a, w: (b, a))


def q6(h: House) -> Any:
    in_time = [asc(lambda pair: pair[0].moment), asc(lambda pair: pair[1].id)]
    sales = _won(h).over(by=lambda pair: pair[1].seller, order=in_time)
    return sales.select(lambda p, w: (p[1].seller, w.avg(p[0].price, rows=(-10, 0))))


def q7(h: House) -> Any:
    timed = h.bids.window(tumbling(TEN), at="moment")
    most: Any = timed.group_by(lambda b, w: w).aggregate(Max(lambda b, w: b.price))
    best = timed.join(most, on=lambda b, w, other: w == other[0] and b.price == other[1])
    return best.select(lambda b, w, other: (b.auction, b.price, b.bidder, b.moment))


def q8(h: House) -> Any:
    joined = h.people.window(tumbling(TEN), at="moment")
    opened = h.auctions.window(tumbling(TEN), at="moment")
    sellers = opened.select(lambda a, w: (a.seller, w)).distinct()
    new = joined.join(sellers, on=lambda p, w, s: p.id == s[0] and w == s[1])
    return new.select(lambda p, w, s: (p.id, p.name, w.start))


def q9(h: House) -> Any:
    return _won(h).select(lambda p: (p[1].id, p[1].item, p[1].seller, p[0].bidder, p[0].price))


def q10(h: House) -> Any:
    return h.bids.select(
        lambda b: (b.auction, b.price, f"{b.moment:%Y-%m-%d}", f"{b.moment:%H:%M}")
    )


def q11(h: House) -> Any:
    visits = h.bids.window(session(TEN, by="bidder"), at="moment")
    counts = visits.group_by(lambda b, w: (b.bidder, w)).aggregate(Count())
    return counts.select(lambda key, n: (key[0], n, key[1].start, key[1].end))


def q12(h: House) -> Any:
    processed = h.bids.lookup(h.batch).window(tumbling(TEN), at=lambda b, of: of.processed)
    counts = processed.group_by(lambda b, of, w: (b.bidder, w)).aggregate(Count())
    return counts.select(lambda key, n: (key[0], n, key[1].start))


def q13(h: House) -> Any:
    named = h.bids.lookup(h.side, on=lambda b, s: b.auction % 5 == s.key)
    return named.select(lambda b, s: (b.auction, b.bidder, b.price, s.name))


def count_letters(text: str, letter: str) -> int:
    """Count a letter in a text: the user-defined function of Q14."""
    return sum(each == letter for each in text)


def part_of_day(hour: int) -> str:
    """Return the part of a day that an hour is in."""
    if 8 <= hour <= 18:
        return "day"
    return "night" if hour <= 6 or hour >= 20 else "other"


def q14(h: House) -> Any:
    some = h.bids.where(lambda b: 100 < b.price * EURO < 800)
    return some.select(
        lambda b: (b.auction, part_of_day(b.moment.hour), count_letters(b.extra, "c"))
    )


def q15(h: House) -> Any:
    return h.bids.group_by(lambda b: b.moment.date()).aggregate(
        Count(),
        Sum(lambda b: 1 if b.price < 100 else 0),
        Sum(lambda b: 1 if 100 <= b.price < 500 else 0),
        CountDistinct(lambda b: b.bidder),
        CountDistinct(lambda b: b.bidder if b.price < 100 else None, skip_none=True),
        CountDistinct(lambda b: b.auction),
        CountDistinct(lambda b: b.auction if b.price >= 500 else None, skip_none=True),
    )


def q16(h: House) -> Any:
    by_channel = h.bids.group_by(lambda b: (b.channel, b.moment.date()))
    return by_channel.aggregate(
        Max(lambda b: f"{b.moment:%H:%M}"),
        Count(),
        CountDistinct(lambda b: b.bidder if b.price < 500 else None, skip_none=True),
        CountDistinct(lambda b: b.auction),
    ).select(lambda key, *rest: (*key, *rest))


def q17(h: House) -> Any:
    by_day = h.bids.group_by(lambda b: (b.auction, b.moment.date()))
    price = "price"
    return by_day.aggregate(Count(), Min(price), Max(price), Avg(price), Sum(price)).select(
        lambda key, count, low, high, mean, total: (*key, count, low, high, mean, total)
    )


def q18(h: House) -> Any:
    latest: Any = [desc("moment"), desc("id")]
    last = h.bids.group_by(lambda b: (b.bidder, b.auction)).top(1, latest)
    return last.select(lambda b: (b.auction, b.bidder, b.price, b.moment))


def q19(h: House) -> Any:
    ranked = h.bids.over(by="auction", order=[desc("price"), asc("id")])
    best = ranked.where(lambda b, w: w.row_number() <= 10)
    return best.select(lambda b, w: (b.auction, b.price, w.row_number()))


def q20(h: House) -> Any:
    sold = h.bids.join(h.auctions, on=lambda b, a: b.auction == a.id)
    some = sold.where(lambda b, a: a.category == 3)
    return some.select(lambda b, a: (b.auction, b.bidder, b.price, a.item, a.seller))


CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL = re.compile(r"(&|^)channel_id=([^&]*)")


def channel_of(channel: str, url: str) -> str | None:
    """Return the number of a channel: a known one, or the one in the address."""
    found = CHANNEL.search(url)
    return CHANNELS.get(channel.lower(), found and found[2])


def q21(h: House) -> Any:
    numbered = h.bids.select(lambda b: (b.auction, b.channel, channel_of(b.channel, b.url)))
    return numbered.where(lambda row: row[2] is not None)


def q22(h: House) -> Any:
    return h.bids.select(lambda b: (b.auction, b.channel, *b.url.split("/")[3:6]))


METHODS: Mapping[str, Queried] = {
    f"q{number}": made
    for number, made in enumerate(
        (
            *(q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11),
            *(q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22),
        )
    )
}
WON = """
    select * from (select a.id, a.item, a.seller, a.category, b.bidder, b.price, b.moment,
            row_number() over (partition by a.id order by b.price desc, b.moment, b.id) as place
        from auction a join bid b
        on a.id = b.auction and b.moment between a.moment and a.expires) where place = 1"""
DUCKDB: Mapping[str, str] = {
    "q0": "select auction, bidder, price, moment, extra from bid",
    "q1": "select auction, bidder, price * 0.908::double, moment from bid",
    "q2": "select auction, price from bid where auction % 7 = 0",
    "q3": """select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
        where a.category = 3 and p.state in ('OR', 'ID', 'CA')""",
    "q4": """select category, avg(final) from (select a.category, max(b.price) as final
        from auction a join bid b on a.id = b.auction and b.moment between a.moment and a.expires
        group by a.id, a.category) group by category""",
    "q5": """with hops as (select auction, time_bucket(interval 2 second, moment)
            - to_seconds(2 * unnest(range(5))) as start from bid),
        counts as (select auction, count(*) as n, start from hops group by auction, start)
        select c.auction, c.n, c.start from counts c
        where n >= (select max(n) from counts o where o.start = c.start)""",
    "q6": f"""select seller, avg(price) over (partition by seller order by moment, id
        rows between 10 preceding and current row) from ({WON})""",
    "q7": """select auction, price, bidder, moment from (select *, max(price) over
        (partition by time_bucket(interval 10 second, moment)) as most from bid)
        where price = most""",
    "q8": """select id, name, time_bucket(interval 10 second, moment) from person p where exists
        (select 1 from auction a where a.seller = p.id and
        time_bucket(interval 10 second, a.moment) = time_bucket(interval 10 second, p.moment))""",
    "q9": f"select id, item, seller, bidder, price from ({WON})",
    "q10": """select auction, price, strftime(moment, '%Y-%m-%d'), strftime(moment, '%H:%M')
        from bid""",
    "q11": """with marked as (select *, case when moment - lag(moment) over w < interval 10 second
            then 0 else 1 end as begins from bid window w as (partition by bidder order by moment)),
        numbered as (select *, sum(begins) over (partition by bidder order by moment) as n
            from marked)
        select bidder, count(*), min(moment), max(moment) + interval 10 second from numbered
        group by bidder, n""",
    "q12": """select bidder, count(*), time_bucket(interval 10 second, processed) as start from bid
        group by bidder, start""",
    "q13": """select b.auction, b.bidder, b.price, s.name from bid b join side s
        on b.auction % 5 = s.key and b.batch >= s.since and b.batch < s.until""",
    "q14": """select auction, case when hour(moment) between 8 and 18 then 'day'
            when hour(moment) <= 6 or hour(moment) >= 20 then 'night' else 'other' end,
        length(extra) - length(replace(extra, 'c', '')) from bid
        where price * 0.908::double > 100 and price * 0.908::double < 800""",
    "q15": """select moment::date as day, count(*), count(*) filter (price < 100),
        count(*) filter (price >= 100 and price < 500), count(distinct bidder),
        count(distinct bidder) filter (price < 100), count(distinct auction),
        count(distinct auction) filter (price >= 500) from bid group by day""",
    "q16": """select channel, moment::date as day, max(strftime(moment, '%H:%M')), count(*),
        count(distinct bidder) filter (price < 500), count(distinct auction) from bid
        group by channel, day""",
    "q17": """select auction, moment::date as day, count(*), min(price), max(price), avg(price),
        sum(price)::bigint from bid group by auction, day""",
    "q18": """select auction, bidder, price, moment from (select *, row_number() over
        (partition by bidder, auction order by moment desc, id desc) as n from bid) where n <= 1""",
    "q19": """select auction, price, n from (select *, row_number() over
        (partition by auction order by price desc, id) as n from bid) where n <= 10""",
    "q20": """select b.auction, b.bidder, b.price, a.item, a.seller from bid b
        join auction a on b.auction = a.id where a.category = 3""",
    "q21": """select auction, channel, case lower(channel) when 'apple' then '0'
            when 'google' then '1' when 'facebook' then '2' when 'baidu' then '3'
            else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) end as number from bid
        where number <> ''""",
    "q22": """select auction, channel, split_part(url, '/', 4), split_part(url, '/', 5),
        split_part(url, '/', 6) from bid""",
}
"""The queries over tables of the same names; `bid` also has the batch and the moment of its
processing, and `side` the batches in which a row was there."""

TUMBLED = "tumble(table {}, descriptor(moment), interval '10' second)"
SQL: Mapping[str, str] = {
    **DUCKDB,
    "q5": """with counts as (select auction, count(*) as n, window_start as start
            from hop(table bid, descriptor(moment), interval '2' second, interval '10' second)
            group by auction, window_start)
        select c.auction, c.n, c.start from counts c
        join (select start, max(n) as most from counts group by start) m
        on c.start = m.start and c.n >= m.most""",
    "q7": f"""select b.auction, b.price, b.bidder, b.moment from {TUMBLED.format("bid")} b
        join (select window_start, max(price) as most from {TUMBLED.format("bid")}
            group by window_start) m
        on b.window_start = m.window_start and b.price = m.most""",
    "q8": f"""select p.id, p.name, p.window_start from {TUMBLED.format("person")} p
        where exists (select 1 from {TUMBLED.format("auction")} a
            where a.seller = p.id and a.window_start = p.window_start)""",
    "q11": """select bidder, count(*) as n, window_start, window_end
        from session(table bid partition by bidder, descriptor(moment), interval '10' second)
        group by bidder, window_start, window_end""",
    "q12": """with timed as (select b.bidder, t.processed from bid b
            join batch for system_time as of proctime() t on b.id - b.id = t.key)
        select bidder, count(*) as n, window_start
        from tumble(table timed, descriptor(processed), interval '10' second)
        group by bidder, window_start""",
    "q13": """select b.auction, b.bidder, b.price, s.name from bid b
        join side for system_time as of proctime() s on b.auction % 5 = s.key""",
}
"""The queries as live SQL: those of DuckDB, but for windows and look-ups."""
