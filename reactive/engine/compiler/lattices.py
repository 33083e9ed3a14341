"""Relations of recursions over lattices, built from their plans.

    class State: node, variable, value
    keep=flat(lambda s: s.value), by=lambda s: (s.node, s.variable)

    by         row -> (row.node, row.variable)
    of         row -> row.value
    put_value  row, value -> State(row.node, row.variable, value)

In such a recursion the best row of a key (`keep=Min`) is a value as well, namely the row.

    keep=Max(lambda s: s.late), by=lambda s: s.task        late = max(s.late + t.hours for ...)

The best row of a key is read as a lattice, too, if the step may make better values of worse ones: a
sum with the largest, a difference with the least. Then values rise many times round a loop. In
other recursions, as of shortest paths, the best rows come first (`recursive_relation.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Display,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    constant,
    parts,
    tuple_of,
)
from optimizer.expressions.knowledge import constructor
from optimizer.plans import value_flow
from optimizer.plans.clauses import Keeping, Program, is_closed
from optimizer.plans.components import strongly_connected
from optimizer.plans.properties import bindings, nodes, row_shape, tables
from optimizer.traverse import functions
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.order import sort_key
from reactive.engine.collections.row_fields import with_field
from reactive.engine.collections.sorting import ranker
from reactive.engine.collections.zset import Pair, Row, canonical
from reactive.engine.operators.fixpoint.group_relation import GroupRelation
from reactive.engine.operators.fixpoint.lattice_laws import CheckedJoin
from reactive.engine.operators.fixpoint.lattice_relation import LatticeRelation
from reactive.engine.operators.fixpoint.rising_relation import RisingRelation
from reactive.engine.operators.fixpoint.set_relation import SetRelation
from reactive.engine.operators.fuse import chain_runner
from reactive.engine.operators.plain import (
    canonical_key_maker,
    chain_over,
    plain_aggregate,
    spread_bindings,
    spread_or_none,
)
from reactive.errors import FixpointError


def has_lattice(program: Program) -> bool:
    """Return True if a relation of a recursion is over a lattice, or of groups."""
    return any(isinstance(best, plan.JoinedValue | plan.GroupOf) for best in program.best)


@dataclass(frozen=True)
class BestValue:
    """The lattice of the values of best rows."""

    largest: bool
    bottom: None = None
    leq: None = None
    widen: None = None
    widen_at: None = None

    def join(self, one: Any, other: Any) -> Any:
        """Return the better one of two values."""
        small, large = (one, other) if self.largest else (other, one)
        return other if sort_key(small) < sort_key(large) else one


IMPROVING = {True: "+", False: "-"}
"""The operation that may make a better value, by whether the largest value is the best."""


def with_lattices(program: Program) -> Program:
    """Return a recursion in which relations of best rows are lattices, if values may rise."""
    made = [_risen(program, place) for place in range(len(program.best))]
    if any(new is None and old is not None for new, old in zip(made, program.best, strict=True)):
        return program
    risen = Program(tuple(made), program.clauses)
    if risen == program or not value_flow.only_flows(risen):
        return program
    is_stored = all(table.stored for clause in program.clauses for table in tables(clause.body))
    return risen if is_stored and _may_improve(program) else program


def _risen(program: Program, place: int) -> Keeping:
    """Return a lattice for best rows with one value; None if they have more than key and value."""
    best = program.best[place]
    if not isinstance(best, plan.Best):
        return best
    shapes = {row_shape(clause.body) for clause in program.clauses if clause.head == place}
    names = _names_of(next(iter(shapes))) if len(shapes) == 1 else None
    value, keys = value_flow.fields_read(best.value), value_flow.fields_read(best.by)
    if names is None or value is None or keys is None or len(value) != 1:
        return None
    (name,) = value
    if isinstance(best.value, Lifted) and isinstance(best.value.body, Display):
        return None
    if name in keys or {name, *keys} != {*names}:
        return None
    return plan.JoinedValue(best.by, best.value, name, BestValue(best.largest))


def _may_improve(program: Program) -> bool:
    """Return True if a step may make a better value of a worse one."""
    wanted = {IMPROVING[best.largest] for best in program.best if isinstance(best, plan.Best)}
    for clause in program.clauses:
        if is_closed(clause.body):
            continue
        for node in chain_over(clause.body)[0]:
            waiting = [f.body for f in functions(node) if isinstance(f, Lifted)]
            while waiting:
                expr = waiting.pop()
                match expr:
                    case Operation(operator, (_, _)) if operator in wanted:
                        return True
                waiting += parts(expr)
    return False


def reading_clauses(program: Program) -> tuple[bool, ...]:
    """Return for each clause whether it reads a value of a lattice together with another row."""
    if not has_lattice(program):
        return (False,) * len(program.clauses)
    return value_flow.reading_clauses(program)


def rising_relations(
    program: Program, checked: Sequence[str] | None = None
) -> list[RisingRelation]:
    """Return the empty relations of a recursion of which one is over a lattice.

    `checked` are the names of the first relations if the laws of lattices are checked.
    """
    shape_of = {c.head: row_shape(c.body) for c in program.clauses if bindings(c.body) == 1}
    made: list[RisingRelation] = []
    for place, (best, falls) in enumerate(zip(program.best, _falling(program), strict=True)):
        name = None if checked is None else checked[min(place, len(checked) - 1)]
        relation = _relation(best, shape_of.get(place), name)
        relation.falls = falls
        made.append(relation)
    return made


def _relation(best: Keeping, shape: Any, checked: str | None) -> RisingRelation:
    if best is None:
        return SetRelation()
    if isinstance(best, plan.GroupOf):
        return _group_relation(best, checked)
    if isinstance(best, plan.Best):
        return _best_relation(best)
    lattice = best.lattice
    return LatticeRelation(
        spread_bindings(best.by, 1),
        spread_bindings(best.value, 1),
        _put_value(best, shape),
        lattice.join if checked is None else CheckedJoin(checked, lattice),
        bottom=() if lattice.bottom is None else (lattice.bottom,),
        widen=lattice.widen,
        widen_at=lattice.widen_at,
        is_checked=_names_of(shape) is None,
    )


def _group_relation(of: plan.GroupOf, checked: str | None) -> GroupRelation:
    """Return the relation of the groups of an aggregate inside of the recursion.

    `checked` is the name of the recursion if aggregates that are declared monotone are checked.
    """
    node, shown = of.aggregate, chain_runner(of.shown)
    count = bindings(node.input)
    key, canonical_key = spread_or_none(node.key, count), canonical_key_maker(node.key, node.input)
    assert key is not None
    summed, largest = [
        [
            spread_bindings(folded.value, count)
            for folded in node.aggregates
            if folded.name == name and folded.value is not None
        ]
        for name in ("Sum", "Max")
    ]
    make_key = key
    declared = [
        (place, folded)
        for place, folded in enumerate(node.aggregates, 1)
        if folded.direction and checked is not None
    ]

    def results_of(pairs: Sequence[Pair]) -> Sequence[Pair]:
        made = plain_aggregate(node).step(pairs)
        if len(pairs) > 1 and declared:
            fewer = plain_aggregate(node).step(pairs[:-1])
            for place, folded in declared:
                _check_direction(folded, fewer[0][0][place], made[0][0][place], str(checked))
        return made

    def check(row: Row) -> None:
        for value in summed:
            number = value(row)
            if number is not None and not number >= 0:
                raise FixpointError(
                    f"a recursion sums {number!r:.60} of the row {row!r:.100}\n"
                    "  inside of a recursion, sum() adds numbers that are not negative: totals rise"
                )
        for value in largest:
            found = value(row)
            if found != found:
                raise FixpointError(
                    f"a recursion has the maximum of {found!r:.60} of the row {row!r:.100}\n"
                    "  no test holds for NaN: leave such rows out"
                )

    return GroupRelation(
        lambda row: canonical_key(make_key(row)),
        lambda pairs: shown([(row, 1) for row, _ in results_of(pairs)]),
        check,
        bindings(of.shown[-1] if of.shown else node),
    )


def _check_direction(folded: plan.Folded, before: Any, after: Any, name: str) -> None:
    """Raise `FixpointError` if a result with more rows went against the declared direction."""
    low, high = (before, after) if folded.direction > 0 else (after, before)
    if low != high and not low <= high:
        declared = "rises" if folded.direction > 0 else "falls"
        raise FixpointError(
            f"fixpoint {name!r}: {folded.label} is not monotone:"
            f" {after!r:.60} with one row more than {before!r:.60}\n"
            f'  it is declared with monotone="{declared}"\n'
            "  transaction rolled back: no table or view changed"
        )


def _best_relation(best: plan.Best) -> LatticeRelation:
    """Return the relation of the best row of each key: its value is the whole row."""
    by = spread_bindings(best.by, 1)
    rank = ranker(spread_bindings(best.value, 1), largest=best.largest)

    def better(one: Row, other: Row) -> Row:
        return other if rank(other) < rank(one) else one

    return LatticeRelation(
        lambda row: canonical(by(row)), lambda row: row, lambda row, value: value, better
    )


def _names_of(shape: Any) -> tuple[str | int, ...] | None:
    """Return the fields of rows of a shape; None if they are not known."""
    if isinstance(shape, tuple):
        return tuple(range(len(shape)))
    return constructor(shape) if isinstance(shape, type) else None


def _put_value(best: plan.JoinedValue, shape: Any) -> Callable[[Row, Any], Row]:
    """Return the function that puts a value into a row."""
    names = _names_of(shape)
    if names is None or best.name not in names:
        field = best.name
        return lambda row, value: with_field(row, field, value)
    row, value = Parameter(0), Parameter(1)
    items: list[Expr] = [
        value
        if name == best.name
        else Attribute(row, name)
        if isinstance(name, str)
        else Item(row, constant(name))
        for name in names
    ]
    body = tuple_of(*items) if isinstance(shape, tuple) else Call(constant(shape), tuple(items))
    return compiled_of(Lifted(body, ("row", "value"), (), 2))


def _falling(program: Program) -> list[bool]:
    """Return for each relation whether it depends on itself by relations without a lattice."""
    reads: dict[int, list[int]] = {place: [] for place in range(len(program.best))}
    for clause in program.clauses:
        if program.best[clause.head] is None:
            read = {part.index for part in nodes(clause.body) if isinstance(part, plan.Recursive)}
            reads[clause.head] += [place for place in read if program.best[place] is None]
    cycles = [group for group in strongly_connected(reads) if len(group) > 1]
    within = {place for group in cycles for place in group}
    return [place in within or place in reads[place] for place in range(len(program.best))]
