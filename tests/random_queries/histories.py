"""Commits: their statements, their transactions, and their effect on the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

from tests.random_queries.rows import START, row_of

Statement = tuple[Any, ...]
"""A verb of a table, the table, and arguments; a fraction stands for a present row."""


class Held(NamedTuple):
    """A table: its kind of rows, the field that is their key, and whether it keeps its rows.

    It is a stream if it has a `lateness` in minutes, and the late events of the stream at the place
    before if it is `late`. Its rows expire some minutes after the field that `expires` names.
    """

    kind: str
    key: str | None = None
    stored: bool = True
    lateness: int | None = None
    late: bool = False
    expires: tuple[str, int] | None = None

    @property
    def flows(self) -> bool:
        """True for events, which are not removed."""
        return self.lateness is not None or self.late


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
    """The rows of all tables, and the rows that passed an unstored table before the present.

    Beside them stand the moment of the clock, the values of parameters, the watermarks of streams
    by their places, and the rows of look-ups by the numbers of their nodes.
    """

    tables: list[list[Any]]
    debts: list[tuple[int, Any]] = field(default_factory=list)
    now: datetime = START
    values: list[int] = field(default_factory=lambda: [1, 2])
    marks: dict[int, datetime] = field(default_factory=dict)
    pairs: dict[int, list[Any]] = field(default_factory=dict)

    def copy(self) -> Model:
        return replace(
            self,
            tables=[[*rows] for rows in self.tables],
            debts=[*self.debts],
            values=[*self.values],
            marks=dict(self.marks),
            pairs=dict(self.pairs),
        )


class Histories:
    """Draw commits for some tables; one in `rarely` changes another than the favourite table."""

    def __init__(
        self,
        random: Random,
        mode: str,
        tables: Sequence[Held],
        *,
        now: datetime = START,
        moves: bool = False,
    ) -> None:
        self._random = random
        self._mode = mode
        self._tables = tables
        self._favourite = random.randrange(len(tables) - any(held.late for held in tables))
        self._now = now
        self._moves = moves

    def start(self) -> Step:
        """Rows that are there before the first view."""
        places = [place for place, held in enumerate(self._tables) if not held.flows]
        rows = [(place, self._row(place)) for place in places for _ in range(self._some(6))]
        verbs = ["upsert" if held.key else "add" for held in self._tables]
        return Step([(verbs[place], place, row) for place, row in rows])

    def short(self, *, interrupts: bool) -> Step:
        """A commit of a few statements."""
        count = self._random.choice((1, 1, 1, 1, 2, 3, 6, 10))
        step = Step([self._statement(self._some(len(self._tables))) for _ in range(count)])
        if self._moves and self._chance(0.4):
            step.statements.insert(self._some(count + 1), self._move())
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
        if self._moves and self._chance(0.25):
            return Step([self._move()], single=True)
        return Step([self._statement(self._favourite)], single=True)

    def _move(self) -> Statement:
        """Advance the clock, or set a parameter."""
        if self._chance(0.3):
            return "set", self._some(2), self._some(5)
        seconds = self._random.choice((0, 1e-6, 1, 30, 60, 60, 120, 180, 300, 3_600))
        if self._chance(0.03):
            seconds = 400 * 86_400
        self._now += timedelta(seconds=seconds)
        return "advance", 0, seconds

    def _some(self, count: int) -> int:
        return self._random.randrange(count)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _row(self, place: int) -> Any:
        return row_of(self._tables[place].kind, self._random, self._mode, self._now)

    def _rows(self, place: int) -> list[Any]:
        return [self._row(place) for _ in range(self._some(5))]

    def _statement(self, place: int) -> Statement:
        place -= self._tables[place].late
        held, at, row = self._tables[place], self._random.random(), self._row(place)
        forms: dict[Statement, int]
        if held.flows:
            forms = {
                ("add", place, row, self._random.choice((1, 1, 1, 2))): 3,
                ("add_all", place, *self._rows(place)): 1,
            }
        elif held.key:
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
            elif not any(each.flows for each in self._tables):  # look-ups would see the debts
                forms[("owe", place, row)] = 12
        return self._random.choices(list(forms), list(forms.values()))[0]
