"""Random commits to a durable database, and the contents of its tables after each.

`orders` has a key; `words` has no key, and rows several times. Batches of a source feed `parts`;
its token is the number of the last batch. `patterns` has a codec. Each commit changes something.
Tables that are opened as `later` have rows of other classes, with one field more; `state` maps them
to the former classes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from reactive import Batch, Count, Database, Store, Sum
from reactive.borders.durable.sqlite_store import SqliteStore

WORDS = ["to", "be", "or", "not", "ö\0", ""]
LENGTH = 12
"""Commits of a history."""
PATTERNS = (lambda pattern: pattern.pattern, re.compile)
"""Codec of the rows of `patterns`."""


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


@dataclass(frozen=True, slots=True)
class LaterOrder:
    """One as it is after a change of its class, which takes a `migrate=`."""

    id: int
    town: str | None
    total: float
    twice: float
    lines: tuple[int, ...] = ()


class LaterPart(NamedTuple):
    """One with a field more, which has a default."""

    number: int
    text: str
    is_seen: bool = False


def migrated(old: dict[str, Any]) -> dict[str, Any]:
    """An order as it is later."""
    return {**old, "twice": 2 * old["total"]}


@dataclass
class Model:
    """The expected contents of the tables, computed in plain Python, and the number of commits."""

    orders: dict[int, Order] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    parts: list[Part] = field(default_factory=list)
    patterns: set[str] = field(default_factory=set)
    version: int = 0

    def state(self) -> Any:
        """All of it."""
        words, parts, patterns = dict(+self.words), sorted(self.parts), sorted(self.patterns)
        return (dict(self.orders), words, parts, patterns, self.version)


Act = Callable[["Tables"], None]


class Tables:
    """A database, its tables, and some views over them."""

    def __init__(
        self,
        store: Store,
        durability: Any = "commit",
        *,
        views: bool = True,
        later: bool = False,
        **options: Any,
    ) -> None:
        self.db = Database(store=store, durability=durability, **options)
        self._is_later = later
        order: Any = LaterOrder if later else Order
        part: Any = LaterPart if later else Part
        migrate: Any = migrated if later else None
        try:
            self.orders = self.db.table(order, name="orders", key="id", migrate=migrate)
            self.words = self.db.table(str, name="words")
            self.parts = self.db.table(part, name="parts")
            self.patterns = self.db.table(re.Pattern, name="patterns", key=_text, codec=PATTERNS)
            self.source = self.db.ingest(None, self.parts, name="parts")
        except BaseException:
            self.db.close()
            raise
        if views:
            self.make_views()

    def make_views(self) -> None:
        """Materialize views over the tables."""
        towns = self.orders.group_by(lambda o: o.town)
        self.by_town = towns.aggregate(Count(), Sum(lambda o: o.total)).materialize()
        self.joined = self.words.join(self.parts, on=lambda w, p: w == p.text).materialize()

    def state(self) -> Any:
        """Return the state of the tables, to compare with `Model.state`."""
        orders = {o.id: Order(o.id, o.town, o.total, o.lines) for o in self.orders}
        assert len(orders) == len(self.orders)
        if self._is_later:
            assert all(order.twice == 2 * order.total for order in self.orders)
        parts = sorted(Part(part.number, part.text) for part in self.parts)
        assert self.source.token == (len(parts) or None)
        patterns = sorted(map(_text, self.patterns))
        return (orders, dict(self.words.items()), parts, patterns, self.db.version)

    def order(self, order: Order) -> Any:
        """Convert an order to a row of the table."""
        later = LaterOrder(order.id, order.town, order.total, 2 * order.total, order.lines)
        return later if self._is_later else order

    def part(self, part: Part) -> Any:
        """Convert a part to a row of the table."""
        return LaterPart(*part) if self._is_later else part

    def check_views(self) -> None:
        """Raise if a view differs from its query."""
        wanted: dict[str | None, tuple[int, float]] = {}
        for order in self.orders:
            count, total = wanted.get(order.town, (0, 0.0))
            wanted[order.town] = count + 1, total + order.total
        assert dict(self.by_town) == wanted
        pairs = [(w, p) for w in self.words for p in self.parts if w == p.text]
        assert Counter(self.joined) == Counter(pairs)


def _text(pattern: re.Pattern[str]) -> str:
    return pattern.pattern


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
    """Draw a commit of a few possible changes; return it, and a function that updates the model."""
    kind = random.choice(["one", "one", "many", "both", "batch", "delete", "words", "pattern"])
    if kind == "batch":
        return _batch(model, random)
    if kind == "delete" and model.orders:
        keys = random.sample(sorted(model.orders), random.randint(1, len(model.orders)))
        return _deleted(model, keys)
    if kind == "words":
        return _words(model, random)
    if kind == "pattern":
        return _pattern(model, random)
    count = {"one": 1, "many": random.randint(2, 40)}.get(kind, 3)
    orders = {n: _order(model, random, n) for n in random.sample(range(60), count)}
    word = random.choice(WORDS)

    def act(tables: Tables) -> None:
        if kind == "one":
            tables.orders.upsert(tables.order(next(iter(orders.values()))))
        elif kind == "many":
            tables.orders.upsert_all(map(tables.order, orders.values()))
        else:
            with tables.db.transaction():
                tables.orders.upsert_all(map(tables.order, orders.values()))
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
        tables.source.take(Batch([tables.part(part)], token=part.number + 1))

    return act, lambda: model.parts.append(part)


def _pattern(model: Model, random: Random) -> tuple[Act, Callable[[], None]]:
    text = random.choice(["a+", "", "ö|b", "(x)", "[0-9]"])

    def act(tables: Tables) -> None:
        change = tables.patterns.add if text not in was else tables.patterns.remove
        change(re.compile(text))

    was = set(model.patterns)
    return act, lambda: model.patterns.symmetric_difference_update({text})


def states(seed: int, length: int = LENGTH) -> list[Any]:
    """Return the contents of the tables after each commit of a history, and before the first."""
    model, random = Model(), Random(seed)
    found = [model.state()]
    for _ in range(length):
        _, note = drawn(model, random)
        note()
        model.version += 1
        found.append(model.state())
    return found


def go_on(tables: Tables, seed: int, done: int, told: Callable[[int], None]) -> None:
    """Make the commits of a history after the first `done` ones; call `told` after each."""
    model, random = Model(), Random(seed)
    for _ in range(done):
        _, note = drawn(model, random)
        note()
        model.version += 1
    for number in range(done, LENGTH):
        commit(tables, model, random)
        told(number + 1)
