"""Windows as bindings of a plan: find the calls of their functions, and put answers in their place.

    select (s.name, w.lag(s.points))       select (s.name, w[1])
      where w.rank() <= 3            ->      where w[0] <= 3
        extend over(team, points)              bind s, (row[1], row[2])
          R                                      reduce rank(), lag(s.points) by row[1]
                                                   select ((s,), (team,), (points,), (s.points,))
                                                     R

A call's arguments are expressions of the node that has the call. Where a binding of the window's
rows stands there is computed as shapes are: each binding has a `Seen` in place of its shape, and
`facts.shapes` of the nodes between tells where it goes.

Sound:  the answers are computed for all rows of R, and moved with them; the nodes between do not
        compare the window's value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.expr import (
    Apply,
    Attribute,
    Call,
    Constant,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Outer,
    Parameter,
    constant,
    parts,
    rebuilt,
    row_names,
    tuple_of,
)
from optimizer.expressions.knowledge import Shape, shape_of
from optimizer.plans import explain as explaining
from optimizer.plans.check_reads import check_callable
from optimizer.plans.properties import binding_names, bindings, nodes, shapes
from optimizer.record import record
from optimizer.subqueries.keyed_rows import as_expression
from optimizer.traverse import called, with_called, with_functions, with_inputs
from reactive.api import comprehending
from reactive.api.aggregates import sort_keys
from reactive.api.window_calls import WindowCall
from reactive.engine.collections.value_order import Directions
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.packing import (
    ROW_OF_REDUCED,
    WindowAnswers,
    WindowSort,
    answer,
    reduce_partitions,
)


@record
class WindowOf:
    """The constant that a plan calls where a row gets its window: the directions of the order."""

    directions: Directions

    def __call__(self, *sort: Any) -> NoReturn:
        """Raise `PlanError`: the call is replaced before a plan is run."""
        raise PlanError("a window has no value\n  call its functions, such as w.rank()")


@record
class Seen:
    """The bindings of windows' rows that a value is: the numbers of the windows, and the places."""

    places: frozenset[tuple[int, int]]


def plan_over(relation: Any, by: Any, order: Any, nulls: Any) -> plan.Extend:
    """Return the plan of the rows of a relation, with the window of each as one more binding.

    Raises
    ------
    PlanError: `by` or `order` is no key of the rows.
    """
    source: plan.Node = relation.plan
    count = bindings(source)
    keys = _sort_keys(relation, order, nulls)
    sorted_by = [_lift_key(each.function, source) for each in keys]
    parted_by = [] if by is None else [_lift_key(relation._take(by, "the by of over"), source)]
    every = [*parted_by, *sorted_by]
    window = WindowOf(tuple((each.descending, _place_of_none(each)) for each in keys))
    sort = (_tuple_of(parted_by), _tuple_of(sorted_by))
    names = next((each.names for each in every if len(each.names) == count), row_names(count))
    origins = tuple(origin for each in every for origin in each.origins)
    made = Lifted(Call(constant(window, "over"), sort), names, origins, count)
    named = (*binding_names(source), None)
    return plan.Extend(source, tuple(range(count)), (made,), named)


def _sort_keys(relation: Any, order: Any, nulls: Any) -> list[plan.SortKey]:
    """Return the keys of an order, a tuple as one key for each of its items."""
    given = tuple(order) if isinstance(order, list | tuple) else (order,)
    if order is None:
        return []
    if not given:
        raise PlanError('over has order=[], which names no key\n  order="at", order=desc(f)')

    def take(of: Any) -> Function:
        return relation._take(of, "the order of over")  # type: ignore[no-any-return]

    return list(sort_keys(given, take, "over", descending=False, nulls=nulls))


def _place_of_none(key: plan.SortKey) -> bool | None:
    """Return True if None is first, False if it is last, None if it is compared like any value."""
    return None if key.nulls is None else key.nulls == "first"


def _lift_key(key: Function, source: plan.Node) -> Lifted:
    check_callable(key, source)
    return as_expression(key, shapes(source))


def _tuple_of(keys: list[Lifted]) -> Expr:
    return tuple_of(*(key.body for key in keys))


def resolve(root: plan.Node) -> plan.Node | None:
    """Return the plan with answers in place of windows; None while its rows have a window.

    Raises
    ------
    PlanError: a node uses a window as a value, or calls a function that windows do not have.
    """
    reading = _Reading()
    found = reading.read(root)
    return None if found is None else _answered(found, reading.windows)


def resolved(root: plan.Node) -> plan.Node:
    """Return the plan with answers in place of windows; refuse rows that have a window."""
    return resolve(root) or refuse_windows(root)


