"""Folds of bags, maintained by changes, and explanations of rows that cannot be hashed or compared.

Folded bag: the result of a fold over a bag, computed from the changes since another bag.

    sum(o.total for o in old)        21
    new = old.plus({a: 1, b: -1})
    sum(o.total for o in new)        21 + a.total - b.total

A large bag caches results of folds, each with its state: a running sum, a count, sorted values, a
bag. If a bag was derived from another by changes, the state moves to the new bag and applies the
changes; the old bag keeps the result. Small bags are folded by iteration.

Lists whose order is irrelevant here (`long_tuple.py`) are handled like bags; so are sets, and the
keys, values and items of mappings.

Folds that cannot be maintained, for example of texts, are computed from the whole bag as written.

Sound:  a fold depends on the values of the bag, not on their order; sums are exact, and rounded
        once, so that equal bags have equal results, whatever their history.
State:  per fold of a bag, its result and state; dropped with the bag.
Cost:   O(changes log values), if one bag was derived from the other; else O(values), once.
Source: [slender] deep updates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from reactive.engine.collections import inner_changes
from reactive.engine.collections import values as multisets
from reactive.engine.collections.exact import add_value, sum_result
from reactive.engine.collections.zset import EXACT, Pairs, canonical
from reactive.engine.runtime.interrupts import reraise_asynchronous

Each = Callable[[Iterable[Any]], Iterable[Any]]
"""Computes the folded values of some values of a bag."""
MOST_KEPT = 32
"""Most results of folds that one bag caches."""
_FROM_SCRATCH = ContextVar("from scratch", default=False)


class FoldResult:
    """Result of a fold of a bag; its state, until another bag takes it; and other values it
    read."""

    __slots__ = ("beside", "gave", "state")

    def __init__(self, state: Any, gave: Any, beside: tuple[Any, ...]) -> None:
        self.state = [state]
        self.gave = gave
        self.beside = beside


def fold_bag(
    bag: Any,
    fold: Any,
    each: Each,
    beside: Callable[[], tuple[Any, ...]],
    options: Mapping[str, Any],
) -> Any:
    """Return the result of a fold over a bag."""
    try:
        if bag._is_small():
            return _fold_small(bag, fold, each, options)
        if _FROM_SCRATCH.get():
            return STATES[fold.kind].gives(_compute_state(bag, fold, each))
        return _fold_large(bag, fold, each, beside())
    except Exception as error:  # the fold as written raises it, or not
        reraise_asynchronous(error)
        return fold.plain(each(bag), options)


@contextmanager
def from_scratch() -> Iterator[None]:
    """Fold by iteration over all values inside the context, and cache nothing."""
    token = _FROM_SCRATCH.set(True)
    try:
        yield
    finally:
        _FROM_SCRATCH.reset(token)


def _fold_small(bag: Any, fold: Any, each: Each, options: Mapping[str, Any]) -> Any:
    """Fold a small bag as written; `sum`, `min` and `max` by a state if a class is not `EXACT`."""
    if fold.kind not in ("sum", "min", "max"):
        return fold.plain(each(bag), options)
    found = list(each(bag))
    if not EXACT.issuperset({value.__class__ for value in found}):
        how = STATES[fold.kind]
        state = how.zero()
        for value in found:
            state = how.plus(state, value, 1)
        return how.gives(state)
    return fold.plain(found, options)


def _fold_large(bag: Any, fold: Any, each: Each, beside: tuple[Any, ...]) -> Any:
    """Return the cached result of a fold over a large bag; compute and cache it if absent."""
    key = (fold, *[(v.__class__, v if v.__class__ in EXACT else id(v)) for v in beside])
    kept = bag._kept
    if kept is None:
        kept = bag._kept = {}
    found = kept.get(key)
    if found is None:
        state = _take_over_state(bag, key, fold, each)
        if state is None:
            state = [_compute_state(bag, fold, each)]
        if len(kept) >= MOST_KEPT:
            kept.pop(next(iter(kept)), None)
        found = kept[key] = FoldResult(state[0], STATES[fold.kind].gives(state[0]), beside)
    return found.gave


def _compute_state(bag: Any, fold: Any, each: Each) -> Any:
    """Return the state of a fold after all values of a bag."""
    how = STATES[fold.kind]
    state = how.zero()
    if fold.kind == "bag":
        state[0] = fold.called()
    weighted = bag._weighted_items()
    if weighted is not None:
        return _add_pairs(state, how, weighted, each)
    for value in each(bag):
        state = how.plus(state, value, 1)
    return state


def _take_over_state(bag: Any, key: Any, fold: Any, each: Each) -> list[Any] | None:
    """Take the state of the bag that this one was derived from, and apply the changes.

    Return a list of the one state; None if there is no such bag, if its state is taken, or has
    no result of this fold.
    """
    before = None if bag._before is None else bag._before()
    found = None if before is None or before._kept is None else before._kept.get(key)
    if before is None or found is None or not found.state:
        return None
    how = STATES[fold.kind]
    changes: Pairs = bag._changed_since(before)
    for loop in fold.loops:
        changes = _make_inner_bag(loop)(changes)
    made = [(value, weight, list(each((value,)))) for value, weight in changes]
    try:
        state = found.state.pop()
    except IndexError:  # another thread took it
        return None
    for sign in (1, -1):
        for _, weight, values in made:
            if weight * sign > 0:
                for value in values:
                    state = how.plus(state, value, weight)
    return [state]


def _add_pairs(state: Any, how: State, pairs: Iterable[tuple[Any, int]], each: Each) -> Any:
    """Return a state after the values that `each` makes of weighted values."""
    for value, weight in pairs:
        for found in each((value,)):
            state = how.plus(state, found, weight)
    return state


def _make_inner_bag(loop: Any) -> inner_changes.InnerBag:
    return inner_changes.InnerBag(
        loop.bag, loop.fields, [_make_inner_bag(each) for each in loop.within]
    )


# States.


class State:
    """Maintenance of a fold by changes."""

    __slots__ = ()

    def zero(self) -> Any:
        return 0

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        """Return the state with a value added or removed; the old state may be changed."""
        raise NotImplementedError

    def gives(self, state: Any) -> Any:
        """Return the result of the fold, given its state."""
        return state


class SumState(State):
    """The state of a sum."""

    __slots__ = ()

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        return add_value(state, value, weight)

    def gives(self, state: Any) -> Any:
        return sum_result(state)


class CountState(State):
    """The state of a count."""

    __slots__ = ()

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        return state + weight


class AnyState(State):
    """The state of `any`: the number of true values."""

    __slots__ = ()

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        return state + weight if value else state

    def gives(self, state: Any) -> Any:
        return state > 0


class AllState(State):
    """The state of `all`: the number of false values."""

    __slots__ = ()

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        return state if value else state + weight

    def gives(self, state: Any) -> Any:
        return not state


class ExtremeState(State):
    """The least or the greatest value; without values, the fold as written decides."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[multisets.OrderedValues], Any]) -> None:
        self._read = read

    def zero(self) -> multisets.OrderedValues:
        return multisets.OrderedValues(in_order=True)

    def plus(
        self, state: multisets.OrderedValues, value: Any, weight: int
    ) -> multisets.OrderedValues:
        """Change the weight of a value in `state`, which is returned."""
        state.add(value, weight)
        return state

    def gives(self, state: multisets.OrderedValues) -> Any:
        """Return the least or greatest value; raises `LookupError` if there is none."""
        if not len(state):
            raise LookupError("no value")
        return self._read(state)


