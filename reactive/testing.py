"""Check operators and rings of your own by random histories.

    check_operator(Near, points, places, distance=1.0)       a test of one line

Histories insert, delete and insert again, with copies of rows, and roll some commits back. A
failure is reported with a short history that shows it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.own_operator import Operator, OperatorState, evaluate
from reactive.errors import VerificationError

E = TypeVar("E")
Change: TypeAlias = tuple[int, Any, int]
"""An input, a row of it, and its weight."""
Commit: TypeAlias = tuple[list[Change], bool]
"""Changes, and True if they are rolled back."""


def check_operator(
    operator: type[Operator[Any, Any]],
    *inputs: Iterable[Any],
    expected: Callable[..., Iterable[Any]] | None = None,
    histories: int = 50,
    commits: int = 12,
    seed: int = 0,
    **arguments: Any,
) -> None:
    """Check the rows of an operator after each commit of random histories.

    Parameters
    ----------
    operator: the class, as for `relation.through`.
    inputs: rows to draw from, for each input.
    expected: callable, a `Bag` of the rows of each input -> the rows of the operator. Without it,
        only a new operator is compared, which gets all rows in one step.
    histories, commits: the number of histories, and of commits of each.
    seed: the seed of the histories; equal seeds draw equal histories.
    arguments: arguments of `operator.__init__`.

    After each commit, the sum of all emitted changes, the `contents`, the rows of a new operator
    and those of `expected` must be equal, with positive weights; after a commit that is rolled
    back, the rows must be those before. A history ends with the deletion of all rows.

    Cost: a step, and a step of a new operator over all rows, for each commit.

    Raises
    ------
    VerificationError: they differ; the error has a short history that shows it.

    >>> from reactive import Operator
    >>> from reactive.testing import check_operator
    >>> class Newest(Operator[int, int]):
    ...     last = None
    ...     def step(self, numbers):
    ...         changes = [] if self.last is None else [(self.last, -1)]
    ...         self.last = max((n for n, weight in numbers if weight > 0), default=None)
    ...         return changes if self.last is None else [*changes, (self.last, 1)]
    >>> check_operator(Newest, [1, 2])
    Traceback (most recent call last):
    reactive.errors.VerificationError: Newest: its rows are not those of a new operator
      has   []
      must  [2]
      after this history:
        commit    [[(2, 2)]]
        commit    [[(2, -1)]]
    """
    rows = [list(each) for each in inputs]

    def run(history: Sequence[Commit]) -> str | None:
        return _OperatorRun(operator, arguments, len(rows), expected).problem(history)

    draw = random.Random(seed)
    for _ in range(histories):
        history = [_draw_commit(draw, rows) for _ in range(draw.randint(1, commits))]
        if run(history) is not None:
            history = _shorten(history, run)
            raise VerificationError(f"{operator.__name__}: {run(history)}{_show(history, rows)}")


class _OperatorRun:
    """One operator that goes through a history."""

    def __init__(
        self,
        operator: type[Operator[Any, Any]],
        arguments: Mapping[str, Any],
        inputs: int,
        expected: Callable[..., Iterable[Any]] | None,
    ) -> None:
        self._operator, self._arguments = operator, arguments
        self._inputs = inputs
        self._expected = expected
        self._rows: list[dict[Any, int]] = [{} for _ in range(inputs)]
        self._sum: dict[Any, int] = {}
        self._state = self._new_state()

    def _new_state(self) -> OperatorState:
        def make() -> Operator[Any, Any]:
            return self._operator(**self._arguments)

        return OperatorState(make, self._inputs, is_checked=False)

    def problem(self, history: Sequence[Commit]) -> str | None:
        """Return what is wrong after a commit of the history; None if all is well."""
        _add(self._sum, self._state.step([]))
        self._state.commit()
        deletions = [
            (place, row, -weight)
            for changes in history
            for place, row, weight in changes[0]
            if weight > 0
        ]
        found = self._compare()
        for changes, is_undone in history:
            if found is None:
                found = self._commit(self._possible(changes), is_undone=is_undone)
        if found is not None:
            return found
        found = self._commit(self._possible(deletions), is_undone=False)
        return None if found is None else f"{found}\n  when all rows are deleted,"

    def _possible(self, changes: Sequence[Change]) -> list[Change]:
        """Return the net changes, as far as they delete rows that are there."""
        net: dict[tuple[int, Any], int] = {}
        for place, row, weight in changes:
            there = self._rows[place].get(row, 0) + net.get((place, row), 0)
            net[place, row] = net.get((place, row), 0) + max(weight, -there)
        return [(place, row, weight) for (place, row), weight in net.items() if weight]

    def _commit(self, changes: Sequence[Change], *, is_undone: bool) -> str | None:
        delta = [((place, row), weight) for place, row, weight in changes]
        try:
            emitted = self._state.step(delta)
            if is_undone:
                self._state.undo()
                return self._compare()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        self._state.commit()
        for place, row, weight in changes:
            _add(self._rows[place], [(row, weight)])
        _add(self._sum, emitted)
        return self._compare()

    def _compare(self) -> str | None:
        """Return how the rows differ from those that must be; None if they are equal."""
        has = self._sum
        contents = dict(self._state.contents())
        if contents != has:
            return _difference("the sum of its changes is not its contents", has, contents)
        state = self._new_state()
        all_rows = [
            ((place, row), weight)
            for place, rows in enumerate(self._rows)
            for row, weight in rows.items()
        ]
        must = dict(evaluate(state, all_rows))
        if must != has:
            return _difference("its rows are not those of a new operator", has, must)
        if self._expected is not None:
            must = {}
            bags = [Bag(dict(rows)) for rows in self._rows]
            _add(must, [(canonical(row), 1) for row in self._expected(*bags)])
            if must != has:
                return _difference("its rows are not the expected ones", has, must)
        if any(weight < 0 for weight in has.values()):
            return _difference("it has rows with negative weights", has, {})
        return None


def _add(total: dict[Any, int], changes: Iterable[tuple[Any, int]]) -> None:
    for row, weight in changes:
        now = total.get(row, 0) + weight
        if now:
            total[row] = now
        else:
            total.pop(row, None)


def _draw_commit(draw: random.Random, rows: Sequence[Sequence[Any]]) -> Commit:
    """Draw the changes of a commit; some insert and delete one row, some delete many."""
    changes: list[Change] = []
    for _ in range(draw.choice((0, 1, 1, 1, 2, 3, 8))):
        place = draw.randrange(len(rows))
        if rows[place]:
            changes.append((place, draw.choice(rows[place]), draw.choice((1, 1, 1, 2, -1, -1, -9))))
    return changes, draw.random() < 0.2


def _shorten(history: list[Commit], run: Callable[[Sequence[Commit]], str | None]) -> list[Commit]:
    """Leave out commits and changes of a history, as long as it still has a problem."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for place in reversed(range(len(history))):
            changes, is_undone = history[place]
            fewer = [
                ([*changes[:number], *changes[number + 1 :]], is_undone)
                for number in reversed(range(len(changes)))
            ]
            shorter = [(*history[:place], *history[place + 1 :])]
            shorter += [(*history[:place], each, *history[place + 1 :]) for each in fewer]
            found = next((each for each in shorter if run(each) is not None), None)
            if found is not None:
                history, is_shorter = list(found), True
                break
    return history


def _difference(problem: str, has: Mapping[Any, int], must: Mapping[Any, int]) -> str:
    return f"{problem}\n  has   {_bag(has):.500}\n  must  {_bag(must):.500}"


def _bag(weights: Mapping[Any, int]) -> str:
    if all(weight > 0 for weight in weights.values()):
        return repr([row for row, weight in weights.items() for _ in range(weight)])
    return repr(list(weights.items()))


def _show(history: Sequence[Commit], rows: Sequence[Any]) -> str:
    """Return the lines of a history: the delta of each input for each commit."""
    lines = ["\n  after this history:"]
    for changes, is_undone in history:
        deltas: list[list[tuple[Any, int]]] = [[] for _ in rows]
        for place, row, weight in changes:
            deltas[place].append((row, weight))
        lines.append(f"    {'rollback' if is_undone else 'commit':8}  {deltas!r:.500}")
    return "\n".join(lines)
