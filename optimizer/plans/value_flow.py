"""Clauses of a recursion over lattices that read a value together with another row.

    state <- select (join(state, edges) on s.node == e.u)      reads the key: no
    state <- select (join(state, table) on s.value == t.from)  reads the value: yes

While a value rises, a derivation from its row and another row goes on: the same two rows make a
larger value. Not so if the value decides which rows are paired, or whether the pair counts: then a
derivation from a smaller value may be gone, and the row that it was made of may leave unnoticed.

A field of a relation is clean if it never holds what was made of a value. A relation that is no
lattice may hold values in its fields, and its rows may come and go with a value (`moves`).

Sound:  what is not known is not clean.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    Subquery,
    parts,
    reads,
)
from optimizer.expressions.knowledge import constructor
from optimizer.plans.clauses import Program, partners_of, sides_of
from optimizer.plans.properties import bindings, free, shapes
from optimizer.plans.side_conditions import join_match
from optimizer.record import record

Fields = frozenset[str | int]


@record
class Binding:
    """The clean fields of a binding, by name and by place; `is_clean` if all of it is."""

    is_clean: bool
    fields: Fields = frozenset()

    def has(self, field: object) -> bool:
        """Return True if a field is clean."""
        return self.is_clean or field in self.fields

    def meet(self, other: Binding) -> Binding:
        """Return what is clean in both."""
        if self.is_clean:
            return other
        return self if other.is_clean else Binding(False, self.fields & other.fields)


CLEAN = Binding(True)
UNKNOWN = Binding(False)


@record
class Flow:
    """The bindings of the rows of a node; `moves` if its rows come and go with a value, and
    `reads` if a value decides about pairs of rows."""

    bindings: tuple[Binding, ...]
    moves: bool = False
    reads: bool = False


def reading_clauses(program: Program) -> tuple[bool, ...]:
    """Return for each clause whether it reads a value of a lattice together with another row."""
    made, _ = _flows(program)
    return tuple(flow.reads for flow in made)


def only_flows(program: Program) -> bool:
    """Return True if values decide about no row and no key: they are only made of each other."""
    return not any(flow.reads or flow.moves for flows in _flows(program) for flow in flows)


def _flows(program: Program) -> tuple[list[Flow], list[Flow]]:
    """Return the flows of the clauses, and of the relations."""
    widths = _widths(program)
    known = [
        Flow((CLEAN,) * (_width_of_group(best) if isinstance(best, plan.GroupOf) else width))
        for best, width in zip(program.best, widths, strict=True)
    ]
    while True:
        made = [_clause_flow(clause.body, known) for clause in program.clauses]
        new = list(known)
        of_groups = {
            index: Flow((CLEAN,) * widths[index])
            for index, best in enumerate(program.best)
            if isinstance(best, plan.GroupOf)
        }
        for clause, flow in zip(program.clauses, made, strict=True):
            of = of_groups if clause.head in of_groups else new
            of[clause.head] = _meet(of[clause.head], flow)
        for index, best in enumerate(program.best):
            if isinstance(best, plan.JoinedValue | plan.Best):
                new[index] = _of_lattice(best, new[index])
            elif isinstance(best, plan.GroupOf):
                new[index] = _of_group(best, of_groups[index])
        if new == known:
            return made, known
        known = new


def _widths(program: Program) -> list[int]:
    """Return the number of bindings of each relation."""
    widths = [1] * len(program.best)
    for clause in program.clauses:
        widths[clause.head] = bindings(clause.body)
    return widths


def _meet(one: Flow, other: Flow) -> Flow:
    found = [a.meet(b) for a, b in zip(one.bindings, other.bindings, strict=True)]
    return Flow(tuple(found), one.moves or other.moves)


def _of_lattice(best: plan.JoinedValue | plan.Best, flow: Flow) -> Flow:
    """Return the flow of a relation over a lattice, or of the best rows: its key is clean, and its
    rows only rise."""
    (binding,) = flow.bindings
    keys = fields_read(best.by)
    is_clean = keys is not None and all(map(binding.has, keys))
    return Flow((Binding(False, keys if is_clean and keys else frozenset()),), not is_clean)


def _width_of_group(of: plan.GroupOf) -> int:
    """Return the number of bindings of a relation of groups: the key, and what is shown."""
    return 1 + bindings(of.shown[-1] if of.shown else of.aggregate)


def _of_group(of: plan.GroupOf, flow: Flow) -> Flow:
    """Return the flow of a relation of groups: its key is clean, its rows are made of values."""
    key = of.aggregate.key
    assert key is not None
    is_clean = _is_clean_function(key, flow.bindings)
    own = CLEAN if is_clean else UNKNOWN
    count = bindings(of.aggregate)
    row = Flow((own, *(UNKNOWN,) * (count - 1)) if count > 1 else (UNKNOWN,))
    for node in of.shown:
        row = _linear_flow(node, row, has_partner=False)
    return Flow((own, *row.bindings), not is_clean)


def fields_read(by: Function) -> Fields | None:
    """Return the fields that a key is made of; None if it is made of more."""
    if not isinstance(by, Lifted):
        return None
    body = by.body
    items = body.items if isinstance(body, Display) else (body,)
    found = [_field(item) for item in items]
    return None if None in found else frozenset(field[1] for field in found if field is not None)


def _field(expr: Expr) -> tuple[int, str | int] | None:
    """Return the binding and the field that an expression reads; None for other expressions."""
    match expr:
        case Attribute(Parameter(place), str(name)):
            return place, name
        case Item(Parameter(place), Constant(int(number))):
            return place, number
    return None


def _clause_flow(body: plan.Node, known: Sequence[Flow]) -> Flow:
    """Return the flow of the rows of a clause."""
    chain: list[plan.Node] = []
    node = body
    while isinstance(node, plan.Where | plan.Select | plan.Extend | plan.SelectMany | plan.Unnest):
        if not free(node):
            break
        chain.append(node)
        node = node.input
    flow = _base_flow(node, known)
    has_partner = sides_of(node) is not None and bool(free(node))
    for each in reversed(chain):
        flow = _linear_flow(each, flow, has_partner=has_partner)
    return flow


def _base_flow(node: plan.Node, known: Sequence[Flow]) -> Flow:
    if not free(node):
        return Flow((CLEAN,) * bindings(node))
    if isinstance(node, plan.Recursive):
        return known[node.index]
    if isinstance(node, plan.Where):
        return _linear_flow(node, _base_flow(node.input, known), has_partner=False)
    join = partners_of(node) if isinstance(node, plan.Aggregate) else sides_of(node)
    if join is None:
        return Flow((UNKNOWN,) * bindings(node), moves=True, reads=True)
    left, right = (_base_flow(side, known) for side in (join.left, join.right))
    both, match = (*left.bindings, *right.bindings), join_match(join)
    asked = [(match.left_key, left.bindings), (match.right_key, right.bindings), (match.on, both)]
    is_read = not all(f is None or _is_clean_function(f, given) for f, given in asked)
    moves = left.moves or right.moves or is_read
    if isinstance(node, plan.Aggregate):
        is_all_clean = all(binding.is_clean for binding in both)
        of = CLEAN if is_all_clean else UNKNOWN
        return Flow((of,) * bindings(node), moves, reads=moves or not is_all_clean)
    made = left.bindings if isinstance(node, plan.AntiJoin | plan.SemiJoin) else both
    return Flow(made, moves, reads=moves)


def _linear_flow(node: plan.Node, flow: Flow, *, has_partner: bool) -> Flow:
    """Return the flow above a linear node."""
    given = flow.bindings
    match node:
        case plan.Where(_, predicate):
            moves = flow.moves or not _is_clean_function(predicate, given)
            return Flow(given, moves, flow.reads or (moves and has_partner))
        case plan.Select(_, function):
            return Flow((_made(function, given),), flow.moves, flow.reads)
        case plan.Extend(_, kept, columns):
            made = [given[place] for place in kept]
            made += [_made(column, given) for column in columns]
            return Flow(tuple(made), flow.moves, flow.reads)
        case plan.SelectMany(_, function) | plan.Unnest(_, function):
            is_clean = _is_clean_function(function, given)
            moves = flow.moves or not is_clean
            of = CLEAN if is_clean else UNKNOWN
            rows = (of,) if isinstance(node, plan.SelectMany) else (*given, of)
            return Flow(rows, moves, flow.reads or (moves and has_partner))
    return Flow((UNKNOWN,) * len(shapes(node)), moves=True, reads=True)


def _made(function: Function, given: Sequence[Binding]) -> Binding:
    """Return what is clean in the value that a function makes."""
    if not isinstance(function, Lifted):
        return UNKNOWN
    body = function.body
    if _is_clean(body, given):
        return CLEAN
    match body:
        case Parameter(place):
            return given[place]
        case Display("tuple", items):
            return Binding(False, frozenset(_clean_places(items, given)))
        case Call(Constant(type() as kind), arguments, ()):
            names = constructor(kind) or ()
            places = [*_clean_places(arguments, given)]
            named = [names[place] for place in places if place < len(names)]
            by_place = places if issubclass(kind, tuple) else []
            return Binding(False, frozenset([*named, *by_place]) if names else frozenset())
    return UNKNOWN


def _clean_places(items: Sequence[Expr], given: Sequence[Binding]) -> list[int]:
    return [place for place, item in enumerate(items) if _is_clean(item, given)]


def _is_clean_function(function: Function, given: Sequence[Binding]) -> bool:
    if not isinstance(function, Lifted):
        return all(binding.is_clean for binding in given)
    return _is_clean(function.body, given)


def _is_clean(expr: Expr, given: Sequence[Binding]) -> bool:
    """Return True if an expression reads nothing that was made of a value."""
    read = reads(expr)
    if all(place < len(given) and given[place].is_clean for place in read):
        return True
    found = _field(expr)
    if found is not None:
        return found[0] < len(given) and given[found[0]].has(found[1])
    if isinstance(expr, Parameter | Subquery):
        return False
    return all(_is_clean(part, given) for part in parts(expr))