class BagState(State):
    """A bag, and pending changes."""

    __slots__ = ()

    def zero(self) -> Any:
        return [None, {}]

    def plus(self, state: Any, value: Any, weight: int) -> Any:
        """Add a change to the pending changes in `state`, which is returned."""
        changes = state[1]
        value = canonical(value)
        changes[value] = changes.get(value, 0) + weight
        return state

    def gives(self, state: Any) -> Any:
        """Return the bag after the pending changes, which are dropped from `state`."""
        if state[1]:
            state[0], state[1] = state[0].plus(state[1]), {}
        return state[0]


STATES: dict[str, State] = {
    "sum": SumState(),
    "count": CountState(),
    "any": AnyState(),
    "all": AllState(),
    "min": ExtremeState(multisets.OrderedValues.least),
    "max": ExtremeState(multisets.OrderedValues.greatest),
    "bag": BagState(),
}


# Explanations: the part of a row that cannot be hashed, the rows that cannot be compared.


def unhashable_reason(row: Any) -> str | None:
    """Return a text like `its field 'tags' is a list`; None if the row is hashable."""
    return None if _is_hashable(row) else _explain_unhashable(row)


def _explain_unhashable(row: Any) -> str:
    """Return a text that names the innermost part of a row that has no hash."""
    for name, value in _named_parts(row):
        if not _is_hashable(value):
            inner = _explain_unhashable(value)
            nested = "" if inner.startswith("a ") else f": {inner}"
            return f"{name} is a {type(value).__name__}{nested}"
    hint = "; make it @dataclass(frozen=True)" if dataclasses.is_dataclass(row) else ""
    return f"a {type(row).__name__} is not hashable{hint}"


