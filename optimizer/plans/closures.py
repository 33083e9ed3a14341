"""Which recursions are the transitive closure of a relation, of whose rows only two ends are read.

    reach = edges U select (p.src, e.dst) (join(reach, edges, p.dst == e.src))

    edges:    which rows there are, and of each where it begins and where it ends
    reach:    a row for each pair of nodes of which the first leads to the second

The recursive relation may stand on either side of the join, or on both.

Sound:  rows are equal if and only if both of their ends are; what reads the ends and what makes
        rows cannot raise, and does nothing else.
Needs:  rows of two fields or two items; what begins is what is made longer; no condition but one
        equation; `max_rounds` not lowered, as nothing is counted in rounds.
"""

from __future__ import annotations

from dataclasses import field

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    constant,
    substitute,
    transform,
    tuple_of,
)
from optimizer.expressions.compose import over
from optimizer.expressions.knowledge import (
    Shape,
    Shapes,
    constructor,
    is_canonical,
    makes_record,
    record_field,
    row_is_hashed_by,
    total,
)
from optimizer.plans.clauses import Program, is_closed
from optimizer.plans.properties import bindings, may_be_negative, row_shape, shapes
from optimizer.plans.side_conditions import match_of, side_conditions_of
from optimizer.record import record

ENOUGH_ROUNDS = 10_000
"""As many as are allowed if the user says nothing."""


@record
class Closure:
    """The closure of the rows of a relation by their ends.

    Parameters
    ----------
    ends: row of the source -> where it begins and where it ends.
    kind: the class of the rows of the closure, made of two ends.
    is_row: whether the rows of the source are of the closure as they are.
    """

    source: plan.Node = field(compare=False)
    ends: Lifted
    kind: type
    is_row: bool


def closure_of(node: plan.Fixpoint, program: Program) -> Closure | None:
    """How a fixpoint is the closure of what it reads, if it is one."""
    is_bounded = node.max_rounds is not None and node.max_rounds < ENOUGH_ROUNDS
    if len(program.best) > 1 or program.best[0] is not None or is_bounded:
        return None
    base = [clause.body for clause in program.clauses if is_closed(clause.body)]
    steps = [clause.body for clause in program.clauses if not is_closed(clause.body)]
    found = _over(base[0]) if len(base) == 1 and steps else None
    if found is None or not _is_certain(found):
        return None
    return found if all(_extends(step, found) for step in steps) else None


def _over(base: plan.Node) -> Closure | None:
    """A closure of the rows of a base, by the rows below that these are made of."""
    found = _ends_of(row_shape(base))
    if found is None or bindings(base) != 1:
        return None
    source, ends, names = _below(base, found[1], 0)
    ends = tuple(_by_name(end, (row_shape(source),)) for end in ends)
    read = Lifted(tuple_of(*ends), names or ("row",), (), 1)
    return Closure(source, read, found[0], is_row=names is None)


def _is_certain(of: Closure) -> bool:
    """Whether the ends of rows are read without raising, and are all that makes rows equal."""
    known = shapes(of.source)
    return (
        total(of.ends.body, known)
        and is_canonical(of.ends.body, known)
        and not may_be_negative(of.source)
        and (of.kind is tuple or row_is_hashed_by(of.kind, constructor(of.kind) or ()))
    )


def _ends_of(shape: Shape) -> tuple[type, tuple[Expr, ...]] | None:
    """The class of rows of two fields or items, and what reads these of a row."""
    if isinstance(shape, tuple):
        return (tuple, _read(tuple, 0)) if len(shape) == 2 else None
    names = constructor(shape) if isinstance(shape, type) else None
    if shape is None or names is None or len(names) != 2:
        return None
    return shape, _read(shape, 0)


def _read(kind: type, place: int) -> tuple[Expr, ...]:
    """The ends of a row of a closure that is a parameter."""
    row = Parameter(place)
    if kind is tuple:
        return Item(row, constant(0)), Item(row, constant(1))
    return tuple(Attribute(row, name) for name in constructor(kind) or ())


