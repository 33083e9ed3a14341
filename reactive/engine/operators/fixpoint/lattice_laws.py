"""Laws of a lattice, checked on given values.

    join    idempotent, commutative, associative; `bottom` is neutral; agrees with `leq`
    widen   an upper closure: as large or larger, idempotent, monotone

Cost:   a few joins per pair or triple of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reactive.errors import FixpointError, PlanError

Lattice = Any
"""What has `join`, `bottom`, `leq` and `widen`, as `reactive.lattices.Lattice`."""


def problem_of_value(lattice: Lattice, a: Any) -> str | None:
    """Return the law that does not hold for a value, as a text; None if all do."""
    join, bottom = lattice.join, lattice.bottom
    twice = join(a, a)
    if twice != a:
        return (
            f"the join of a lattice is not idempotent: join({a!r:.60}, {a!r:.60}) is {twice!r:.60}"
        )
    if bottom is not None and (made := join(bottom, a)) != a:
        return (
            "the join of a lattice is not neutral for its bottom:"
            f" join({bottom!r:.60}, {a!r:.60}) is {made!r:.60}"
        )
    return None


def problem_of_pair(lattice: Lattice, a: Any, b: Any) -> str | None:
    """Return the law that does not hold for two values, as a text; None if all do."""
    join, leq = lattice.join, lattice.leq
    one, other = join(a, b), join(b, a)
    of_both = f"{a!r:.60}, {b!r:.60}"
    if one != other:
        return (
            f"the join of a lattice is not commutative for {of_both}: {one!r:.60} and {other!r:.60}"
        )
    if leq is not None:
        if bool(leq(a, b)) != (one == b):
            return f"the join of a lattice is not that of its leq for {of_both}: it is {one!r:.60}"
        if not leq(a, one):
            return f"the leq of a lattice says that {a!r:.60} is not at most join({of_both})"
    if lattice.widen is not None and one == b:
        return problem_of_widening(lattice, a, b)
    return None


def problem_of_size(lattice: Lattice, a: Any, b: Any) -> str | None:
    """Return the text that the join of two values is not as large as both; None if it is."""
    made = lattice.join(a, b)
    for each in (a, b):
        if lattice.join(made, each) != made:
            return (
                f"the join of a lattice is not as large as {each!r:.60}:"
                f" join({a!r:.60}, {b!r:.60}) is {made!r:.60}"
            )
    return None


def problem_of_triple(lattice: Lattice, a: Any, b: Any, c: Any) -> str | None:
    """Return the text that a join is not associative for three values; None if it is."""
    join = lattice.join
    one, other = join(join(a, b), c), join(a, join(b, c))
    if one == other:
        return None
    return (
        f"the join of a lattice is not associative for {a!r:.60}, {b!r:.60}, {c!r:.60}:"
        f" {one!r:.60}, {other!r:.60}"
    )


def problem_of_function(lattice: Lattice, function: Any, a: Any, b: Any) -> str | None:
    """Return the text that a function is not monotone, for a value and a larger one."""
    larger = lattice.join(a, b)
    small, large = function(a), function(larger)
    if lattice.join(small, large) == large:
        return None
    name = getattr(function, "__name__", type(function).__name__)
    return (
        f"{name} is not monotone: of {a!r:.60} it makes {small!r:.60}\n"
        f"  and of {larger!r:.60}, which is larger, {large!r:.60}"
    )


def problem_of(lattice: Lattice, functions: Sequence[Any], a: Any, b: Any, c: Any) -> str | None:
    """Return the first law that does not hold for three values; None if all do."""
    return (
        problem_of_value(lattice, a)
        or problem_of_pair(lattice, a, b)
        or problem_of_triple(lattice, a, b, c)
        or next(filter(None, (problem_of_function(lattice, f, a, b) for f in functions)), None)
    )


def check_by_strategy(
    lattice: Lattice, strategy: Any, functions: Sequence[Any], examples: int
) -> None:
    """Check all laws on values that a strategy draws; the error has the simplest ones."""
    from hypothesis import given, settings

    @settings(max_examples=examples, deadline=None, database=None, derandomize=True)
    @given(strategy, strategy, strategy)
    def check(a: Any, b: Any, c: Any) -> None:
        problem = problem_of(lattice, functions, a, b, c)
        if problem is not None:
            raise PlanError(problem)

    check()


def problem_of_widening(lattice: Lattice, a: Any, b: Any) -> str | None:
    """Return why a widening is no upper closure, for two values of which `a` is at most `b`."""
    widen, join = lattice.widen, lattice.join
    small, large = widen(a), widen(b)
    found = None
    if join(a, small) != small:
        found = f"widen({a!r:.60}) is {small!r:.60}, which is not as large"
    elif widen(small) != small:
        found = f"widen is not idempotent: it makes {small!r:.60} of {a!r:.60}"
    elif join(small, large) != large:
        found = f"widen is not monotone for {a!r:.60}, {b!r:.60}"
    return found and f"the widening of a lattice is no upper closure: {found}"


class CheckedJoin:
    """A join whose laws are checked on the values that it joins.

    >>> from reactive.lattices import Lattice
    >>> CheckedJoin("s", Lattice(lambda a, b: a - b))(5, 3)
    Traceback (most recent call last):
    reactive.errors.FixpointError: fixpoint 's': the join of a lattice is not idempotent: ...
    """

    __slots__ = ("_lattice", "_name", "_recent")

    def __init__(self, name: str, lattice: Lattice) -> None:
        self._name = name
        self._lattice = lattice
        self._recent: list[Any] = []

    def __call__(self, a: Any, b: Any) -> Any:
        """Return the join of two values; raise `FixpointError` if a law does not hold."""
        for found in self._problems(a, b):
            if found is not None:
                raise FixpointError(
                    f"fixpoint {self._name!r}: {found}\n"
                    "  transaction rolled back: no table or view changed"
                )
        self._recent = [a, b]
        return self._lattice.join(a, b)

    def _problems(self, a: Any, b: Any) -> Iterator[str | None]:
        lattice = self._lattice
        yield problem_of_value(lattice, a)
        yield problem_of_value(lattice, b)
        yield problem_of_pair(lattice, a, b)
        yield problem_of_size(lattice, a, b)
        if lattice.widen is not None:
            yield problem_of_widening(lattice, a, lattice.join(a, b))
        for c in self._recent:
            yield problem_of_triple(lattice, a, b, c)
