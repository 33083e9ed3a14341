"""Values of rows that a guard asks for: what must not raise, and those that are compared.

    order by f                 f(row) is of the kind that f is declared to give, or else of the kind
    Min(f), Max(f) of k        that most rows of the group have (`comparable.py`)

Sound:  a value that is of its kind compares with all others that are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    NONE,
    Attempt,
    Call,
    Constant,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    constant,
    origins,
)
from optimizer.expressions.attempts import hashed, lifted
from optimizer.expressions.compose import needs
from optimizer.expressions.knowledge import TESTS, Shapes
from optimizer.expressions.order_kinds import (
    ANY_KIND,
    OrderKind,
    OrderKindOf,
    checks,
    refuse,
)
from optimizer.plans.declared_kinds import declared_kind
from optimizer.plans.nodes.reduce import kept_by
from optimizer.plans.properties import bindings, shapes
from optimizer.record import record
from optimizer.rewriting.comparable import Comparable

Needs = Callable[[Expr, Shapes], tuple[Expr, ...]]
"""Function giving the parts of an expression that must be evaluated for its value to be usable."""


Instead = Callable[[Lifted, tuple[Expr, ...], Shapes], Lifted]


@record
class Asked:
    """A callable of a row, what must not raise in it, and what it becomes to give something else
    where that does; None if the row is left out then."""

    function: Lifted
    needs: Needs
    instead: Instead | None = None


EXTREMES, SUMS = ("Min", "Max"), ("Sum", "Avg")


@record
class Ordered:
    """A value of rows that is compared with those of other rows, and the kind that it is declared
    to have, if it is. With `nulls` None has a place among them."""

    function: Lifted
    kind: OrderKind | None
    nulls: bool
    is_extreme: bool = False

    def needs(self, expr: Expr, of: Shapes) -> tuple[Expr, ...]:
        """Return the expressions that must be evaluated for a value to be compared."""
        if self.kind is not None and _is_certain(expr):
            return needs(expr, of)
        inside = not self.is_extreme  # an order has a place for None in its keys, MIN has none
        check = Call(constant(checks(self.kind, nulls=self.nulls, inside=inside)), (expr,))
        return (*hashed(expr, of), check) if self.is_extreme and self.kind is None else (check,)

    def kind_of_value(self) -> Lifted:
        """Return the function that gives the kind of the value of a row."""
        call = constant(OrderKindOf(self.nulls, not self.is_extreme))
        of: Expr = Call(call, (self.function.body,))
        if self.is_extreme and self.nulls:  # by the policy `null` what raises is None there
            of = Attempt(of, constant(ANY_KIND))
        return self.function.with_body(of)


def ordered_by(value: Lifted, source: plan.Node, *, nulls: bool) -> Ordered:
    kind = declared_kind(value.body, source)
    return Ordered(value, None if kind == ANY_KIND else kind, nulls)


def extreme(folded: plan.Folded, source: plan.Node, *, null: bool) -> Ordered:
    """Return the argument of MIN or MAX; under the policy `null` each leaves None out."""
    assert folded.value is not None
    value = lifted(folded.value)
    found = ordered_by(value, source, nulls=folded.skip_none or (null and not folded.functions))
    return replace(found, is_extreme=True)


def asked_of(ordered: Ordered, instead: Instead | None = None) -> Asked:
    return Asked(ordered.function, ordered.needs, instead)


def _is_certain(expr: Expr) -> bool:
    """Return True if a value has the known kind, whatever the rows are."""
    match expr:
        case Constant():
            return True
        case Operation(operator):
            return operator in TESTS
        case Call(Constant(value)):
            return any(value is known for known in (int, len, ord, str))
        case _:
            return False


def by_most_kinds(
    rows: plan.Node, key: Lifted | None, values: Sequence[Ordered]
) -> tuple[plan.Node, plan.Node, Lifted]:
    """Return the rows whose values are of the kinds that most rows of their group have, the other
    rows, and a call that raises for these."""
    count = bindings(rows)
    names = values[0].function.names
    by = Lifted(NONE, names, (), count) if key is None else key
    kinds = tuple(each.kind_of_value() for each in values)
    extended = plan.Extend(rows, tuple(range(count)), kinds)
    widened = Lifted(by.body, (*by.names, *("",) * len(kinds)), by.origins, count + len(kinds))
    shape = (*shapes(rows), *(None for _ in kinds))

    def kept(*, refused: bool) -> plan.Node:
        group = kept_by(Comparable(len(kinds), refused, shape), "comparable")
        grouped = plan.Reduce(extended, widened, group)
        items = [Item(Parameter(1), constant(place)) for place in range(count)]
        columns = [Lifted(item, ("key", "row"), (), 2) for item in items]
        return plan.Extend(grouped, (), tuple(columns), names)

    asked = tuple(each.function.body for each in values)
    together = origins(*(each.function for each in values))
    call = Lifted(Call(constant(refuse), asked), names, together, count)
    return kept(refused=False), kept(refused=True), call
