"""Commits: their statements, their transactions, and their effect on the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tests.random_queries.rows import row_of

Statement = tuple[Any, ...]
"""A verb of a table, the table, and arguments; a fraction stands for a present row."""


class Held(NamedTuple):
    """A table: its kind of rows, the field that is their key, and whether it keeps its rows."""

    kind: str
    key: str | None = None
    stored: bool = True


@dataclass
class Step:
    """One commit.

    `interrupt` is the moment of an exception from outside; `refused` is a table from which a
    missing row is removed after all statements; `where` is the committer: this thread, another one,
    or a task of an event loop.
    """

    statements: list[Statement]
    aborts: bool = False
    nests: bool = False
    single: bool = False
    refused: int | None = None
    interrupt: int | None = None
    where: str = "here"


@dataclass
class Model:
    """The rows of all tables, and the rows that passed an unstored table before the present."""

    tables: list[list[Any]]
    debts: list[tuple[int, Any]] = field(default_factory=list)

    def copy(self) -> Model:
        return Model([[*rows] for rows in self.tables], [*self.debts])


class Histories:
    """Draw commits for some tables; one in `rarely` changes another than the favourite table."""

    def __init__(self, random: Random, mode: str, tables: Sequence[Held]) -> None:
        self._random = random
        self._mode = mode
        self._tables = tables
        self._favourite = random.randrange(len(tables))

    def start(self) -> Step:
        """Rows that are there before the first view."""
        places = range(len(self._tables))
        rows = [(place, self._row(place)) for place in places for _ in range(self._some(6))]
        verbs = ["upsert" if held.key else "add" for held in self._tables]
        return Step([(verbs[place], place, row) for place, row in rows])

    def short(self, *, interrupts: bool) -> Step:
        """A commit of a few statements."""
        count = self._random.choice((1, 1, 1, 1, 2, 3, 6, 10))
        step = Step([self._statement(self._some(len(self._tables))) for _ in range(count)])
        step.aborts, step.nests = self._chance(0.07), self._chance(0.15)
        step.single = self._chance(0.25)
        if self._chance(0.06):
            step.refused = self._some(len(self._tables))
        elif interrupts and self._chance(0.1):
            step.interrupt = int(self._random.choice((3, 30, 300, 2_000)) * self._random.random())
        if self._chance(0.1):
            step.where = "thread"
        elif step.interrupt is None and self._chance(0.1):
            step.where = "task"
        return step

    def single(self) -> Step:
        """One statement, nearly always on the same table: such commits become generated code."""
        if self._chance(0.03):
            return self.short(interrupts=False)
        return Step([self._statement(self._favourite)], single=True)

    def _some(self, count: int) -> int:
        return self._random.randrange(count)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _row(self, place: int) -> Any:
        return row_of(self._tables[place].kind, self._random, self._mode)

    def _rows(self, place: int) -> list[Any]:
        return [self._row(place) for _ in range(self._some(5))]

    def _statement(self, place: int) -> Statement:
        held, at, row = self._tables[place], self._random.random(), self._row(place)
        forms: dict[Statement, int]
        if held.key:
            forms = {
                ("upsert", place, row): 55,
                ("delete", place, at): 20,
                ("update", place, at, row): 7,
                ("add_all", place, *self._rows(place)): 6,
                ("clear", place): 2,
                ("remove", place, at, 1): 5,
                ("replace_all", place, *self._rows(place)): 5,
                ("replace_where", place, self._some(4), *self._rows(place)): 5,
            }
        else:
            forms = {
                ("add", place, row, self._random.choice((1, 1, 1, 2))): 50,
                ("remove", place, at, self._random.choice((1, 1, 2))): 25,
                ("update", place, at, row): 10,
                ("add_all", place, *self._rows(place)): 5,
                ("remove_all", place, *[self._random.random() for _ in range(3)]): 4,
                ("discard", place, at): 2,
            }
            if held.stored:
                forms[("clear", place)] = 2
                forms[("replace_all", place, *self._rows(place))] = 2
                forms[("replace_where", place, self._some(4), *self._rows(place))] = 3
            else:
                forms[("owe", place, row)] = 12
        return self._random.choices(list(forms), list(forms.values()))[0]
