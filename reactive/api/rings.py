"""Rings: aggregates that are sums of products, kept as sums on the sides of joins.

    Aggregate(ring=R, of=[f, g])  over  a.join(b, ...)      =  sum of f(a) * g(b) over the pairs

                                       sums of f(a) by the key of the join
    sum over keys of  (sum of f(a)) * (sum of g(b))      <
                                       sums of g(b) by the key of the join

A ring has a sum, which is associative, commutative and has inverses, and a product, which is
associative and distributes over it. docs/rings.md shows what follows from the choice of the ring.

Source: F-IVM: Nikolic, Olteanu, *Incremental View Maintenance with Triple Lock Factorization
        Benefits*, 2018; provenance polynomials: Green, Karvounarakis, Tannen, *Provenance
        Semirings*, 2007.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, Generic, TypeAlias, TypeVar

from optimizer.callables.opaque import Opaque
from optimizer.errors import PlanError
from optimizer.expr import (
    Call,
    Expr,
    Lifted,
    Operation,
    Parameter,
    constant,
    row_names,
    substitute,
)
from optimizer.expressions.knowledge import Shapes
from optimizer.plans.factorization import InRing
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from reactive.api.columns import take_callable
from reactive.engine.codegen.functions import BoundValues, build
from reactive.engine.collections.exact import BITS, DOWN, UP, RingSum, nearest_float

E = TypeVar("E")
ROLE = "the of of Aggregate"


@dataclass(frozen=True)
class Ring(Generic[E]):
    """A sum and a product of values, for `Aggregate(ring=..., of=...)`.

    Parameters
    ----------
    zero: the value of no rows; `add(zero, a) == a`.
    one: the value of a row that `of` does not read; `multiply(one, a) == a`.
    add: callable, two values -> their sum; associative and commutative.
    multiply: callable, two values -> their product; associative, and distributes over sums.
    negate: callable, value -> value; `add(a, negate(a)) == zero`. It undoes deleted rows.
    scale: callable, value and integer -> the sum of so many copies of it; by default made by `add`.
    result: callable, value -> value of the aggregate, which must be hashable; by default itself.
    is_commutative: False if `multiply(a, b)` may differ from `multiply(b, a)`. Products are always
        taken in the order of the bindings; sums are then kept only for joins in this order.

    Values are immutable and hashable: callables return new ones.

    >>> import operator
    >>> from reactive.rings import Ring, check_ring
    >>> integers = Ring(0, 1, operator.add, operator.mul, operator.neg)
    >>> check_ring(integers, [-1, 2, 5])
    """

    zero: E
    one: E
    add: Callable[[E, E], E]
    multiply: Callable[[E, E], E]
    negate: Callable[[E], E]
    scale: Callable[[E, int], E] | None = field(default=None, kw_only=True)
    result: Callable[[E], Any] | None = field(default=None, kw_only=True)
    is_commutative: bool = field(default=True, kw_only=True)

    def times(self, value: E, count: int) -> E:
        """Return the sum of `count` copies of a value; of its negation if `count` is negative."""
        if count == 1:
            return value
        if self.scale is not None:
            return self.scale(value, count)
        if count < 0:
            value, count = self.negate(value), -count
        total = self.zero
        while count:
            if count & 1:
                total = self.add(total, value)
            value, count = self.add(value, value), count >> 1
        return total

    def is_zero(self, value: E) -> bool:
        """Return True if a value is the zero."""
        return bool(value == self.zero)

    def shown(self, value: E) -> Any:
        """Return the value of the aggregate for a sum."""
        return value if self.result is None else self.result(value)


def check_ring(ring: Ring[E], values: Iterable[E]) -> None:
    """Check the laws of a ring on all pairs and triples of some values.

    Raises
    ------
    PlanError: a law does not hold; it names the law and the values.

    >>> from reactive.rings import Ring, check_ring
    >>> check_ring(Ring(0, 0, max, lambda a, b: a + b, lambda a: -a), [1, 2])
    Traceback (most recent call last):
    optimizer.errors.PlanError: no ring: add(1, negate(1)) is 1, not the zero
    """
    some = [ring.zero, ring.one, *values]
    add, multiply = ring.add, ring.multiply
    for a in some:
        if not ring.is_zero(add(a, ring.negate(a))):
            found = add(a, ring.negate(a))
            raise PlanError(f"no ring: add({a!r}, negate({a!r})) is {found!r}, not the zero")
        _demand(ring, f"add(zero, {a!r})", add(ring.zero, a), a)
        _demand(ring, f"multiply(one, {a!r})", multiply(ring.one, a), a)
        _demand(ring, f"multiply({a!r}, one)", multiply(a, ring.one), a)
        for count in (-2, 0, 3):
            of = a if count > 0 else ring.negate(a)
            total = ring.zero
            for _ in range(abs(count)):
                total = add(total, of)
            _demand(ring, f"times({a!r}, {count})", ring.times(a, count), total)
    for a, b in product(some, repeat=2):
        _demand(ring, f"add({a!r}, {b!r})", add(a, b), add(b, a))
        if ring.is_commutative:
            _demand(ring, f"multiply({a!r}, {b!r})", multiply(a, b), multiply(b, a))
    for a, b, c in product(some, repeat=3):
        _demand(ring, f"the sum of {a!r}, {b!r}, {c!r}", add(add(a, b), c), add(a, add(b, c)))
        _demand(
            ring,
            f"the product of {a!r}, {b!r}, {c!r}",
            multiply(multiply(a, b), c),
            multiply(a, multiply(b, c)),
        )
        both = add(multiply(a, b), multiply(a, c))
        _demand(ring, f"multiply({a!r}, add({b!r}, {c!r}))", multiply(a, add(b, c)), both)
        both = add(multiply(b, a), multiply(c, a))
        _demand(ring, f"multiply(add({b!r}, {c!r}), {a!r})", multiply(add(b, c), a), both)


def _demand(ring: Ring[Any], what: str, found: Any, expected: Any) -> None:
    if not ring.is_zero(ring.add(found, ring.negate(expected))):
        raise PlanError(f"no ring: {what} is {found!r}, not {expected!r}")


INTEGERS: Ring[int] = Ring(0, 1, operator.add, operator.mul, operator.neg, scale=operator.mul)
"""Sums of products of integers: numbers of ways."""


# Values of the rows of a relation, as a part of a plan.


@record
class RingValue(InRing):
    """The callable of expressions that turns a value of the user into one that sums multiply.

    >>> RingValue(INTEGERS)(3) * RingValue(INTEGERS)(4)
    RingSum(12)
    """

    ring: Ring[Any]

    @property
    def is_commutative(self) -> bool:  # type: ignore[override]
        """False if the order of the factors of a product matters."""
        return self.ring.is_commutative

    def __call__(self, value: Any) -> RingSum:
        """Return a value as a sum of one row."""
        return RingSum(self.ring, value)


@record
class RingFactors:
    """The callables of an aggregate over a ring: one, or one for each binding."""

    ring: Ring[Any]
    of: Any

    def value(self, of: Shapes) -> Lifted:
        """Return the product of the values of bindings with some shapes, in their order.

        Raises
        ------
        PlanError: there are not as many callables as bindings, or one is no callable of a row.
        """
        count, into = len(of), constant(RingValue(self.ring), "value")
        if not isinstance(self.of, list | tuple):
            whole = as_expression(take_callable(self.of, count, ROLE), of)
            return whole.with_body(Call(into, (whole.body,)))
        if len(self.of) != count:
            raise PlanError(
                f"of= has {len(self.of)} callables, but the rows have {count} bindings\n"
                "  give one for each binding, or None: of=[lambda a: ..., None]"
            )
        factors: list[Expr] = []
        origins: list[Opaque] = []
        for place, function in enumerate(self.of):
            if function is not None:
                one = as_expression(take_callable(function, 1, ROLE), (of[place],))
                body = substitute(one.body, (Parameter(place),))
                factors.append(Call(into, (body,)))
                origins += one.origins
        made = factors[0] if factors else Call(into, (constant(self.ring.one),))
        for factor in factors[1:]:
            made = Operation("*", (made, factor))
        return Lifted(made, row_names(count), tuple(origins), count)


def take_factors(ring: Any, of: Any) -> RingFactors:
    """Return the callables of an aggregate over a ring.

    Raises
    ------
    PlanError: `ring` is no ring, or there are no callables.
    """
    if not isinstance(ring, Ring):
        raise PlanError(f"ring= takes a reactive.rings.Ring, not {ring!r:.80}")
    if of is None or isinstance(of, str):
        raise PlanError(
            "Aggregate over a ring takes of=: callables from rows to values of the ring\n"
            "  of=[lambda a: ..., lambda b: ...], one for each binding"
        )
    return RingFactors(ring, of)


# The ring of counts, sums and sums of products.

Element: TypeAlias = tuple[int, tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]
"""A number of rows; the features that were read; the sum of each; the sums of their products, by
rows of the upper triangle. Sums have `BITS` bits behind the point, those of products twice that."""
SCALE = 1 << BITS
ZERO: Element = (0, (), (), ())
ONE: Element = (1, (), (), ())


class FeatureSums:
    """Count, sums and sums of products of the features of some rows, exact, rounded when read.

    Two are equal if all these are. The text has the count and the means.

    >>> from reactive.rings import Covariance
    >>> xy = Covariance("x", "y")
    >>> moments = xy.shown(xy.add(xy.lift(x=1, y=3), xy.lift(x=2, y=5)))
    >>> moments
    FeatureSums(count=2, x=1.5, y=4.0)
    >>> moments.covariance("x", "y")
    0.5
    """

    __slots__ = ("_element", "names")

    def __init__(self, names: tuple[str, ...], element: Element) -> None:
        self.names = names
        self._element = element

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureSums):
            return NotImplemented
        if self.names != other.names:
            return False
        mine, theirs = self._element, other._element
        if mine[1] == theirs[1]:
            return mine == theirs
        return self._ordered() == other._ordered()

    def __hash__(self) -> int:
        return hash((self._element[0], sum(self._element[2])))

    def __repr__(self) -> str:
        means = "".join(f", {name}={self.mean(name)}" for name in self.names)
        return f"FeatureSums(count={self.count}{means})"

    @property
    def count(self) -> int:
        """The number of rows."""
        return self._element[0]

    def _ordered(self) -> Element:
        """Return the sums of all features, in the order of the names."""
        return _widened(self._element, tuple(range(len(self.names))))

    def _sum(self, name: str) -> Fraction:
        features, sums = self._element[1:3]
        place = self._place(name)
        return Fraction(sums[features.index(place)] if place in features else 0) / SCALE

    def _product(self, one: str, other: str) -> Fraction:
        a, b = self._place(one), self._place(other)
        found = _pairs(self._element[1], self._element[3]).get((min(a, b), max(a, b)), 0)
        return Fraction(found) / SCALE**2

    def sum(self, name: str) -> float:
        """Return the sum of a feature."""
        return nearest_float(self._sum(name))

    def product(self, one: str, other: str) -> float:
        """Return the sum of the products of two features."""
        return nearest_float(self._product(one, other))

    def mean(self, name: str) -> float | None:
        """Return the mean of a feature; None without rows."""
        return nearest_float(self._sum(name) / self.count) if self.count else None

    def covariance(self, one: str, other: str) -> float | None:
        """Return the covariance of two features, of all rows; None without rows."""
        if not self.count:
            return None
        means = self._sum(one) * self._sum(other) / self.count
        return nearest_float((self._product(one, other) - means) / self.count)

    def regression(
        self, target: str, on: Sequence[str] | None = None, *, ridge: float = 0.0
    ) -> dict[str, float] | None:
        """Return the coefficients of the linear regression of a feature on others.

        Parameters
        ----------
        target: the feature that is predicted.
        on: the other features; by default all of them.
        ridge: the weight of the squares of the coefficients but the intercept.

        The intercept has the name `""`. The equations are solved exactly; the result is None if
        they have no unique solution, as with too few rows. Cost: O(features ** 3).

        >>> from reactive.rings import Covariance
        >>> xy = Covariance("x", "y")
        >>> rows = [xy.lift(x=1, y=3), xy.lift(x=2, y=5)]
        >>> xy.shown(xy.add(*rows)).regression("y")
        {'': 1.0, 'x': 2.0}
        """
        names = [n for n in self.names if n != target] if on is None else list(on)
        size = len(names)
        rows = [[Fraction(self.count), *map(self._sum, names)]]
        rows += [[self._sum(a), *(self._product(a, b) for b in names)] for a in names]
        for place in range(1, size + 1):
            rows[place][place] += Fraction(ridge)
        right = [self._sum(target), *(self._product(n, target) for n in names)]
        found = _solve([[*row, value] for row, value in zip(rows, right, strict=True)])
        if found is None:
            return None
        return dict(zip(("", *names), map(nearest_float, found), strict=True))

    def _place(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            known = ", ".join(self.names)
            raise KeyError(f"no feature {name!r}; there are {known}") from None


def _solve(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Solve linear equations by elimination; None if there is not exactly one solution."""
    size = len(rows)
    for place in range(size):
        pivot = next((n for n in range(place, size) if rows[n][place]), None)
        if pivot is None:
            return None
        rows[place], rows[pivot] = rows[pivot], rows[place]
        head = rows[place][place]
        rows[place] = [value / head for value in rows[place]]
        for number, row in enumerate(rows):
            if number != place and row[place]:
                factor = row[place]
                rows[number] = [a - factor * b for a, b in zip(row, rows[place], strict=True)]
    return [row[-1] for row in rows]


