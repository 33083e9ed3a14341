"""Conditions of a join, split by the side that they read, and the ranges that they compare.

`side_conditions_of` finds the parts of a join's predicate that one side decides.

    on  s.last_name == m.last_name and s.age > 30 and s.name < m.name

    left:   key s.last_name, test s.age > 30
    right:  key m.last_name
    rest:   s.name < m.name

The parts are taken in their order. A part over both sides that is no equation is residual. If it
may raise, all later parts are residual, too: they would drop pairs that make it raise. Before an
equation, or a comparison of both sides, operands are checked instead, if it raises only for
operands of other classes:

    on  o.qty < c.tier and o.customer == c.id

    left:   test that o.qty is a number, key o.customer
    right:  test that c.tier is a number, key c.id
    rest:   o.qty < c.tier

Equations in other words are keys, if their operands pass such checks:

    on  not o.customer != c.id      key o.customer          key c.id
    on  o.day - c.first == 7        key o.day               key c.first + 7, for ints

    on  attempt(o.day - c.first, nan) == 7      alike; the test itself is asked of the partners, too

A check is true or raises, so a row of other operands is paired with all rows, as any row that
raises.

An equation in a guard, `unless_raises(x[0] == y[0])`, is a key too: a guard keeps a row that
raises, and such a row is paired with all rows anyway. If its needs read both sides, their operands
are checked. So are those of an equation in other words that is attempted, or in a guard.

A test that something raises, `not succeeds(o.qty < c.tier)`, is true only for rows of other
operands: it gets a key that matches nothing, `nan == nan`. So does a constant that is false.

For a join with written keys, only tests that cannot raise are taken.

`ranges_of` finds comparisons of a value of one side with a range of the other.

    on  a.lo <= b.t < a.hi and a.k != b.k

    left:   from a.lo to a.hi, an interval
    right:  from b.t to b.t, a point
    what matches:   left low <= right high,  right low < left high

Two intervals match if they overlap; one comparison alone is a range without an end. The comparisons
stay part of the residual predicate, which tests the pairs again: they only exclude pairs. So a
comparison of SQL integers is one of plain ints: `attempt(INTEGER(a.x - b.x) < 5)` is false where
`a.x - b.x < 5` is, and where the difference is out of bounds.

Sound:  the parts before the comparisons cannot raise, or one side decides them. The engine looks up
        only values that are known to compare without raising (`reactive.engine.collections.zset`).
Needs:  a join without equations: an index by key is as good or better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NAN,
    Again,
    Attempt,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Guard,
    Lifted,
    Operation,
    Slot,
    conjunction,
    conjuncts,
    reads,
    walk,
)
from optimizer.expressions import cuts, turns
from optimizer.expressions.knowledge import Shapes, total
from optimizer.expressions.operand_checks import (
    Comparison,
    checks_of_failure,
    comparisons_with_checks,
    equation_with_checks,
    has_bounds,
    merged_comparison,
    operand_checks,
    orders_in,
    without_attempts,
)
from optimizer.expressions.text import first, one_row, without_none_tests
from optimizer.plans.properties import bindings, fact, once, row_shape, shapes
from optimizer.record import record
from optimizer.traverse import called

COMPARES = frozenset({"<", "<=", ">", ">=", "in"})
AnyJoin = plan.Product | plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


@record
class SideTerm:
    """A test of a row, or a part of its key. A row passes if a part of a guard raises."""

    function: Lifted
    is_key: bool
    is_guard: bool = False


@record
class SideConditions:
    """Conditions that one side of a join decides, before there are pairs.

    Tests and keys of a side are evaluated in the order of the predicate. A row that fails a test is
    left out. A row that makes one raise is paired with all rows, and the pairs are tested with the
    whole predicate. Other rows are paired by equal keys, and tested with the `residual` predicate.
    """

    left: tuple[SideTerm, ...]
    right: tuple[SideTerm, ...]
    residual: Lifted | None


def join_match(node: AnyJoin) -> plan.Match:
    """Return the match of a join; an empty one for a product."""
    return plan.Match() if isinstance(node, plan.Product) else node.match


def residual(node: AnyJoin) -> Function | None:
    """Return the predicate that pairs with equal keys must still pass; None if there is none."""
    found = side_conditions_of(node)
    return join_match(node).on if found is None else found.residual


def side_conditions_of(node: AnyJoin) -> SideConditions | None:
    """Return the conditions that the sides of a join decide, cached.

    Return None if the predicate was not lifted, or has no part of one side.
    """
    return once(node, "side_conditions", _find_side_conditions)


def has_keys(node: AnyJoin) -> bool:
    """Return True if pairs are looked up by a key, written or found in the predicate."""
    found = side_conditions_of(node)
    is_found = found is not None and any(step.is_key for step in found.left)
    return is_found or join_match(node).left_key is not None


def side_of(expr: Expr, count: int) -> str | None:
    """Return the side of a join that an expression reads; the left side has `count` bindings.

    Return None if it reads both sides, or neither.
    """
    read = reads(expr)
    if not read:
        return None
    if read == {count}:
        return "right"
    return "left" if count not in read else None


def equation_of(test: Expr, count: int) -> tuple[Expr, Expr] | None:
    """Return the left and the right side of an equation between the sides of a join.

    Return None for any other test. `count` is the number of bindings of the left.
    """
    if not isinstance(test, Operation) or test.operator != "==":
        return None
    a, b = test.operands
    match side_of(a, count), side_of(b, count):
        case "left", "right":
            return a, b
        case "right", "left":
            return b, a
        case _:
            return None


def of_left(on: Lifted, expr: Expr, count: int) -> Lifted:
    """Return a part of a predicate that reads the left side, as a callable of the left bindings.

    `count` is the number of left bindings.
    """
    return Lifted(expr, on.names[:count], on.origins, count)


def of_right(on: Lifted, expr: Expr, count: int) -> Lifted:
    """Return a part of a predicate that reads the right side, as a callable of the right row.

    `count` is the number of left bindings.
    """
    return Lifted(one_row(expr, count, 1), on.names[count:], on.origins, 1)


def _find_side_conditions(node: AnyJoin) -> SideConditions | None:
    """Return the tests of each side of a join, and the rest; None if no test is of one side."""
    on = join_match(node).on
    if not isinstance(on, Lifted):
        return None
    finder = _Finder(node, on)
    tests = conjuncts(on.body)
    for place, test in enumerate(tests):
        finder.take(test, tests[place + 1 :])
    if not (finder.left or finder.right):
        return None
    rest = on.with_body(conjunction(tuple(finder.residual))) if finder.residual else None
    return SideConditions(tuple(finder.left), tuple(finder.right), rest)


def pair_shapes(node: AnyJoin) -> Shapes:
    """Return the shapes of the arguments of a join's predicate."""
    return (*shapes(node.left), row_shape(node.right))


