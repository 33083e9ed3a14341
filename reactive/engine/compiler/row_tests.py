"""Tests of the rows of a table that decide if a node above it needs them.

    pipeline where o.kind == "sale"                        kind: {"sale"}
    where o.customer == 7 | index by o.customer            customer: {7}, wherever the query has
                                                           the condition: below or above the join

A discrimination network (`dataflow/discrimination.py`) finds the nodes by them.

Sound:  conditions of the chain are evaluated first, then the tests and keys of the side of a join,
        in the order of the predicate. A key that may raise ends them: its exception must be raised.
Needs:  the terms of the other side cannot raise; else its rows are paired with the rows that the
        tests of this side leave out (`_connect_indexes` in `build.py`).

Look-ups of the first condition of a chain over a table, in indexes that many readers share.

    where o.customer == 7 | where o.paid          look up 7 | where o.paid
    where o.qty > 3 and o.customer == 8      ->   look up 8 | where o.qty > 3
      table orders                                  index of orders by customer

Needs:  a stored table; a field compared with constants, such that earlier conditions do not raise
        (`optimizer.plans.field_values`), or not for rows whose other fields have certain classes,
        which the index checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.expr import Call, Expr, First, Lifted, SlotValue, conjunction, conjuncts, constant
from optimizer.expressions.knowledge import Shapes, hashable, total
from optimizer.plans import side_conditions
from optimizer.plans.field_values import (
    NO_CONSTANT_TESTS,
    AnyOf,
    Between,
    ConstantTests,
    FieldValues,
    Needs,
    Path,
    constant_tests,
    find_values,
    first_threshold,
    path_expression,
)
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import SideTerm, may_raise
from optimizer.record import record
from reactive.engine.collections.index import Range
from reactive.engine.collections.zset import UnorderedError, family_of
from reactive.engine.compiler.physical import Lookup, Op, PhysicalIndex, PhysicalRangeIndex, Scan
from reactive.engine.operators import join
from reactive.engine.operators.plain import PipelineSource, Side

if TYPE_CHECKING:
    from optimizer.plans import multiway as multiways

NO_SIDE: Side = (None, ())


def constant_tests_of(below: PipelineSource, side: Side = NO_SIDE) -> ConstantTests:
    """Return the constant tests in the conditions at the beginning of a chain over a table.

    If the whole chain is conditions, the tests of `side`, a side of a join over it, follow them.
    """
    if not isinstance(below.base, plan.Table):
        return _tests_of_limits(below)
    bodies, of = list(_first_conditions(below.chain)), shapes(below.base)
    parts = [part for body in bodies for part in conjuncts(body)]
    if len(bodies) == len(below.chain):
        bodies += _tests_of_side(side, of)
    terms = side[1]
    if not below.chain and terms and not (terms[0].is_key and not terms[1:]):
        parts += [part for term in first_tests(side, of) for part in conjuncts(term.function.body)]
    found = constant_tests(bodies, of)
    found.wants = {each.field: each.values for each in find_values(parts, of)}
    return found


def first_tests(side: Side, of: Shapes) -> list[SideTerm]:
    """Return the tests of a row among the terms of a side, up to a term that may raise."""
    written, terms = side
    if written is not None or not [term for term in terms if not term.is_key]:
        return []
    first = takewhile(lambda term: term.is_guard or total(term.function.body, of), terms)
    return [term for term in first if not term.is_key and not term.is_guard]


def _tests_of_limits(below: PipelineSource) -> ConstantTests:
    """Return the limit in the first condition of a chain over rows that are not of a table."""
    first = next(_first_conditions(below.chain), None)
    threshold = None if first is None else first_threshold(first, bindings(below.base))
    if threshold is None:
        return NO_CONSTANT_TESTS
    found = ConstantTests({})
    found.threshold = threshold
    return found


def _first_conditions(chain: Iterable[plan.Node]) -> Iterator[Expr]:
    """Yield the conditions at the beginning of a chain, up to a callable that is not lifted."""
    for node in chain:
        if not (isinstance(node, plan.Where) and isinstance(node.predicate, Lifted)):
            return
        yield node.predicate.body


def _tests_of_side(side: Side, of: Shapes) -> Iterator[Expr]:
    """Yield the tests of a row that decide if it takes part in a join, before a key may raise.

    A key without a hash does not count: its row is paired with all rows, and the tests drop the
    pairs. This does not hold for a written key, which raises.
    """
    written, terms = side
    if written is not None and not (
        isinstance(written, Lifted) and total(written.body, of) and hashable(written.body, of)
    ):
        return
    for term in terms:
        if not term.is_key:
            yield term.function.body
        elif not term.is_guard and not total(term.function.body, of):
            return


@record
class Candidate:
    """A possible look-up in an index by a field, or a first join that others may share.

    Of several, the one of the greatest `kind` is used, and of these the one with most values.
    """

    kind: int
    index: PhysicalIndex | PhysicalRangeIndex
    field: Path | None = None
    equations: tuple[multiways.Equation, ...] = ()
    """Without a field: the equations of the joins that share one."""
    of_join: bool = False
    """True if a join would otherwise read the whole table once, to index the rows that pass."""


ValuesWanted = Callable[[Candidate], int]
"""Returns the number of distinct values of a field in an index of a table.

