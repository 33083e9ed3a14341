"""Comprehensions: each `for` adds a binding, each `if` is a where.

    [(c.name, o.id) for c in customers for o in orders if o.cid == c.id]

    select (c.name, o.id)
      where o.cid == c.id
        product
          table customers
          table orders

A collection of the row is unnested; rows that depend on the row are joined laterally. The plan
follows the text: rules of the optimizer find the keys of joins.

A `Scope` has the bindings of the query around an expression, and the values outside of the query.

    [c.name for c in customers if any(o.cid == c.id for o in orders)]
     --- scope of c ---------------   --- scope of o, in that of c ---

Within the scope of `o` the name `c` is `Outer(0)`, and the scope's first argument is the value of
`c` outside. A constant, and a query that reads no row around it, is the same in every scope.

`narrow_arguments` replaces the arguments of a sub-query by the parts of the row around that it
reads.

    o.cid == Outer(0).id, of the arguments (c,)     ->     o.cid == Outer(0), of (c.id,)

Sound:  the arguments, which are evaluated for all rows, raise nothing.
Pays:   a sub-query is evaluated for each different value of its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import Any, TypeAlias

from optimizer import plan
from optimizer.comprehensions import consumers
from optimizer.comprehensions.consumers import numbered, part
from optimizer.comprehensions.rows import (
    ONE_ROW,
    Rows,
    Standing,
    as_set,
    check_values,
    evaluate_in_plan,
    has_rows_within,
    may_lose_order,
    plan_of_window,
    refusal_at,
    select_value,
    standing_of,
)
from optimizer.expr import (
    Call,
    Display,
    Expr,
    Function,
    Item,
    Lifted,
    Outer,
    Parameter,
    Subquery,
    all_parameters,
    constant,
    items_of,
    parts,
    reads,
    rebuilt,
    row_names,
    transform,
    tuple_of,
    walk,
)
from optimizer.expressions.attempts import Unpacks
from optimizer.expressions.knowledge import Shape, Shapes, is_container, is_value, shape_of, total
from optimizer.expressions.text import over, project_node
from optimizer.plans.properties import bindings, shapes
from optimizer.subqueries.raising import is_quiet
from optimizer.traverse import rebuilt as rebuilt_plan
from optimizer.traverse import with_functions

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
KINDS: dict[type, Any] = {ast.ListComp: "list", ast.SetComp: "list", ast.GeneratorExp: "iterator"}


def comprehension(node: Comprehension, reader: Any, reading: Any) -> Rows:
    """Return the rows of a comprehension."""
    if isinstance(node, ast.DictComp) and reading.active:
        joined = reading.read_dictionary(node, reader)
        if joined is not None:
            return joined  # type: ignore[no-any-return]
    first = node.generators[0]
    source = reader.value(first.iter)
    with RowScope(reader, reading) as inside:
        for place, generator in enumerate(node.generators):
            if generator.is_async:
                raise refusal_at(node, reader, "is asynchronous", "rows are there: `for` has them")
            given = source if not place else reader.value(generator.iter)
            inside.join(given, generator.target, imported=not place)
            for test in generator.ifs:
                inside.where(reading.read_test(test, reader))
        if isinstance(node, ast.DictComp):
            row = (reader.expr(node.key), _read_element(node.value, node, reader, reading))
            return evaluate_in_plan(inside.rows("dict", row), reading.origins)
        rows = inside.standing(KINDS[type(node)], _read_element(node.elt, node, reader, reading))
        return as_set(rows, reading.origins) if isinstance(node, ast.SetComp) else rows


def _read_element(node: ast.expr, of: ast.expr, reader: Any, reading: Any) -> Expr:
    """Read the element of a comprehension; lists in the rows of the result are multisets."""
    if id(of) not in reading.results or isinstance(of, ast.SetComp):
        return reader.expr(node)  # type: ignore[no-any-return]
    reading.results.add(id(node))
    if isinstance(node, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in node.elts):
        return Display(
            "tuple", tuple(_read_element(each, of, reader, reading) for each in node.elts)
        )
    if not isinstance(node, ast.ListComp):
        return reader.expr(node)  # type: ignore[no-any-return]
    value = reading.value(node, reader)
    if value is None:
        return reader.kept(node, reading.engine.bag)  # type: ignore[no-any-return]
    if isinstance(value, Rows) and value.standing is not None:
        if standing_of(value) is None and may_lose_order(value):
            return reading.collect_rows(value)  # type: ignore[no-any-return]
        return reading.sequence(value, node, reader)  # type: ignore[no-any-return]
    return reading.collect_rows(value)  # type: ignore[no-any-return]


def of_sequence(value: Expr, reader: Any, reading: Any) -> Rows:
    """Return the items of a sequence as rows, in its order."""
    with RowScope(reader, reading) as inside:
        inside.join(value, ast.Name("row", ast.Store()), imported=True)
        return inside.standing("list", reader.bound["row"])


class RowScope:
    """Context for reading the parts of a comprehension, with a scope of its own."""

    def __init__(self, reader: Any, reading: Any) -> None:
        self._reader, self._reading = reader, reading
        self._outside = reading.scope
        self._names = reader.bound
        self.scope = Scope(reading.scope)
        self._order: Standing | None = None
        self._is_lost = False

    def __enter__(self) -> RowScope:
        self._reading.scope = self.scope
        self._reader.bound = Names(self._names, self.scope)
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.scope = self._outside
        self._reader.bound = self._names

    def rows(self, kind: Any, row: tuple[Expr, ...]) -> Rows:
        """Return the rows of the comprehension: one for each row of its scope."""
        node, names = self._node(), self.scope.names
        if any(isinstance(part, Subquery) for e in row for part in walk(e)):
            whole = row[0] if len(row) == 1 else tuple_of(*row)
            node = self._reading.freed(plan.Select(node, self._function(whole)))
            row = (Parameter(0),) if len(row) == 1 else items_of(Parameter(0), len(row))
            names = ("row",)
        return Rows(kind, node, row, names, self._outside, tuple(self.scope.arguments))

    def standing(self, kind: Any, value: Expr) -> Rows:
        """Return the rows of the comprehension, in the order of the rows that it iterates over."""
        order = self._order
        if order is None:
            return self.rows(kind, (value,))
        if self._is_lost:
            made = self.rows(kind, (value,))
            return replace(made, standing=replace(order, node=ONE_ROW))
        keys = [key for key, _, _ in order.keys]
        if any(isinstance(part, Subquery) for e in (value, *keys) for part in walk(e)):
            made = self.rows(kind, (value, *keys))
            (value, *keys), made = made.row, replace(made, row=made.row[:1])
        else:
            made = self.rows(kind, (value,))
        stands = tuple((key, *how[1:]) for key, how in zip(keys, order.keys, strict=True))
        return replace(made, standing=Standing(made.node, stands, order.is_window))

    def where(self, test: Expr) -> None:
        self._move(plan.Where(self._node(), self._function(test)))

    def join(self, source: Expr, target: ast.expr, *, imported: bool) -> None:
        """Read one `for`: join the rows so far with the rows of a source."""
        if isinstance(source, Rows) and self.scope.node is None:
            standing = standing_of(source)
            if standing is not None:
                return self._join_in_order(source, standing, target)
            if source.standing is not None and source.kind in ("list", "iterator"):
                self._order, self._is_lost = source.standing, True
        elif not isinstance(source, Rows):
            if self.scope.node is None and is_part(source):
                return self._number(self.scope.import_collection(source), target)
            self._is_lost = True
        elif _is_ordered_later(source):
            self._is_lost = True
            self._order = self._order and replace(self._order, is_window=False)
        if not isinstance(source, Rows):
            given = self.scope.import_collection(source) if imported else source
            return self._bind(target, self._unnest_collection(given, _target_name(target)))
        if source.kind == "items":
            keys = self._rows(consumers.keys_of(source, self._reading), "key")
            return consumers.bind_group(target, keys, source, self._reader, self._reading, self)
        if source.kind in ("dict", "groups"):
            source = consumers.keys_of(source, self._reading)
        return self._bind(target, self._rows(source, _target_name(target)))

    def _join_in_order(self, source: Rows, standing: Standing, target: ast.expr) -> None:
        """Read the first `for`, over ordered rows, whose keys stay beside them."""
        whole = tuple_of(source.value, *(key for key, _, _ in standing.keys))
        pair = self._rows(replace(source, row=(whole,)), _target_name(target))
        value, *keys = (
            project_node(Item(pair, constant(n))) for n in range(len(standing.keys) + 1)
        )
        by = tuple((key, *how[1:]) for key, how in zip(keys, standing.keys, strict=True))
        self._order = replace(standing, keys=by)
        self._bind(target, value)

    def _number(self, source: Expr, target: ast.expr) -> None:
        """Read the first `for`, over a sequence: its rows are sorted by their places in it."""
        pair = self._unnest_collection(Call(constant(numbered), (source,)), _target_name(target))
        self._order = Standing(self._node(), ((Item(pair, constant(0)), False, None),))
        self._bind(target, Item(pair, constant(1)))

    def _rows(self, source: Rows, name: str) -> Expr:
        """Add the rows of a source to the scope, and return the expression that reads one of its
        rows."""
        origins = self._reading.origins
        if source.order is not None:
            source = replace(source, node=plan_of_window(source, origins), order=None)
        known, is_row = shapes(source.node), has_rows_within(source.value)
        if not is_row and not (total(source.value, known) and is_value(source.value, known)):
            source = select_value(source, origins)
        arguments = tuple(self.scope.adopt(e, source.scope) for e in source.arguments)
        is_later = self.scope.node is not None
        if any(reads(e) for e in arguments) or (is_later and not is_quiet(source.node)):
            if not is_row:
                return self._lateral(select_value(source, origins), arguments, name)
            return self._lateral_row(source, arguments, name)
        right = self._reading.move_rows(source, self.scope)
        if self.scope.node is None:
            self.scope.node, self.scope.names = right.node, _names_of_source(right, name)
            return right.value  # type: ignore[no-any-return]
        place, width = len(self.scope.shapes), bindings(right.node)
        self._move(plan.Product(self._node(), right.node), name)
        own = Parameter(place)
        return over(right.value, (own,) if width == 1 else items_of(own, width))

    def _lateral(self, source: Rows, arguments: tuple[Expr, ...], name: str) -> Expr:
        """Join rows that depend on the row, or raise only if there is one."""
        query, _, arguments = narrow_arguments(source.node, (), arguments, self.scope)
        place = len(self.scope.shapes)
        made = self._reading.engine.lateral(self._node(), query, arguments)
        self.scope.node, self.scope.names = made, (*self.scope.names, name)
        return Parameter(place)

    def _lateral_row(self, source: Rows, arguments: tuple[Expr, ...], name: str) -> Expr:
        """Join laterally rows with other rows inside, which are not one value."""
        (row,) = replace_outer_values(ONE_ROW, source.row, arguments)[1]
        width = bindings(source.node)
        place = self._lateral(source, arguments, name)
        assert isinstance(place, Parameter)
        self.scope.names = (*self.scope.names, *row_names(width)[1:])
        return over(row, tuple(Parameter(place.index + n) for n in range(width)))

    def _unnest_collection(self, of: Expr, name: str) -> Expr:
        """Unnest a collection of the row."""
        node = self._node()
        place = bindings(node)
        self._move(plan.Unnest(node, self._function(of)), name)
        return Parameter(place)

    def _node(self) -> plan.Node:
        """Return the rows so far; one row if there is no source yet."""
        if self.scope.node is None:
            self.scope.node = ONE_ROW
            self.scope.names = ("one",)
        return self.scope.node

    def _move(self, node: plan.Node, *names: str) -> None:
        """Make a node, without its sub-queries, the rows of the scope; `names` are of its new
        bindings."""
        self.scope.node = self._reading.freed(node)
        self.scope.names = (*self.scope.names, *names)

    def _function(self, body: Expr) -> Lifted:
        """Return an expression of the scope as a callable over all bindings of the scope's node."""
        count = bindings(self._node())
        names = self.scope.names if len(self.scope.names) == count else row_names(count)
        check_values((body,))
        return Lifted(body, names, self._reading.origins, count)

    def _bind(self, target: ast.expr, value: Expr) -> None:
        """Bind the names of a target to the parts of a value; refuse starred targets and
        attributes."""
        if isinstance(target, ast.Name):
            self._reader.bound[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            if any(isinstance(e, ast.Starred) for e in target.elts):
                raise refusal_at(
                    target, self._reader, "takes any number of values", "name the row: row[1:]"
                )
            count = len(target.elts)
            if not self._has_items(value, count):
                self.where(Call(constant(Unpacks(count), "unpacks"), (value,)))
            for place, each in enumerate(target.elts):
                self._bind(each, project_node(Item(value, constant(place))))
        else:
            raise refusal_at(target, self._reader, "is no name", "have a name for each row")

    def _has_items(self, value: Expr, count: int) -> bool:
        """Return True if a value has the shape of a tuple of `count` items."""
        shape: Any = shape_of(value, self.scope.shapes)
        fields = getattr(shape, "_fields", shape)
        return isinstance(fields, tuple) and len(fields) == count


def _is_ordered_later(rows: Rows) -> bool:
    """Return True if rows of a later `for` have an order that did not choose them."""
    standing = standing_of(rows)
    return standing is not None and not standing.is_window


def is_part(value: Expr) -> bool:
    """Return True for a slice of a tuple that `sorted` made of rows."""
    return isinstance(value, Call) and value.function == constant(part)


def _target_name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else "row"


def _names_of_source(rows: Rows, name: str) -> tuple[str, ...]:
    """Return `name` for rows of one binding, else the names of the bindings."""
    count = bindings(rows.node)
    return (name,) if rows.row == all_parameters(1) and count == 1 else rows.names


def bind_target(inside: RowScope, target: ast.expr, value: Expr) -> None:
    """Bind a value like a `for` with that target."""
    inside._bind(target, value)


class Scope:
    """The bindings of a query that is being built, and the values that it reads of the scope
    around."""

    def __init__(self, parent: Scope | None, given: Shapes = ()) -> None:
        self.parent = parent
        self.node: plan.Node | None = None
        self.names: tuple[str, ...] = ()
        self.arguments: list[Expr] = []
        self._given = given

    @property
    def shapes(self) -> Shapes:
        """The shapes of the bindings."""
        return self._given if self.node is None else shapes(self.node)

    def adopt(self, expr: Expr, source: Scope | None) -> Expr:
        """Rewrite an expression of a scope around this one to this scope.

        Return `expr` unchanged if `source` is this scope or None, or if no scope is around
        this one.
        """
        if source is self or source is None or self.parent is None:
            return expr
        return self.imported(self.parent.adopt(expr, source))

    def imported(self, expr: Expr) -> Expr:
        """Rewrite an expression of the scope directly around this one to this scope.

        An expression that reads no row is unchanged; any other becomes an argument.
        """
        if reads_no_row(expr):
            return expr
        if expr not in self.arguments:
            self.arguments.append(expr)
        index = self.arguments.index(expr)
        return Outer(index, self.shape_of_outer(index))

    def import_collection(self, expr: Expr) -> Expr:
        """Import an expression that is a collection; a collection that is built there is built
        here.

        A built collection may have no hash, or differ from call to call, so that it cannot be a
        value that rows are identified by.
        """
        known = () if self.parent is None else self.parent.shapes
        if is_value(expr, known):
            return self.imported(expr)
        return rebuilt(expr, tuple(map(self.import_collection, parts(expr))))

    def row_within(self, expr: Expr) -> Expr:
        """Import an expression for a row that contains the rows of a query."""
        if not has_rows_within(expr):
            return self.imported(expr)
        return rebuilt(expr, tuple(map(self.row_within, parts(expr))))

    def never_raises(self, expr: Expr) -> bool:
        """Return True if evaluating an expression of this scope raises nothing."""
        count = len(self.shapes)
        known = (*self.shapes, *map(self.shape_of_outer, range(len(self.arguments))))
        return total(transform(expr, lambda e: _as_parameter(e, count)), known)

    def shape_of_outer(self, index: int) -> Shape:
        """Return the shape of a value of the scope around this one; None if it is not known."""
        expr, parent = self.arguments[index], self.parent
        if parent is None:
            return None
        if isinstance(expr, Outer):
            is_known = expr.index >= len(parent.arguments)
            return expr.shape if is_known else parent.shape_of_outer(expr.index)
        return shape_of(expr, parent.shapes)


def _as_parameter(expr: Expr, after: int) -> Expr:
    return Parameter(after + expr.index) if isinstance(expr, Outer) else expr


def reads_no_row(expr: Expr) -> bool:
    """Return True if an expression reads no row."""
    return not any(isinstance(part, Parameter | Outer) for part in walk(expr))


class Names(MutableMapping[str, Expr]):
    """The names of a scope, and those around it, as they are read within it."""

    def __init__(self, outside: MutableMapping[str, Expr], scope: Scope) -> None:
        self._outside = outside
        self._scope = scope
        self._own: dict[str, Expr] = {}

    def find_value(self, name: str) -> Expr | None:
        """Return the value of a name in the scope that binds it, or None."""
        if name in self._own:
            return self._own[name]
        return look_up_name(self._outside, name)

    def __getitem__(self, name: str) -> Expr:
        if name in self._own:
            return self._own[name]
        found = self._outside[name]
        if hasattr(found, "scope"):
            return found
        scope = self._scope
        if has_rows_within(found):
            return scope.row_within(found)
        return scope.import_collection(found) if is_container(found) else scope.imported(found)

    def __setitem__(self, name: str, value: Expr) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._outside

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **dict.fromkeys(self._outside)})

    def __len__(self) -> int:
        return len({*self._own, *self._outside})


