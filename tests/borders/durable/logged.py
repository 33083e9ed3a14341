"""Lives of durable streams that end at every write; the views, token and state found on reopening.

A life takes batches of events and of prices from a source, and is opened again in between. Each end
leaves the files that `disk.py` computes. Opened again, the views must be those that plain Python
computes of the first batches, as many as the token says; and so after all batches.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from reactive import Batch, Count, Database, session, tumbling
from reactive.borders.durable.sqlite_store import SqliteStore
from tests.borders.durable.crashed import Folder
from tests.borders.durable.disk import Disk
from tests.borders.durable.recording import Recording

LATENESS = 2
GAP = 3
SIZE = 10
BATCHES = 14
FAR = 3
"""Events are paired if their times differ by less."""
RESUMED = 5
"""One end in `RESUMED` takes the other batches, too."""


class Sale(NamedTuple):
    """An event."""

    item: str
    at: int


class Price(NamedTuple):
    """A row that sales look up."""

    item: str
    cents: int


def drawn_batches(seed: int) -> list[Batch[Any]]:
    """Return batches of a few sales, some of them late or equal, and of prices."""
    random, found = Random(seed), list[Batch[Any]]()
    for number in range(BATCHES):
        newest = 3 * number
        sales = [
            Sale(random.choice("ab"), newest + random.randrange(-4, 5))
            for _ in range(random.choice([0, 1, 1, 2, 3]))
        ]
        prices = [Price(random.choice("ab"), random.randrange(9))] * (random.random() < 0.5)
        found.append(Batch(upserts=[*prices, *sales], token=number + 1))
    return found


class Plain:
    """The rows that views have, by plain Python."""

    def __init__(self, batches: list[Batch[Any]]) -> None:
        self.sales: list[Sale] = []
        self.late: list[Sale] = []
        self.priced: list[tuple[Sale, Price | None]] = []
        self.mark: int | None = None
        prices: dict[str, Price] = {}
        for batch in batches:
            rows = list(batch.upserts)
            prices |= {row.item: row for row in rows if isinstance(row, Price)}
            sales = [row for row in rows if isinstance(row, Sale)]
            here = [s for s in sales if self.mark is None or s.at >= self.mark]
            self.late += (Counter(sales) - Counter(here)).elements()
            self.sales += here
            self.priced += [(s, prices.get(s.item)) for s in here]
            newest = [s.at - LATENESS for s in here]
            self.mark = max([*newest, *([] if self.mark is None else [self.mark])], default=None)

    def views(self) -> dict[str, Counter[Any]]:
        """Return the rows of each view."""
        counts = Counter(s.at // SIZE * SIZE for s in self.sales)
        mark = self.mark
        sales = self.sales
        return {
            "sales": Counter(sales),
            "late": Counter(self.late),
            "priced": Counter(self.priced),
            "unpriced": Counter(s for s, price in self.priced if price is None),
            "counts": Counter(counts.items()),
            "many": Counter(start for start, n in counts.items() if n > 2),
            "closed": Counter(
                {pair: 1 for pair in counts.items() if mark is not None and pair[0] + SIZE <= mark}
            ),
            "sessions": Counter(self._sessions()),
            "pairs": Counter((s, t) for s in sales for t in sales if abs(s.at - t.at) < FAR),
            "times": Counter({s.at for s in sales}),
            "watermark": Counter([] if mark is None else [mark]),
        }

    def _sessions(self) -> Iterator[tuple[str, int, int, int]]:
        for item in "ab":
            session: list[int] = []
            for at in [*sorted(s.at for s in self.sales if s.item == item), None]:
                if session and (at is None or at - session[-1] >= GAP):
                    yield item, session[0], session[-1] + GAP, len(session)
                    session = []
                session += [] if at is None else [at]


class Living:
    """A database with a durable stream, and views over it."""

    def __init__(self, path: Any, connect: Any = sqlite3.connect, level: Any = "commit") -> None:
        self.db = db = Database(store=SqliteStore(str(path), connect=connect), durability=level)
        prices = db.table(Price, name="prices", key="item")
        self.sales = sales = db.stream(Sale, at="at", lateness=LATENESS, name="sales", durable=True)
        priced = sales.left_lookup(prices, on="item")
        windows = sales.window(tumbling(SIZE), at="at").group_by(lambda s, w: w.start)
        counts = windows.aggregate(Count())
        runs = sales.window(session(GAP, by="item"), at="at").group_by(lambda s, w: (s.item, w))
        self._views: dict[str, Any] = {
            "sales": sales.materialize(),
            "late": sales.late.materialize(),
            "priced": priced.select(lambda s, p: (s, p)).materialize(),
            "unpriced": priced.where(lambda s, p: p is None).select(lambda s, p: s).materialize(),
            "many": counts.where(lambda start, n: n > 2)
            .select(lambda start, n: start)
            .materialize(),
            "counts": counts.select(lambda start, n: (start, n)).materialize(),
            "closed": (
                counts.when_closed(lambda start, n: start + SIZE)
                .select(lambda start, n: (start, n))
                .materialize()
            ),
            "sessions": (
                runs.aggregate(Count())
                .select(lambda key, n: (key[0], key[1].start, key[1].end, n))
                .materialize()
            ),
            "pairs": (
                sales.join(sales, on=lambda s, t: abs(s.at - t.at) < FAR)
                .select(lambda s, t: (s, t))
                .materialize()
            ),
            "times": sales.select(lambda s: s.at).distinct().materialize(),
            "watermark": sales.watermark,
        }
        self.reading = db.ingest(None, {Sale: sales, Price: prices}, name="events")

    def take(self, batches: list[Batch[Any]], until: int) -> Iterator[int]:
        """Take the batches after the token; yield the number of batches taken so far."""
        for batch in batches[self.reading.token or 0 : until]:
            self.reading.take(batch)
            yield batch.token

    def check(self, batches: list[Batch[Any]]) -> None:
        """Compare the views with plain Python, and with their queries unless they look up."""
        wanted = Plain(batches[: self.reading.token or 0]).views()
        for name, view in self._views.items():
            assert Counter(dict(view.zset().items())) == wanted[name], name
            if "priced" not in name:
                view.verify()


def ended_everywhere(seed: int, level: str, step: int) -> int:
    """End a life at every `step`th write, and check what is found; return the number of ends."""
    batches, told = drawn_batches(seed), [(0, 0)]
    recording = Recording()
    with Folder() as folder:
        for until in (0, BATCHES // 2, BATCHES):
            living = Living(folder / "a.db", recording.connect, level)
            living.check(batches)
            for number in living.take(batches, until):
                if level == "commit":
                    told.append((len(recording.calls), number))
            living.check(batches)
            living.db.close()
            told.append((len(recording.calls), until))
    disk, ends = Disk(), 0
    for number, call in enumerate(recording.calls, 1):
        disk.make(call)
        if number % step == seed % step:
            least = max(taken for calls, taken in told if calls <= number)
            _check_end(disk.killed(), batches, least, resumes=ends % RESUMED == 0)
            ends += 1
    return ends


def _check_end(left: Any, batches: list[Batch[Any]], least: int, *, resumes: bool) -> None:
    with Folder() as folder:
        for name, data in left.items():
            (folder / name).write_bytes(data)
        living = Living(folder / "a.db")
        assert (living.reading.token or 0) >= least
        living.check(batches)
        if resumes:
            assert [*living.take(batches, BATCHES)][-1:] in ([BATCHES], [])
            living.check(batches)
        living.db.close()
