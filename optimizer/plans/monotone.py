"""Aggregates that a recursion may pass through: those whose results only rise, or only fall.

    controls  <-  aggregate Sum(s.pct) by (s.owner, s.of), where total > 50

With more rows, a sum of numbers that are not negative is larger, and so is a count; a minimum is
smaller. A test that a larger value passes as well, `total > 50`, never drops a row that it kept: so
the step stays monotone, and the recursion has a least solution. A row that holds the value itself
is replaced when the value rises, so that its relation must keep the best one (`keep=Max`), or join
values (a lattice). Aggregates and functions of the user's own are monotone if they are declared so.

The analysis follows each aggregate through the body of its relation, with a direction for each
binding, or field of a binding, that depends on it.

Sound:  what is not known to be monotone is refused. A relation with `keep=` or a lattice is, as its
        user promises.
Source: [ross] monotonic aggregation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from optimizer.expressions.knowledge import IS_MONOTONE, constructor
from optimizer.expressions.order_kinds import ANY_KIND
from optimizer.expressions.text import written
from optimizer.lifting.lift import lift
from optimizer.plans import headlines
from optimizer.plans.clauses import by_left_row, counts_copies, is_over_recursion
from optimizer.plans.declared_kinds import declared_kind
from optimizer.plans.properties import bindings, free, is_set, nodes, shapes
from optimizer.plans.side_conditions import join_match
from optimizer.record import record

NUMBER, AMOUNT, ORDERED, OTHER, BAG, TRUTH, DECLARED = (
    *("number", "amount", "ordered", "other", "bag", "truth", "declared"),
)
"""Kinds of values that move: a number; a number that is not negative; a value that `<` compares,
of any type or for certain no number; a bag that gets elements; a truth value; a value that its user
says to be monotone, also in truth."""
KNOWN: Mapping[str, tuple[int, str]] = {
    **dict.fromkeys(("Count", "Sum", "CountDistinct"), (1, AMOUNT)),
    "Max": (1, ORDERED),
    "Min": (-1, ORDERED),
    "Collect": (1, BAG),
    "BoolOr": (1, TRUTH),
    "BoolAnd": (-1, TRUTH),
}
"""The direction and the kind of aggregates with more rows."""
OF_ELEMENTS = frozenset({"Collect", "CountDistinct"})
"""Aggregates of which a value that rises replaces an element, so that one is lost."""
MIXED = 2
"""The direction of a value that neither rises nor falls for certain."""
Motion = tuple[int, str]
"""A direction, 0 of a value that does not move, and the kind of the value."""
RESTING: Motion = (0, ORDERED)


@record
class Moving:
    """A binding: the motion of each field that depends on an aggregate; None is all of it."""

    fields: tuple[tuple[str | int | None, Motion], ...] = ()
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
                if _Motions(row, source).test(_body(predicate, source)) not in (0, 1):
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
                sign, kind = _Motions(row, source).value(_body(function, source))
                if sign and not (sign == 1 and kind in (BAG, DECLARED)):
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
                pairs = plan.Product(node.left, node.right)
                found = _Motions(row, pairs).test(_body(match.on, None))
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
            sign, kind = _motion_of(folded, source)
            if sign == MIXED:
                self.refused[id(node)] = f"{folded.label} may rise or fall with more rows"
            value = 0 if folded.value is None else self._direction(folded.value, source, row)
            if value not in (0, *[sign] * (folded.name not in OF_ELEMENTS)):
                self._refuse(row, f"{folded.label} of the value may rise or fall")
            made.append(Moving(((None, (sign, kind)),), of))
        if any(folded.name not in ("Max", "Min") for folded in node.aggregates):
            self._check_merging(source)
        repeated = _repeated(source, self._level) if counts_copies(node) else None
        if repeated is not None:
            self.refused[id(node)] = (
                f"equal rows of {headlines.name(repeated)} count as one inside of a recursion:"
                " distinct() of it says so, or select all fields that tell them apart"
            )
        return tuple(made) if node.row is None else (_as_one(tuple(made)),)

    def _check_merging(self, source: plan.Node) -> None:
        """Refuse values in rows that become equal below an aggregate that counts them."""
        for part in nodes(source, until=lambda part: self._level not in free(part)):
            if isinstance(part, plan.Distinct | plan.Union) and self._level in free(part):
                for each in part.inputs():
                    row = self._row(each)
                    if any(binding.fields for binding in row):
                        self._refuse(row, f"{headlines.name(part)} may make rows of values equal")

    def _made(self, function: Function, source: plan.Node) -> Moving:
        """Return what moves in the value of a function."""
        row = self._row(source)
        of: frozenset[int] = frozenset().union(*[binding.of for binding in row])
        body, motions = _body(function, source), _Motions(row, source)
        motion = motions.value(body)
        if not motion[0]:
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
        found = [(name, motions.value(item)) for name, item in items.items()]
        fields = tuple((name, each) for name, each in found if each[0])
        return Moving(fields or ((None, motion),), of)

    def _direction(self, function: Function, source: plan.Node, row: Row) -> int:
        return _Motions(row, source).value(_body(function, source))[0]


def _motion_of(folded: plan.Folded, source: plan.Node) -> Motion:
    """Return the motion of an aggregate with more rows; `MIXED` if it is not known."""
    if folded.direction:
        return folded.direction, DECLARED
    sign, kind = KNOWN.get(folded.name, (MIXED, ORDERED))
    if kind == ORDERED and sign != MIXED and folded.value is not None:
        declared = declared_kind(_body(folded.value, source), source)
        kind = kind if declared in (None, ANY_KIND) else NUMBER if declared == NUMBER else OTHER
    return sign, kind


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
    for name, motion in other.fields:
        fields[name] = motion if fields.get(name, motion) == motion else (MIXED, ORDERED)
    return Moving(tuple(fields.items()), one.of | other.of)


def _as_one(row: Row) -> Moving:
    """Return bindings as one, which is a tuple of them if they are several."""
    if len(row) == 1:
        return row[0]
    of: frozenset[int] = frozenset().union(*[binding.of for binding in row])
    fields = [
        (place, motion if name is None else (MIXED, ORDERED))
        for place, binding in enumerate(row)
        for name, motion in binding.fields
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


# The motion of a value: whether it rises with more rows, and what that means.


class _Motions:
    """Motions of expressions over the rows of a node, with what moves in each binding."""

    def __init__(self, row: Row, source: plan.Node) -> None:
        self._row = row
        self._source = source

    def test(self, expr: Expr) -> int:
        """Return the direction of the truth of an expression; `MIXED` if it is not known."""
        if not self._moves(expr):
            return 0
        match expr:
            case And(inner) | Or(inner):
                return _all_of([self.test(part) for part in inner])
            case Operation("not", (inner,)):
                return _turned(self.test(inner))
            case _:
                sign, kind = self.value(expr)
                return MIXED if kind in (NUMBER, ORDERED, OTHER) else sign

    def value(self, expr: Expr) -> Motion:
        """Return the motion of the value of an expression."""
        if not self._moves(expr):
            return RESTING
        field = _field_motion(expr, self._row)
        if field is not None:
            return field
        match expr:
            case Operation(">=" | ">" | "<=" | "<" as operator, (left, right)):
                both = [self._compared(left), self._compared(right)]
                turned = 1 if operator in (">=", ">") else 0
                both[turned] = _turned(both[turned])
                return _all_of(both), TRUTH
            case Operation("in", (left, right)) if not self._moves(left):
                sign, kind = self.value(right)
                return (sign if kind == BAG else MIXED), TRUTH
            case And() | Or() | Operation("not", _):
                return self.test(expr), TRUTH
            case Operation("+" | "-" | "*" | "/" | "//" as operator, (left, right)):
                return self._computed(operator, left, right)
            case Operation("-", (inner,)):
                sign, kind = self.value(inner)
                return (MIXED if kind in (BAG, TRUTH) else _turned(sign)), NUMBER
            case Conditional(test, then, otherwise) if not self._moves(test):
                found = [self.value(part) for part in (then, otherwise) if self._moves(part)]
                return _all_of([sign for sign, _ in found]), _kind_of_all(found)
            case Call(Constant(function), arguments, ()):
                return self._called(function, arguments)
            case _:
                return MIXED, ORDERED

    def _moves(self, expr: Expr) -> bool:
        row = self._row
        return any(place < len(row) and row[place].fields for place in reads(expr))

    def _compared(self, expr: Expr) -> int:
        """Return the direction of a value that is compared; truth values are not."""
        sign, kind = self.value(expr)
        return MIXED if sign and kind in (BAG, TRUTH) else sign

    def _computed(self, operator: str, left: Expr, right: Expr) -> Motion:
        """Return the motion of a sum, a difference, or a multiple of a number."""
        one, other = self.value(left), self.value(right)
        if BAG in (one[1], other[1]) or TRUTH in (one[1], other[1]):
            return MIXED, ORDERED
        if operator == "-" or (operator == "+" and self._has_number(left, right)):
            return _all_of([one[0], other[0] if operator == "+" else _turned(other[0])]), NUMBER
        match left, right:
            case _, Constant(number) if operator != "+" and (number or operator == "*"):
                if operator != "*" or one[1] != OTHER:
                    return _scaled(one[0], number), NUMBER
            case Constant(number), _ if operator == "*" and other[1] != OTHER:
                return _scaled(other[0], number), NUMBER
            case _:
                pass
        return MIXED, ORDERED

    def _has_number(self, *operands: Expr) -> bool:
        """Return True if one operand is a number for certain, and no text or tuple."""
        return any(
            isinstance(each.value, int | float)
            if isinstance(each, Constant)
            else self.value(each)[1] in (NUMBER, AMOUNT)
            or declared_kind(each, self._source) == NUMBER
            for each in operands
        )

    def _called(self, function: Any, arguments: Sequence[Expr]) -> Motion:
        """Return the motion of what a function of moving values returns."""
        found = [self.value(each) for each in arguments]
        signs, kind = [sign for sign, _ in found], _kind_of_all(found)
        if getattr(function, IS_MONOTONE, False):
            return _all_of(signs), DECLARED
        if function is len and kind == BAG:
            return signs[0], AMOUNT
        if function in (int, float) and self._has_number(*arguments):
            return _all_of(signs), NUMBER
        if function in (min, max) and len(arguments) == 1 and kind == BAG:
            return (signs[0] if function is max else _turned(signs[0])), ORDERED
        if function in (min, max) and len(arguments) > 1 and kind not in (BAG, TRUTH):
            return _all_of(signs), NUMBER if kind == AMOUNT else kind
        return MIXED, ORDERED


def _field_motion(expr: Expr, row: Row) -> Motion | None:
    """Return the motion of a binding, or of a field of it; None for other expressions."""
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
        return fields[None] if set(fields) == {None} else (MIXED, ORDERED)
    return (MIXED, ORDERED) if None in fields else fields.get(name, RESTING)


def _all_of(signs: Sequence[int]) -> int:
    found = {sign for sign in signs if sign}
    return 0 if not found else found.pop() if len(found) == 1 else MIXED


def _kind_of_all(motions: Sequence[Motion]) -> str:
    """Return the kind of all values that move; `ORDERED` if they have several."""
    kinds = {kind for sign, kind in motions if sign}
    return kinds.pop() if len(kinds) == 1 else ORDERED


def _turned(sign: int) -> int:
    return sign if sign == MIXED else -sign


def _scaled(sign: int, number: object) -> int:
    if not isinstance(number, int | float):
        return MIXED
    return sign if number >= 0 else _turned(sign)