def look_up_name(names: MutableMapping[str, Expr], name: str) -> Expr | None:
    """Return the value of a name, without importing it; None if it is not bound."""
    return names.find_value(name) if isinstance(names, Names) else names.get(name)


def narrow_arguments(
    node: plan.Node, row: tuple[Expr, ...], arguments: tuple[Expr, ...], scope: Scope
) -> tuple[plan.Node, tuple[Expr, ...], tuple[Expr, ...]]:
    """Narrow the arguments of a plan, and of expressions over its rows, to the parts that are
    read."""
    if not arguments:
        return node, row, arguments
    narrow = _Narrow(arguments, scope)
    changed = rebuilt_plan(node, lambda each: with_functions(each, narrow.function))
    exprs = tuple(map(narrow.expr, row))
    return changed, exprs, tuple(narrow.arguments)


def replace_outer_values(
    node: plan.Node, row: tuple[Expr, ...], arguments: tuple[Expr, ...]
) -> tuple[plan.Node, tuple[Expr, ...]]:
    """Replace the outer values of a plan, and of expressions over its rows, by other
    expressions."""
    if not arguments or all(e == Outer(place) for place, e in enumerate(arguments)):
        return node, row

    def change(expr: Expr) -> Expr:
        return arguments[expr.index] if isinstance(expr, Outer) else expr

    def function(f: Function) -> Function:
        return f.with_body(transform(f.body, change)) if isinstance(f, Lifted) else f

    changed = rebuilt_plan(node, lambda each: with_functions(each, function))
    return changed, tuple(transform(e, change) for e in row)


