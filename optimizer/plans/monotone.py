"""Aggregates that a recursion may pass through: those whose results only rise, or only fall.

    controls  <-  aggregate Sum(s.pct) by (s.owner, s.of), where total > 50

With more rows, a sum of numbers that are not negative is larger, and so is a count; a minimum is
smaller. A test that a larger value passes as well, `total > 50`, never drops a row that it kept: so
the step stays monotone, and the recursion has a least solution. A row that holds the value itself
is replaced when the value rises, so that its relation must keep the best one (`keep=Max`), or join
values (a lattice).

The analysis follows each aggregate through the body of its relation, with a direction for each
binding, or field of a binding, that depends on it.

Sound:  what is not known to be monotone is refused. A relation with `keep=` or a lattice is, as its
        user promises.
Source: [ross] monotonic aggregation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import (
    And,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    reads,
)
from optimizer.expressions.knowledge import constructor
from optimizer.expressions.text import written
from optimizer.lifting.lift import lift
from optimizer.plans import headlines
from optimizer.plans.clauses import by_left_row, counts_copies, is_over_recursion
from optimizer.plans.properties import bindings, free, is_set, nodes, shapes
from optimizer.plans.side_conditions import join_match
from optimizer.record import record

RISING = frozenset({"Count", "Sum", "CountDistinct", "Max", "Collect", "BoolOr"})
FALLING = frozenset({"Min", "BoolAnd"})
MIXED = 2
"""The direction of a value that neither rises nor falls for certain."""


@record
class Moving:
    """A binding: the direction of each field that depends on an aggregate; None is all of it."""

    fields: tuple[tuple[str | int | None, int], ...] = ()
    of: frozenset[int] = frozenset()
    """The ids of the aggregates."""


STILL = Moving()
Row = tuple[Moving, ...]


def refused_aggregates(node: plan.Fixpoint) -> dict[int, str]:
    """Return the aggregates of a recursion that are not monotone, by their id, each with a reason.

    An aggregate by the rows of the left of its join, which no other group depends on, is none.
    """
    analysis = _Analysis(node.level)
    for name, body, best in zip(node.names, node.bodies, node.best, strict=True):
        if any(map(is_over_recursion, nodes(body))):
            analysis.check_head(name, body, best)
    return analysis.refused


class _Analysis:
    def __init__(self, level: Any) -> None:
        self._level = level
        self.refused: dict[int, str] = {}
        self._known: dict[int, Row] = {}

    def check_head(self, name: str, body: plan.Node, best: Any) -> None:
        """Check the rows of a relation, which may hold values of aggregates."""
        row = self._row(body)
        moving = [binding for binding in row if binding.fields]
        if not moving:
            return
        if best is None:
            shown = "the value is in its rows, of which each later one is another row"
            self._refuse(row, f"{shown}: a test such as >= decides, or keep=Max(...) keeps one row")
        elif isinstance(best, plan.Best):
            wanted = 1 if best.largest else -1
            if self._direction(best.value, body, row) not in (0, wanted):
                said = "largest" if best.largest else "smallest"
                self._refuse(row, f"keep= keeps the {said} row, and the value goes the other way")

    def _refuse(self, row: Sequence[Moving], why: str) -> Row:
        for binding in row:
            for each in binding.of:
                self.refused.setdefault(each, why)
        return (STILL,) * len(row)

    def _row(self, node: plan.Node) -> Row:
        """Return what moves in the rows of a node."""
        if self._level not in free(node):
            return (STILL,) * bindings(node)
        if id(node) not in self._known:
            self._known[id(node)] = self._find_row(node)
        return self._known[id(node)]

    def _find_row(self, node: plan.Node) -> Row:
        match node:
            case plan.Recursive():
                return (STILL,) * bindings(node)
            case plan.Distinct(source):
                return self._row(source)
            case plan.Union(left, right) | plan.UnionAll(left, right):
                return tuple(map(_meet, self._row(left), self._row(right)))
            case plan.Where(source, predicate):
                row = self._row(source)
                if self._direction(predicate, source, row) not in (0, 1):
                    return self._refuse(
                        row, f"where {_text(predicate, source)} may drop a row later"
                    )
                return row
            case plan.Select(source, function):
                return (self._made(function, source),)
            case plan.Extend(source, keep, columns):
                row = self._row(source)
                return (*[row[k] for k in keep], *[self._made(c, source) for c in columns])
            case plan.SelectMany(source, function) | plan.Unnest(source, function):
                row = self._row(source)
                if self._direction(function, source, row) != 0:
                    row = self._refuse(row, f"{headlines.name(node)} reads the value")
                return (STILL,) if isinstance(node, plan.SelectMany) else (*row, STILL)
            case plan.Join() | plan.Product() | plan.SemiJoin() | plan.AntiJoin():
                return self._joined(node)
            case plan.OuterJoin(left, right) if self._level not in free(right):
                return self._joined(node)
            case plan.OuterJoin(left, right):
                both = (*self._row(left), *self._row(right))
                missing = f"a row without a partner in {headlines.name(node)} may get one later"
                self._refuse(both, f"{missing}: a test above must drop it")
                return (STILL,) * bindings(node)
            case plan.Aggregate() if by_left_row(node) is None:
                return self._aggregated(node)
            case _:
                for source in node.inputs():
                    self._refuse(self._row(source), f"{headlines.name(node)} reads the value")
                return (STILL,) * bindings(node)

    def _joined(self, node: Any) -> Row:
        left, right = self._row(node.left), self._row(node.right)
        row = (*left, _as_one(right))
        if not isinstance(node, plan.Product):
            match = join_match(node)
            is_negated = isinstance(node, plan.AntiJoin | plan.OuterJoin)
            sides = ((match.left_key, node.left, left), (match.right_key, node.right, right))
            for key, source, given in sides:
                if key is not None and self._direction(key, source, given) != 0:
                    row = self._refuse(row, f"{headlines.name(node)} reads the value in its key")
            if match.on is not None:
                found = _direction(_body(match.on, None), row)
                if found not in ((0,) if is_negated else (0, 1)):
                    shown = f"{headlines.name(node)} on {written(match.on)} may drop a pair later"
                    row = self._refuse(row, shown)
        if isinstance(node, plan.SemiJoin | plan.AntiJoin):
            return row[:-1]
        return row

    def _aggregated(self, node: plan.Aggregate) -> Row:
        """Return the key and the results of an aggregate."""
        row, source = self._row(node.input), node.input
        own = frozenset({id(node)})
        of = own.union(*[binding.of for binding in row])
        if node.key is None:
            self.refused[id(node)] = "it is of all rows, and has a row also without any"
        elif self._direction(node.key, source, row) != 0:
            self._refuse(row, "the value is in the key of another aggregate")
        made: list[Moving] = [STILL] * (node.key is not None)
        for folded in node.aggregates:
            sign = _sign(folded)
            if sign is None:
                self.refused[id(node)] = f"{folded.label} may rise or fall with more rows"
            value = 0 if folded.value is None else self._direction(folded.value, source, row)
            if value not in (0, sign):
                self._refuse(row, f"{folded.label} of the value may rise or fall")
            made.append(Moving(((None, sign or MIXED),), of))
        repeated = _repeated(source, self._level) if counts_copies(node) else None
        if repeated is not None:
            self.refused[id(node)] = (
                f"equal rows of {headlines.name(repeated)} count as one inside of a recursion:"
                " distinct() of it says so, or select all fields that tell them apart"
            )
        return tuple(made) if node.row is None else (_as_one(tuple(made)),)

    def _made(self, function: Function, source: plan.Node) -> Moving:
        """Return what moves in the value of a function."""
        row = self._row(source)
        of: frozenset[int] = frozenset().union(*[binding.of for binding in row])
        body = _body(function, source)
        direction = _direction(body, row)
        if direction == 0:
            return STILL
        if isinstance(body, Parameter) and body.index < len(row):
            return row[body.index]
        items: dict[str | int, Expr] = {}
        match body:
            case Display("tuple", parts_of):
                items = dict(enumerate(parts_of))
            case Call(Constant(type() as kind), arguments, ()):
                names = constructor(kind) or ()
                if len(names) >= len(arguments):
                    items = dict(zip(names, arguments, strict=False))
                    if issubclass(kind, tuple):
                        items |= dict(enumerate(arguments))
        found = [(name, _direction(item, row)) for name, item in items.items()]
        fields = tuple((name, sign) for name, sign in found if sign)
        return Moving(fields or ((None, direction),), of)

    def _direction(self, function: Function, source: plan.Node, row: Row) -> int:
        return _direction(_body(function, source), row)


def _sign(folded: plan.Folded) -> int | None:
    if folded.name in RISING:
        return 1
    return -1 if folded.name in FALLING else None


def _text(function: Function, source: plan.Node) -> str:
    """Return the text of a function that can be lifted, else its name."""
    return written(function if isinstance(function, Lifted) else lift(function, shapes(source)))


def _body(function: Function, source: plan.Node | None) -> Expr:
    """Return the expression of a function; a call of all its parameters if it is opaque."""
    if isinstance(function, Lifted):
        return function.body
    known = (None,) * function.parameters if source is None else shapes(source)
    return lift(function, known).body


def _meet(one: Moving, other: Moving) -> Moving:
    fields = dict(one.fields)
    for name, sign in other.fields:
        fields[name] = sign if fields.get(name, sign) == sign else MIXED
    return Moving(tuple(fields.items()), one.of | other.of)


def _as_one(row: Row) -> Moving:
    """Return bindings as one, which is a tuple of them if they are several."""
    if len(row) == 1:
        return row[0]
    of: frozenset[int] = frozenset().union(*[binding.of for binding in row])
    fields = [
        (place, sign if name is None else MIXED)
        for place, binding in enumerate(row)
        for name, sign in binding.fields
    ]
    return Moving(tuple(dict(fields).items()), of)


def _repeated(node: plan.Node, level: Any) -> plan.Node | None:
    """Return a node below a join whose equal rows a recursion cannot count; None if there is none.

    Rows of the recursion are sets; rows of other relations are counted.
    """
    match node:
        case _ if level not in free(node):
            return None
        case plan.Where() | plan.Select() | plan.Extend() | plan.SelectMany() | plan.Unnest():
            return _repeated(node.input, level)
        case plan.UnionAll(left, right):
            return _repeated(left, level) or _repeated(right, level)
        case plan.Join(left, right) | plan.Product(left, right) | plan.OuterJoin(left, right):
            sides = [side for side in (left, right) if level in free(side) and not is_set(side)]
            return sides[0] if sides else None
        case _:
            return None if is_set(node) else node


# The direction of a value: 0 if it does not depend on an aggregate, 1 if it rises, -1 if it falls.


def _direction(expr: Expr, row: Row) -> int:
    """Return the direction of an expression over bindings; `MIXED` if it is not known."""
    if not any(place < len(row) and row[place].fields for place in reads(expr)):
        return 0
    field = _field_sign(expr, row)
    if field is not None:
        return field
    match expr:
        case And(inner) | Or(inner):
            return _all_of([_direction(part, row) for part in inner])
        case Operation("not", (inner,)):
            return _turned(_direction(inner, row))
        case Operation(">=" | ">" | "-", (left, right)):
            return _all_of([_direction(left, row), _turned(_direction(right, row))])
        case Operation("<=" | "<", (left, right)):
            return _all_of([_turned(_direction(left, row)), _direction(right, row)])
        case Operation("+", (left, right)):
            return _all_of([_direction(left, row), _direction(right, row)])
        case Operation("-", (inner,)):
            return _turned(_direction(inner, row))
        case Operation("*", (left, Constant(number))) | Operation("*", (Constant(number), left)):
            return _scaled(_direction(left, row), number)
        case Operation("/" | "//", (left, Constant(number))) if number:
            return _scaled(_direction(left, row), number)
        case Operation("in", (left, right)) if _direction(left, row) == 0:
            return _direction(right, row)
        case Conditional(test, then, otherwise) if _direction(test, row) == 0:
            return _all_of([_direction(then, row), _direction(otherwise, row)])
        case Call(Constant(function), arguments, ()) if function in (min, max, len, float, int):
            return _all_of([_direction(part, row) for part in arguments])
        case _:
            return MIXED


def _field_sign(expr: Expr, row: Row) -> int | None:
    """Return the direction of a binding, or of a field of it; None for other expressions."""
    name: str | int | None
    match expr:
        case Parameter(place):
            name = None
        case Attribute(Parameter(place), str(name)) | Item(Parameter(place), Constant(name)):
            pass
        case _:
            return None
    fields = dict(row[place].fields)
    if name is None:
        return fields[None] if set(fields) == {None} else MIXED
    return MIXED if None in fields else fields.get(name, 0)


def _all_of(signs: Sequence[int]) -> int:
    found = {sign for sign in signs if sign}
    return 0 if not found else found.pop() if len(found) == 1 else MIXED


def _turned(sign: int) -> int:
    return sign if sign == MIXED else -sign


def _scaled(sign: int, number: object) -> int:
    if not isinstance(number, int | float):
        return MIXED
    return sign if number >= 0 else _turned(sign)
