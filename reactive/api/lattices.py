"""Lattices: how `fixpoint` joins the values of one key.

    state  <-  a row of (node, variable) with the join of all values that are derived for it

        fixpoint(step, keep=flat(lambda s: s.value), by=lambda s: (s.node, s.variable))

A lattice has a join: the least value that is as large as two others. It is idempotent, commutative
and associative. docs/lattices.md tells how values rise and fall.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from itertools import product as all_pairs
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from optimizer.errors import PlanError
from reactive.engine.collections.frozen_dict import FrozenDict
from reactive.engine.operators.fixpoint import lattice_laws

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

V = TypeVar("V")
Of = Callable[[Any], Any]


class Extreme(enum.Enum):
    """The largest value of a flat lattice: no single value is known."""

    TOP = "TOP"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__
    __hash__ = object.__hash__  # faster than by the name


TOP = Extreme.TOP


@dataclass(frozen=True)
class Lattice(Generic[V]):
    """Values with a join, for `fixpoint(step, keep=Lattice(...), by=...)`.

    Parameters
    ----------
    join: callable, two values -> the least value that is as large as both. Idempotent, commutative
        and associative.
    of: callable, row -> value: it reads one field. By default the one field that `by` does not.
    bottom: the least value: a row with it is no row. By default there is none.
    leq: callable, two values -> True if the first is at most the second; by default
        `join(a, b) == b`.
    widen: callable, value -> a value as large or larger: monotone and idempotent, so that long
        chains of values end early. See docs/lattices.md.
    widen_at: callable, row -> True if its value is widened; it reads the key only. By default all.

    >>> from reactive.lattices import Lattice, check
    >>> bits = Lattice(lambda a, b: a | b, bottom=0)
    >>> check(bits, [0, 1, 2, 6])
    """

    join: Callable[[V, V], V]
    of: Of | None = None
    bottom: V | None = field(default=None, kw_only=True)
    leq: Callable[[V, V], bool] | None = field(default=None, kw_only=True)
    widen: Callable[[V], V] | None = field(default=None, kw_only=True)
    widen_at: Callable[[Any], object] | None = field(default=None, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the join, as `explain()` shows it."""
        return str(getattr(self.join, "__name__", type(self.join).__name__)).lstrip("_")

    def __call__(self, *values: Iterable[V]) -> V:
        """Join the values of all collections, and widen the result; of none, return the bottom.

        So a comprehension joins values: `{n: least(c for m, c in found if m == n) for n in names}`.

        >>> from reactive.lattices import union
        >>> both = union()
        >>> both([frozenset("a")], [frozenset("b")]) == frozenset("ab"), both([])
        (True, frozenset())
        """
        every = list(chain.from_iterable(values))
        if not every:
            return self.bottom  # type: ignore[return-value]
        found = reduce(self.join, every)
        return found if self.widen is None else self.widen(found)

    def is_at_most(self, a: V, b: V) -> bool:
        """Return True if `a` is at most `b`."""
        return self.join(a, b) == b if self.leq is None else bool(self.leq(a, b))


def check(
    lattice: Lattice[V],
    values: Iterable[V] | SearchStrategy[V] | None = None,
    *,
    functions: Iterable[Callable[[V], V]] = (),
    examples: int = 300,
) -> None:
    """Check the laws of a lattice, and that functions are monotone, on examples of values.

    Parameters
    ----------
    values: the values, of which all pairs and triples are tried; or a strategy of Hypothesis (to be
        installed), which draws them and shrinks those that break a law. Without it, values of a
        ready lattice are drawn, the same ones each time.
    functions: callables, value -> value, that a step applies: of a larger value they must make one
        as large or larger.
    examples: how many triples are drawn.

    Raises
    ------
    PlanError: a law does not hold, which it names with the values; or the lattice is your own, so
        that no values of it are known.

    >>> from reactive.lattices import Lattice, check, interval
    >>> check(Lattice(lambda a, b: a + b), [1, 2])
    Traceback (most recent call last):
    optimizer.errors.PlanError: the join of a lattice is not idempotent: join(1, 1) is 2
    >>> check(interval(), functions=[lambda ends: (ends[0] - 1, ends[1] + 1)])
    """
    called = list(functions)
    if hasattr(values, "example") and hasattr(values, "flatmap"):
        lattice_laws.check_by_strategy(lattice, values, called, examples)
        return
    if values is not None:
        some = list(values)
        triples: Iterable[Any] = all_pairs(some, repeat=3)
    else:
        random = Random(1)
        triples = ([_drawn(lattice, random) for _ in range(3)] for _ in range(examples))
    for triple in triples:
        problem = lattice_laws.problem_of(lattice, called, *triple)
        if problem is not None:
            raise PlanError(problem)


