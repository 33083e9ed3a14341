"""A history of some plans: drawn from a seed, and played in databases that have to agree."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from types import FunctionType
from typing import Any

from reactive import TableError
from tests.random_queries.histories import Model, Step
from tests.random_queries.names import namespace
from tests.random_queries.oracle import Oracle, TooLarge
from tests.random_queries.rows import bag, row_of
from tests.random_queries.statements import Call, absent, calls, paid
from tests.soak.cases import BEFORE, Case, Life
from tests.soak.interrupts import OutOfTime
from tests.soak.side import Aborted, Difference, Side
from tests.thresholds import thresholds

MOST_ROWS = 14
"""Rows of a table, beyond which a commit is left out."""


def play(case: Case) -> int:
    """Play a history; the number of commits. Raises `Difference`."""
    with thresholds(case.settings), suppress(TooLarge):
        playing = Playing(case)
        try:
            return playing.play()
        finally:
            playing.end()
    return 0


class Playing:
    """A case in a database that optimizes and one that does not, and in lists."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._random = Random(case.seed + 1)
        self._names = namespace(case.source, case.mode)
        self._model = Model([[] for _ in case.tables])
        options = {"strict": case.strict, "shares": case.shares}
        self._sides = [
            Side(name, self._names, case.tables, optimize=optimize, **options)
            for name, optimize in (("optimized", True), ("as written", False))
        ]

    def end(self) -> None:
        for side in self._sides:
            side.end()
        for file in {code.co_filename for code in self._codes()}:
            linecache.cache.pop(file, None)

    def _codes(self) -> Any:
        functions = (f for f in self._names.values() if isinstance(f, FunctionType))
        return (f.__code__ for f in functions if f.__module__ is None)

    def play(self) -> int:
        case, commits = self._case, 0
        self._move_lives(BEFORE)
        for number in range(case.length):
            step = case.steps.get(number)
            if step is not None:
                commits += self._step(number, step)
            self._move_lives(number)
            if number == case.length - 1:
                self._pay()
            if self._is_looked_at(number, step):
                self._compare(f"step {number}")
        return commits

    def _is_looked_at(self, number: int, step: Step | None) -> bool:
        lives = self._case.lives.values()
        if step is not None and (step.aborts or step.interrupt is not None):
            return True
        if self._case.style == "short" or number == self._case.length - 1:
            return True
        return number % 9 == 0 or any(number in (life.born, life.dies) for life in lives)

    def _step(self, number: int, step: Step) -> int:
        """Play one commit in all sides."""
        trial = self._model.copy()
        made = calls(trial, self._case.tables, step.statements)
        if max(map(len, trial.tables)) > MOST_ROWS:
            return 0
        refused = self._absent(trial, step)
        try:
            is_asked = self._case.raising or number % 3 == 0
            expected = self._raised(trial) if is_asked else None
        except TooLarge:
            return 0
        for side in self._sides:
            self._commit(side, made, step, refused, expected, trial)
        if step.interrupt is not None:
            self._agree_on(trial)
        elif not (step.aborts or refused is not None or expected is not None):
            self._model = trial
        return 1

    def _absent(self, trial: Model, step: Step) -> Any:
        if step.refused is None or not self._case.tables[step.refused].stored:
            return None
        held = self._case.tables[step.refused]
        rows = [row_of(held.kind, self._random, self._case.mode) for _ in range(5)]
        return absent(trial, step.refused, rows)

    def _commit(
        self,
        side: Side,
        made: Sequence[Call],
        step: Step,
        refused: Any,
        expected: Exception | None,
        trial: Model,
    ) -> None:
        """A commit of a side fails as it should, or not at all."""
        error = side.commit(made, step, refused)
        if step.interrupt is not None and isinstance(error, OutOfTime):
            return
        wanted: object = expected
        if step.aborts:
            wanted = Aborted()
        if refused is not None:
            wanted = refused
        if (error is None) != (wanted is None):
            raise Difference(f"{side.name}: {error!r}, and not {wanted!r}, of {made}") from error

    def _agree_on(self, trial: Model) -> None:
        """Check after an interrupt: all of the commit, or nothing of it; equal on all sides."""
        before, after = ([*map(bag, model.tables)] for model in (self._model, trial))
        found = [side.rows() for side in self._sides]
        for side, rows in zip(self._sides, found, strict=True):
            if rows not in (before, after):
                told = f"half of a commit that was interrupted: {rows}, not {before} or {after}"
                raise Difference(f"{side.name}: {told}")
        if found[0] != found[1]:
            late = self._sides[found.index(before)]
            self._repeat(late, trial)
        if after in found:
            self._model = trial

    def _repeat(self, side: Side, trial: Model) -> None:
        """Make up for a commit that was interrupted in this side only."""
        with side.db.transaction():
            for table, rows in zip(side.tables, trial.tables, strict=True):
                table.replace_all(rows)

    def _raised(self, model: Model) -> Exception | None:
        """Return the error of the queries over some tables, or None."""
        oracle = Oracle(self._names, model.tables)
        for live in self._sides[0].live.values():
            try:
                oracle.rows(live.node)
            except TooLarge:
                raise
            except Exception as error:
                return error
        return None

    def _pay(self) -> None:
        if self._model.debts:
            made = paid(self._model)
            for side in self._sides:
                self._commit(side, made, Step([]), None, None, self._model)

    def _move_lives(self, number: int) -> None:
        for place, life in self._case.lives.items():
            if life.dies == number:
                for side in self._sides:
                    side.close(place, at_once=self._case.seed % 2 == 0)
            if life.born == number or (life.again and life.dies + 2 == number):
                self._make(place, life)

    def _make(self, place: int, life: Life) -> None:
        """Make a view in all sides, or in none, where it raises."""
        raised: Exception | None = None
        try:
            Oracle(self._names, self._model.tables).rows(life.node)
        except TooLarge:
            return
        except Exception as error:
            raised = error
        for side in self._sides:
            found = side.make(place, life)
            if isinstance(found, TableError):  # no rows are kept of a table that is not stored
                for each in self._sides:
                    each.close(place)
                return
            if (found is None) != (raised is None):
                told = f"{side.name}, plan {place}: {found!r}, and not {raised!r}, when made"
                raise Difference(told) from found

    def _compare(self, where: str) -> None:
        if self._model.debts:
            return
        oracle = Oracle(self._names, self._model.tables)
        expected = [
            bag(rows) if held.stored else bag(())
            for rows, held in zip(self._model.tables, self._case.tables, strict=True)
        ]
        verify = self._case.mode != "mixed"
        for side in self._sides:
            if side.rows() != expected:
                raise Difference(f"{where}: {side.name}: tables {side.rows()}, not {expected}")
            try:
                side.check(oracle, self._random, verify=verify)
            except Difference as error:
                raise Difference(f"{where}: {error}") from error
