"""A history of some plans: drawn from a seed, and played in databases that have to agree."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from types import FunctionType
from typing import Any

from reactive import PlanError, TableError
from tests.random_queries.histories import Model, Step
from tests.random_queries.names import Present, named, namespace
from tests.random_queries.nodes import every
from tests.random_queries.oracle import Oracle, TooLarge
from tests.random_queries.rows import START, bag, row_of
from tests.random_queries.statements import Call, absent, calls, paid
from tests.soak.cases import BEFORE, Case, Life
from tests.soak.interrupts import OutOfTime
from tests.soak.side import Aborted, Difference, Side
from tests.thresholds import thresholds

MOST_EVENTS = 50
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
        self._model = Model([[] for _ in case.tables], now=case.now or START)
        self._present = Present(self._model)
        self._names = named(case.source, case.mode, self._present.names)
        options: dict[str, Any] = {"strict": case.strict, "shares": case.shares}
        options |= {"now": case.now, "values": self._model.values}
        names = partial(namespace, case.source, case.mode)
        self._sides = [
            Side(name, names, case.tables, optimize=optimize, **options)
            for name, optimize in (("optimized", True), ("as written", False))
        ]

    def end(self) -> None:
        for side in self._sides:
            side.end()
        for side in self._sides:
            for file in {code.co_filename for code in _codes(side.names)}:
                linecache.cache.pop(file, None)

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
        sizes = zip(trial.tables, self._case.tables, strict=True)
        if any(len(rows) > (MOST_EVENTS if held.flows else MOST_ROWS) for rows, held in sizes):
            return 0
        refused = self._absent(trial, step)
        try:
            is_asked = self._case.raising or number % 3 == 0
            self._look_up(trial)
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

    def _look_up(self, trial: Model) -> None:
        """Append the rows of look-ups for the events of a commit, as of its end."""
        before = self._model.tables
        streams = [place for place, held in enumerate(self._case.tables) if held.flows]
        if all(len(trial.tables[place]) == len(before[place]) for place in streams):
            return
        new = [rows[len(old) :] for rows, old in zip(trial.tables, before, strict=True)]
        lives = self._case.lives.values()
        found = {n.number: n for life in lives for n in every(life.node) if n.op == "lookup"}
        for number in sorted(found):
            oracle = Oracle(self._names, new, relations=self._oracle(trial))
            trial.pairs[number] = [*trial.pairs.get(number, ()), *oracle.rows(found[number])]

    def _oracle(self, model: Model) -> Oracle:
        self._present.model = model
        return Oracle(self._names, model.tables, marks=model.marks, pairs=model.pairs)

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
        before, after = map(self._rows, (self._model, trial))
        found = [side.rows() for side in self._sides]
        for side, rows in zip(self._sides, found, strict=True):
            if rows not in (before, after):
                told = f"half of a commit that was interrupted: {rows}, not {before} or {after}"
                raise Difference(f"{side.name}: {told}")
        if found[0] != found[1]:
            late = self._sides[found.index(before)]
            late.restore(trial)
        if after in found:
            self._model = trial

    def _rows(self, model: Model) -> list[Counter[Any]]:
        """Return the rows of stored tables, and what stands beside them."""
        tables = zip(model.tables, self._case.tables, strict=True)
        found = [bag(rows) if held.stored else bag(()) for rows, held in tables]
        if self._case.now is None:
            return found
        return [*found, *(bag([each]) for each in (*model.values, model.now))]

    def _raised(self, model: Model) -> Exception | None:
        """Return the error of the queries over some tables, or None."""
        oracle = self._oracle(model)
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
        """Make a view in all sides, or in none, where it raises.

        No rows are kept of a table that is not stored, so that its late views are refused.
        """
        raised: Exception | None = None
        try:
            self._oracle(self._model).rows(life.node)
        except TooLarge:
            return
        except Exception as error:
            raised = error
        for side in self._sides:
            found = side.make(place, life)
            if isinstance(found, TableError) or _is_unread(found):
                for each in self._sides:
                    each.close(place)
                return
            if (found is None) != (raised is None):
                told = f"{side.name}, plan {place}: {found!r}, and not {raised!r}, when made"
                raise Difference(told) from found

    def _compare(self, where: str) -> None:
        if self._model.debts:
            return
        oracle, expected = self._oracle(self._model), self._rows(self._model)
        verify = self._case.mode != "mixed"
        for side in self._sides:
            if side.rows() != expected:
                raise Difference(f"{where}: {side.name}: tables {side.rows()}, not {expected}")
            try:
                side.check(oracle, self._random, verify=verify)
            except Difference as error:
                raise Difference(f"{where}: {error}") from error


def _is_unread(error: Exception | None) -> bool:
    """Return True for a callable that cannot be read, where one must be, as with `now()`."""
    return isinstance(error, PlanError) and "cannot be read" in str(error)


def _codes(names: Mapping[str, Any]) -> Any:
    functions = (f for f in names.values() if isinstance(f, FunctionType))
    return (f.__code__ for f in functions if f.__module__ is None)
