"""Test a condition on a parameter, as `now()`, beside a semi_join or anti_join, not in it.

    semi_join on p and q and r          semi_join on p and r
      S                                   S
      product                   ->        select h
        M                                   where q
        value v                               product
                                                semi_join on p
                                                  M
                                                  S
                                                value v

q reads rows of M and the value; p, before it, and r, after it, read no value. If q reads rows of S,
too, or there is nothing of M alone to test, the pairs are made first:

    semi_join on p and q                semi_join row == row[0]
      S                                   S
      product                   ->        select s
        M                                   where q
        value v                               product
                                                join on p
                                                  S
                                                  M
                                                value v

A semi_join without a condition over a product with a value tests the value:

    semi_join                           product
      product                             A
        A                       ->        semi_join
        value v                             value v
        B                                   B

Sound:  q is evaluated for the rows, or pairs, that p lets through, as before: it raises for the
        same. A parameter has exactly one row.
Needs:  all callables are lifted; rows of S are told apart by their values.
Pays:   a value that moves touches the rows between its old and its new place; before, it touched
        all rows of M, or all pairs.
Source: beyond [i3ql].
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optimizer import expr, plan
from optimizer.expressions.text import over, same
from optimizer.plans.properties import bindings, free, may_be_negative
from optimizer.record import record
from optimizer.subqueries import keyed_rows

Existence = plan.SemiJoin | plan.AntiJoin
Beside = plan.Join | plan.OuterJoin | Existence


def move_value_out_of_join(node: plan.Node) -> plan.Node:
    """Test conditions on parameters beside a join, not in it; other nodes unchanged."""
    if not isinstance(node, Beside) or may_be_negative(node) or free(node):
        return node
    if _is_beside_value(node.left):
        return _value_of_left(node)
    if isinstance(node, plan.OuterJoin) or node.match.left_key is not None:
        return node
    sides, on = _sides_of(node), node.match.on
    if sides is None or not isinstance(on, expr.Lifted):
        return node
    before, of_value, after = sides.split(on)
    if not of_value:
        return node
    if isinstance(node, plan.Join):
        return sides.joined(on, before, (*of_value, *after))
    if all(sides.reads_value(test) and not sides.reads_left(test) for test in of_value):
        return _by_rows(node, sides, on, before, of_value, after)
    pairs = sides.pairs(on, before, (*of_value, *after))
    return _rows_of_pairs(node, keyed_rows.first_of(pairs, sides.count + 1), sides.count)


def _value_of_left(node: Beside) -> plan.Node:
    """Return a join whose left rows have a value beside them, with the value beside its rows."""
    assert isinstance(node.left, plan.Product)
    rows, value, match = node.left.left, node.left.right, node.match
    if match == plan.Match() and isinstance(node, Existence):
        return plan.Product(rows, replace(node, left=value))
    place = bindings(rows)
    functions = [f for f in (match.left_key, match.on) if f is not None]
    if not all(isinstance(f, expr.Lifted) and place not in expr.reads(f.body) for f in functions):
        return node
    if isinstance(node, plan.OuterJoin) and node.kind != "left":
        return node
    own = expr.all_parameters(place)
    narrow = replace(
        match,
        left_key=_without(match.left_key, (*own, own[0]), place),
        on=_without(match.on, (*own, own[0], expr.all_parameters(place + 1)[place]), place + 1),
    )
    made = plan.Product(replace(node, left=rows, match=narrow), value)
    last = bindings(made) - 1
    return keyed_rows.extend_bindings(made, (*range(place), last, *range(place, last)), ())


def _without(function: Any, row: tuple[expr.Expr, ...], count: int) -> Any:
    """Return a callable of a match without a binding that it does not read."""
    return (
        None if function is None else _callable(function, expr.conjuncts(function.body), row, count)
    )


def _is_beside_value(node: plan.Node) -> bool:
    return isinstance(node, plan.Product) and _is_value(node.right)


Tests = tuple[expr.Expr, ...]


@record
class _Sides:
    """The left rows, the right rows, and the values beside these.

    Tests are over the `count` left bindings, the `width` bindings of a right row, and the values.
    """

    left: plan.Node
    right: plan.Node
    values: tuple[plan.Node, ...]
    count: int
    width: int

    def split(self, on: expr.Lifted) -> tuple[Tests, Tests, Tests]:
        """Return the tests before the first one of a value, up to the last one, and after it."""
        every = expr.all_parameters(self.count + self.width + len(self.values))
        tests = expr.conjuncts(
            over(on.body, (*every[: self.count], expr.tuple_of(*every[self.count :])))
        )
        places = [place for place, test in enumerate(tests) if self.reads_value(test)]
        first, last = (places[0], places[-1] + 1) if places else (len(tests), len(tests))
        return tests[:first], tests[first:last], tests[last:]

    def reads_value(self, test: expr.Expr) -> bool:
        """Return True if a test expr.reads a value."""
        return max(expr.reads(test), default=0) >= self.count + self.width

    def reads_left(self, test: expr.Expr) -> bool:
        """Return True if a test expr.reads a left row."""
        return min(expr.reads(test), default=self.count) < self.count

    def of_pair(self, on: expr.Lifted, tests: Tests) -> expr.Lifted:
        """Return tests as a callable of a left row and of a right row as one value."""
        row = (
            *expr.all_parameters(self.count),
            *keyed_rows.items(self._place(self.count), self.width),
        )
        return replace(_callable(on, tests, row, self.count + 1), names=on.names)

    def of_swapped_pair(self, on: expr.Lifted, tests: Tests) -> expr.Lifted:
        """Return tests as a callable of a right row, and of a left row as one value."""
        row = (
            *keyed_rows.items(self._place(self.width), self.count),
            *expr.all_parameters(self.width),
        )
        return _callable(on, tests, row, self.width + 1)

    def of_right(self, on: expr.Lifted, tests: Tests) -> expr.Lifted:
        """Return tests as a callable of a right row, with the values beside it."""
        own = expr.all_parameters(self.width + len(self.values))
        return _callable(on, tests, (*own[:1] * self.count, *own), len(own))

    def beside(self, rows: plan.Node, values: tuple[plan.Node, ...]) -> plan.Node:
        """Return rows with values beside them."""
        for value in values:
            rows = plan.Product(rows, value)
        return rows

    def pairs(self, on: expr.Lifted, before: Tests, tests: Tests) -> plan.Node:
        """Return the pairs that pass all tests, with the values beside them."""
        pairs: plan.Node = plan.Product(self.left, self.right)
        if before:
            pairs = plan.Join(self.left, self.right, plan.Match(on=self.of_pair(on, before)))
        count = self.count + 1 + len(self.values)
        every = expr.all_parameters(count)
        right = keyed_rows.items(every[self.count], self.width)
        row = (*every[: self.count], *right, *every[self.count + 1 :])
        return plan.Where(self.beside(pairs, self.values), _callable(on, tests, row, count))

    def joined(self, on: expr.Lifted, before: Tests, tests: Tests) -> plan.Node:
        """Return the rows of the join: left rows, and right rows as one value with the values."""
        every = expr.all_parameters(self.count + 1 + len(self.values))
        right = keyed_rows.items(every[self.count], self.width)
        whole = expr.tuple_of(*right, *every[self.count + 1 :])
        return keyed_rows.extend_bindings(
            self.pairs(on, before, tests), tuple(range(self.count)), (whole,)
        )

    @staticmethod
    def _place(place: int) -> expr.Expr:
        return expr.all_parameters(place + 1)[place]


def _sides_of(node: Beside) -> _Sides | None:
    """Return the sides of a join whose right rows have values beside them; None for others."""
    right, values = node.right, list[plan.Node]()
    if isinstance(right, plan.Shared) and _is_beside_value(right.input):
        right = right.input
    while isinstance(right, plan.Product) and _is_value(right.right):
        values.insert(0, right.right)
        right = right.left
    if not values:
        return None
    return _Sides(node.left, right, tuple(values), bindings(node.left), bindings(right))


def _is_value(node: plan.Node) -> bool:
    return isinstance(node, plan.Table) and node.is_value


def _by_rows(
    node: Existence, sides: _Sides, on: expr.Lifted, before: Tests, of_value: Tests, after: Tests
) -> plan.Node:
    """Return the join with the right rows that pass the tests of the value."""
    rows, values = sides.right, sides.values
    if before:
        match = plan.Match(on=sides.of_swapped_pair(on, before))
        rows = plan.SemiJoin(rows, sides.left, match)
    else:
        values = (plan.SemiJoin(values[0], sides.left, plan.Match()), *values[1:])
    tested = plan.Where(sides.beside(rows, values), sides.of_right(on, of_value))
    tests = (*before, *after)
    match = plan.Match(on=sides.of_pair(on, tests)) if tests else plan.Match()
    return replace(node, right=keyed_rows.first_of(tested, sides.width), match=match)


def _rows_of_pairs(node: Existence, pairs: plan.Node, count: int) -> plan.Node:
    """Return the left rows, of `count` bindings, that are in a pair, or in none."""
    mine = same(expr.one_value(expr.all_parameters(count)))
    theirs = same(expr.one_value(expr.items_of(expr.all_parameters(1)[0], count)))
    keys = expr.Lifted(mine, expr.row_names(count), (), count), expr.Lifted(theirs, ("row",), (), 1)
    return replace(node, right=pairs, match=plan.Match(*keys))


def _callable(on: expr.Lifted, tests: Tests, row: Tests, count: int) -> expr.Lifted:
    """Return tests as a callable of `count` bindings, of which `row` makes the bindings of them."""
    return expr.Lifted(over(expr.conjunction(tests), row), expr.row_names(count), on.origins, count)
