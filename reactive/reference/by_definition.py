"""Sub-queries by definition: each is evaluated for the values of the one row that asks for it.

    where any(o.customer == c.id ...)     of each c: the rows of orders `where o.customer == c.id`
    each(query), rows(query)              of each group: the query, of the rows of that group

A translation keeps the form that it was given beside its result (`asked_form.py` of the optimizer).
`Definitions` evaluates that form in place of the joins, so that it shares nothing with the
translation. IN, ANY and ALL of SQL are comparisons with each row (`quantified.py`). Inside a
recursion the form is not known, and the joins are evaluated.

An equation between the sub-query and a value of the row around finds the candidate rows by a hash.
All conditions are then tested on each candidate, as they stand.

Cost: per value, the rows that agree in the equations; without one, all rows of the sub-query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import opaque
from optimizer.expr import (
    Attempt,
    Call,
    Expr,
    Function,
    Item,
    Lifted,
    Outer,
    Parameter,
    Quantified,
    Subquery,
    conjuncts,
    constant,
    row_names,
    transform,
)
from optimizer.plans.extended import extend_of
from optimizer.plans.properties import bindings, free, nodes
from optimizer.rewriting.on_error import guarded
from optimizer.subqueries.asked_form import BesideRows, ByPolicy, Form, InRows, OfGroups, form_of
from optimizer.traverse import functions, with_functions, with_inputs
from reactive.codegen.functions import compiled_of
from reactive.reference.bags import Bag
from reactive.reference.candidates import Candidates, asks_around, equation
from reactive.reference.nodes import linear, rows_of
from reactive.reference.quantified import Quantifier

Of = Callable[[plan.Node], Bag]
NO_VALUE = constant(object(), "no value")
"""In the place of a value of the row around that raises: who reads it raises, and nobody else."""


class Definitions:
    """The plan with its sub-queries as they were asked, which evaluate themselves."""

    def __init__(self, closed: Of) -> None:
        self._closed = closed
        self._made: dict[tuple[int, int], plan.Node] = {}
        self._kept: list[plan.Node] = []
        self.groups: dict[Any, Bag] = {}
        """The rows of the group that is asked for, by the level of its query."""
        self.levels: set[Any] = set()
        self._policy: ByPolicy | None = None
        """The policy for rows that raise, of the query and of the sub-queries in it."""

    def of(self, root: plan.Node, values: _Around | None = None) -> plan.Node:
        """The plan in which callables ask the sub-queries; `values` are those of the row around."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if self._key(node, values) in self._made:
                waiting.pop()
                continue
            below = self._below(node)
            missing = [each for each in below if self._key(each, values) not in self._made]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            self._kept.append(node)
            self._made[self._key(node, values)] = self._written(node, values)
        return self._made[self._key(root, values)]

    def query(self, root: plan.Node, values: _Around) -> plan.Node:
        """The plan of a sub-query, whose rows that raise go by the policy of the query around."""
        made = self.of(root, values)
        return made if self._policy is None else _by_policy(made, self._policy)

    def close(self) -> None:
        """Forget the plans whose callables hold this object, so that no cycle holds the tables."""
        self._made.clear()
        self._kept.clear()

    def closed(self, node: plan.Node) -> Bag:
        """The rows of a plan that reads nothing of a row around."""
        return self._closed(node)

    def _key(self, node: plan.Node, values: _Around | None) -> tuple[int, int]:
        return id(node), id(values)

    def _form(self, node: plan.Node) -> Form | None:
        """Return the form that a node was made of; None inside a recursion."""
        return form_of(node) if free(node) <= self.levels else None

    def _below(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """The nodes that are read in the place of the inputs."""
        match self._form(node):
            case InRows(written):
                return written.inputs()
            case ByPolicy(query) as found:
                self._policy = found
                return (query,)
            case BesideRows(left, query) as found:
                return (left, query) if _is_product(found) else (left,)
            case OfGroups(source):
                return (source,)
            case _:
                return node.inputs()

    def _written(self, node: plan.Node, values: _Around | None) -> plan.Node:
        def made(source: plan.Node) -> plan.Node:
            return self._made[self._key(source, values)]

        match self._form(node):
            case InRows(written):
                node = with_inputs(written, map(made, written.inputs()))
            case ByPolicy(query) as found:
                return _by_policy(made(query), found)
            case BesideRows(left, query) as found if _is_product(found):
                node = plan.Product(made(left), made(query))
            case BesideRows(left, query, arguments, is_left):
                node = self._beside(made(left), query, arguments, is_left)
            case OfGroups(source, key, query, level):
                node = self._of_groups(made(source), key, query, level, values)
            case _:
                node = with_inputs(node, map(made, node.inputs()))
        return with_functions(node, lambda f: self._asking(f, values))

    def _asking(self, f: Function, values: _Around | None) -> Function:
        """A callable that asks its sub-queries, and knows the values around."""
        if not isinstance(f, Lifted):
            return f

        def asks(expr: Expr) -> Expr:
            match expr:
                case Outer(index) if values is not None:
                    return Call(constant(values.at(index), "outer"), ())
                case Subquery(kind, query, arguments):
                    asked = _ASKED[kind](_Asked(self, query))
                case Quantified(comparison, query, arguments):
                    asked = Quantifier(comparison, _Asked(self, query), NO_VALUE.value)
                case _:
                    return expr
            given = tuple(Attempt(each, NO_VALUE) for each in arguments)
            return Call(constant(asked, "asked"), given)

        body = transform(transform(f.body, _by_itself), asks)
        if body is f.body and (values is None or f.made is not None):
            return f
        made = replace(f, body=body, made=None)
        return replace(made, made=opaque(compiled_of(made), made.parameters, "a sub-query"))

    def _beside(
        self, left: plan.Node, query: plan.Node, arguments: tuple[Expr, ...], is_left: bool
    ) -> plan.Node:
        """Rows, each with those that a query has for it."""
        asked, width, count = _Asked(self, query), bindings(query), bindings(left)
        nothing = [None if width == 1 else (None,) * width] if is_left else []

        def found(*values: Any) -> list[Any]:
            return list(asked(*values).elements()) or nothing

        body = Call(constant(found, "asked"), tuple(Attempt(a, NO_VALUE) for a in arguments))
        made = plan.Unnest(left, Lifted(body, row_names(count), (), count))
        return made if width == 1 else _spread(made, count, width)

    def _of_groups(
        self,
        source: plan.Node,
        key: Function,
        query: plan.Node,
        level: Any,
        values: _Around | None,
    ) -> plan.Node:
        """The rows of a query for each group."""
        self.levels.add(level)
        asked, width = _Query(self, query, values or _Around()), bindings(query)

        def found(key: Any, rows: Any) -> Iterator[Any]:
            self.groups[level] = Counter(dict(rows.items()))
            return asked.rows().elements()

        made = plan.Reduce(source, key, opaque(found, 2, "a query of each group"))
        return made if width == 1 else _spread(made, 1, width)


def _is_product(form: BesideRows) -> bool:
    """Return True if all rows get the same rows of the query beside them.

    Then filters above are conditions of a join, and no pairs are made that they leave out.
    """
    return not form.arguments and not form.is_left


def _by_policy(node: plan.Node, by: ByPolicy) -> plan.Node:
    return guarded(node, by.policy, read=by.read).query


def _spread(node: plan.Node, count: int, width: int) -> plan.Node:
    """The node with the items of its last binding as bindings."""
    last = Parameter(count)
    row = (*map(Parameter, range(count)), *[Item(last, constant(each)) for each in range(width)])
    names = row_names(count + 1)
    return extend_of(node, [Lifted(each, names, (), count + 1) for each in row])


class _Around:
    """The values of the row around a sub-query, while it is evaluated."""

    def __init__(self) -> None:
        self.now: tuple[Any, ...] = ()
        self._reads: dict[int, Callable[[], Any]] = {}

    def at(self, index: int) -> Callable[[], Any]:
        """Return the function that reads one of the values."""

        def read() -> Any:
            value = self.now[index]
            if value is NO_VALUE.value:
                raise LookupError("a value of the row around raised when it was computed")
            return value

        return self._reads.setdefault(index, read)


class _Asked:
    """The rows of a sub-query for some values, stored by these values."""

    def __init__(self, owner: Definitions, query: plan.Node) -> None:
        self._around = _Around()
        self._query = _Query(owner, query, self._around)
        self._known: dict[Any, Bag] | None = None if free(query) else {}

    @property
    def is_stored(self) -> bool:
        """True if the same values give the same bag again."""
        return self._known is not None

    def __call__(self, *values: Any) -> Bag:
        if self._known is None:
            return self._rows(values)
        kinds = tuple(map(type, values))
        try:
            found = self._known.get((values, kinds))
        except TypeError:
            return self._rows(values)
        if found is None:
            found = self._known[values, kinds] = self._rows(values)
        return found

    def _rows(self, values: tuple[Any, ...]) -> Bag:
        before, self._around.now = self._around.now, values
        try:
            return self._query.rows()
        finally:
            self._around.now = before


def _exists(asked: _Asked) -> Callable[..., bool]:
    return lambda *values: any(n > 0 for n in asked(*values).values())


def _value(asked: _Asked) -> Callable[..., Any]:
    def value(*values: Any) -> Any:
        (row,) = asked(*values)
        return row

    return value


_ASKED: dict[str, Callable[[_Asked], Callable[..., Any]]] = {"exists": _exists, "value": _value}


class _Query:
    """A query that is evaluated again for each values, or each group."""

    def __init__(self, owner: Definitions, query: plan.Node, around: _Around) -> None:
        self._owner, self._around = owner, around
        self._root = owner.query(query, around)
        self._open = self._opened()
        self._calls: dict[int, Callable[[Bag], Bag]] = {}
        self._finds: dict[int, Candidates | None] = {}
        self._rows: dict[int, Bag] = {}

    def rows(self) -> Bag:
        """The rows of now."""
        known: dict[int, Bag] = {}

        def of(node: plan.Node) -> Bag:
            found = known.get(id(node))
            if found is None:
                found = known[id(node)] = self._of(node, of)
            return found

        return of(self._root)

    def _opened(self) -> set[int]:
        """The nodes whose rows depend on the values or the group."""
        found: set[int] = set()
        for node in nodes(self._root):
            is_below = any(id(source) in found for source in node.inputs())
            is_group = isinstance(node, plan.Recursive) and node.level in self._owner.levels
            if is_below or is_group or any(map(_asks, functions(node))):
                found.add(id(node))
        return found

    def _of(self, node: plan.Node, of: Of) -> Bag:
        if id(node) not in self._open:
            if id(node) not in self._rows:
                self._rows[id(node)] = self._owner.closed(node)
            return self._rows[id(node)]
        if isinstance(node, plan.Recursive):
            return self._owner.groups[node.level]
        if isinstance(node, plan.Where):
            found = self._finds.get(id(node))
            if id(node) not in self._finds:
                found = self._finds[id(node)] = self._found(node, of)
            if found is not None:
                return found.rows()
        call = self._calls.get(id(node))
        if call is None:
            made = linear(node) if not isinstance(node, plan.Where) else None
            if made is None:
                return rows_of(node, of)
            call = self._calls[id(node)] = made
        return call(of(*node.inputs()))

    def _found(self, node: plan.Where, of: Of) -> Candidates | None:
        """The filters of rows that depend on nothing around, by the equations in them."""
        tests: list[plan.Where] = []
        source: plan.Node = node
        while isinstance(source, plan.Where) and id(source) in self._open:
            tests.append(source)
            source = source.input
        if id(source) in self._open or isinstance(source, plan.Product):
            return None
        pairs = [
            pair
            for test in tests
            if isinstance(test.predicate, Lifted)
            for pair in map(equation, conjuncts(test.predicate.body))
            if pair is not None
        ]
        return Candidates(source, of(source), tests, pairs) if pairs else None


def _by_itself(expr: Expr) -> Expr:
    """A comparison with a query without what it was translated to."""
    return replace(expr, translated=NO_VALUE) if isinstance(expr, Quantified) else expr


def _asks(f: Function) -> bool:
    """Return True if a callable reads the row around, or asks a sub-query."""
    return isinstance(f, Lifted) and asks_around(f.body)