class Covariance(Ring[Element]):
    """The ring of counts, sums and sums of products of numeric features.

    Parameters
    ----------
    names: the names of the features.

    `lift(name=value, ...)` is the value of a row; features of one row of a join may come from
    several tables. The value of the aggregate is a `FeatureSums`, which has means, covariances and
    regressions. Sums are exact: floats are added as integers over a power of two, so that deleted
    rows leave nothing behind. NaN and infinities are refused.

    >>> from reactive import Aggregate, Database
    >>> from reactive.rings import Covariance
    >>> xy = Covariance("x", "y")
    >>> points = Database().table(tuple[float, float], name="points")
    >>> view = points.aggregate(Aggregate(ring=xy, of=lambda p: xy.lift(x=p[0], y=p[1])))
    >>> moments = view.materialize()
    >>> points.add_all([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])
    >>> moments.value.regression("y", on=["x"])
    {'': 1.0, 'x': 2.0}
    """

    def __init__(self, *names: str) -> None:
        if not names or len(set(names)) < len(names):
            raise PlanError(f"Covariance takes different names of features, not {names!r}")
        super().__init__(ZERO, ONE, _add, _multiply, _negate, scale=_scale, result=_Shown(names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        assert isinstance(self.result, _Shown)
        return self.result.names

    def lift(self, **values: Any) -> Element:
        """Return the value of a row with some features.

        Raises
        ------
        PlanError: a name is no feature. ValueError, TypeError: a value is no finite number.
        """
        sums = [v << BITS if v.__class__ is int else _exact(v) for v in values.values()]
        count = len(sums)
        return (
            1,
            _places(self.names, tuple(values)),
            tuple(sums),
            tuple([sums[i] * sums[j] for i in range(count) for j in range(i, count)]),
        )

    def is_zero(self, value: Element) -> bool:
        """Return True if a value is that of no rows."""
        return not (value[0] or any(value[2]) or any(value[3]))


@dataclass(frozen=True)
class _Shown:
    """The function from a value of the ring to its moments."""

    names: tuple[str, ...]

    def __call__(self, value: Element) -> FeatureSums:
        return FeatureSums(self.names, value)


@lru_cache(maxsize=256)
def _places(names: tuple[str, ...], given: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of features."""
    for name in given:
        if name not in names:
            raise PlanError(f"no feature {name!r}\n  the features are {', '.join(names)}")
    return tuple(map(names.index, given))


def _exact(value: Any) -> Any:
    """Return a number times `SCALE`: an integer, or a fraction for floats with smaller bits."""
    if value.__class__ is int:
        return value << BITS
    if value.__class__ is float:
        scaled = value * UP * DOWN  # beyond the largest numbers it is infinite, which is no integer
        if scaled.is_integer():
            return int(scaled)
    try:
        exact = Fraction(value) * SCALE if not isinstance(value, str) else None
    except (TypeError, ValueError, OverflowError):  # also NaN and infinities
        exact = None
    if exact is None:
        is_number = isinstance(value, float | Decimal)
        raise (ValueError if is_number else TypeError)(
            f"a feature is a {'finite ' if is_number else ''}number, not {value!r:.60}"
        )
    return exact.numerator if exact.denominator == 1 else exact


def _pairs(features: Sequence[int], products: Sequence[Any]) -> dict[tuple[int, int], Any]:
    """Return the sums of products by pairs of features in order."""
    count = len(features)
    pairs = [(features[i], features[j]) for i in range(count) for j in range(i, count)]
    return {(min(p), max(p)): q for p, q in zip(pairs, products, strict=True)}


def _add(a: Element, b: Element) -> Element:
    if a[1] == b[1]:
        return (
            a[0] + b[0],
            a[1],
            tuple(map(operator.add, a[2], b[2])),
            tuple(map(operator.add, a[3], b[3])),
        )
    if a == ZERO or b == ZERO:
        return b if a == ZERO else a
    features = tuple(sorted({*a[1], *b[1]}))
    one, other = _widened(a, features), _widened(b, features)
    return _add(one, other)


def _widened(value: Element, features: tuple[int, ...]) -> Element:
    """Return a value with more features, whose sums are 0, in their order."""
    count, own, sums, products = value
    of, of_pairs = dict(zip(own, sums, strict=True)), _pairs(own, products)
    pairs = combinations_with_replacement(features, 2)
    return (
        count,
        features,
        tuple(of.get(n, 0) for n in features),
        tuple(of_pairs.get(pair, 0) for pair in pairs),
    )


def _negate(a: Element) -> Element:
    return _scale(a, -1)


def _scale(a: Element, count: int) -> Element:
    times, features, sums, products = a
    return (
        times * count,
        features,
        tuple([each * count for each in sums]),
        tuple([each * count for each in products]),
    )


def _multiply(a: Element, b: Element) -> Element:
    """Return the product of the values of two rows: that of the row with the features of both.

    With counts c, sums s and sums of products Q it is
    (c1 * c2,  c2 * s1 + c1 * s2,  c2 * Q1 + c1 * Q2 + s1 * s2' + s2 * s1').
    """
    (one, mine), (other, theirs) = a[:2], b[:2]
    if not mine:
        return b if one == 1 else _scale(b, one)
    if not theirs:
        return a if other == 1 else _scale(a, other)
    multiply = _product_of_different(mine, theirs)
    return _multiply_widened(a, b) if multiply is None else multiply(a, b)


@lru_cache(maxsize=256)
def _product_of_different(
    mine: tuple[int, ...], theirs: tuple[int, ...]
) -> Callable[[Element, Element], Element] | None:
    """Build the product of values with certain features; return None if these share one.

    def multiply(left, right):                                      of one feature and another
        c1, _, (s0,), (q0_0,) = left
        c2, _, (t1,), (q1_1,) = right
        return c1 * c2, (0, 1), (s0 * c2, t1 * c1,), (q0_0 * c2, s0 * t1, q1_1 * c1,)
    """
    if not set(mine).isdisjoint(theirs):
        return None
    own, more = range(len(mine)), range(len(mine), len(mine) + len(theirs))
    sums = [f"sum{i} * c2" for i in own] + [f"sum{i} * c1" for i in more]
    every = combinations_with_replacement((*own, *more), 2)
    products = [
        f"sum{i} * sum{j}"
        if i in own and j in more
        else f"of{i}_{j} * {'c1' if i in more else 'c2'}"
        for i, j in every
    ]
    lines = ["def multiply(left, right):"]
    for side, places, count in (("left", own, "c1"), ("right", more, "c2")):
        read = "".join(f"sum{i}, " for i in places)
        pairs = "".join(f"of{i}_{j}, " for i, j in combinations_with_replacement(places, 2))
        lines.append(f"    {count}, _, ({read}), ({pairs}) = {side}")
    shown = f"({', '.join(sums)},), ({', '.join(products)},)"
    lines.append(f"    return c1 * c2, {mine + theirs!r}, {shown}")
    made: Callable[[Element, Element], Element] = build(
        "multiply", "\n".join([*lines, ""]), BoundValues()
    )
    return made


def _multiply_widened(a: Element, b: Element) -> Element:
    """Return the product of values that share features."""
    features = tuple(sorted({*a[1], *b[1]}))
    one, _, sums, products = _widened(a, features)
    other, _, more_sums, more_products = _widened(b, features)
    pairs = combinations_with_replacement(range(len(features)), 2)
    return (
        one * other,
        features,
        tuple(other * s + one * t for s, t in zip(sums, more_sums, strict=True)),
        tuple(
            other * p + one * q + sums[i] * more_sums[j] + sums[j] * more_sums[i]
            for (i, j), p, q in zip(pairs, products, more_products, strict=True)
        ),
    )


# The ring of polynomials, which tell how a row was derived.

Monomial: TypeAlias = tuple[tuple[str, int], ...]
"""Variables with their exponents, in the order of the variables."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of named variables, with integer coefficients.

    >>> from reactive.rings import variable
    >>> x, y = variable("x"), variable("y")
    >>> (x + y) * x
    x*y + x^2
    >>> ((x + y) * x).value(x=2, y=3)
    10
    """

    terms: tuple[tuple[Monomial, int], ...] = ()
    """The coefficient of each product, in the order of the products; none is 0."""

    def __add__(self, other: Polynomial) -> Polynomial:
        return _polynomial([*self.terms, *other.terms])

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _polynomial(
            [
                (_product_of(one, two), times * more)
                for one, times in self.terms
                for two, more in other.terms
            ]
        )

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def scaled(self, count: int) -> Polynomial:
        """Return the polynomial times an integer."""
        return Polynomial(tuple((m, times * count) for m, times in self.terms) if count else ())

    def value(self, default: int = 1, /, **values: Any) -> Any:
        """Return the value for values of the variables; others have the value `default`.

        With True for trusted variables and False for others, it is 0 if no derivation is trusted.
        """
        total: Any = 0
        for monomial, times in self.terms:
            for name, exponent in monomial:
                times = times * values.get(name, default) ** exponent
            total = total + times
        return total

    def variables(self) -> frozenset[str]:
        """Return the names of the variables."""
        return frozenset(name for monomial, _ in self.terms for name, _ in monomial)

    def __repr__(self) -> str:
        return " + ".join(_show_term(*each) for each in self.terms) or "0"


def _show_term(monomial: Monomial, times: int) -> str:
    names = [name if n == 1 else f"{name}^{n}" for name, n in monomial]
    return "*".join([str(times)] * (times != 1 or not names) + names)


def _polynomial(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    """Return the polynomial with the sum of some terms."""
    total: dict[Monomial, int] = {}
    for monomial, times in terms:
        total[monomial] = total.get(monomial, 0) + times
    return Polynomial(tuple(sorted((m, times) for m, times in total.items() if times)))


def _product_of(one: Monomial, other: Monomial) -> Monomial:
    exponents: dict[str, int] = dict(one)
    for name, exponent in other:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


def variable(name: str) -> Polynomial:
    """Return the polynomial of one variable: the value of a row of that name.

    >>> from reactive.rings import variable
    >>> variable("a") * variable("b")
    a*b
    """
    return Polynomial(((((name, 1),), 1),))


POLYNOMIALS: Ring[Polynomial] = Ring(
    Polynomial(),
    Polynomial((((), 1),)),
    operator.add,
    operator.mul,
    operator.neg,
    scale=Polynomial.scaled,
)
"""The ring of polynomials: in which ways a row was derived from named rows."""
