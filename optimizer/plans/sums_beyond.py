"""Conditions of sums over the rows beyond a row: queries that read the sums nowhere else.

    select b.id                                         b.id
      where row[1] < l.most                               rows of bids, of which
        product                                           sum of c.volume
          left_join b.price == row[0]             ->        over bids c where c.price > b.price
            bids b                                        is less than l.most
            aggregate Sum(c.volume) by outer
              join on c.price > outer
                distinct
                  select b.price
                    bids b
                bids c
          limits l

The keys of the aggregate are those of the left rows, so each left row has the sum beyond its key.
The engine then finds the rows whose condition changes, without the sums (`sums_beyond.py`).

Sound:  the condition falls or rises with the sum (`directions.py`), and reads nothing else of the
        row. What is tested or computed in between cannot raise.
Needs:  one sum or count of the rows of the right alone, beyond one bound, maybe with equal keys; at
        most one other row, of an aggregate without a key.
Source: VWAP: C. Koch and others, *DBToaster: higher-order delta processing for dynamic, frequently
        fresh views*, VLDB Journal, 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    Apply,
    Attempt,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Lifted,
    Operation,
    Parameter,
    all_parameters,
    conjunction,
    conjuncts,
    constant,
    one_value,
    parts,
    reads,
    row_names,
    substitute,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.cuts import CutOf, CutPoint
from optimizer.expressions.directions import direction_of
from optimizer.expressions.knowledge import Shapes, total
from optimizer.expressions.operand_checks import IsOf
from optimizer.expressions.text import one_row, over, project_node
from optimizer.expressions.turns import MomentOf, TurnOf
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, may_be_negative, once, row_shape, shapes
from optimizer.plans.side_conditions import (
    SideTerm,
    bounds_of,
    join_match,
    residual,
    side_conditions_of,
)
from optimizer.record import record
from optimizer.traverse import with_called, with_inputs

Rows = tuple[Expr, ...]
Reader = plan.Select | plan.Extend | plan.Aggregate | plan.Distinct


@record
class BeyondRange:
    """The rows that are beyond a key, and the condition on their sum.

    Parameters
    ----------
    is_above: greater keys are beyond; otherwise lesser keys.
    is_closed: rows with an equal key are beyond it, too.
    falls: the condition holds for small sums; otherwise for large ones.
    is_tried: the key None has nothing beyond it, and is beyond nothing.
    is_tested: the key None of a left row has nothing beyond it.
    skips_none: None adds nothing; otherwise it is no value.
    counts_none: a row with the value None is a row with a sum, of 0 for it.
    """

    is_above: bool
    is_closed: bool
    falls: bool
    is_tried: bool
    is_tested: bool
    skips_none: bool
    counts_none: bool = True


@record
class SumCondition:
    """The rows of `left` for which a condition of a sum over the rows of `right` holds.

    `left_key` returns (equal, key) of a left row, and `right_key` (equal, key, value) of a right
    one. `condition` is of the sum and the row of `bound`, `without_sum` of that row, for rows with
    nothing beyond; None drops these. Without `bound`, the row is None.
    """

    chain: tuple[plan.Node, ...]
    """Run over the left rows that hold."""
    top: plan.Node
    """Reads them, in place of the query; the end of the chain, or above it."""
    left: plan.Node
    right: plan.Node
    left_key: Lifted
    right_key: Lifted
    bound: plan.Node | None
    condition: Lifted
    without_sum: Lifted | None
    beyond: BeyondRange
    parts: tuple[plan.Node, ...]
    """The nodes in between, which nothing else may read."""
    owner: plan.Aggregate


def sum_condition_of(node: Reader) -> SumCondition | None:
    """Return a query as a condition of sums, cached; None for other queries."""
    return once(node, "sums_beyond", _find)


def _find(node: Reader) -> SumCondition | None:
    if may_be_negative(node):
        return None
    try:
        return _SumFinder(node).found()
    except _Unlike:
        return None


class _Unlike(Exception):
    """The plan is no condition of sums."""


def _check(is_so: object) -> None:
    if not is_so:
        raise _Unlike


def _lifted(function: Function | None) -> Lifted:
    """Return a callable that was read."""
    if not isinstance(function, Lifted):
        raise _Unlike
    return function


@record
class _Sum:
    """A sum by key, over a join by a range: its aggregate, and what it reads of the right."""

    node: plan.Aggregate
    join: plan.Join
    keys: plan.Select
    """Computes the keys of the groups, from rows of the left."""


class _SumFinder:
    """Follows a plan down to the join of rows with their sums.

    Expressions read bindings of the left rows; then the key, the aggregates, and the other row.
    """

    base: plan.Node
    count: int
    sums: _Sum
    other: int
    shapes: Shapes
    key_of_left: Expr
    filters: list[Expr]

    def __init__(self, node: Reader) -> None:
        self.node = node
        self.parts: list[plan.Node] = []
        self.tests: list[tuple[Expr, Expr]] = []
        """Tests of rows with a sum, and of rows without one."""
        self.bound: plan.Node | None = None
        self.keeps = False
        """True if rows without a sum are kept."""

    def found(self) -> SumCondition:
        """Return the query as a condition of sums; raise `_Unlike` if it is none."""
        top = self.node
        present, absent = self._rows(top.input)
        if isinstance(top, plan.Select | plan.Extend):
            row = self._of_left(outputs(top), present, absent)
            return self._made(lambda base: plan.Select(base, row))
        if isinstance(top, plan.Distinct):
            row = self._of_left(all_parameters(len(present)), present, absent)
            return self._made(lambda base: plan.Distinct(plan.Select(base, row)))

        def of_left(function: Function, of: Shapes) -> Function:
            return self._of_left((_lifted(function).body,), present, absent)

        return self._made(lambda base: with_called(with_inputs(top, [base]), of_left))

    def _of_left(self, made: Sequence[Expr], present: Rows, absent: Rows) -> Lifted:
        """Return a callable of left rows; it must not read the sums."""
        body = over(one_value(made), present)
        _check(reads(body) <= {*range(self.count)})
        _check(not self.keeps or over(one_value(made), absent) == body)
        return Lifted(body, row_names(self.count), (), self.count)

    # From the top down to the sums.

    def _rows(self, node: plan.Node) -> tuple[Rows, Rows]:
        """Return the bindings of a node, for left rows with and without a sum."""
        self.parts.append(node)
        match node:
            case plan.Where(source, Lifted(body)):
                rows = self._rows(source)
                self._add_tests(body, *rows)
                return rows
            case plan.Select(source) | plan.Extend(source):
                rows = self._rows(source)
                made = outputs(node)
                _check(not any(isinstance(each, Apply) for f in made for each in walk(f)))
                present, absent = (tuple(over(each, row) for each in made) for row in rows)
                shown = (*present, *(absent if self.keeps else ()))
                _check(all(total(each, self.shapes) for each in shown))
                return present, absent
            case plan.Product() | plan.Join() | plan.SemiJoin() | plan.OuterJoin(kind="left"):
                return self._joined(node)
            case _:
                raise _Unlike

    def _joined(
        self, join: plan.Product | plan.Join | plan.SemiJoin | plan.OuterJoin
    ) -> tuple[Rows, Rows]:
        """Return the bindings of a join with the sums, or with the other row."""
        found = None if isinstance(join, plan.Product) else self._sum(join.right)
        if isinstance(join, plan.Product) or found is None:
            return self._with_other(join, self._rows)
        rows = self._with_sums(join, *found)
        self._add_tests_of(join, *rows)
        return rows if not isinstance(join, plan.SemiJoin) else (rows[0][:-1], rows[1][:-1])

    def _with_other(
        self, join: plan.Node, rows_of: Callable[[plan.Node], tuple[Rows, Rows]]
    ) -> tuple[Rows, Rows]:
        """Return the bindings of a join with the row of an aggregate without a key."""
        _check(_is_with_one_row(join) and self.bound is None)
        assert isinstance(join, plan.Product | plan.Join)
        self.bound = join.right
        present, absent = rows_of(join.left)
        other = Parameter(self.other)
        rows = (*present, other), (*absent, other)
        self._add_tests_of(join, *rows)
        return rows

    def _sum(self, right: plan.Node) -> tuple[_Sum, Sequence[plan.Where]] | None:
        """Return the sums that a node has, and conditions of them; None for other nodes."""
        above: list[plan.Where] = []
        while isinstance(right, plan.Where):
            above.append(right)
            right = right.input
        match right:
            case plan.Aggregate(
                plan.Join(plan.Distinct(plan.Select() as keys)) as join,
                Lifted(Parameter(0)),
            ):
                self.parts += [*above, right, join, join.left, keys]
                return _Sum(right, join, keys), above
            case _:
                return None

    def _with_sums(
        self,
        join: plan.Join | plan.SemiJoin | plan.OuterJoin,
        sums: _Sum,
        above: Sequence[plan.Where],
    ) -> tuple[Rows, Rows]:
        """Return the bindings of the join of the left rows with their sums."""
        left, key, match = join.left, sums.keys.function, join.match
        self.base = left.inputs()[0] if _is_with_one_row(left) else left
        self.count, self.sums = bindings(self.base), sums
        self.keeps = isinstance(join, plan.OuterJoin)
        values = tuple(Parameter(self.count + 1 + n) for n in range(len(sums.node.aggregates)))
        self.other = self.count + 1 + len(values)
        self.shapes: Shapes = (*shapes(self.base), *[None] * (len(values) + 2))
        _check(not (above and self.keeps))
        own = all_parameters(self.count)
        lefts: tuple[Rows, Rows] = own, own
        if left is not self.base:
            self.parts.append(left)
            lefts = self._with_other(left, lambda _: (own, own))
        self.key_of_left = _lifted(key).body
        self.filters = self._filters(sums.keys.input)
        of_sum = Parameter(self.count), *values
        row = tuple_of(*of_sum)
        keyed = over(over(_lifted(match.right_key).body, (row,)), (*own, self.key_of_left))
        _check(keyed == over(_lifted(match.left_key).body, lefts[0]))
        for where in above:
            self._add_tests(_lifted(where.predicate).body, of_sum, of_sum)
        return (*lefts[0], row), (*lefts[1], NONE)

    def _filters(self, keyed: plan.Node) -> list[Expr]:
        """Return the tests of left rows that their keys decide, and that keys have passed."""
        found: list[Expr] = []
        while not _has_rows_of(keyed, self.base):
            if not isinstance(keyed, plan.Where):
                raise _Unlike
            found += conjuncts(_lifted(keyed.predicate).body)
            keyed = keyed.input
        key = self.key_of_left
        of_key = key.items if isinstance(key, Display) else (key,)
        _check(all(total(test, self.shapes) and _is_made_of(test, of_key) for test in found))
        return found

    def _add_tests_of(self, join: plan.Node, present: Rows, absent: Rows) -> None:
        """Add the tests of a join, which must not be one that keeps rows."""
        on = None if isinstance(join, plan.Product) else join.match.on  # type: ignore[attr-defined]
        if on is not None:
            _check(isinstance(on, Lifted) and not isinstance(join, plan.OuterJoin))
            self._add_tests(on.body, present, absent)

    def _add_tests(self, body: Expr, present: Rows, absent: Rows) -> None:
        for test in conjuncts(body):
            self.tests.append((over(test, present), over(test, absent)))

    # The condition, and the two sides.

    def _made(self, top_over: Callable[[plan.Node], plan.Node]) -> SumCondition:
        folded, number, counts = self._value()
        own, above, condition, without_sum = self._split_tests(counts)
        direction = direction_of(condition, number)
        _check(direction)
        left: plan.Node = self.base
        names, count = row_names(self.count), self.count
        if own:
            left = plan.Where(left, Lifted(conjunction(tuple(own)), names, (), count))
        chain: list[plan.Node] = []
        if above:
            chain.append(plan.Where(left, Lifted(conjunction(tuple(above)), names, (), count)))
        top = top_over(chain[0] if above else left)
        if isinstance(top, plan.Select | plan.Distinct):
            chain.append(top if isinstance(top, plan.Select) else top.input)
        given = {number: Parameter(0), Parameter(self.other): Parameter(1)}
        _check(reads(condition) <= {number.index, self.other})
        right, left_key, right_key, (is_above, is_closed) = self._sides(folded)
        beyond = BeyondRange(
            is_above=is_above,
            is_closed=is_closed,
            falls=direction == -1,
            is_tried=self._is_tried(),
            is_tested=bool(self.filters),
            skips_none=folded.skip_none,
            counts_none=not any(_indicator(each) is not None for each in counts.values()),
        )
        return SumCondition(
            *(tuple(chain), top, left, right, left_key, right_key, self.bound),
            Lifted(_renamed(condition, given), ("total", "bound"), (), 2),
            *(without_sum, beyond, tuple(self.parts), self.sums.node),
        )

    def _split_tests(
        self, counts: Mapping[Parameter, plan.Folded]
    ) -> tuple[list[Expr], list[Expr], Expr, Lifted | None]:
        """Return the tests of left rows before and after the condition, the condition, and that
        of rows without a sum."""
        own, above = list[Expr](), list[Expr]()
        conditions, others, of_none = list[Expr](), list[Expr](), list[Expr]()
        of_left, of_sum = {*range(self.count)}, {*range(self.count + 1, self.other + 1)}
        for present, absent in self.tests:
            test = _with_rows(present, counts)
            if reads(test) <= of_left:
                _check(not self.keeps or absent == present)
                is_free = total(test, self.shapes)
                _check(is_free or conditions)
                (own if is_free else above).append(test)
                continue
            _check(reads(test) <= of_sum and (not above or total(test, self.shapes)))
            conditions.append(test)
            others.append(absent)
            of_none.append(self._without_values(present, counts))
        _check(conditions)
        if any(_indicator(each) is not None for each in counts.values()):
            _check(of_none == others if self.keeps else FALSE in of_none)
        if not self.keeps:
            return own, above, conjunction(tuple(conditions)), None
        _check(all(reads(each) <= {self.other} for each in others))
        rest = {Parameter(self.other): Parameter(0)}
        body = _renamed(conjunction(tuple(others)), rest)
        return own, above, conjunction(tuple(conditions)), Lifted(body, ("bound",), (), 1)

    def _without_values(self, test: Expr, counts: Mapping[Parameter, plan.Folded]) -> Expr:
        """Return a test for rows beyond which all values are None."""
        row = tuple(
            constant(0) if Parameter(n) in counts else Parameter(n) for n in range(self.other + 1)
        )
        return over(test, row)

    def _value(self) -> tuple[plan.Folded, Parameter, dict[Parameter, plan.Folded]]:
        """Return the aggregate that is compared, the parameter for it, and the counts beside it."""
        sums: list[tuple[plan.Folded, Parameter]] = []
        counts: dict[Parameter, plan.Folded] = {}
        for place, folded in enumerate(self.sums.node.aggregates):
            at = Parameter(self.count + 1 + place)
            _check(folded.name in ("Sum", "Count") and not folded.functions)
            if folded.name == "Count" or _indicator(folded) is not None:
                counts[at] = folded
            else:
                sums.append((folded, at))
        if not sums and len(counts) == 1:  # the count itself is compared
            ((of_count, counted),) = counts.items()
            return counted, of_count, {}
        _check(len(sums) == 1)
        folded, at = sums[0]
        for each in counts.values():
            read = _indicator(each)
            _check(read is None or (isinstance(folded.value, Lifted) and folded.value.body == read))
        return folded, at, counts

    def _is_tried(self) -> bool:
        on = residual(self.sums.join)
        return isinstance(on, Lifted) and isinstance(on.body, Attempt)

    def _sides(self, folded: plan.Folded) -> tuple[plan.Node, Lifted, Lifted, tuple[bool, bool]]:
        """Return the right rows, the keys of both sides, if keys beyond are above, and if equal
        ones are."""
        join = self.sums.join
        conditions, bounds, match = side_conditions_of(join), bounds_of(join), join.match
        on = residual(join)
        _check(bounds is not None and not bounds.other)
        _check(isinstance(on, Lifted) and len(conjuncts(on.body)) == 1)
        assert bounds is not None
        ours, theirs = bounds.ranges.left, bounds.ranges.right
        _check((ours.low is None) != (ours.high is None))
        is_above = ours.low is not None
        end, other = (ours.low, theirs.high) if is_above else (ours.high, theirs.low)
        assert end is not None and other is not None
        _check(not _has_cuts(end.body) and not _has_cuts(other.body))
        left = () if conditions is None else tuple(filter(_is_no_check, conditions.left))
        right = () if conditions is None else tuple(filter(_is_no_check, conditions.right))
        _check(all(term.is_key for term in left))
        _check(not any(term.is_guard for term in (*left, *right)))
        keys = [*_written(match.left_key), *_bodies(left, is_key=True)]
        others = [*_written(match.right_key), *_bodies(right, is_key=True)]
        tests = _bodies(right, is_key=False)
        _check(all(total(test, (row_shape(join.right),)) for test in tests))
        below: plan.Node = join.right
        if tests:
            below = plan.Where(below, _of_row(conjunction(tuple(tests))))
        compared = over(end.body, (self.key_of_left,))
        if self.filters:
            compared = Conditional(conjunction(tuple(self.filters)), compared, NONE)
        keyed = tuple_of(over(_key(keys), (self.key_of_left,)), compared)
        left_key = Lifted(keyed, row_names(self.count), (), self.count)
        right_key = _of_row(tuple_of(_key(others), other.body, _value_of(folded)))
        closed = bounds.ranges.closed[0 if is_above else 1]
        return below, left_key, right_key, (is_above, closed)


def _is_no_check(term: SideTerm) -> bool:
    """Return False for a check of an operand: a key without an order is no key of a sum, too."""
    match term.function.body:
        case Call(Constant(function), (_,), ()):
            return not isinstance(function, IsOf)
        case _:
            return True


def _is_with_one_row(join: plan.Node) -> bool:
    """Return True for all pairs with the row of an aggregate without a key."""
    if not isinstance(join, plan.Product | plan.Join):
        return False
    match, below = join_match(join), join.right
    while isinstance(below, plan.Where | plan.Select | plan.Extend):
        below = below.input
    is_row = isinstance(below, plan.Aggregate) and below.key is None
    return is_row and match.left_key is None and match.right_key is None


def _has_rows_of(whole: plan.Node, part: plan.Node) -> bool:
    """Return True if each row of `part` is a row of `whole`."""
    while part != whole:
        if not isinstance(part, plan.Where):
            return False
        part = part.input
    return True


def _is_made_of(expr: Expr, values: Sequence[Expr]) -> bool:
    """Return True for an expression that reads parameters only as parts of `values`."""
    if expr in values:
        return True
    return not isinstance(expr, Parameter) and all(_is_made_of(p, values) for p in parts(expr))


def _indicator(folded: plan.Folded) -> Expr | None:
    """Return the value that a sum counts if it is not None; None for another sum."""
    if folded.name != "Sum" or not isinstance(folded.value, Lifted):
        return None
    match folded.value.body:
        case Conditional(Operation("is not", (value, Constant(None))), one, zero) if (
            one == constant(1) and zero == constant(0)
        ):
            return value
        case _:
            return None


def _with_rows(test: Expr, counts: Mapping[Parameter, plan.Folded]) -> Expr:
    """Return a test of a sum of rows, whose count is not 0."""

    def decide(part: Expr) -> Expr:
        match part:
            case Conditional(count, then) if count in counts:
                return then
            case _:
                return project_node(part)

    return transform(test, decide)


def _value_of(folded: plan.Folded) -> Expr:
    """Return what an aggregate adds for a right row."""
    if folded.name == "Count":
        return constant(1)
    body = _lifted(folded.value).body
    _check(reads(body) <= {1})
    return one_row(body, 1, 1)


def _written(key: Function | None) -> list[Expr]:
    return [] if key is None else [_lifted(key).body]


def _bodies(terms: Sequence[SideTerm], *, is_key: bool) -> list[Expr]:
    return [term.function.body for term in terms if term.is_key is is_key]


def _key(parts: Sequence[Expr]) -> Expr:
    return parts[0] if len(parts) == 1 else tuple_of(*parts)


def _of_row(body: Expr) -> Lifted:
    return Lifted(body, ("row",), (), 1)


def _has_cuts(expr: Expr) -> bool:
    calls = (part.function for part in walk(expr) if isinstance(part, Call))
    return any(
        isinstance(getattr(f, "value", None), CutOf | CutPoint | MomentOf | TurnOf) for f in calls
    )


def _renamed(expr: Expr, names: dict[Any, Parameter]) -> Expr:
    """Return an expression with other parameters."""
    count = max((e.index for e in names if isinstance(e, Parameter)), default=0) + 1
    given: list[Expr] = [names.get(Parameter(n), Parameter(n)) for n in range(count)]
    return substitute(expr, tuple(given))