def may_raise(side: tuple[SideTerm, ...], of: Shapes) -> bool:
    """Return True if a side has steps that may raise."""
    return not all(step.is_guard or total(step.function.body, of) for step in side)


class _Finder:
    """Splits the predicate of a join into tests of its sides, parts of keys, and the rest."""

    def __init__(self, node: AnyJoin, on: Lifted) -> None:
        self._node = node
        self._on = on
        self._count = bindings(node.left)
        self._shapes = pair_shapes(node)
        self._blocked = False
        self._is_strict = join_match(node).left_key is not None
        self.left: list[SideTerm] = []
        self.right: list[SideTerm] = []
        self.residual: list[Expr] = []

    def take(self, test: Expr, later: Sequence[Expr]) -> None:
        """Add a test to the tests of the sides, or to the residual; after one that may raise, the
        `later` ones are residual, too, unless operands are checked."""
        if not self._blocked and not self._is_strict and self._takes_all(test, later):
            return
        self._take_failure(test)
        side = side_of(test, self._count)
        equation = None if self._blocked or self._is_strict else self._equation(test)
        if equation is not None:
            is_guard = isinstance(test, Guard)
            self.left.append(SideTerm(self._left(equation[0]), is_key=True, is_guard=is_guard))
            self.right.append(SideTerm(self._right(equation[1]), is_key=True, is_guard=is_guard))
        elif not self._blocked and not self._is_strict and self._takes_as_equation(test):
            return
        elif side == "left" and not self._blocked and self._drops("left", test):
            self.left.append(SideTerm(self._left(test), is_key=False))
        elif side == "right" and not self._blocked and self._drops("right", test):
            self.right.append(SideTerm(self._right(test), is_key=False))
        else:
            self.residual.append(test)
            self._blocked = self._blocked or not (
                total(test, self._shapes) or self._checks(test, later)
            )

    def _take_failure(self, test: Expr) -> None:
        """Add a key that matches nothing for a test that something raises, or that is false.

        Rows that pass the checks of its operands raise nothing; other rows meet all rows.
        """
        is_join = isinstance(self._node, plan.Join) and not self._is_strict
        if not is_join or self._blocked or side_of(test, self._count) is not None:
            return
        checks = {} if _is_false(test) else checks_of_failure(test, self._shapes)
        if checks is not None:
            self._add_checks(checks)
            self.left.append(SideTerm(self._left(NAN), is_key=True))
            self.right.append(SideTerm(self._right(NAN), is_key=True))

    def _checks(self, test: Expr, later: Sequence[Expr]) -> bool:
        """Add checks of the operands of a test, under which it cannot raise, to the sides.

        Return False if there are none, or if they would not pay: no `later` test is an equation or,
        after a test that is none itself, a comparison of the sides.
        """
        pays = any(map(self._is_equation, later)) or (
            not self._compares(test) and any(map(self._compares, later))
        )
        if self._is_strict or not pays:
            return False
        checks = operand_checks(test, self._shapes)
        if checks is None:
            return False
        self._add_checks(checks)
        return True

    def _add_checks(self, checks: Mapping[Expr, Expr]) -> None:
        """Add checks to the tests of the sides that their operands are of."""
        for operand, check in checks.items():
            is_right = side_of(operand, self._count) == "right"
            steps = self.right if is_right else self.left
            step = SideTerm((self._right if is_right else self._left)(check), is_key=False)
            if step not in steps:
                steps.append(step)

    def _compares(self, test: Expr) -> bool:
        """Return True for a test that is a comparison of the sides, also in other words."""
        return bool(comparisons_of(test, self._count, self._shapes))

    def _is_equation(self, test: Expr) -> bool:
        """Return True for a test that is an equation of the sides, as written or in other words."""
        return equation_of(test, self._count) is not None or self._in_other_words(test) is not None

    def _in_other_words(self, test: Expr) -> tuple[Expr, Expr, dict[Expr, Expr]] | None:
        """Return the equation that a test is for checked operands, and the checks; None if it is
        none."""
        needs = test.needs if isinstance(test, Guard) else ()
        inner = test.test if isinstance(test, Guard) else without_attempts(test)
        plain = equation_of(inner, self._count) if needs else None
        found = (
            (*plain, {})
            if plain is not None
            else equation_with_checks(inner, self._shapes, lambda e: side_of(e, self._count))
        )
        checks = [operand_checks(need, self._shapes) for need in needs]
        if found is None or any(each is None for each in checks):
            return None
        left, right, merged = found
        for each in checks:
            merged |= each or {}
        return left, right, merged

    def _takes_as_equation(self, test: Expr) -> bool:
        """Add the key of a test that is an equation of checked operands; return False if it is
        none."""
        found = self._in_other_words(test)
        if found is None:
            return False
        left, right, checks = found
        self._add_checks(checks)
        self.left.append(SideTerm(self._left(left), is_key=True))
        self.right.append(SideTerm(self._right(right), is_key=True))
        if without_attempts(test) is not test:
            self.residual.append(test)  # a bound may make it false
        return True

    def _takes_all(self, test: Expr, later: Sequence[Expr]) -> bool:
        """Add the tests of `all([...])`, which are all evaluated, if none can raise for checked
        operands; return False if it is no such call."""
        match test:
            case Call(Constant(function), (Display("list" | "tuple", items),), ()):
                pass
            case _:
                return False
        if function is not all or not any(map(self._is_equation, items)):
            return False
        found = [operand_checks(item, self._shapes) for item in items]
        if any(each is None for each in found):
            return False
        for each in found:
            self._add_checks(each or {})
        for place, item in enumerate(items):
            self.take(item, (*items[place + 1 :], *later))
        return True

    def _equation(self, test: Expr) -> tuple[Expr, Expr] | None:
        """Return the sides of an equation, also of a guarded one; None for other tests."""
        if isinstance(test, Guard):
            return self._guarded_equation(test)
        return equation_of(test, self._count)

    def _guarded_equation(self, guard: Guard) -> tuple[Expr, Expr] | None:
        """Return the equation of a guard, each side after the `needs` that read it; None if there
        is none."""
        equation, sides = self._equation(guard.test), ("left", "right")
        needs = [(side_of(need, self._count), need) for need in guard.needs]
        if equation is None or not all(side in sides for side, _ in needs):
            return None
        own = [tuple(need for place, need in needs if place == side) for side in sides]
        return first(own[0], equation[0]), first(own[1], equation[1])

    def _drops(self, side: str, test: Expr) -> bool:
        """Return True if a row that fails the test of its side can be left out of the join."""
        if self._is_strict and not total(test, self._shapes):
            return False
        if isinstance(self._node, plan.Join):
            return True
        if isinstance(self._node, plan.OuterJoin):
            return side == "right" and self._node.kind == "left"
        return side == "right"

    def _left(self, expr: Expr) -> Lifted:
        return of_left(self._on, expr, self._count)

    def _right(self, expr: Expr) -> Lifted:
        return of_right(self._on, expr, self._count)