class _WindowNode:
    """A window of a plan, and the functions that are called of it."""

    def __init__(self, node: plan.Extend, call: Call) -> None:
        assert isinstance(call.function, Constant)
        self.node = node
        self.partition, self.keys = call.arguments
        self.directions: Directions = call.function.value.directions
        self.arguments: list[Expr] = []
        self.functions: dict[Asked, int] = {}
        self.shapes: list[Shape] = []
        self.texts: list[str] = []

    @property
    def place(self) -> int:
        """The place of the window's binding, behind those of its rows."""
        return len(self.node.keep)

    def place_of(self, argument: Expr) -> int:
        """Return the place of an expression over the input among the arguments of functions."""
        if argument not in self.arguments:
            self.arguments.append(argument)
        return self.arguments.index(argument)

    def ask(self, call: WindowCall) -> int:
        """Return the place of a call's answer among the answers."""
        asked, shape = call.asked(self.place_of)
        if asked not in self.functions:
            self.functions[asked] = len(self.functions)
            self.shapes.append(shape)
            self.texts.append(call.shown())
        return self.functions[asked]

    def answered(self, source: plan.Node) -> plan.Node:
        """Return the rows of `source`, with the tuple of the answers as one more binding."""
        node, (made,) = self.node, self.node.columns
        assert isinstance(made, Lifted)
        if not self.functions:
            return plan.Extend(source, node.keep, (made.with_body(tuple_of()),), node.names)
        sort = WindowSort(self.partition, self.keys, self.directions)
        answers = WindowAnswers(
            *(tuple(self.functions), tuple(self.arguments), tuple(self.shapes)),
            ", ".join(self.texts),
        )
        reduced = reduce_partitions(source, sort, answers, node.keep, made.with_body)
        reduced = replace(reduced, input=comprehending.freed(reduced.input))
        first, count = len(node.keep), len(self.functions)
        found = (Item(ROW_OF_REDUCED, constant(first + place)) for place in range(count))
        columns = (*map(answer, range(first)), answer(0).with_body(tuple_of(*found)))
        return plan.Extend(reduced, (), columns, node.names)


def _answered(root: plan.Node, windows: dict[int, _WindowNode]) -> plan.Node:
    """Return the plan in which each window has become its answers."""
    made: dict[int, plan.Node] = {}
    for node in nodes(root):
        sources = [made[id(source)] for source in node.inputs()]
        window = windows.get(id(node))
        made[id(node)] = (
            with_inputs(node, sources) if window is None else window.answered(sources[0])
        )
    return made[id(root)]


MOVES = (plan.Select, plan.Extend)
"""Nodes whose callables may return a window in a tuple."""
PASSES = (
    *(plan.Where, plan.Select, plan.Extend, plan.Unnest, plan.SelectMany, plan.Aggregate),
    *(plan.Join, plan.Product, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin, plan.Top),
    *(plan.OrderBy, plan.Negate),
)
"""Nodes that do not compare rows that have a window with each other."""


class _Reading:
    """Read a plan, inputs first: note the calls of windows, put items of answers in their place."""

    def __init__(self) -> None:
        self.windows: dict[int, _WindowNode] = {}
        """The windows by the identity of their node in the plan that was read."""
        self._numbered: list[_WindowNode] = []
        self._seen: dict[int, tuple[Shape, ...]] = {}

    def read(self, root: plan.Node) -> plan.Node | None:
        """Return the plan with items in place of calls; None if its rows have a window."""
        made: dict[int, plan.Node] = {}
        for node in nodes(root):
            new = with_inputs(node, [made[id(source)] for source in node.inputs()])
            made[id(node)] = self._read_node(new)
        found = made[id(root)]
        return None if any(map(self.has_window, self._seen[id(found)])) else found

    def _read_node(self, node: plan.Node) -> plan.Node:
        given = [self._seen[id(source)] for source in node.inputs()]
        is_read = any(self.has_window(each) for of in given for each in of)
        if is_read:
            if not isinstance(node, PASSES):
                refuse_windows(node)
            node = with_called(node, as_expression)
            node = self._with_read_callables(node, given)
        found = node.facts.shapes(node, given) if is_read else (None,) * bindings(node)
        call = _call_of_window(node)
        if call is not None:
            found = self._number_window(node, call, found)
        self._seen[id(node)] = found
        return node

    def _number_window(self, node: Any, call: Call, found: tuple[Shape, ...]) -> tuple[Any, ...]:
        """Return what is seen of a row and its window; refuse tuples with windows inside."""
        number = len(self._numbered)
        window = self.windows[id(node)] = _WindowNode(node, call)
        self._numbered.append(window)
        seen: list[Any] = []
        for place, each in enumerate((*found[: window.place], None)):
            if isinstance(each, tuple):
                refuse_windows(node)
            earlier = each.places if isinstance(each, Seen) else frozenset[tuple[int, int]]()
            seen.append(Seen(earlier | {(number, place)}))
        return tuple(seen)

    def _with_read_callables(self, node: plan.Node, given: list[tuple[Shape, ...]]) -> plan.Node:
        """Return the node with items of answers in its callables."""
        of = iter([seen for _, seen in called(node, given)])

        def change(function: Function) -> Function:
            assert isinstance(function, Lifted)
            reader = _Reader(self, node, function, next(of))
            return function.with_body(reader.read(function.body, moves=isinstance(node, MOVES)))

        return with_functions(node, change)

    def window_of(self, seen: Any) -> tuple[int, _WindowNode] | None:
        """Return the window that a value is, with its number; None for other values."""
        for number, place in seen.places if isinstance(seen, Seen) else ():
            if self._numbered[number].place == place:
                return number, self._numbered[number]
        return None

    def has_window(self, seen: Any) -> bool:
        """Return True if a value is a window, or a tuple with one inside."""
        if isinstance(seen, tuple):
            return any(map(self.has_window, seen))
        return self.window_of(seen) is not None