def _below(
    node: plan.Node, exprs: tuple[Expr, ...], place: int
) -> tuple[plan.Node, tuple[Expr, ...], tuple[str, ...] | None]:
    """What is below selects and distincts, and expressions of a row, a parameter, in terms of it.

    It only counts whether a row is there; selects that may raise stay.
    """
    names = None
    while True:
        match node:
            case plan.Distinct(below):
                node = below
            case plan.Select(below, Lifted() as function) if bindings(below) == 1 and total(
                function.body, shapes(below)
            ):
                row: list[Expr] = [Parameter(0), Parameter(1)]
                row[place] = substitute(function.body, (Parameter(place),))
                exprs = tuple(over(expr, tuple(row)) for expr in exprs)
                node, names = below, function.names
            case _:
                return node, exprs, names


def _extends(step: plan.Node, of: Closure) -> bool:
    """Whether a clause makes pairs of nodes longer by each other."""
    join = step.inputs()[0] if isinstance(step, plan.Select) else None
    if not isinstance(step, plan.Select) or not isinstance(step.function, Lifted):
        return False
    made = _made(step.function.body, of.kind)
    keys = _equation(join) if isinstance(join, plan.Join) else None
    if made is None or keys is None:
        return False
    assert isinstance(join, plan.Join)
    assert isinstance(of.ends.body, Display)
    exprs: tuple[Expr, ...] = (*made, *keys)
    known, ends = list[Shape](), list[tuple[Expr, ...]]()
    for place, side in enumerate(join.inputs()):
        if isinstance(side, plan.Recursive):
            known.append(of.kind)
            ends.append(_read(of.kind, place))
            continue
        side, exprs, _ = _below(side, exprs, place)
        if side != of.source:
            return False
        known.append(row_shape(side))
        ends.append(tuple(substitute(end, (Parameter(place),)) for end in of.ends.body.items))
    begins, stops, *met = (_by_name(expr, tuple(known)) for expr in exprs)
    return any(
        (begins, stops) == (ends[one][0], ends[other][1])
        and (met[one], met[other]) == (ends[one][1], ends[other][0])
        for one, other in ((0, 1), (1, 0))
    )


def _made(body: Expr, kind: type) -> tuple[Expr, ...] | None:
    """The ends of the row of a class that an expression makes."""
    match body:
        case Display("tuple", (_, _)) if kind is tuple:
            return body.items
        case Call(Constant(value)) if value is kind and makes_record(body):
            ends = [record_field(body, name) for name in constructor(kind) or ()]
            return tuple(end for end in ends if end is not None)
    return None


def _equation(join: plan.Join) -> tuple[Expr, Expr] | None:
    """The keys of a join that asks for nothing but one equation, in terms of its pairs."""
    conditions, match = side_conditions_of(join), match_of(join)
    left: Function | None
    right: Function | None
    if conditions is not None and match.left_key is None and conditions.residual is None:
        keys = [*conditions.left, *conditions.right]
        left, right = [k.function for k in keys] if len(keys) == 2 else (None, None)
        is_one = all(key.is_key for key in keys)
    else:
        left, right, is_one = match.left_key, match.right_key, match.on is None
    if not is_one or not isinstance(left, Lifted) or not isinstance(right, Lifted):
        return None
    if left.parameters != 1 or right.parameters != 1:
        return None
    return left.body, substitute(right.body, (Parameter(1),))


def _by_name(expr: Expr, known: Shapes) -> Expr:
    """With the items of rows that are named tuples as fields."""

    def named(part: Expr) -> Expr:
        match part:
            case Item(Parameter(place), Constant(int() as position)):
                kind = known[place]
                names = constructor(kind) if isinstance(kind, type) else None
                if names and issubclass(kind, tuple) and -len(names) <= position < len(names):  # type: ignore[arg-type]
                    return Attribute(Parameter(place), names[position])
        return part

    return transform(expr, named)
