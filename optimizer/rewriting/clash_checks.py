"""The values that each operator looks up, for checks that none of them clash.

    group by f                     f of the rows
    join by f and g                f of the left and g of the right; an equation of `on`, too
    union, difference, ...         the rows of both sides
    select f, select_many f, ...   the result of f: rows are looked up wherever they are stored
    count distinct f, collect f    f of the rows of a group

A row that has a binding or a key of its own is looked up by that.

Sound:  each operator looks up the rows of its inputs, or the values listed here.
Source: `lookups.py`, which leaves rows out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Expr,
    Lifted,
    Parameter,
    conjunction,
    conjuncts,
    constant,
    origins,
    reads,
    row_names,
    tuple_of,
)
from optimizer.expressions.attempts import as_lifted, attempt_condition
from optimizer.expressions.text import one_row
from optimizer.plans.properties import bindings, find_groups, row_shape, shapes
from optimizer.plans.side_conditions import equation_of, of_left, of_right
from optimizer.rewriting import lookups
from optimizer.rewriting.clashing import REFUSED, Asks, RefusedValues
from optimizer.rewriting.lookups import LookUp, asks, look_up_rows, may_clash, may_raise_comparing
from optimizer.rewriting.own_values import elements, elements_apart, refuse, safe_values

N = TypeVar("N", bound=plan.Node)


class ClashChecks:
    """Leaves out the rows of operators whose values clash.

    Parameters
    ----------
    checks: if False, all rows stay, until values have clashed.
    given: the levels of relations that are given from outside of the query.
    failed: called with rows that are left out, and a call that raises for them.
    """

    def __init__(
        self,
        policy: str,
        given: frozenset[Any],
        failed: Callable[[plan.Node, Lifted], None],
        *,
        checks: bool,
    ) -> None:
        self._checks = checks
        self._policy = policy
        self._given = given
        self._failed = failed
        self._written: plan.Node = plan.Empty(1)
        self._count = 0
        """Look-ups of this node so far."""

    def begin(self, written: plan.Node) -> None:
        """Begin with the look-ups of a node."""
        self._written, self._count = written, 0

    def rows(self, *sides: LookUp) -> list[plan.Node]:
        """Return the rows of each side without those whose values clash."""
        if not self._checks or not may_clash(sides, self._given):
            return [each.rows for each in sides]
        found = self._told_apart(sides)
        for _, refused, call in found:
            self._failed(refused, call)
        return [rows for rows, _, _ in found]

    def check_extend(self, node: plan.Extend) -> plan.Node:
        """Check the input of an extend that does not keep all its bindings.

        Any other extend, and groups, are unchanged.
        """
        if not self._checks or {*node.keep} >= {*range(bindings(node.input))} or find_groups(node):
            return node
        kept, columns = map(Parameter, node.keep), [as_lifted(each) for each in node.columns]
        row = (*kept, *(each.body for each in columns))
        count = bindings(node.input)
        names = columns[0].names if columns else row_names(count)
        (rows,) = self.rows(
            LookUp(node.input, Lifted(tuple_of(*row), names, origins(*columns), count), row)
        )
        return with_fields(node, input=rows)

    def of_both(self, node: Any) -> plan.Node:
        """Check a union, difference or intersection; without checks, it is unchanged.

        Of a select among its inputs, the rows of the select's input are checked.
        """
        if not self._checks:
            return node  # type: ignore[no-any-return]
        sides = [
            LookUp(each.input, as_lifted(each.function))
            if isinstance(each, plan.Select)
            else look_up_rows(each)
            for each in (node.left, node.right)
        ]
        left, right = [
            with_fields(each, input=rows) if isinstance(each, plan.Select) else rows
            for each, rows in zip((node.left, node.right), self.rows(*sides), strict=True)
        ]
        found: plan.Node = with_fields(node, left=left, right=right)
        return found

    def made(self, made: plan.SelectMany | plan.Reduce) -> plan.Node:
        """Check the rows that a callable makes.

        Until clashing rows are left out, a row is wrapped in an object that compares without
        raising.
        """
        last = bindings(made) - 1
        if not self._checks or not may_clash([look_up_rows(made, last)], self._given):
            return made
        f = as_lifted(made.function)
        rows = replace(made, function=f.with_body(Call(constant(safe_values), (f.body,))))
        value = Attribute(Parameter(last), "value")
        kept = tuple(map(Parameter, range(last)))
        names = row_names(last + 1)
        shown = Lifted(tuple_of(*kept, value) if last else value, names, (), last + 1)
        ((found, refused, _),) = self._told_apart([LookUp(rows, shown, (value,))])
        self._failed(refused, shown.with_body(Call(constant(refuse), (value,))))
        return plan.Extend(found, tuple(range(last)), (shown.with_body(value),))

    def check_equations(
        self, left: plan.Node, right: plan.Node, on: Lifted
    ) -> tuple[plan.Node, plan.Node]:
        """Check the rows of both sides that equations of a predicate look up."""
        if not self._checks:
            return left, right
        count, of = bindings(left), (*shapes(left), row_shape(right))
        for test in conjuncts(on.body):
            if (sides := equation_of(attempt_condition(test, of), count)) is not None:
                ours, theirs = of_left(on, sides[0], count), of_right(on, sides[1], count)
                left, right = self.rows(LookUp(left, ours), of_right_row(right, theirs))
        return left, right

    def compares(self, test: Expr, kind: Callable[[Expr], Asks]) -> bool:
        """Return True if an expression compares values that may clash."""
        return self._checks and may_raise_comparing(test, kind)

    def raising_parts(
        self, needed: tuple[Expr, ...], body: Expr, rows: plan.Node
    ) -> tuple[Expr, ...]:
        """Return the parts of an expression that may raise; itself, if it compares values that
        clash."""
        if body in needed or not self.compares(body, partial(asks, rows=rows)):
            return needed
        return (*needed, body)

    def elements(self, several: Expr) -> Expr:
        """Return a call that returns all elements of a collection."""
        return Call(constant(elements_apart if self._checks else elements), (several,))

    def _told_apart(self, sides: Sequence[LookUp]) -> list[tuple[plan.Node, plan.Node, Lifted]]:
        """Return of each side the rows to keep, those to refuse, and a call that raises for them.

        Refused values are remembered by policy, node and number of the call.
        """
        self._count += 1
        key = (self._policy, self._written, self._count)
        return lookups.split_clashing_look_ups(sides, REFUSED.setdefault(key, RefusedValues()))


def join_product(node: plan.Node) -> plan.Node:
    """Replace a product below a condition by a join: its equations look values up.

    where p(a, b) and q(b, c)         join on q(b, c)
      product                    ->     join on p(a, b)
        product  a, b                     a, b
        c                               c
    """
    match node:
        case plan.Where(plan.Product(left, right), Lifted() as p):
            count, of = bindings(left), conjuncts(p.body)
            ours = tuple([test for test in of if max(reads(test), default=count) < count])
            rest = tuple([test for test in of if max(reads(test), default=count) >= count])
            if ours:
                left = join_product(plan.Where(left, of_left(p, conjunction(ours), count)))
            if not rest:
                return plan.Product(left, right)
            return plan.Join(left, right, plan.Match(on=p.with_body(conjunction(rest))))
        case _:
            return node


def in_group(rows: plan.Node, key: Lifted | None, value: Lifted) -> LookUp:
    """Return the look-up of a value in its group."""
    if key is None:
        return LookUp(rows, value)
    both = tuple_of(key.body, value.body)
    together = Lifted(both, value.names, origins(key, value), value.parameters)
    return LookUp(rows, together, (value.body,))


def of_right_row(rows: plan.Node, key: Lifted) -> LookUp:
    """Return the look-up of a key that takes a row as one value."""
    count = bindings(rows)
    if count == 1:
        return LookUp(rows, key)
    body = one_row(key.body, 0, count)
    return LookUp(rows, Lifted(body, row_names(count), key.origins, count))


def with_fields(node: N, **changes: Any) -> N:
    """Return the node with other fields; itself if they are the same."""
    made = replace(node, **changes)
    return node if made == node else made