class _Reader:
    """Read a callable of a node whose rows have windows."""

    def __init__(
        self, reading: _Reading, node: plan.Node, function: Lifted, seen: tuple[Shape, ...]
    ) -> None:
        self._reading = reading
        self._node = node
        self._function = function
        self._seen = seen

    def read(self, expr: Expr, *, moves: bool = False) -> Expr:
        """Return an expression with items of answers; with `moves`, it may be a window itself."""
        seen = shape_of(expr, self._seen)
        match expr:
            case Call(Attribute(of, name), arguments, keywords) if self._window(of) is not None:
                return self._ask(of, name, arguments, keywords)
            case Attribute(of, name) if self._window(of) is not None:
                raise self._error(f"reads w.{name}", f"call it: w.{name}()")
            case Display("tuple", items) if moves:
                return rebuilt(expr, tuple([self.read(item, moves=True) for item in items]))
            case Apply(function, (_, *_), reason) if self._reading.has_window(self._seen):
                raise self._error(
                    f"cannot be read: {reason or function}", "write it as one expression"
                )
            case Parameter() | Item() if self._reading.has_window(seen):
                if moves:
                    return expr
                raise self._error(
                    "uses a window as a value",
                    "call its functions, such as w.rank(), and not inside of inner queries",
                )
            case Item(of, _) if isinstance(shape_of(of, self._seen), tuple):
                return expr
        found = parts(expr)
        return rebuilt(expr, tuple(map(self.read, found))) if found else expr

    def _window(self, expr: Expr) -> tuple[int, _WindowNode] | None:
        return self._reading.window_of(shape_of(expr, self._seen))

    def _ask(
        self,
        of: Expr,
        name: str,
        arguments: tuple[Expr, ...],
        keywords: tuple[tuple[str, Expr], ...],
    ) -> Expr:
        """Return the item of a window's answers that is the answer of a call."""
        found = self._window(of)
        assert found is not None
        number, window = found

        def move(expr: Expr) -> Expr:
            if name == "scan" and isinstance(expr, Apply) and expr.arguments:
                raise self._error(
                    f"gives w.scan a callable that cannot be read, or that reads the row: "
                    f"{expr.function.name}",
                    "pass what the step needs as the value: w.scan((row.a, row.b), step, start)",
                )
            return self._moved(self.read(expr), number, window)

        (made,) = window.node.columns
        assert isinstance(made, Lifted)
        call = WindowCall(
            *(name, tuple(map(move, arguments)), tuple((key, move(e)) for key, e in keywords)),
            *(window.directions, self._function.origins, made.names),
        )
        return call.answer(Item(of, constant(window.ask(call))))

    def _moved(self, expr: Expr, number: int, window: _WindowNode) -> Expr:
        """Return an argument of a call over the input of the window."""
        seen: Any = shape_of(expr, self._seen)
        for other, place in seen.places if isinstance(seen, Seen) else ():
            if other == number and place < window.place:
                return Parameter(window.node.keep[place])
        if self._window(expr) == (number, window):
            raise self._error(
                "gives a function of a window another answer of the window",
                "call over(...) again, of the relation that it returned: lambda row, w, v: ...",
            )
        if isinstance(expr, Parameter | Outer):
            raise self._error(
                "gives a function of a window a value that its rows do not have",
                "the arguments are expressions of the rows that over(...) was called of",
            )
        found = [self._moved(part, number, window) for part in parts(expr)]
        return rebuilt(expr, tuple(found)) if found else expr

    def _error(self, problem: str, remedy: str) -> PlanError:
        return PlanError(f"{explaining.headline(self._node)}: the callable {problem}\n  {remedy}")


def _call_of_window(node: plan.Node) -> Call | None:
    """Return the call that makes a row's window, if the node appends one."""
    if isinstance(node, plan.Extend) and len(node.columns) == 1:
        (made,) = node.columns
        body = made.body if isinstance(made, Lifted) else None
        if isinstance(body, Call) and isinstance(body.function, Constant):
            return body if isinstance(body.function.value, WindowOf) else None
    return None


def refuse_windows(node: plan.Node) -> NoReturn:
    """Refuse a use of rows that have a window."""
    raise PlanError(
        f"the rows of {explaining.headline(node)} have a window, which is no value\n"
        "  select what it gives first: over(...).select(lambda row, w: (row, w.rank()))"
    )