def _is_false(test: Expr) -> bool:
    """Return True for a constant that is false in all queries of one text."""
    return isinstance(test, Constant) and not isinstance(test, Slot) and test == FALSE


def strict(function: Function | None, of: Shapes) -> bool:
    """Return True if a callable, which may be None, may raise."""
    return function is not None and not (isinstance(function, Lifted) and total(function.body, of))


@record
class Span:
    """The ends of the range of a row. One may be missing; the ends of a point are the same."""

    low: Lifted | None
    high: Lifted | None

    @property
    def ends(self) -> tuple[Lifted, ...]:
        """The values to compute for a row: a point, or both ends."""
        found = [end for end in (self.low, self.high) if end is not None]
        return tuple(found[:1] if self.low == self.high else found)


@record
class Ranges:
    """The ranges of both sides, and True if they include their common ends.

    `closed` says it for the low end of the left and the high end of the right, and then for the low
    end of the right and the high end of the left.
    """

    left: Span
    right: Span
    closed: tuple[bool, bool]


@record
class Bounds:
    """The ranges that comparisons of the residual predicate give, and its `other` conditions."""

    ranges: Ranges
    other: tuple[Expr, ...]


def ranges_of(join: AnyJoin) -> Ranges | None:
    """Return the ranges in a join's predicate; None if it has keys or no comparison."""
    found = None if has_keys(join) else bounds_of(join)
    return None if found is None else found.ranges


