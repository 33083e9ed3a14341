"""Random queries of a seed over some tables, and a history of these tables, for most tests.

Hypothesis gives a test the seeds, and perhaps sizes; equal seeds draw equal queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from hypothesis import strategies as st

from reactive import Database
from tests.random_queries.histories import Held, Histories, Model, Step
from tests.random_queries.names import named, namespace
from tests.random_queries.nodes import Node, called
from tests.random_queries.plans import Plans, Switches
from tests.random_queries.rows import CLASSES
from tests.random_queries.statements import Call, calls
from tests.random_queries.telling import telling
from tests.random_queries.texts import Texts
from tests.random_queries.written import relation, written

SEEDS = st.integers(0, 2**32)
MODES = ("ints", "ints", "huge", "floats", "nan", "texts", "nested", "folded")
"""Modes whose equal values look alike, so that it does not matter which of them is shown."""
SPARK = ("ints", "ints", "floats", "texts")
"""Values that Spark has types for."""
SMALL = Switches(sizes=(1, 2, 2, 3, 3, 4))
PAIRS = (Held("P"), Held("N", "id"))
"""A table that may hold a row several times, and one with a key."""
TUPLES = (PAIRS, (Held("T"), Held("W")), (Held("W"), Held("P")), (Held("W"), Held("W")))
"""Tables of pairs, and of plain tuples of more typed places."""
MOST_ROWS = 6
"""Rows of a table, beyond which a commit is left out."""
DRAWN = 3
"""Number of drawn plans for each selected one."""


@dataclass(frozen=True)
class Drawn:
    """Queries of some tables, and the commits that these go through."""

    seed: int
    mode: str
    tables: tuple[Held, ...]
    nodes: tuple[Node, ...]
    source: str
    steps: tuple[Step, ...] = field(repr=False)

    @cached_property
    def names(self) -> Any:
        """The callables of the queries; the same in every database."""
        return namespace(self.source, self.mode)

    @property
    def text(self) -> str:
        """The whole module: callables, and a function for each query."""
        return "\n".join([self.source, *(written(node, len(self.tables)) for node in self.nodes)])

    def open(self, db: Database, *, stored: bool = True) -> list[Any]:
        """The tables, empty."""
        return [
            db.table(
                CLASSES[held.kind],
                name=f"t{place}",
                key=held.key,
                stored=stored,
                identity=held.kind in "VL",
            )
            for place, held in enumerate(self.tables)
        ]

    def relations(self, tables: Sequence[Any]) -> list[Any]:
        """Return the queries over some tables, or over relations with the same rows."""
        return [relation(node, self.names, tables) for node in self.nodes]

    def script(self) -> Script:
        return Script(self)

    def __str__(self) -> str:
        return f"seed {self.seed}, values {self.mode}\n{self.text}"


def some_tuples(random: Random) -> tuple[Held, ...]:
    """Two tables of tuples of any width."""
    return random.choice(TUPLES)


class Script:
    """The commits of a history one after the other, as calls of whatever tables hold the same."""

    def __init__(self, drawn: Drawn) -> None:
        self._drawn = drawn
        self._before = self.model = Model([[] for _ in drawn.tables])

    def __iter__(self) -> Iterator[list[Call]]:
        for step in self._drawn.steps:
            trial = self.model.copy()
            made = calls(trial, self._drawn.tables, step.statements)
            if max(map(len, trial.tables)) > max(MOST_ROWS, *map(len, self.model.tables)):
                continue
            self._before, self.model = self.model, trial
            yield made

    def refuse(self) -> None:
        """The last commit was not made."""
        self.model = self._before


def make(tables: Sequence[Any], made: Sequence[Call]) -> None:
    """Make the calls of a commit."""
    for verb, place, arguments in made:
        getattr(tables[place], verb)(*arguments)


def commit(db: Database, tables: Sequence[Any], made: Sequence[Call]) -> None:
    """Make the calls of a commit, in one transaction."""
    with db.transaction():
        make(tables, made)


def draw(
    seed: int,
    switches: Switches = SMALL,
    *,
    count: int = 1,
    steps: int = 8,
    modes: Sequence[str] = MODES,
    tables: tuple[Held, ...] | Callable[[Random], tuple[Held, ...]] = PAIRS,
) -> Drawn:
    """Draw `count` queries of a seed, and a history of at most `steps` commits."""
    random = Random(seed)
    mode, held = random.choice(modes), tables(random) if callable(tables) else tables
    texts = Texts(random, mode, raising=switches.raising)
    plans = Plans(random, mode, tuple(table.kind for table in held), texts, switches)
    nodes = plans.finals(DRAWN * count)
    names = named("\n".join(texts.lines), mode)
    chosen = telling(nodes, count, names, held, random, mode)
    histories = Histories(random, mode, held)
    some = [histories.start(), *(histories.short(interrupts=False) for _ in range(steps))]
    source = texts.source(set[str]().union(*map(called, chosen)))
    return Drawn(seed, mode, held, tuple(chosen), source, tuple(map(_plain, some)))


def _plain(step: Step) -> Step:
    """Statements only, which all succeed; a few at most, so that tables stay small."""
    return replace(step, statements=step.statements[:12])
