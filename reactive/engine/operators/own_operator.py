"""Operators of the user's own: classes that turn changes of inputs into changes of rows.

    (0, row), (1, row)     rows with the number of their input, in one delta
    step([...], [...])     the net change of each input  ->  the change of the operator's rows

`Operator` is the base of these classes, `OperatorState` runs one as the state of a group, as
`reduce` keeps it. A step is undone by the operator's own `undo`; without one, by a step over the
negated deltas, which must emit the negated rows. A step that raised is undone by the operator's own
`undo` only: otherwise the engine computes all views again, with a new operator.

State:  that of the operator; its rows, if it has no `contents` of its own or is checked.
Cost:   that of the operator; undoing costs another step.
Source: [dbsp] definition 3.1: any query of changes, if its sum over changes is the query of sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from reactive.engine.collections.zset import Pair, by_group, canonical, consolidate, negate
from reactive.engine.operators.aggregate import KeptGroup, KeptGroups
from reactive.engine.operators.operator import CannotUndo
from reactive.errors import VerificationError

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")
Changes: TypeAlias = Sequence[tuple[T, int]]


class Operator(Generic[A, B]):
    """Base of operators of your own, for `relation.through(MyOperator, ...)`; `A` is the class of
    the rows of the first input, `B` of the rows that the operator emits.

    Only `step` must be written. The rows of the operator must depend on the rows of its inputs
    alone, not on the order in which they came; `reactive.testing.check_operator` tests that.

    >>> from reactive import Database, Operator
    >>> class Longest(Operator[str, int]):
    ...     def __init__(self):
    ...         self.counts = {}
    ...     def step(self, words):
    ...         before = max(self.counts, default=0)
    ...         for word, weight in words:
    ...             self.counts[len(word)] = self.counts.get(len(word), 0) + weight
    ...             if not self.counts[len(word)]:
    ...                 del self.counts[len(word)]
    ...         return [(before, -1), (max(self.counts, default=0), 1)] if words else [(0, 1)]
    >>> words = Database().table(str, name="words")
    >>> view = words.through(Longest).materialize()
    >>> words.add_all(["to", "that"])
    >>> words.remove("that")
    >>> list(view)
    [2]
    """

    is_bounded: ClassVar[bool] = False
    """True if the state of the operator stays small however many events a stream has."""

    def step(self, *deltas: Any, **_: Any) -> Iterable[tuple[B, int]]:
        """Apply the net changes of the inputs; return the change of the operator's rows.

        Parameters
        ----------
        deltas: for each input a list of pairs of a row and a weight: 1 for each copy that is
            inserted, -1 for each that is deleted. A row occurs once; weights are not 0.

        It is called first with all rows, also if there are none, then once for each commit that
        changes an input. Return pairs of a hashable row and a weight, in any order; weights of one
        row are added up. An exception rolls the commit back.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step(delta)")

    def contents(self) -> Iterable[tuple[B, int]]:
        """Return all rows of the operator with their weights. Without this method of your own, the
        library stores the rows."""
        raise NotImplementedError

    def undo(self) -> None:
        """Restore the state before the last step, also if that raised. Without this method of your
        own, the library steps over the negated deltas."""
        raise NotImplementedError

    def commit(self) -> None:
        """Take note that the last step will not be undone.

        The commit stands, even if this raises: the caller gets the exception, and all views are
        computed again.
        """

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored rows and the bytes of the state; by default the number of
        items in the attributes of the operator, with their approximate bytes."""
        held = [each for each in _attributes(self) if hasattr(each, "__len__")]
        rows = sum(len(each) for each in held if not isinstance(each, str | bytes))
        return rows, deep_bytes(self)


class OperatorState:
    """One operator of the user, as the state of a group of rows with the numbers of their inputs.

    Parameters
    ----------
    new: makes the operator.
    inputs: the number of inputs; 0 if rows have no number, as there is only one.
    is_checked: True to refuse the deletion of a row that the operator has not emitted.

    >>> class Lengths(Operator[str, int]):
    ...     def step(self, words):
    ...         return [(len(word), weight) for word, weight in words]
    >>> state = OperatorState(Lengths, 0, is_checked=True)
    >>> state.step([("to", 1), ("be", 1), ("that", 1)])
    [(2, 2), (4, 1)]
    >>> state.undo()
    >>> list(state.contents())
    []
    """

    __slots__ = (
        "_deltas",
        "_emitted",
        "_has_stepped",
        "_held",
        "_inputs",
        "_is_checked",
        "_is_new",
        "_operator",
        "_weight",
    )

    def __init__(self, new: Callable[[], Operator[Any, Any]], inputs: int, *, is_checked: bool):
        self._operator = operator = new()
        self._inputs = inputs
        self._is_checked = is_checked
        stores_rows = is_checked or type(operator).contents is Operator.contents
        self._held: dict[Any, int] | None = {} if stores_rows else None
        self._weight = 0
        self._is_new = True
        self._deltas: list[list[Pair]] | None = None
        self._emitted: list[Pair] | None = None  # None while a step is not complete
        self._has_stepped = False

    @property
    def is_empty(self) -> bool:
        """True if the inputs have no rows."""
        return not self._weight

    def step(self, changes: Sequence[Pair]) -> Sequence[Pair]:
        """Step the operator over net changes; return the net change of its rows."""
        net = consolidate(changes)
        deltas = self._by_input(net)
        self._weight += sum(weight for _, weight in net)
        self._emitted, self._deltas, self._has_stepped = None, deltas, False
        if not (self._is_new or any(deltas)):
            self._deltas = None  # nothing to undo
            return []
        emitted = self._step_operator(deltas)
        self._store(emitted)
        self._emitted = emitted
        if self._inputs or self._weight:
            return emitted
        return consolidate([*emitted, *negate(list(self.contents()))])  # the group ends

    def _by_input(self, net: Sequence[Pair]) -> list[list[Pair]]:
        """Return the changes of each input, deletions first."""
        ordered = sorted(net, key=_weight_of)
        if not self._inputs:
            return [ordered]
        deltas: list[list[Pair]] = [[] for _ in range(self._inputs)]
        for (place, row), weight in ordered:
            if place >= 0:
                deltas[place].append((row, weight))
        return deltas

    def _step_operator(self, deltas: Sequence[Sequence[Pair]]) -> list[Pair]:
        """Step the operator; return the net change of its rows."""
        operator = self._operator
        made: Any = operator.step(*deltas)
        if made is not None and not isinstance(made, Iterable):
            raise TypeError(
                f"{_step_of(operator)} returned {made!r:.100}, no pairs of a row and a weight\n"
                "  return such as [(new, 1), (old, -1)]"
            )
        emitted = [] if made is None else list(made)
        self._has_stepped = True
        pairs = []
        for pair in emitted:
            if type(pair) is not tuple or len(pair) != 2 or type(pair[1]) is not int:
                raise TypeError(
                    f"{_step_of(operator)} returned {pair!r:.100}, no pair of a row and a weight\n"
                    "  return such as [(new, 1), (old, -1)]"
                )
            pairs.append((canonical(pair[0]), pair[1]))
        return consolidate(pairs)

    def _store(self, emitted: Sequence[Pair]) -> None:
        """Add emitted changes to the stored rows, if rows are stored."""
        held = self._held
        if held is None:
            return
        if self._is_checked:
            for row, weight in emitted:
                if held.get(row, 0) + weight < 0:
                    raise VerificationError(
                        f"{_step_of(self._operator)} deleted {row!r:.100} {-weight} times, of "
                        f"which it has emitted {held.get(row, 0)}\n"
                        "  a step may only delete rows that earlier steps have emitted"
                    )
        for row, weight in emitted:
            total = held.get(row, 0) + weight
            if total:
                held[row] = total
            else:
                del held[row]

    def undo(self) -> None:
        """Undo the last step.

        Raises
        ------
        CannotUndo: the operator must be made again.
        """
        deltas, emitted = self._deltas, self._emitted
        if deltas is None:
            return
        operator = self._operator
        has_undo = type(operator).undo is not Operator.undo
        if not (self._has_stepped or has_undo or emitted is not None):
            raise CannotUndo(f"{_step_of(operator)} raised, and {type(operator)!r} has no undo")
        if has_undo:
            operator.undo()
        elif any(deltas):  # a step that was refused for its result is undone in the same way
            back = self._step_operator([negate(delta) for delta in deltas])
            if emitted is not None and consolidate([*back, *emitted]):
                raise CannotUndo(f"{_step_of(operator)} over negated deltas is not its inverse")
        self._store(negate(emitted or ()))
        self._weight -= sum(weight for delta in deltas for _, weight in delta)
        self._deltas = self._emitted = None

    def commit(self) -> None:
        """Keep the last step."""
        if self._deltas is not None:
            self._is_new = False
            self._deltas = self._emitted = None
            self._operator.commit()

    def contents(self) -> Iterable[Pair]:
        """Return all rows of the operator."""
        if type(self._operator).contents is Operator.contents:
            return list((self._held or {}).items())
        return consolidate([(canonical(row), n) for row, n in self._operator.contents()])

    def footprint(self) -> tuple[int, int]:
        """Return the stored rows and bytes: of the operator, and of its rows if they are stored."""
        rows, size = self._operator.footprint()
        return rows + len(self._held or ()), size + sys.getsizeof(self._held)


class OwnOperators(KeptGroups):
    """Operators by key; a step that raises is undone by the engine, with all others."""

    __slots__ = ()

    def step(self, delta: Sequence[Pair]) -> list[Pair]:
        """Return the changes of the rows of the operators, each in a pair with its key."""
        self._stepped, self._made = {}, []
        out: list[Pair] = []
        for key, changes in by_group(delta, self._key).items():
            out += self._step_group(key, changes)
        return out

    def undo(self) -> None:
        """Undo the last step; operators that it made are dropped, whatever their state."""
        for key in self._made:
            self._groups.pop(key, None)
            self._stepped.pop(key, None)
        super().undo()


def evaluate(state: KeptGroup, rows: Sequence[Pair]) -> list[Pair]:
    """Return the rows of a new operator for all rows of its inputs."""
    state.step(rows)
    state.commit()
    return list(state.contents())


def _weight_of(pair: Pair) -> int:
    return pair[1]


def _step_of(operator: Operator[Any, Any]) -> str:
    return f"{type(operator).__name__}.step"


def _attributes(value: Any) -> list[Any]:
    """Return the values of the attributes of an object."""
    found = list(getattr(value, "__dict__", {}).values())
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found.append(getattr(value, name))
    return found


def deep_bytes(root: object) -> int:
    """Return the approximate bytes of an object and of all that its containers and attributes hold;
    classes, functions and modules are not counted."""
    size, seen, waiting = 0, set[int](), [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type) or callable(value):
            continue
        seen.add(id(value))
        size += sys.getsizeof(value)
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        else:
            waiting += _attributes(value)
    return size