def bounds_of(join: AnyJoin) -> Bounds | None:
    """Return the ranges among the pairs of equal keys, cached; None without a comparison."""
    return once(join, "bounds", _find_bounds)


def compares_order(join: plan.Join) -> bool:
    """Return True for a join without keys that compares values of both sides by their order, or a
    join with bounds."""
    on = None if has_keys(join) else residual(join)
    return bounds_of(join) is not None or (isinstance(on, Lifted) and compares_rows(on.body))


def _find_bounds(join: AnyJoin) -> Bounds | None:
    """Return the ranges in the residual predicate of a join; None if it has no comparison."""
    rest = residual(join)
    if not isinstance(rest, Lifted):
        return None
    comparisons, other = _split_comparisons(join, rest)
    count = bindings(join.left)
    return Bounds(ranges_by(rest, count, *comparisons), other) if comparisons else None


def _split_comparisons(join: AnyJoin, rest: Lifted) -> tuple[list[Comparison], tuple[Expr, ...]]:
    """Return the first comparison of the sides, and one that bounds it from the other end.

    Also return the conditions that do not follow from the two.
    """
    found: list[Comparison] = []
    by: list[Expr] = []  # the test of each
    other: list[Expr] = []
    used: list[Expr] = []
    count, of = bindings(join.left), pair_shapes(join)
    tests = conjuncts(rest.body)
    for place, test in enumerate(tests):
        plain, needs = (test.test, test.needs) if isinstance(test, Guard) else (test, ())
        is_free = all(_original(need) in used or total(need, of) for need in needs)
        comparisons = comparisons_of(plain, count, of) if is_free else ()
        is_used = is_decided_by(plain, comparisons)
        for comparison in comparisons:
            if not found or (len(found) == 1 and _is_other_end(found[0], comparison)):
                found.append(comparison)
                by.append(plain)
                continue
            place = 1 if _is_other_end(found[0], comparison) else 0
            both = merged_comparison(found[place], comparison) or merged_comparison(
                *(_turn_of(each, comparison, count, of) for each in (by[place], plain))
            )
            if both is None:
                is_used = False
            else:
                found[place] = both
        if is_used:
            used.append(plain)
        else:
            other.append(test)
        if len(found) == 2 or not (is_used or total(test, of) or _is_checked(join, test)):
            other += tests[place + 1 :]
            break
    return found, tuple(test for test in other if not _follows_from(test, used, of))


def _follows_from(test: Expr, comparisons: Sequence[Expr], of: Shapes) -> bool:
    """Return True for an attempted test for None of a value that an attempted order compares."""
    match without_none_tests(test, of):
        case Attempt(Operation("is not", (value, Constant(None))), otherwise) if otherwise == FALSE:
            every = [without_none_tests(each, of) for each in comparisons]
            tried = [e.of for e in every if isinstance(e, Attempt) and e.otherwise == FALSE]
            orders = [o for o in tried if isinstance(o, Operation) and any(orders_in(o))]
            return any(value in order.operands for order in orders)  # None has no order
        case _:
            return False


