"""Generated batches of a source, and a plain model of the rows that they define."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from reactive import Batch, Database, Ingestion, Table, View


@dataclass(frozen=True, slots=True)
class Item:
    """A row with a key; a value of 0 makes a view raise."""

    id: int
    value: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of an origin; a value of 0 makes a view raise."""

    of: str
    value: int


VALUES = st.integers(0, 2)
ITEMS = st.builds(Item, st.integers(0, 3), VALUES)
FACTS = st.builds(Fact, st.sampled_from(["a", "b"]), VALUES)
BATCHES = st.builds(
    lambda *drawn: drawn,
    st.lists(ITEMS, max_size=3),
    st.lists(st.tuples(FACTS, st.booleans()), max_size=3),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.sampled_from(["f", "g"]), st.lists(FACTS | VALUES, max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["f", "h"]), st.lists(FACTS | VALUES, max_size=3), max_size=2),
)
"""Changes of a batch: items, facts (deleted if present), deleted keys, rows of origins, appends."""


@dataclass
class Model:
    """The rows of the source, in a plain dictionary and plain counters."""

    items: dict[int, Item] = field(default_factory=dict)
    facts: Counter[Fact] = field(default_factory=Counter)
    origins: dict[str, list[Any]] = field(default_factory=dict)
    token: Any = None

    def batch(self, drawn: Any, token: Any) -> Batch[Any]:
        """A batch as drawn; the model has it too afterwards."""
        items, facts, deletes, origins, appends = drawn
        appends = {origin: rows for origin, rows in appends.items() if origin not in origins}
        come: list[Fact] = [fact for fact, comes in facts if comes]
        gone: list[Fact] = []
        for fact, comes in facts:
            if not comes and self.facts[fact] > gone.count(fact):
                gone.append(fact)
        for key in deletes:
            self.items.pop(key, None)
        self.items.update((item.id, item) for item in items)
        self.facts.update(come)
        self.facts.subtract(gone)
        self.origins.update(origins)
        for origin, rows in appends.items():
            self.origins[origin] = [*self.origins.get(origin, []), *rows]
        self.token = token
        return Batch(
            [*items, *come],
            deletes={Item: deletes},
            removes=gone,
            origins=origins,
            appends=appends,
            token=token,
        )

    def rows(self) -> list[Counter[Any]]:
        """The rows of the three tables."""
        of_origins = [row for rows in self.origins.values() for row in rows]
        numbers = Counter(row for row in of_origins if isinstance(row, int))
        facts = Counter(row for row in of_origins if isinstance(row, Fact)) + self.facts
        return [Counter(self.items.values()), facts, numbers]


class Fed:
    """Three tables, fed by one source, with views that raise on a value of 0 if so wanted."""

    def __init__(
        self, *, raising: bool, optimize: bool = True, offload: Any = None, **options: Any
    ) -> None:
        self.db = Database(optimize=optimize, offload=offload)
        self.items = self.db.table(Item, key="id", name="items")
        self.facts = self.db.table(Fact, name="facts")
        self.numbers = self.db.table(int, name="numbers")
        least = 0 if raising else 1
        self.views: list[View[Any]] = [
            self.items.select(lambda i: 6 // (i.value or least)).materialize(),
            self.facts.select(lambda f: (f.of, 6 // (f.value or least))).materialize(),
            self.numbers.select(lambda n: 6 // (n or least)).materialize(),
            self.items.join(self.facts, on=lambda i, f: i.value == f.value)
            .select(lambda i, f: (i.id, f.of))
            .materialize(),
        ]
        into: dict[type, Table[Any]] = {Item: self.items, Fact: self.facts, int: self.numbers}
        self.source: Ingestion[Any] = self.db.ingest(None, into, name="generated", **options)

    def rows(self) -> list[Counter[Any]]:
        return [Counter(table) for table in (self.items, self.facts, self.numbers)]

    def verify(self) -> None:
        for view in self.views:
            view.verify()


def is_bad(row: Any) -> bool:
    """Return True if a view raises on the row."""
    value = row if isinstance(row, int) else row.value
    return bool(value == 0)


def parts(rows: list[Counter[Any]], *, bad: bool) -> list[Counter[Any]]:
    """Return the rows on which a view raises, or the others."""
    return [
        Counter({row: n for row, n in some.items() if is_bad(row) is bad and n}) for some in rows
    ]