def _drawn(lattice: Lattice[Any], random: Random) -> Any:
    """Return a random value of a ready lattice."""
    join = lattice.join
    if isinstance(join, JoinOfItems):
        return tuple([_drawn(Lattice(each), random) for each in join.joins])
    if isinstance(join, JoinOfValues):
        keys = random.sample("abc", random.randrange(4))
        return FrozenDict({key: _drawn(Lattice(join.join), random) for key in keys})
    draw = _DRAWN.get(join)
    if draw is None:
        raise PlanError(
            f"no values of the lattice {lattice.name!r} are known, as it is your own\n"
            "  give some, or a strategy: check(lattice, [1, 2, 3]), check(lattice, integers())"
        )
    return draw(random)


# Ready lattices. Each takes `of`, the value of a row.


def _flat(a: Any, b: Any) -> Any:
    return a if a is b or a == b else TOP  # NaN is one object


def _smallest(a: Any, b: Any) -> Any:
    return b if b < a else a


def _largest(a: Any, b: Any) -> Any:
    return b if b > a else a


def _union(a: frozenset[Any], b: frozenset[Any]) -> frozenset[Any]:
    return a if b <= a else a | b


def _intersection(a: frozenset[Any], b: frozenset[Any]) -> frozenset[Any]:
    return a if a <= b else a & b


def _is_any(a: bool, b: bool) -> bool:
    return a or b


def _is_all(a: bool, b: bool) -> bool:
    return a and b


def _common_prefix(a: str, b: str) -> str:
    length = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(b))
    return a[:length]