def _is_checked(join: AnyJoin, test: Expr) -> bool:
    """Return True if a test cannot raise for rows that pass the tests of their sides."""
    checks, conditions = operand_checks(test, pair_shapes(join)), side_conditions_of(join)
    if checks is None or conditions is None:
        return False
    count, on = bindings(join.left), join_match(join).on
    assert isinstance(on, Lifted)
    passed = {step.function.body for step in (*conditions.left, *conditions.right)}
    return all(
        (of_right if side_of(operand, count) == "right" else of_left)(on, check, count).body
        in passed
        for operand, check in checks.items()
    )


def comparisons_of(test: Expr, count: int, of: Shapes) -> tuple[Comparison, ...]:
    """Return the comparisons of the sides that a test is, or that follow from it for ints."""
    plain = comparison_of(test, count)
    if plain is not None:
        return (plain,)
    bare = without_attempts(test)
    side = lambda expr: side_of(expr, count)  # noqa: E731
    if not any(orders_in(bare)):
        return ()
    found = cuts.comparisons_with_cuts(bare, of, side) or comparisons_with_checks(bare, of, side)
    if is_decided_by(test, found):
        return found
    return turns.comparisons_with_turns(bare, of, side) or found


def is_decided_by(test: Expr, comparisons: Sequence[Comparison]) -> bool:
    """Return True if a test is true wherever its `comparisons_of` are."""
    orders = [*orders_in(without_attempts(test))]
    return bool(comparisons) and len(comparisons) >= len(orders) and not has_bounds(test)


def _turn_of(test: Expr, like: Comparison, count: int, of: Shapes) -> Comparison | None:
    """Return a test as a comparison of a moment with turns, of the same end as another one."""
    bare = without_attempts(test)
    found = turns.comparisons_with_turns(bare, of, lambda expr: side_of(expr, count))
    is_one = len(found) == 1 and not _is_other_end(found[0], like)
    return found[0] if is_one else None


def compares_rows(expr: Expr) -> bool:
    """Return True if an expression has a part that compares values of several bindings."""
    return any(
        isinstance(part, Operation) and part.operator in COMPARES and len(reads(part)) > 1
        for part in walk(expr)
    )


def comparison_of(test: Expr, count: int) -> Comparison | None:
    """Return a test by `<`, `<=`, `>` or `>=` as a comparison between the sides of a join.

    Return None for any other test, also an equation. `count` is the number of bindings of the left.
    """
    if isinstance(test, Attempt) and test.otherwise == FALSE:
        test = test.of
    if not isinstance(test, Operation) or test.operator not in ("<", "<=", ">", ">="):
        return None
    less, greater = test.operands if test.operator[0] == "<" else test.operands[::-1]
    closed = test.operator.endswith("=")
    match side_of(less, count), side_of(greater, count):
        case "left", "right":
            return Comparison(less, greater, left_is_low=True, closed=closed)
        case "right", "left":
            return Comparison(greater, less, left_is_low=False, closed=closed)
        case _:
            return None


def _original(test: Expr) -> Expr:
    """Return the test that is evaluated again above a guard; other tests unchanged."""
    return test.test if isinstance(test, Again) else test


def _is_other_end(one: Comparison, other: Comparison) -> bool:
    return one.left_is_low != other.left_is_low


def ranges_by(on: Lifted, count: int, *tests: Comparison) -> Ranges:
    """Return the ranges of both sides, from at most one comparison for each end.

    `count` is the number of left bindings.
    """
    low = next((test for test in tests if test.left_is_low), None)
    high = next((test for test in tests if not test.left_is_low), None)

    def left(test: Comparison | None) -> Lifted | None:
        return None if test is None else of_left(on, test.left, count)

    def right(test: Comparison | None) -> Lifted | None:
        return None if test is None else of_right(on, test.right, count)

    return Ranges(
        Span(left(low), left(high)),
        Span(right(high), right(low)),
        (low is None or low.closed, high is None or high.closed),
    )


# Plans that may raise.


def plan_may_raise(node: plan.Node) -> bool:
    """Return True if a callable in the plan, or the use of its results, may raise.

    A view raises its exceptions itself, whatever queries read it.
    """
    return bool(fact(node, "may_raise", _may_raise))


def _may_raise(node: plan.Node) -> bool:
    """Return True if a node, or a node below it that is not in a view, may raise."""
    if isinstance(node, plan.View):
        return False
    below = any(source.known["may_raise"] for source in node.inputs())
    return below or node.facts.raises or calls_may_raise(node)


def calls_may_raise(node: plan.Node) -> bool:
    """Return True if a callable of one node may raise."""
    return any(strict(function, given) for function, given in called(node))
