"""Join three or more inputs at once.

    join b.dst == c.src and c.dst == a.src      join of three: a.dst == b.src,
      join a.dst == b.src                 ->      b.dst == c.src, c.dst == a.src
        edges a                                   edges a, edges b, edges c
        edges b
      edges c

Of two inputs alone there may be very many pairs, few of which are joined with a row of the third.
So no pairs are held: a change of an input is followed through indexes of the others, those first of
which there are fewer. Where the conditions form a circle, as here, those of two inputs meet.

Below an aggregate of which sums are kept (`factor_aggregate`), joins stay joins of two: `narrowed`.

Sound:  the equations and tests are those of the joins. If anything raises, the engine goes back to
        the joins of two.
Needs:  keys found, each part of one of a single input; inner joins; stored tables. Without a
        circle, no conditions of several inputs: they would be asked last. At most 15 inputs: a loop
        is nested for each.
Pays:   state is the inputs, a change costs the smaller of its sides, not the pairs of two inputs.
Source: worst-case optimal joins: Ngo, Porat, Re, Rudra, 2012; delta queries: Ammar, McSherry,
        Salihoglu, Joglekar, *Distributed Evaluation of Subgraph Queries*, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optimizer import plan
from optimizer.compose import needs, projected
from optimizer.expr import Display, Expr, Lifted, Parameter, conjuncts, reads, substitute, transform
from optimizer.knowledge import is_value, total
from optimizer.properties import bindings, may_be_negative, row_shape, shapes

FEWEST = 3
MOST = 15
"""Inputs of a join that is run as one."""


def widen_join(node: plan.Node) -> plan.Node:
    if not isinstance(node, plan.Join) or node.wide is not None:
        return node
    if may_be_negative(node):
        return node
    found = _flat(node)
    if found is None or not FEWEST <= len(found.relations) <= MOST:
        return node
    if not found.is_cyclic and found.rest:
        return node
    tests = tuple(map(tuple, found.tests))
    wide = plan.Wide(tuple(found.equations), tests, tuple(found.rest), found.row, found.is_cyclic)
    return replace(node, wide=wide)


@dataclass
class _Flat:
    """Joins of two as one: rows of the inputs are parameters, in their order."""

    relations: list[plan.Node]
    row: tuple[Expr, ...]
    equations: list[plan.Equation]
    tests: list[list[Expr]]
    rest: list[Expr]
    is_cyclic: bool = False

    def here(self, expr: Expr) -> Expr:
        """An expression over the joined rows, in terms of the inputs."""
        return transform(substitute(expr, self.row), projected)

    def join(self, node: plan.Join) -> bool:
        """Add the right side of a join; whether that is possible."""
        match, place = node.match, len(self.relations)
        early = match.early
        if (match.on is not None and early is None) or self._may_raise():
            return False
        keys = [(match.left_key, match.right_key)] if match.left_key is not None else []
        steps = () if early is None else early.left
        own = () if early is None else early.right
        left = [k for k, _ in keys] + [s.function for s in steps if s.is_key]
        right = [k for _, k in keys] + [s.function for s in own if s.is_key]
        met = set()
        for a, b in zip(left, right, strict=True):
            if not isinstance(a, Lifted) or not isinstance(b, Lifted):
                return False
            for mine, theirs in _parts_of(self.here(a.body), b.body):
                read = reads(mine)
                if len(read) != 1:
                    return False
                (other,) = read
                met.add(other)
                self.equations.append(plan.Equation(other, _alone(mine), place, theirs))
        self.is_cyclic |= len(met) > 1
        for step in steps:
            if not step.is_key:
                self._test(self.here(step.function.body))
        self.tests.append([step.function.body for step in own if not step.is_key])
        self.relations.append(node.right)
        self.row = (*self.row, Parameter(place))
        if early is not None and early.rest is not None:
            self.rest += map(self.here, conjuncts(early.rest.body))
        return bool(met)

    def _may_raise(self) -> bool:
        """Whether what is asked of the rows so far may raise: also where none of another match."""
        of = tuple(map(row_shape, self.relations))
        return not all(total(expr, of) for expr in self.rest)

    def _test(self, expr: Expr) -> None:
        read = reads(expr)
        if len(read) == 1:
            (place,) = read
            self.tests[place].append(_alone(expr))
        else:
            self.rest.append(expr)


def _flat(node: plan.Node) -> _Flat | None:
    """Joins of two, with the selects between them, as one; as far down as they are too many."""
    above: list[plan.Node] = []
    while isinstance(node, plan.Join) or _passes_on(node):
        if len(above) > 2 * MOST:
            return None
        above.append(node)
        node = node.inputs()[0]
    if bindings(node) > 1:
        return None
    found = _Flat([node], (Parameter(0),), [], [[]], [])
    for part in above[::-1]:
        if isinstance(part, plan.Select) and isinstance(part.function, Lifted):
            found.row = (found.here(part.function.body),)
        elif isinstance(part, plan.Join) and not found.join(part):
            return None
    return found


def _passes_on(node: plan.Node) -> bool:
    """Whether it is a select of joined rows, of which nothing is computed twice or may raise."""
    match node:
        case plan.Select(plan.Join() as join, Lifted(made)):
            return is_value(made, shapes(join)) and not needs(made, shapes(join))
        case _:
            return False


def _parts_of(left: Expr, right: Expr) -> list[tuple[Expr, Expr]]:
    """What is equal if two keys are: their parts, where both are tuples written out."""
    match left, right:
        case Display("tuple", mine), Display("tuple", theirs) if len(mine) == len(theirs) > 0:
            return list(zip(mine, theirs, strict=True))
        case _:
            return [(left, right)]


def narrowed(node: plan.Node) -> plan.Node:
    """An aggregate of which sums are kept over joins of two, or any other node as it is."""
    if not isinstance(node, plan.Aggregate) or node.factors is None:
        return node
    below = _narrow(node.input)
    return node if below is node.input else replace(node, input=below)


def _narrow(node: plan.Node) -> plan.Node:
    match node:
        case plan.Join(left=left, wide=wide):
            below = _narrow(left)
            is_same = below is left and wide is None
            return node if is_same else replace(node, left=below, wide=None)
        case plan.Select(plan.Join() as join):
            below = _narrow(join)
            return node if below is join else replace(node, input=below)
        case _:
            return node


def _alone(expr: Expr) -> Expr:
    """An expression over one input, as one of its row alone."""
    return transform(expr, lambda e: Parameter(0) if isinstance(e, Parameter) else e)
