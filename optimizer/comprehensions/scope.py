"""Where an expression is read: in the row of which query, and what it may read of those around it.

    [c.name for c in customers if any(o.cid == c.id for o in orders)]
     --- scope of c ---------------   --- scope of o, in that of c ---

Within the scope of `o` the name `c` is `Outer(0)`, and the scope's first argument is what `c` is
outside. A constant, and a query that reads nothing of rows, is the same in every scope.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from optimizer import plan
from optimizer.comprehensions.rows import has_rows_within
from optimizer.expr import (
    Expr,
    Outer,
    Parameter,
    parts,
    rebuilt,
    transform,
    walk,
)
from optimizer.expressions.knowledge import (
    Shape,
    Shapes,
    is_container,
    is_value,
    shape_of,
    total,
)
from optimizer.plans.properties import shapes


class Scope:
    """The bindings of a query that is being made, and what it reads of the scope around it."""

    def __init__(self, parent: Scope | None, given: Shapes = ()) -> None:
        self.parent = parent
        self.node: plan.Node | None = None
        self.names: tuple[str, ...] = ()
        self.arguments: list[Expr] = []
        self._given = given

    @property
    def shapes(self) -> Shapes:
        """What is known of the bindings."""
        return self._given if self.node is None else shapes(self.node)

    def adopt(self, expr: Expr, source: Scope | None) -> Expr:
        """What an expression of a scope around this one is here."""
        if source is self or source is None or self.parent is None:
            return expr
        return self.imported(self.parent.adopt(expr, source))

    def imported(self, expr: Expr) -> Expr:
        """What an expression of the scope directly around this one is here."""
        if is_closed(expr):
            return expr
        if expr not in self.arguments:
            self.arguments.append(expr)
        index = self.arguments.index(expr)
        return Outer(index, self.shape_of_outer(index))

    def iterated(self, expr: Expr) -> Expr:
        """The same of what is a collection. One that is made there is made here: it may have no
        hash, or be another one each time, so that rows are not told apart by it."""
        known = () if self.parent is None else self.parent.shapes
        if is_value(expr, known):
            return self.imported(expr)
        return rebuilt(expr, tuple(map(self.iterated, parts(expr))))

    def row_within(self, expr: Expr) -> Expr:
        """The same of a row that has the rows of a query in it."""
        if not has_rows_within(expr):
            return self.imported(expr)
        return rebuilt(expr, tuple(map(self.row_within, parts(expr))))

    def never_raises(self, expr: Expr) -> bool:
        """Whether evaluating an expression of this scope raises nothing."""
        count = len(self.shapes)
        known = (*self.shapes, *map(self.shape_of_outer, range(len(self.arguments))))
        return total(transform(expr, lambda e: _as_parameter(e, count)), known)

    def shape_of_outer(self, index: int) -> Shape:
        """What is known of a value of the scope around this one."""
        expr, parent = self.arguments[index], self.parent
        if parent is None:
            return None
        if isinstance(expr, Outer):
            is_known = expr.index >= len(parent.arguments)
            return expr.shape if is_known else parent.shape_of_outer(expr.index)
        return shape_of(expr, parent.shapes)


def _as_parameter(expr: Expr, after: int) -> Expr:
    return Parameter(after + expr.index) if isinstance(expr, Outer) else expr


def is_closed(expr: Expr) -> bool:
    """Whether it reads nothing of any row."""
    return not any(isinstance(part, Parameter | Outer) for part in walk(expr))


class Names(MutableMapping[str, Expr]):
    """The names of a scope, and those around it, as they are read within it."""

    def __init__(self, outside: MutableMapping[str, Expr], scope: Scope) -> None:
        self._outside = outside
        self._scope = scope
        self._own: dict[str, Expr] = {}

    def seen(self, name: str) -> Expr | None:
        """What a name is, in the terms of where it was given."""
        if name in self._own:
            return self._own[name]
        return seen(self._outside, name)

    def __getitem__(self, name: str) -> Expr:
        if name in self._own:
            return self._own[name]
        found = self._outside[name]
        if hasattr(found, "scope"):
            return found
        scope = self._scope
        if has_rows_within(found):
            return scope.row_within(found)
        return scope.iterated(found) if is_container(found) else scope.imported(found)

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


def seen(names: MutableMapping[str, Expr], name: str) -> Expr | None:
    """What a name is, without reading it in a scope of its own."""
    return names.seen(name) if isinstance(names, Names) else names.get(name)
