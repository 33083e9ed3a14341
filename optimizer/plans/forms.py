"""Forms of plan nodes, and the keys and constants that all rows of a plan have.

The form of a node: the node and its inputs, without plain values and the identity of tables.

    where o.customer == c       for c = "ann", "bob", ...       one form, a value each
      table orders

A plain value (a captured variable, a default or a constant of an expression) is replaced by its
class; other values are part of the form, and a table is replaced by the type of its rows. Nodes of
one form share one `Form`, which caches the facts that hold for all of them.

Sound:  shared facts depend on no value: callables of the node have none, or the fact does not
        depend on callables.
State:  of the process, `MOST_FORMS` forms with their facts.

`constants_of` finds expressions that are equal to a constant in all rows of a plan.

    select (s.age, s.name)              the first item is 31
      join on s.name == m.name          s.age is 31, and s.name and m.name are "Doe"
        where s.age == 31               s.age is 31
          table students
        where m.name == "Doe"           m.name is "Doe"
          table council

Sound:  a condition with a plain constant holds for all rows above it, and equations are transitive.
        A guard keeps rows that raise, so that it proves nothing.

`unique_key` finds fields that differ between any two rows of a plan: the key of a keyed table. A
join that looks rows up by such a key finds at most one row.

`guard` and `asked_again` push a condition down to rows that the plain plan would not test.

If the condition raises for a row, the commit must not fail unless the row passes the nodes between:
its group may reduce to nothing, or a deletion may cancel it. The guard below keeps such a row, and
the condition stays above, where it tests the row again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    FIRST_UNIQUE,
    LEAVES,
    Again,
    Apply,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Guard,
    Item,
    Lifted,
    Operation,
    Outer,
    Parameter,
    Quantified,
    Subquery,
    conjuncts,
    constant,
    parts,
    reads,
    rebuilt,
    substitute,
)
from optimizer.expressions.knowledge import constructor, makes_record, record_field
from optimizer.expressions.simplification import PLAIN
from optimizer.kinds.fields import ClassCache, classes_in, shortest_lived
from optimizer.lifting.lift import lift
from optimizer.lifting.readings import KINDS, Itself, has_no_meaning, kin_of, may_differ
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, fact, once, shapes, shows_parts
from optimizer.record import record

MOST_FORMS = 2048
FORMLESS = (
    *(plan.View, plan.Known, plan.Settled, plan.Recursive, plan.Given, plan.Values),
    *(plan.Fixpoint, plan.Component, plan.Iterate, plan.Previous),
)
PASSING = (plan.Where, plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin, plan.OrderBy)
"""Nodes whose rows have the same shapes whatever their callables return."""
ATOMS = frozenset({str, int, bool, type(None), type})
"""Kinds of fields that are their own key."""
Value = tuple[Opaque | Lifted, tuple[Constant, ...]]
"""A callable of a node, and its constants if it was lifted."""


class Form:
    """The node and its inputs without plain values.

    `known` caches facts that hold for all such nodes.
    """

    __slots__ = ("home", "is_general", "known", "levels")

    def __init__(self, home: type | None = None) -> None:
        self.home = home
        """The class with which the form is released."""
        self.is_general = False
        """True if the shapes of its rows depend on no value."""
        self.levels = 0
        """Depth of the tree of nodes, itself included."""
        self.known: dict[str, Any] = {}


_FORMS: ClassCache[Form] = ClassCache(Form, MOST_FORMS)


@record
class OwnPart:
    """A node without its inputs and plain values, and its callables in their order."""

    key: Hashable
    callables: tuple[Value, ...]

    @property
    def is_free(self) -> bool:
        """True if it has no values."""
        return not any(_values(function, constants) for function, constants in self.callables)


class Formless(Exception):
    """A node captures an object without lasting meaning, or has a part that has no form."""


def form_of(node: plan.Node) -> Form | None:
    """Return the form of a node; None if it has none."""
    known = node.known
    if "form" not in known and all("form" in source.known for source in node.inputs()):
        known["form"] = _form(node)
    found: Form | None = known["form"] if "form" in known else fact(node, "form", _form)
    return found


def own_of(node: plan.Node) -> OwnPart:
    """Return the own part of a node that has a form."""
    found: OwnPart = node.known["own"]
    return found


def _form(node: plan.Node) -> Form | None:
    """Return the form of a node, and store its own part; None if a part of it has no form."""
    below = [source.known["form"] for source in node.inputs()]
    if None in below or isinstance(node, FORMLESS):
        return None
    reader = _Reader()
    try:
        own = reader.own(node)
        form = _FORMS.find((own.key, *below), _home_of_form)
    except (Formless, TypeError):  # an unhashable part may change
        return None
    node.known["own"] = own
    if not form.levels:
        is_own = own.is_free or isinstance(node, PASSING)
        form.is_general = is_own and all(source.is_general for source in below)
        form.levels = 1 + max([source.levels for source in below], default=0)
    return form


def _home_of_form(key: Hashable) -> type | None:
    """Return the class with which a form is released; None if it names no such class."""
    return shortest_lived(classes_in(key, _inside_form_key))


def _inside_form_key(value: Any) -> Iterable[Any]:
    """Return the parts of a part of a key that may be or contain classes; () if there is none."""
    kind: Any = type(value)
    if kind is Form:
        return () if value.home is None else (value.home,)
    if kind is Constant or kind is Itself:
        return (value.value,)
    if not isinstance(value, Expr):
        return ()
    return (value.function.function, *parts(value)) if isinstance(value, Apply) else parts(value)


class _Reader:
    """Reads the own part of a node, and collects its callables."""

    def __init__(self) -> None:
        self._callables: list[Value] = []

    def own(self, node: plan.Node) -> OwnPart:
        """Return the part of a node without its inputs; raise `Formless` if it has none."""
        if isinstance(node, plan.Table):
            key = None if node.key is None else node.key.identity
            if has_no_meaning(key):
                raise Formless
            if node.time is not None:
                raise Formless  # operators over it refer to its clock
            return OwnPart((plan.Table, key, node.stored, node.row_type), ())
        kind: Any = type(node)
        return OwnPart(self._record(node, _names_of_kind(kind)), tuple(self._callables))

    def _record(self, value: Any, names: Iterable[str]) -> Hashable:
        """Return the key of the fields of a node or a record."""
        found: list[Any] = [type(value)]
        for name in names:
            each = getattr(value, name)
            kind = each.__class__
            found.append((kind, each) if kind in ATOMS else self._key(each))
        return tuple(found)

    def _key(self, value: Any) -> Hashable:
        """Return the key of a field of a node, without values that may differ; raise `Formless` for
        functions."""
        kind: Any = type(value)
        if kind is Opaque:
            return self._opaque(value)
        if kind is Lifted:
            return self._lifted_key(value)
        if kind is tuple:
            return (tuple, *map(self._key, value))
        names = None if value is None else _record_field_names(kind)
        if names is not None:
            return self._record(value, names)
        if callable(value) and not isinstance(value, type):
            raise Formless
        return (kind, value)

    def _opaque(self, function: Opaque) -> Hashable:
        """Return the key of a callable that is not lifted, and record it; raise `Formless` without
        kin."""
        kin = kin_of(function)
        if kin is None:
            raise Formless
        self._callables.append((function, ()))
        return (function.parameters, function.role, function.name, kin.key)

    def _lifted_key(self, function: Lifted) -> Hashable:
        """Return the key of an expression, without its constants; raise `Formless` if it has none.

        Origins count by their roles.
        """
        made = function.made
        if made is not None and type(made) is not Opaque:
            raise Formless
        constants: list[Constant] = []
        body = _extract_constants(function.body, constants)
        self._callables.append((function, tuple(constants)))
        how = None if made is None else self._opaque(made)
        of = tuple([origin.role for origin in function.origins])
        return (function.parameters, function.names, of, how, body)


def _values(function: Opaque | Lifted, constants: tuple[Constant, ...]) -> bool:
    """Return True if a callable has plain values that may differ between nodes of one form."""
    if isinstance(function, Lifted):
        return bool(constants)
    kin = kin_of(function)
    return kin is None or bool(kin.values)


def compared_fields(node: plan.Node) -> tuple[str, ...]:
    """Return the compared fields of a node, except fields that hold an input."""
    kind: Any = type(node)
    return _names_of_kind(kind)


@lru_cache(maxsize=64)
def _names_of_kind(kind: Any) -> tuple[str, ...]:
    """Return the compared fields of a class of nodes, without inputs."""
    hints = {each.name: str(each.type) for each in fields(kind) if each.init and each.compare}
    return tuple(name for name, hint in hints.items() if hint != "Node")


def record_fields(value: Any) -> tuple[str, ...] | None:
    """Return the compared fields of a record; None for other values."""
    kind: Any = type(value)
    return _record_field_names(kind)


@lru_cache(maxsize=256)
def _record_field_names(kind: Any) -> tuple[str, ...] | None:
    """Return the compared fields of a dataclass; None for other classes."""
    if not is_dataclass(kind):
        return None
    return tuple(each.name for each in fields(kind) if each.init and each.compare)


# Expressions.


_MARKS = {kind: Constant(None, ("of class", kind)) for kind in KINDS}


def _extract_constants(expr: Expr, found: list[Constant]) -> Expr:
    """Replace the constants that may differ by marks, and append them to `found`."""

    def mark(constant: Constant) -> Constant:
        found.append(constant)
        return _MARKS[constant.kind]

    return with_constants(expr, mark)


def with_constants(expr: Expr, change: Callable[[Constant], Constant]) -> Expr:
    """Replace the constants that may differ; positions of items stay.

    Return `expr` itself if nothing changes. Raise `Formless` for an expression with a
    subquery, or with code that has variables.
    """
    kind = type(expr)
    if kind is Constant:
        return change(expr) if may_differ(expr.value) else expr  # type: ignore
    if kind in LEAVES:
        if kind is Outer and expr.index >= FIRST_UNIQUE:  # type: ignore[attr-defined]
            raise Formless
        return expr
    is_query = kind is Subquery or kind is Quantified
    if is_query or (isinstance(expr, Apply) and _has_variables(expr.function)):
        raise Formless
    old = parts(expr)
    stays = kind is Item and type(old[1]) is Constant
    new = tuple([with_constants(part, change) for part in (old[:1] if stays else old)])
    new += old[1:] if stays else ()
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)


def _has_variables(function: Opaque) -> bool:
    return bool(function.captures) or has_no_meaning(function.identity)


Constants = Mapping[Expr, Constant]
AnyJoin = plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin
NOTHING: Constants = {}
_SOME_OF_LEFT = (
    *(plan.SemiJoin, plan.AntiJoin, plan.Distinct, plan.OrderBy, plan.Top, plan.Unnest),
    *(plan.Difference, plan.DifferenceAll, plan.Shared, plan.View),
)


def constants_of(node: plan.Node) -> Constants:
    """Return expressions over the bindings of a plan's rows, with the constants that they are equal
    to."""
    found: Constants = fact(node, "constants", _find_constants)
    return found


def of_pairs(join: AnyJoin) -> Constants:
    """Return the constants of both sides of a join, in terms of its pairs."""
    left, right = map(constants_of, join.inputs())
    return {**left, **_constants_of_right(right, bindings(join.left), bindings(join.right))}


def pinned_constant(test: Expr) -> tuple[Expr, Constant] | None:
    """Return the expression that a condition equates with a plain constant, and the constant; else
    None."""
    match test.test if isinstance(test, Again) else test:
        case Operation("==", (Constant() as value, side)) | Operation(
            "==", (side, Constant() as value)
        ):
            plain = value.kind in PLAIN and not isinstance(side, Constant)
            return (side, value) if plain else None
        case _:
            return None


def equations(join: AnyJoin) -> Iterator[tuple[Expr, Expr]]:
    """Iterate over expressions that are equal in matching pairs: one of the left, one of the
    right."""
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
    """Return True if an expression reads the right of a join only, False if the left only.

    Return None for both or neither. `count` is the number of bindings of the left.
    """
    read = reads(expr)
    if not read or (count in read and len(read) > 1):
        return None
    return count in read


def equal_to_constants(known: Constants, pairs: list[tuple[Expr, Expr]]) -> dict[Expr, Constant]:
    """Return expressions that are equal to a constant because an expression equal to them is."""
    new: dict[Expr, Constant] = {}
    for one, other in (pair for a, b in pairs for pair in ((a, b), (b, a))):
        value = known.get(other, new.get(other))
        if value is not None and one not in known and one not in new:
            new[one] = value
    return new


def _find_constants(node: plan.Node) -> Constants:
    """Return the expressions over a node's bindings that are equal to constants, with these."""
    below: list[Constants] = [source.known["constants"] for source in node.inputs()]
    match node:
        case plan.Where(_, Lifted(body)):
            return {**below[0], **_constants_of_condition(body)}
        case plan.Join():
            return _of_join(node)
        case plan.Product(left, right):
            return {**below[0], **_constants_of_right(below[1], bindings(left), bindings(right))}
        case plan.OuterJoin(kind="left"):
            return below[0]
        case plan.Select(_, Lifted(body)):
            return _constants_of_result(body, below[0])
        case plan.Extend():
            of_row = zip(outputs(node), map(Parameter, range(bindings(node))), strict=True)
            return _constants_of_reads(of_row, below[0])
        case plan.Aggregate(_, Lifted(body)):
            return _constants_of_result(body, below[0])
        case plan.Union() | plan.UnionAll():
            return {e: value for e, value in below[0].items() if below[1].get(e) == value}
        case plan.Intersection() | plan.IntersectionAll():
            return {**below[1], **below[0]}
        case plan.Settled(segment):
            return constants_of(segment.run)
        case _:
            is_some = isinstance(node, _SOME_OF_LEFT) and not shows_parts(node)
            return below[0] if is_some else NOTHING