def _is_hashable(value: Any) -> bool:
    """Return True if `hash` does not raise for a value."""
    try:
        hash(value)
    except Exception:
        return False
    return True


def _named_parts(row: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass, or the items of a tuple, each with words for it."""
    if dataclasses.is_dataclass(row):
        for field in dataclasses.fields(row):
            yield f"its field {field.name!r}", getattr(row, field.name)
    elif isinstance(row, tuple):
        names = getattr(row, "_fields", None)
        for position, value in enumerate(row):
            yield (f"its field {names[position]!r}" if names else f"its element {position}"), value


def find_clash(
    rows: Iterable[Any], others: Iterable[Any], of: Callable[[Any], Any]
) -> tuple[Any, Any] | None:
    """Return two rows whose values of `of` have equal hashes, but an `==` that raises.

    The first is one of `rows`, the second one of `rows` or `others`. Return None if there are none.

    Cost: O(rows and others).
    """
    by_hash: dict[int, list[tuple[Any, Any]]] = {}
    for row in rows:
        value = of(row)
        if not _is_hashable(value):
            continue
        same = by_hash.setdefault(hash(value), [])
        for other, its in same:
            if not _can_compare(value, its):
                return row, other
        same.append((row, value))
    for other in others:
        its = of(other)
        for row, value in by_hash.get(hash(its), ()):
            if not _can_compare(value, its):
                return row, other
    return None


def _can_compare(row: Any, other: Any) -> bool:
    """Return True if `==` does not raise, in either direction; its result is ignored."""
    try:
        return row is other or bool(row == other) or bool(other == row) or True
    except Exception as error:
        reraise_asynchronous(error)
        return False


# Results of callables that must return rows.


def rows_returned(found: Any, method: str) -> Iterable[Any]:
    """Return the result of a callable as rows.

    Raises
    ------
    TypeError: it is a single value, or a text, since its characters are unlikely to be rows.

    >>> list(rows_returned(range(2), "reduce"))
    [0, 1]
    """
    if isinstance(found, str | bytes) or not hasattr(type(found), "__iter__"):
        what = "nothing (does it have a return?)" if found is None else f"{found!r:.60}"
        raise TypeError(
            f"{method} takes a callable that returns rows, and this one returned {what}\n"
            "  return a list of rows: [row], or [] for none"
        )
    rows: Iterable[Any] = found
    return rows
