"""What is equal to a constant in all rows of a plan.

    select (s.age, s.name)              the first item is 31
      join on s.name == m.name          s.age is 31, and s.name and m.name are "Doe"
        where s.age == 31               s.age is 31
          table students
        where m.name == "Doe"           m.name is "Doe"
          table council

Sound:  of a condition with a plain constant, and of equations, which are transitive. A guard keeps
        rows that raise, and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from optimizer import plan
from optimizer.expr import (
    Again,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjuncts,
    constant,
    reads,
    substitute,
)
from optimizer.expressions.evaluated import PLAIN
from optimizer.expressions.knowledge import constructor, makes_record, record_field
from optimizer.plans.extended import outputs
from optimizer.plans.properties import bindings, fact, shows_parts

Constants = Mapping[Expr, Constant]
AnyJoin = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin
NOTHING: Constants = {}
_SOME_OF_LEFT = (
    *(plan.SemiJoin, plan.AntiJoin, plan.Distinct, plan.OrderBy, plan.Top, plan.Unnest),
    *(plan.Difference, plan.DifferenceAll, plan.Shared, plan.View),
)


def constants_of(node: plan.Node) -> Constants:
    """Expressions over the bindings of a plan's rows, with the constants that they are equal to."""
    found: Constants = fact(node, "constants", _found)
    return found


def of_pairs(join: AnyJoin) -> Constants:
    """The same of both sides of a join, in terms of its pairs."""
    left, right = map(constants_of, join.inputs())
    return {**left, **_moved(right, bindings(join.left), bindings(join.right))}


def fixed(test: Expr) -> tuple[Expr, Constant] | None:
    """What a condition says is equal to a plain constant, and that."""
    match test.test if isinstance(test, Again) else test:
        case Operation("==", (Constant() as value, side)) | Operation(
            "==", (side, Constant() as value)
        ):
            plain = value.kind in PLAIN and not isinstance(side, Constant)
            return (side, value) if plain else None
        case _:
            return None


def equations(join: AnyJoin) -> Iterator[tuple[Expr, Expr]]:
    """What is equal in pairs that match: something of the left, and something of the right."""
    count, match = bindings(join.left), join.match
    if isinstance(match.left_key, Lifted) and isinstance(match.right_key, Lifted):
        yield match.left_key.body, substitute(match.right_key.body, (Parameter(count),))
    for test in conjuncts(match.on.body) if isinstance(match.on, Lifted) else ():
        match test:
            case Operation("==", (a, b)):
                sides = [_is_right(expr, count) for expr in (a, b)]
                if sides == [False, True]:
                    yield a, b
                elif sides == [True, False]:
                    yield b, a


def _is_right(expr: Expr, count: int) -> bool | None:
    """Whether an expression is of the right side of a join; None if it is of both, or neither."""
    read = reads(expr)
    if not read or (count in read and len(read) > 1):
        return None
    return count in read


def followed(known: Constants, pairs: list[tuple[Expr, Expr]]) -> dict[Expr, Constant]:
    """What is equal to a constant because something is that is equal to it."""
    new: dict[Expr, Constant] = {}
    for one, other in (pair for a, b in pairs for pair in ((a, b), (b, a))):
        value = known.get(other, new.get(other))
        if value is not None and one not in known and one not in new:
            new[one] = value
    return new


def _found(node: plan.Node) -> Constants:
    below: list[Constants] = [source.known["constants"] for source in node.inputs()]
    match node:
        case plan.Where(_, Lifted(body)):
            return {**below[0], **_said(body)}
        case plan.Join():
            return _of_join(node)
        case plan.Product(left, right):
            return {**below[0], **_moved(below[1], bindings(left), bindings(right))}
        case plan.OuterJoin(kind="left"):
            return below[0]
        case plan.Select(_, Lifted(body)):
            return _made(body, below[0])
        case plan.Extend():
            of_row = zip(outputs(node), map(Parameter, range(bindings(node))), strict=True)
            return _told(of_row, below[0])
        case plan.Aggregate(_, Lifted(body)):
            return _made(body, below[0])
        case plan.Union() | plan.UnionAll():
            return {e: value for e, value in below[0].items() if below[1].get(e) == value}
        case plan.Intersection() | plan.IntersectionAll():
            return {**below[1], **below[0]}
        case plan.Settled(segment):
            return constants_of(segment.run)
        case _:
            is_some = isinstance(node, _SOME_OF_LEFT) and not shows_parts(node)
            return below[0] if is_some else NOTHING


def _said(body: Expr) -> dict[Expr, Constant]:
    return dict(found for test in conjuncts(body) if (found := fixed(test)) is not None)


def _of_join(join: plan.Join) -> Constants:
    on = join.match.on
    known = {**of_pairs(join), **(_said(on.body) if isinstance(on, Lifted) else NOTHING)}
    return {**known, **followed(known, list(equations(join)))} if known else NOTHING


def _moved(of: Constants, start: int, count: int) -> dict[Expr, Constant]:
    """What is known of the rows of the right side of a join, which are its last binding."""
    row = Parameter(start)
    items = (row,) if count == 1 else tuple(Item(row, constant(place)) for place in range(count))
    return {substitute(expr, items): value for expr, value in of.items()}


def _made(body: Expr, of: Constants) -> Constants:
    """What is known of what an expression makes of rows: of the value, its items and its fields."""
    return _told(_parts_of(body), of)


def _told(made: Iterable[tuple[Expr, Expr]], of: Constants) -> Constants:
    """What is known of ways to read a row, each of which gives what an expression does."""
    found = {
        way: value
        for part, way in made
        if (value := part if isinstance(part, Constant) else of.get(part)) is not None
    }
    return {way: value for way, value in found.items() if value.kind in PLAIN}


def _parts_of(body: Expr) -> Iterator[tuple[Expr, Expr]]:
    row = Parameter(0)
    yield body, row
    if isinstance(body, Display) and body.kind == "tuple":
        yield from ((item, Item(row, constant(place))) for place, item in enumerate(body.items))
    elif isinstance(body, Call) and isinstance(body.function, Constant) and makes_record(body):
        kind = body.function.value
        for place, name in enumerate(constructor(kind) or ()):
            part = record_field(body, name)
            assert part is not None
            yield part, Attribute(row, name)
            if issubclass(kind, tuple):
                yield part, Item(row, constant(place))