def _constants_of_condition(body: Expr) -> dict[Expr, Constant]:
    return dict(found for test in conjuncts(body) if (found := pinned_constant(test)) is not None)


def _of_join(join: plan.Join) -> Constants:
    """Return the constants of the pairs of a join, with those that its equations imply."""
    on = join.match.on
    known = {
        **of_pairs(join),
        **(_constants_of_condition(on.body) if isinstance(on, Lifted) else NOTHING),
    }
    return {**known, **equal_to_constants(known, list(equations(join)))} if known else NOTHING


def _constants_of_right(of: Constants, start: int, count: int) -> dict[Expr, Constant]:
    """Rewrite the constants of a join's right side to its last binding.

    `start` is the position of that binding, and `count` the number of bindings of the right
    side.
    """
    row = Parameter(start)
    items = (row,) if count == 1 else tuple(Item(row, constant(place)) for place in range(count))
    return {substitute(expr, items): value for expr, value in of.items()}


def _constants_of_result(body: Expr, of: Constants) -> Constants:
    """Return the constants of an expression's value, its items and its fields."""
    return _constants_of_reads(_parts_of(body), of)


def _constants_of_reads(made: Iterable[tuple[Expr, Expr]], of: Constants) -> Constants:
    """Return, by a read of the row, each constant among pairs of an expression and such a read.

    `of` has the constants known so far; only values of plain classes are returned.
    """
    found = {
        way: value
        for part, way in made
        if (value := part if isinstance(part, Constant) else of.get(part)) is not None
    }
    return {way: value for way, value in found.items() if value.kind in PLAIN}