Without the index: the number of values that readers look for, if they are enough for an index to
pay; else 0. Without a field: the number of multiway joins of the equations, if they are enough.
"""


Asked = tuple[tuple[Candidate, ...], int | None]
FieldIndex = tuple[PhysicalIndex | PhysicalRangeIndex, Path]
"""An index of a table, and its field."""


def best_of(candidates: Sequence[Candidate], values_wanted: ValuesWanted) -> int | None:
    """Return the position of the candidate to look up; None if none pays."""
    many = [values_wanted(each) for each in candidates]
    places = [place for place, count in enumerate(many) if count]
    return max(places, key=lambda p: (candidates[p].kind, many[p]), default=None)


@record
class FoundLookup:
    """A possible look-up of the first condition of a chain over a table."""

    below: PipelineSource
    test: Lifted
    what: FieldValues
    candidate: Candidate

    def use(self) -> tuple[PipelineSource, Lookup]:
        """Return the rest of the chain, and the look-up below it."""
        rest = _rest(self.below, self.test, self.what)
        index = self.candidate.index
        return rest, Lookup(rest.base, index, self.what.values, Op(rest.base))


def drops_rows(side: Side, other: Side, of_other: Callable[[], Shapes]) -> bool:
    """Return True if a side of an inner join has tests, and rows that fail one change nothing."""
    for term in side[1]:
        if not term.is_key:
            return not may_raise(other[1], of_other())
    return False


def with_tests_in_chain(below: PipelineSource, side: Side) -> tuple[PipelineSource, Side]:
    """Return a chain with the first tests of a side as its condition, and the rest of the side.

    Return both unchanged unless the chain is a table without conditions.
    """
    found = [] if below.chain else first_tests(side, shapes(below.base))
    if not found:
        return below, side
    written, terms = side
    test = found[0].function.with_body(conjunction(tuple(each.function.body for each in found)))
    chain = (plan.Where(below.base, test),)
    rest = tuple(term for term in terms if term not in found)
    return PipelineSource(chain, below.base), (written, rest)


def find_lookups(below: PipelineSource, *, of_join: bool) -> list[FoundLookup]:
    """Return the possible look-ups of the first condition of a chain over a table."""
    test = _first_test(below)
    if test is None:
        return []
    found = []
    for what in find_values(conjuncts(test.body), shapes(below.base)):
        index = _plan_field_index(below.base, test, what)
        if index is not None:
            candidate = Candidate(_rank_lookup(what), index, what.field, of_join=of_join)
            found.append(FoundLookup(below, test, what, candidate))
    return found


def _first_test(below: PipelineSource) -> Lifted | None:
    """Return the condition at the start of a chain over a stored table; None if it has none."""
    base, chain = below.base, below.chain
    if not (isinstance(base, plan.Table) and base.stored and chain):
        return None
    first = chain[0]
    is_read = isinstance(first, plan.Where) and isinstance(first.predicate, Lifted)
    return first.predicate if is_read else None  # type: ignore[attr-defined]


def _rank_lookup(what: FieldValues) -> int:
    """Return the rank of a look-up: one value 3, several 2, a range with both ends 1, else 0."""
    match what.values:
        case AnyOf():
            return 2
        case Between(None, _) | Between(_, None):
            return 0
        case Between():
            return 1
        case _:
            return 3


def _rest(below: PipelineSource, test: Lifted, what: FieldValues) -> PipelineSource:
    """Return the rest of a chain, over the part of the condition that is looked up."""
    parts, rest = conjuncts(test.body), below.chain[1:]
    others = tuple(part for place, part in enumerate(parts) if place not in what.places)
    has_others = isinstance(what.values, Between) or bool(what.needs)
    asked = parts[: what.asked] if has_others else tuple(parts[place] for place in what.places)
    first = plan.Where(below.base, test.with_body(conjunction(asked)))
    if others:
        rest = (plan.Where(first, test.with_body(conjunction(others))), *rest)
    return PipelineSource(rest, first)


def _needed(needs: Needs) -> tuple[Expr, ...]:
    """Return expressions that raise for a row if a field cannot be read or has another class."""
    found = []
    for field, classes in sorted(needs.items(), key=str):
        read = path_expression(field)
        of = (read, constant(classes))
        found.append(read if classes is None else Call(constant(join.of_classes), of))
    return tuple(found)


def _is_of_one_family(values: Between) -> bool:
    """Return True if the ends of a range have a common order."""
    try:
        ends = [
            end.value if isinstance(end, SlotValue) else end for end in (values.low, values.high)
        ]
        return len({family_of(end) for end in ends if end is not None}) == 1
    except UnorderedError:
        return False


def _plan_field_index(
    table: plan.Node, test: Lifted, what: FieldValues
) -> PhysicalIndex | PhysicalRangeIndex | None:
    """Return the index of a table by a field; None for a range whose ends have no common order.

    Rows have no key if an earlier condition may raise for the classes of their other fields.
    """
    source, below = Scan(table, Op(table)), PipelineSource((), table)
    needs, field = _needed(what.needs), path_expression(what.field)
    by = Lifted(First(needs, field) if needs else field, test.names, (), 1)  # of no one query
    if isinstance(what.values, Between):
        if not _is_of_one_family(what.values):
            return None
        span, in_order = side_conditions.Span(by, by), Range("point", "interval")
        return PhysicalRangeIndex(table, source, below, (), 1, span, in_order)
    side: Side = (None, (SideTerm(by, is_key=True),))
    return PhysicalIndex(table, source, below, side, 1)
