"""Aggregates over rings against plain sums over the pairs, after every commit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Aggregate, Count, Database, PlanError, Sum
from reactive.rings import INTEGERS, POLYNOMIALS, Covariance, Ring, check_ring, variable
from tests.budget import examples
from tests.thresholds import LOWEST, thresholds


class A(NamedTuple):
    key: int
    x: Any


class B(NamedTuple):
    key: int
    to: int
    y: Any


class C(NamedTuple):
    to: int
    z: Any


XYZ = Covariance("x", "y", "z")
Matrix = tuple[int, int, int, int]


def times(a: Matrix, b: Matrix) -> Matrix:
    return (
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
    )


MATRICES: Ring[Matrix] = Ring(
    (0, 0, 0, 0),
    (1, 0, 0, 1),
    lambda a, b: tuple(map(operator.add, a, b)),
    times,
    lambda a: tuple(map(operator.neg, a)),  # type: ignore[arg-type, return-value]
    is_commutative=False,
)
NUMBERS = st.sampled_from([0, 1, -2, 0.1, 0.5, 1e300, 1e-300, True, Decimal("0.3")])
KEYS = st.integers(0, 2)
CHANGES = st.lists(
    st.tuples(st.sampled_from("abc"), KEYS, KEYS, NUMBERS, st.sampled_from([1, 1, 2, -1, -1])),
    max_size=5,
)
HISTORIES = st.lists(st.tuples(CHANGES, st.booleans()), max_size=7)


def sums(rows: list[tuple[A, B, C]]) -> dict[Any, Fraction]:
    """Return the exact count, sums and sums of products, as plain loops over the pairs."""
    found: dict[Any, Fraction] = {(): Fraction(0)}
    for a, b, c in rows:
        of = {"x": Fraction(a.x), "y": Fraction(b.y), "z": Fraction(c.z)}
        found[()] += 1
        for one in of:
            found[one] = found.get(one, Fraction(0)) + of[one]
            for other in of:
                pair = (one, other)
                found[pair] = found.get(pair, Fraction(0)) + of[one] * of[other]
    return found


def rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def assert_sums(moments: Any, rows: list[tuple[A, B, C]]) -> None:
    expected = sums(rows)
    assert moments.count == expected[()]
    for one in "xyz":
        assert moments.sum(one) == rounded(expected.get(one, Fraction(0)))
        for other in "xyz":
            found = moments.product(one, other)
            assert found == rounded(expected.get((one, other), Fraction(0)))


def over(ring: Ring[Any], *of: Callable[[Any], Any] | None) -> Aggregate[Any, Any, Any, Any]:
    return Aggregate(ring=ring, of=list(of))


@pytest.mark.parametrize("given_settings", [{}, LOWEST], ids=["as shipped", "at their lowest"])
@examples(12)
@given(history=HISTORIES)
def test_sums_of_products_are_those_over_the_pairs(
    given_settings: dict[str, int], history: list[tuple[list[Any], bool]]
) -> None:
    with thresholds(given_settings), Database() as db:
        a, b, c = db.table(A, name="a"), db.table(B, name="b"), db.table(C, name="c")
        joined = a.join(b, on=lambda a, b: a.key == b.key).join(c, on=lambda a, b, c: b.to == c.to)
        moments = over(
            XYZ, lambda a: XYZ.lift(x=a.x), lambda b: XYZ.lift(y=b.y), lambda c: XYZ.lift(z=c.z)
        )
        whole = joined.aggregate(moments).materialize()
        groups = joined.group_by(lambda a, b, c: c.to).aggregate(moments, Count()).materialize()
        matrix = over(
            MATRICES,
            lambda a: (1, a.key, 0, 1),
            lambda b: (b.key, 1, 1, b.to),
            lambda c: (1, 0, c.to, 2),
        )
        matrices = joined.aggregate(matrix).materialize()
        # the last table in the middle of the products
        other = a.join(c, on=lambda a, c: a.key == c.to).join(b, on=lambda a, c, b: c.to == b.to)
        turned = other.aggregate(
            over(
                MATRICES,
                lambda a: (1, a.key, 0, 1),
                lambda c: (1, 0, c.to, 2),
                lambda b: (b.key, 1, 1, b.to),
            )
        ).materialize()
        ways = joined.aggregate(
            over(POLYNOMIALS, lambda a: variable(f"a{a.key}"), None, lambda c: variable(f"c{c.to}"))
        ).materialize()
        tables = {"a": a, "b": b, "c": c}
        for changes, fails in history:
            try:
                with db.transaction():
                    for name, key, to, number, weight in changes:
                        row = {"a": A(key, number), "b": B(key, to, number), "c": C(to, number)}
                        table: Any = tables[name]
                        if weight > 0:
                            table.add(row[name], weight)
                        else:
                            table.discard(row[name])
                    if fails:
                        raise LookupError
            except LookupError:
                pass
            rows = [(p, q, r) for p in a for q in b for r in c if p.key == q.key and q.to == r.to]
            assert_sums(whole.value, rows)
            assert sorted(row[0] for row in groups) == sorted({r.to for _, _, r in rows})
            for to, of_group, count in groups:
                own = [row for row in rows if row[2].to == to]
                assert count == len(own)
                assert_sums(of_group, own)
            total, turn = MATRICES.zero, MATRICES.zero
            for p, q, r in rows:
                product = times((1, p.key, 0, 1), (q.key, 1, 1, q.to))
                total = MATRICES.add(total, times(product, (1, 0, r.to, 2)))
            for p in a:
                for r in c:
                    for q in b:
                        if p.key == r.to == q.to:
                            product = times((1, p.key, 0, 1), (1, 0, r.to, 2))
                            turn = MATRICES.add(turn, times(product, (q.key, 1, 1, q.to)))
            assert (matrices.value, turned.value) == (total, turn)
            poly = POLYNOMIALS.zero
            for p, _, r in rows:
                poly += variable(f"a{p.key}") * variable(f"c{r.to}")
            assert ways.value == poly and ways.value.value() == len(rows)
            for view in (whole, groups, matrices, turned, ways):
                view.verify()
        for table in tables.values():
            table.clear()
        assert whole.value.count == 0 and list(groups) == []
        assert whole.stats().rows == 2


def test_a_change_touches_keys_and_not_pairs() -> None:
    with Database() as db:
        a, b = db.table(A, name="a"), db.table(B, name="b")
        joined = a.join(b, on=lambda a, b: a.key == b.key)
        xy = over(XYZ, lambda a: XYZ.lift(x=a.x), lambda b: XYZ.lift(y=b.y))
        view = joined.aggregate(xy).materialize()
        a.add_all(A(0, n) for n in range(300))
        b.add_all(B(0, n, n) for n in range(300))
        before = view.stats().touched
        b.update(B(0, 7, 7), B(0, 7, 8))
        assert view.stats().touched - before < 12
        assert view.value.count == 90_000
        assert "sums by" in str(view.explain())


def test_the_laws_of_a_ring_are_checked() -> None:
    check_ring(INTEGERS, [-3, 0, 2])
    check_ring(MATRICES, [(1, 2, 0, 1), (0, 1, 1, 0)])
    check_ring(POLYNOMIALS, [variable("x"), variable("x") + variable("y")])
    check_ring(XYZ, [XYZ.lift(x=0.1), XYZ.lift(y=2, z=3), XYZ.lift(z=1, x=5), XYZ.lift()])
    swapped = Ring((0, 0, 0, 0), (1, 0, 0, 1), MATRICES.add, times, MATRICES.negate)
    with pytest.raises(PlanError, match="no ring: multiply"):
        check_ring(swapped, [(1, 2, 0, 1), (0, 1, 1, 0)])


MADE: Any = Aggregate


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MADE(ring=3, of=[None]), "ring= takes a reactive.rings.Ring, not 3"),
        (lambda: MADE(ring=INTEGERS), r"takes of=: callables"),
        (lambda: MADE(0, ring=INTEGERS, of=[None]), "takes a ring, or zero, add and remove"),
        (lambda: MADE(0), "takes zero, add and remove, or a ring"),
        (lambda: MADE(ring=INTEGERS, of=[None, None]), "has 2 callables, but .* 1 bindings"),
        (lambda: MADE(ring=INTEGERS, of=[3]), "takes a callable, not 3"),
        (lambda: Covariance("x", "x"), "takes different names"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    rows = Database().table(A, name="a")
    with pytest.raises(PlanError, match=message):
        rows.aggregate(call())


def test_a_value_that_cannot_be_added_rolls_the_commit_back() -> None:
    rows = Database().table(A, name="a")
    view = rows.aggregate(Aggregate(ring=XYZ, of=lambda a: XYZ.lift(x=a.x)), Sum("key"))
    made = view.materialize()
    rows.add(A(1, 2.5))
    for wrong in (float("nan"), float("inf"), None, "1"):
        with pytest.raises((ValueError, TypeError), match=r"a feature is a (finite )?number, not"):
            rows.add(A(2, wrong))
    assert (made.value[0].sum("x"), made.value[1]) == (2.5, 1)
    made.verify()
    with pytest.raises(PlanError, match="no feature 'w'"):
        XYZ.lift(w=3)
