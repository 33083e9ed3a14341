"""Random commits to a durable database, and what its tables hold after each.

Two tables: `orders` has a key, `words` has none, and rows several times; a third is fed by batches
of a source, whose token is the number of the last one. Each commit changes something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from reactive import Batch, Count, Database, Store, Sum
from reactive.durable.sqlite_store import SqliteStore

WORDS = ["to", "be", "or", "not", "ö\0", ""]
LENGTH = 12
"""Commits of a history."""


@dataclass(frozen=True, slots=True)
class Order:
    """A row of plain fields, and one that is not."""

    id: int
    town: str | None
    total: float
    lines: tuple[int, ...] = ()


class Part(NamedTuple):
    """A row that a source feeds."""

    number: int
    text: str


@dataclass
class Model:
    """What the tables hold, by Python's own means; and how many commits there were."""

    orders: dict[int, Order] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    parts: list[Part] = field(default_factory=list)
    version: int = 0

    def state(self) -> Any:
        """All of it."""
        return (dict(self.orders), dict(+self.words), sorted(self.parts), self.version)


Act = Callable[["Tables"], None]


class Tables:
    """A database, its tables, and some views over them."""

    def __init__(
        self, store: Store, durability: Any = "commit", *, views: bool = True, **options: Any
    ) -> None:
        self.db = Database(store=store, durability=durability, **options)
        try:
            self.orders = self.db.table(Order, name="orders", key="id")
            self.words = self.db.table(str, name="words")
            self.parts = self.db.table(Part, name="parts")
            self.source = self.db.ingest(None, self.parts, name="parts")
        except BaseException:
            self.db.close()
            raise
        if views:
            self.make_views()

    def make_views(self) -> None:
        """Have views over them."""
        towns = self.orders.group_by(lambda o: o.town)
        self.by_town = towns.aggregate(Count(), Sum(lambda o: o.total)).materialize()
        self.joined = self.words.join(self.parts, on=lambda w, p: w == p.text).materialize()

    def state(self) -> Any:
        """What `Model.state` is to be."""
        orders = {order.id: order for order in self.orders}
        assert len(orders) == len(self.orders)
        parts = sorted(self.parts)
        assert self.source.token == (len(parts) or None)
        return (orders, dict(self.words.items()), parts, self.db.version)

    def check_views(self) -> None:
        """Raise if a view is not what its query gives."""
        wanted: dict[str | None, tuple[int, float]] = {}
        for order in self.orders:
            count, total = wanted.get(order.town, (0, 0.0))
            wanted[order.town] = count + 1, total + order.total
        assert dict(self.by_town) == wanted
        pairs = [(w, p) for w in self.words for p in self.parts if w == p.text]
        assert Counter(self.joined) == Counter(pairs)


def store(path: str, **options: Any) -> SqliteStore:
    """The file at a path, as a store."""
    return SqliteStore(path, **options)


def commit(tables: Tables, model: Model, random: Random) -> None:
    """Make one commit that is drawn, and note it in the model when it has returned."""
    act, note = drawn(model, random)
    act(tables)
    note()
    model.version += 1


def drawn(model: Model, random: Random) -> tuple[Act, Callable[[], None]]:
    """A commit of a few changes, which are possible as things are; and what notes it."""
    kind = random.choice(["one", "one", "many", "both", "batch", "delete", "words"])
    if kind == "batch":
        return _batch(model, random)
    if kind == "delete" and model.orders:
        keys = random.sample(sorted(model.orders), random.randint(1, len(model.orders)))
        return _deleted(model, keys)
    if kind == "words":
        return _words(model, random)
    count = {"one": 1, "many": random.randint(2, 40)}.get(kind, 3)
    orders = {n: _order(model, random, n) for n in random.sample(range(60), count)}
    word = random.choice(WORDS)

    def act(tables: Tables) -> None:
        if kind == "one":
            tables.orders.upsert(next(iter(orders.values())))
        elif kind == "many":
            tables.orders.upsert_all(orders.values())
        else:
            with tables.db.transaction():
                tables.orders.upsert_all(orders.values())
                tables.words.add(word, 2)
                tables.words.add("gone")
                tables.words.remove("gone")

    def note() -> None:
        model.orders |= orders
        if kind not in ("one", "many"):
            model.words[word] += 2

    return act, note


def _order(model: Model, random: Random, key: int) -> Order:
    """One that differs from that of its key."""
    total = model.orders[key].total + 1 if key in model.orders else float(random.randint(0, 9))
    lines = tuple(range(random.randint(0, 3)))
    return Order(key, random.choice(["Ulm", "Bonn", None]), total, lines)


def _deleted(model: Model, keys: list[int]) -> tuple[Act, Callable[[], None]]:
    def act(tables: Tables) -> None:
        tables.orders.remove_all([tables.orders[key] for key in keys])

    def note() -> None:
        for key in keys:
            del model.orders[key]

    return act, note


def _words(model: Model, random: Random) -> tuple[Act, Callable[[], None]]:
    word = random.choice(WORDS)
    wanted = random.choice([n for n in range(4) if n != model.words[word]])
    difference = wanted - model.words[word]

    def act(tables: Tables) -> None:
        change = tables.words.add if difference > 0 else tables.words.remove
        change(word, abs(difference))

    def note() -> None:
        model.words[word] = wanted

    return act, note


def _batch(model: Model, random: Random) -> tuple[Act, Callable[[], None]]:
    part = Part(len(model.parts), random.choice(WORDS))

    def act(tables: Tables) -> None:
        tables.source.take(Batch([part], token=part.number + 1))

    return act, lambda: model.parts.append(part)


def states(seed: int, length: int = LENGTH) -> list[Any]:
    """What the tables hold after each commit of a history, the first one being none."""
    model, random = Model(), Random(seed)
    found = [model.state()]
    for _ in range(length):
        _, note = drawn(model, random)
        note()
        model.version += 1
        found.append(model.state())
    return found


def go_on(tables: Tables, seed: int, done: int, told: Callable[[int], None]) -> None:
    """Make the commits of a history after the first ones; each is told when it has returned."""
    model, random = Model(), Random(seed)
    for _ in range(done):
        _, note = drawn(model, random)
        note()
        model.version += 1
    for number in range(done, LENGTH):
        commit(tables, model, random)
        told(number + 1)