class _Narrow:
    """Rewrites callables of rows to read their outer values as few arguments."""

    def __init__(self, given: tuple[Expr, ...], scope: Scope) -> None:
        self._given = given
        self._scope = scope
        self._outer: dict[int, tuple[Expr, bool]] = {}  # with the part itself, which keeps its id
        self.arguments: list[Expr] = []

    def function(self, f: Function) -> Function:
        return f.with_body(self.expr(f.body)) if isinstance(f, Lifted) else f

    def expr(self, expr: Expr) -> Expr:
        """Return the expression with its largest parts that read only outer rows as `Outer`
        arguments."""
        outside = self._outside(expr)
        if outside is not None and (isinstance(expr, Outer) or self._may_be_given(outside)):
            return self._argument(outside)
        old = parts(expr)
        new = tuple(map(self.expr, old))
        return expr if new == old else rebuilt(expr, new)

    def _may_be_given(self, expr: Expr) -> bool:
        """Return True if an expression of the scope around it raises nothing, and makes no list."""
        return self._scope.never_raises(expr) and not is_container(expr)

    def _outside(self, expr: Expr) -> Expr | None:
        """Return the expression in the scope around, if it reads only that; else None."""
        if not self._reads_only_outer(expr) or is_container(expr):
            return None
        if not any(isinstance(e, Outer) for e in walk(expr)):
            return None
        return transform(expr, lambda e: self._given[e.index] if isinstance(e, Outer) else e)

    def _reads_only_outer(self, expr: Expr) -> bool:
        """Return True if an expression reads no row of its own scope; each part is asked once."""
        known = self._outer.get(id(expr))
        if known is None:
            found = not isinstance(expr, Parameter) and all(
                self._reads_only_outer(part) for part in parts(expr)
            )
            known = self._outer[id(expr)] = expr, found
        return known[1]

    def _argument(self, expr: Expr) -> Outer:
        """Return the `Outer` that stands for an expression; a new one is added to the arguments."""
        if expr not in self.arguments:
            self.arguments.append(expr)
        return Outer(self.arguments.index(expr))