def _parts_of(body: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Yield the body and each part of a tuple or record that it makes, with the read of it from the
    row."""
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


Key = frozenset[Expr]
NO_KEY: Key = frozenset()


def unique_key(node: plan.Node) -> Key:
    """Return the parts of a key that at most one row has, in terms of the row; none without such a
    key.

    It is the key of a keyed table, also below conditions.
    """
    while isinstance(node, plan.Where):
        node = node.input
    return once(node, "unique_key", _of_table) if isinstance(node, plan.Table) else NO_KEY


def _of_table(table: plan.Table) -> Key:
    """Return the expressions that are a table's key; `NO_KEY` if it has none, or computes it."""
    if table.key is None:
        return NO_KEY
    found = lift(table.key, shapes(table))
    if not isinstance(found, Lifted):
        return NO_KEY
    parts = key_parts(found.body)
    return frozenset(parts) if all(isinstance(part, Attribute | Item) for part in parts) else NO_KEY


def key_parts(body: Expr) -> tuple[Expr, ...]:
    """Return the parts of a key; several if it is a tuple."""
    match body:
        case Display("tuple", items):
            return items
        case _:
            return (body,)


def condition(node: plan.Node) -> Lifted | None:
    """Return the condition of a lifted `where` that does not repeat a guard's test; None for other
    nodes."""
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return None
    return None if isinstance(node.predicate.body, Again) else node.predicate


def guard(p: Lifted, needs: tuple[Expr, ...] = ()) -> Lifted:
    """Return a condition that drops a row only if it does not raise."""
    return p.with_body(Guard(p.body, needs))


def asked_again(below: plan.Node, p: Lifted) -> plan.Where:
    """Return `where p` above a guard, for the rows that the guard keeps."""
    return plan.Where(below, p.with_body(Again(p.body)))