def _interval(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    low, high = a
    if low <= b[0] and b[1] <= high:
        return a
    return (min(low, b[0]), max(high, b[1]))


def _drawn_number(random: Random) -> float:
    return random.choice((-2, -1, 0, 1, 2, 5, 0.5, 10**20, -math.inf, math.inf))


def _drawn_set(random: Random) -> frozenset[str]:
    return frozenset(random.sample("abcd", random.randrange(5)))


def _drawn_truth(random: Random) -> bool:
    return random.random() < 0.5


_DRAWN: dict[Any, Callable[[Random], Any]] = {
    _flat: lambda random: random.choice((TOP, None, 0, 1, 2, "a", (1, 2))),
    _smallest: _drawn_number,
    _largest: _drawn_number,
    _union: _drawn_set,
    _intersection: _drawn_set,
    _is_any: _drawn_truth,
    _is_all: _drawn_truth,
    _common_prefix: lambda random: "".join(random.choices("ab", k=random.randrange(5))),
    _interval: lambda random: tuple(sorted(_drawn_number(random) for _ in range(2))),
}
"""Functions that draw a value of a ready lattice, by its join."""


def flat(of: Of | None = None) -> Lattice[Any]:
    """Return the lattice of single values below `TOP`: two different values make `TOP`.

    >>> from reactive.lattices import flat
    >>> flat().join(3, 3), flat().join(3, 4)
    (3, TOP)
    """
    return Lattice(_flat, of)


def smallest(of: Of | None = None) -> Lattice[Any]:
    """Return the lattice in which the join of two values is the smaller one."""
    return Lattice(_smallest, of)


def largest(of: Of | None = None) -> Lattice[Any]:
    """Return the lattice in which the join of two values is the larger one."""
    return Lattice(_largest, of)


def union(of: Of | None = None) -> Lattice[frozenset[Any]]:
    """Return the lattice of frozensets with their union: what may hold."""
    return Lattice(_union, of, bottom=frozenset())


def intersection(of: Of | None = None) -> Lattice[frozenset[Any]]:
    """Return the lattice of frozensets with their intersection: what must hold."""
    return Lattice(_intersection, of)


def is_any(of: Of | None = None) -> Lattice[bool]:
    """Return the lattice of truth values in which True is larger; a row with False is no row."""
    return Lattice(_is_any, of, bottom=False)


def is_all(of: Of | None = None) -> Lattice[bool]:
    """Return the lattice of truth values in which False is larger; a row with True is no row."""
    return Lattice(_is_all, of, bottom=True)


def common_prefix(of: Of | None = None) -> Lattice[str]:
    """Return the lattice of texts with their longest common prefix.

    >>> from reactive.lattices import common_prefix
    >>> common_prefix().join("/usr/lib", "/usr/local")
    '/usr/l'
    """
    return Lattice(_common_prefix, of)


def interval(
    of: Of | None = None,
    *,
    thresholds: Iterable[float] | None = None,
    widen_at: Callable[[Any], object] | None = None,
) -> Lattice[tuple[Any, Any]]:
    """Return the lattice of intervals `(low, high)` of numbers.

    With `thresholds`, ends move on to the next threshold, or to infinity: `()` widens each end
    that is not infinite.

    >>> from reactive.lattices import interval
    >>> numbers = interval(thresholds=[0, 10])
    >>> numbers.join((1, 2), (4, 5)), numbers.widen((1, 12))
    ((1, 5), (0, inf))
    """
    if thresholds is None:
        if widen_at is not None:
            raise PlanError("interval() has widen_at= but no thresholds= to widen to")
        return Lattice(_interval, of)
    return Lattice(_interval, of, widen=ToThresholds(tuple(sorted(thresholds))), widen_at=widen_at)


@dataclass(frozen=True)
class ToThresholds:
    """Widen an interval to thresholds, in order."""

    thresholds: tuple[Any, ...]

    def __call__(self, value: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return the interval with ends that are thresholds or infinite."""
        low, high = value
        known = self.thresholds
        below, above = bisect_right(known, low) - 1, bisect_left(known, high)
        wide = (
            known[below] if below >= 0 else -math.inf,
            known[above] if above < len(known) else math.inf,
        )
        return value if wide == value else wide


def product(*lattices: Lattice[Any], of: Of | None = None) -> Lattice[tuple[Any, ...]]:
    """Return the lattice of tuples, each item of its lattice.

    >>> from reactive.lattices import flat, largest, product
    >>> product(flat(), largest()).join((1, 5), (2, 3))
    (TOP, 5)
    """
    widens = tuple(each.widen for each in lattices)
    for each in lattices:
        _check_inner(each)
    return Lattice(
        JoinOfItems(tuple(each.join for each in lattices)),
        of,
        widen=WidenItems(widens) if any(widens) else None,
    )


def mapping(values: Lattice[Any], of: Of | None = None) -> Lattice[Mapping[Any, Any]]:
    """Return the lattice of `FrozenDict`s: values of the same key are joined.

    >>> from reactive.lattices import FrozenDict, largest, mapping
    >>> mapping(largest()).join(FrozenDict({"a": 1, "b": 2}), FrozenDict({"b": 3}))
    FrozenDict({'a': 1, 'b': 3})
    """
    _check_inner(values)
    widen = None if values.widen is None else WidenValues(values.widen)
    return Lattice(JoinOfValues(values.join), of, bottom=FrozenDict({}), widen=widen)


def _check_inner(lattice: Lattice[Any]) -> None:
    if lattice.of is not None or lattice.widen_at is not None:
        raise PlanError(
            "a lattice inside of another has no of= and no widen_at=\n"
            "  the outer lattice takes them: product(flat(), largest(), of=...)"
        )


@dataclass(frozen=True)
class JoinOfItems:
    """Join tuples item by item."""

    joins: tuple[Callable[[Any, Any], Any], ...]

    def __call__(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tuple of joins."""
        made = [join(x, y) for join, x, y in zip(self.joins, a, b, strict=True)]
        return tuple(made)


@dataclass(frozen=True)
class WidenItems:
    """Widen tuples item by item."""

    widens: tuple[Callable[[Any], Any] | None, ...]

    def __call__(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the tuple of widened items."""
        pairs = zip(self.widens, value, strict=True)
        return tuple([each if widen is None else widen(each) for widen, each in pairs])


@dataclass(frozen=True)
class JoinOfValues:
    """Join mappings key by key."""

    join: Callable[[Any, Any], Any]

    def __call__(self, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> FrozenDict[Any, Any]:
        """Return the mapping of joins, for the keys of both."""
        made = dict(a)
        for key, value in b.items():
            made[key] = self.join(made[key], value) if key in made else value
        return FrozenDict(made)


@dataclass(frozen=True)
class WidenValues:
    """Widen the values of mappings."""

    widen: Callable[[Any], Any]

    def __call__(self, value: Mapping[Any, Any]) -> FrozenDict[Any, Any]:
        """Return the mapping of widened values."""
        return FrozenDict({key: self.widen(each) for key, each in value.items()})


def with_field_of(lattice: Lattice[V], of: Of) -> Lattice[V]:
    """Return the lattice with the callable that reads the value of a row."""
    return replace(lattice, of=of)
