"""Read a callable that names relations: comprehensions become plans, the rest expressions.

    lambda c: (c.name, sum(o.total for o in orders if o.cid == c.id))

    (c.name, Subquery("value", aggregate Sum(o.total) (where o.cid == Outer(0) (orders)), (c.id,)))

Each part is read as *rows*, if it is a collection of rows of relations, and else as an expression.
Rows become an expression where they are consumed: by a sum, a test, a set in a row.

Sound:  rows are the result of Python, with each relation as a list of its rows in any order, as a
        list, set or mapping. A result that depends on the order is refused.
Source: comprehensions as queries [mrql]; sub-queries of outer values [unnesting].

`operation` reads operators of sets and lists of rows, and of collection displays beside them.

    {o.cid for o in orders} | {0}       union
    {...} & {...}, {...} - {...}        intersection, difference
    [...] + [...]                       union_all
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.comprehensions import calls, consumers, generators, loops, touching, unions
from optimizer.comprehensions.consumers import Engine
from optimizer.comprehensions.generators import (
    Scope,
    look_up_name,
    narrow_arguments,
    reads_no_row,
    replace_outer_values,
)
from optimizer.comprehensions.rows import (
    KEY_OR_ROW,
    LIST_IN_ROW,
    LOST,
    ORDER,
    Active,
    Order,
    Rows,
    check_values,
    evaluate_in_plan,
    has_rows_within,
    plan_of_window,
    refusal_at,
    relation,
    standing_of,
)
from optimizer.expr import (
    And,
    Attribute,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Lifted,
    Operation,
    Or,
    Outer,
    SlotValue,
    Subquery,
    Within,
    constant,
    row_names,
    walk,
)
from optimizer.expressions.knowledge import Shapes, total
from optimizer.expressions.text import project_node
from optimizer.lifting.readings import part_of, resolve
from optimizer.plans.check_reads import check_every_read, take_as_checked
from optimizer.plans.properties import bindings, only_present
from optimizer.traverse import has_subqueries


class QueryReader:
    """Reads the queries of one callable, and of the functions that it calls."""

    def __init__(self, engine: Engine, origin: Opaque, given: Shapes) -> None:
        self.engine = engine
        self.origins = (origin,)
        self.scope = self._root = Scope(None, given)
        self.active: list[Active] = []
        self.sources: dict[int, Any] = {}
        """The relations that were read, by their identity."""
        self.known: dict[int, bool] = {}
        self.results: set[int] = set()
        """The comprehensions whose rows are shown as they are, by the identity of their nodes."""

    # The interface for the reader of callables.

    @property
    def shapes(self) -> Shapes:
        return self.scope.shapes

    def statements(self, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        return loops.as_expressions(body)

    def read(self, node: ast.expr, reader: Any) -> Expr | None:
        """Read an expression as a value; rows become a set or a tuple. None if it reads no
        relation."""
        return self.as_value(self.value(node, reader), node, reader)

    def as_value(self, found: Expr | None, node: ast.expr, reader: Any) -> Expr | None:
        """Return the result of `value` for a node as a value; rows become a set or a tuple."""
        if not isinstance(found, Rows):
            return found
        self._refuse_uncalled(node, reader)
        return self.scalar(found, node, reader)

    def after(self, name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt]) -> Expr | None:
        """Return the expression after an assignment; None if neither value nor result reads
        relations."""
        if isinstance(then, Rows) or any(isinstance(e, Rows | Subquery) for e in walk(value)):
            return loops.after(name, value, then, rest, self)
        return None

    def outer(self, expr: Expr) -> Expr:
        return self.scope.adopt(expr, self._root)

    def check_kept(self, node: ast.expr, reader: Any) -> None:
        """Refuse an expression that is kept as code, if it reads a relation or an undefined
        variable."""
        if touching.touches(node, reader, self):
            raise refusal_at(
                node,
                reader,
                "cannot be read, and reads a relation",
                "write it as a comprehension, or name its parts",
            )
        missing = touching.without_value(node, reader)
        if missing is not None:
            raise calls.too_early(missing, reader)

    def value(self, node: ast.expr, reader: Any) -> Expr | None:
        """Read an expression that uses relations: as `Rows`, or as a value of rows; None for all
        others."""
        if isinstance(node, ast.Constant) or not touching.touches(node, reader, self):
            return None
        match node:
            case ast.Name() | ast.Attribute() | ast.Subscript() if (
                found := self._of_row(node, reader)
            ) is not None:
                return self._import_rows(found)
            case ast.Name() | ast.Attribute():
                return self._read_name(node, reader)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return generators.comprehension(node, reader, self)
            case ast.Call(func, [], []) if (
                found := self._read_parameter(func, reader)
            ) is not None:
                return found
            case ast.Call():
                return calls.call(node, reader, self)
            case ast.BinOp():
                return unions.operation(node, reader, self)
            case ast.Compare(left, [ast.In() | ast.NotIn() as operator], [right]):
                return self._membership(node, left, right, reader, isinstance(operator, ast.NotIn))
            case ast.UnaryOp(ast.Not(), operand):
                return Operation("not", (self.read_test(operand, reader),))
            case ast.IfExp(test, then, otherwise):
                return self._chosen(test, then, otherwise, reader)
            case ast.Subscript(of, key):
                return self._subscript(node, of, key, reader)
            case _:
                return None

    def read_join(self, node: ast.Call, lattice: Any, reader: Any) -> Expr | None:
        """Read a call of a lattice as the aggregate of its values; None without a relation."""
        from optimizer.comprehensions import joins

        return joins.read_join(node, lattice, reader, self)

    def read_dictionary(self, node: ast.DictComp, reader: Any) -> Rows | None:
        """Read a recursive dictionary of joined values as pairs; None for any other one."""
        call = node.value
        if not isinstance(call, ast.Call):
            return None
        lattice = touching.constant_of(call.func, reader)
        if not self.engine.is_lattice(lattice):
            return None
        from optimizer.comprehensions import joins

        return joins.read_dictionary(node, lattice, reader, self)

    def truth(self, node: ast.expr, reader: Any) -> Expr | bool:
        """Return a test as an expression; a bool if only constants decide it."""
        decided = self._decide_test(node, reader)
        return self.read_test(node, reader) if decided is None else decided

    # Names.

    def _read_name(self, node: ast.Name | ast.Attribute, reader: Any) -> Expr | None:
        """Return the rows of a named relation, and record it as a source; None if it is no
        relation.

        Refuse an attribute that is read of a relation.
        """
        if isinstance(node, ast.Name):
            known = look_up_name(reader.bound, node.id)
            if known is not None:
                return known if isinstance(known, Rows) else None
        found = touching.constant_of(node, reader)
        if self.engine.is_unread(found):
            return calls.call(ast.copy_location(ast.Call(node, [], []), node), reader, self)
        source = self.engine.plan_of(found)
        if source is None:
            owner = self.value(node.value, reader) if isinstance(node, ast.Attribute) else None
            if (
                isinstance(node, ast.Attribute)
                and owner is not None
                and not isinstance(owner, Rows)
            ):
                return project_node(Attribute(owner, node.attr))
            if owner is not None:
                raise refusal_at(
                    node,
                    reader,
                    "is asked of a relation, and a comprehension reads its rows only",
                    "name what the method gives outside of the query, and use that",
                )
            return None
        self.sources[id(found)] = found
        return relation(source, node.id if isinstance(node, ast.Name) else node.attr)

    def _read_parameter(self, node: ast.expr, reader: Any) -> Expr | None:
        """Return the value of the parameter that is called; None if it is none."""
        if isinstance(node, ast.Name) and look_up_name(reader.bound, node.id) is not None:
            return None
        found = touching.constant_of(node, reader)
        if not self.engine.is_parameter(found):
            return None
        self.sources[id(found)] = found
        return Subquery("value", self.engine.plan_of(found))

    def _refuse_uncalled(self, node: ast.expr, reader: Any) -> None:
        """Refuse a parameter in the place of its value, and one that is called with arguments."""
        name = node.func if isinstance(node, ast.Call) else node
        if isinstance(name, ast.Name | ast.Attribute) and self.engine.is_parameter(
            touching.constant_of(name, reader)
        ):
            raise refusal_at(
                node, reader, "is a parameter, not its value", f"write {ast.unparse(name)}()"
            )

    def _of_row(self, node: ast.expr, reader: Any) -> Expr | None:
        """Return a row that contains the rows of a query, or a part of it; None for other
        expressions."""
        match node:
            case ast.Name(name):
                known = look_up_name(reader.bound, name)
                is_row = known is not None and has_rows_within(known)
                return reader.bound[name] if is_row else None
            case ast.Attribute(value, name):
                of = self._of_row(value, reader)
                return None if of is None else project_node(Attribute(of, name))
            case ast.Subscript(value, ast.Constant() as key):
                of = self._of_row(value, reader)
                return None if of is None else project_node(Item(of, constant(key.value)))
            case _:
                return None

    def _import_rows(self, found: Expr) -> Expr:
        """Return nested rows of an outer row as rows of the current scope; other expressions
        unchanged."""
        if not isinstance(found, Within):
            return found
        rows: Rows = found.rows
        return replace(rows, scope=self.scope, arguments=found.arguments)

    # Tests.

    def _decide_test(self, node: ast.expr, reader: Any) -> bool | None:
        """Return the value of a test that reads only constants, in a query of its own.

        Return None for another test, and for one that raises: it will raise where the query
        evaluates it.
        """
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        given = {name: look_up_name(reader.bound, name) for name in reader.bound if name in names}
        constants = {n: e.value for n, e in given.items() if isinstance(e, Constant)}
        if self.shapes or len(constants) < len(given) or touching.touches(node, reader, self):
            return None
        slots = [v for n in names if isinstance(v := resolve(reader.function, n), SlotValue)]
        if slots:  # the value decides: the query cannot be made for other values
            for each in slots:
                each.ask()
            return None
        made = part_of(node, list(constants), reader.function, reader.origin.function)
        try:
            return None if made is None else bool(made.function(*constants.values()))
        except Exception:
            return None

    def read_test(self, node: ast.expr, reader: Any) -> Expr:
        """Read a part whose value is only used as true or false; rows are tested for presence.

        Refuse a generator, which is always true.
        """
        if not touching.touches(node, reader, self):
            return reader.expr(node)  # type: ignore[no-any-return]
        match node:
            case ast.BoolOp(operator, values):
                make = And if isinstance(operator, ast.And) else Or
                return make(tuple(self.read_test(value, reader) for value in values))
            case ast.IfExp(test, then, otherwise):
                every = (self.read_test(part, reader) for part in (test, then, otherwise))
                return Conditional(*every)
        found = self.value(node, reader)
        if not isinstance(found, Rows):
            return reader.expr(node) if found is None else found
        if found.kind == "iterator":
            raise refusal_at(
                node, reader, "is a generator, which is always true", "any(...) asks it"
            )
        return self.exists(found)

    def _chosen(
        self, test: ast.expr, then: ast.expr, otherwise: ast.expr, reader: Any
    ) -> Expr | None:
        """Read `then if test else otherwise`; a constant test chooses the side.

        Refuse a test of rows that chooses between two relations.
        """
        chosen = self.truth(test, reader)
        if isinstance(chosen, bool):
            return reader.value(then if chosen else otherwise)  # type: ignore[no-any-return]
        sides = [reader.value(side) for side in (then, otherwise)]
        if all(isinstance(side, Rows) for side in sides):
            raise refusal_at(
                test,
                reader,
                "is no constant, and says which rows there are",
                "have it in the comprehensions: [... for ... in rows if test]",
            )
        parts = zip(sides, (then, otherwise), strict=True)
        values: Iterator[Any] = (self.as_value(side, part, reader) for side, part in parts)
        return Conditional(chosen, *values)

    def _membership(
        self, node: ast.expr, left: ast.expr, right: ast.expr, reader: Any, negated: bool
    ) -> Expr | None:
        """Read `x in rows` as an existence test; None if the right side is not rows.

        Refuse relations that find rows by key: `in` could mean a key or a row.
        """
        if not touching.touches(right, reader, self):
            return None
        if self.engine.finds_keys(touching.constant_of(right, reader)):
            raise refusal_at(node, reader, *KEY_OR_ROW)
        item = reader.expr(left)
        rows = self.value(right, reader)
        if not isinstance(rows, Rows):
            return None
        found = self.exists(self.equal_to(rows, item))
        return Operation("not", (found,)) if negated else found

    # Rows of rows.

    def _subscript(self, node: ast.expr, of: ast.expr, key: ast.expr, reader: Any) -> Expr | None:
        """Read `rows[key]`: the value of a key, or an item or slice of sorted rows; None if not
        rows."""
        rows = self.value(of, reader)
        if not isinstance(rows, Rows):
            return None
        if rows.kind in ("dict", "groups"):
            return consumers.item(rows, reader.expr(key), node, reader, self)
        found = None if rows.kind == "iterator" else self._as_sorted(rows)
        if found is None:
            raise refusal_at(
                node, reader, ORDER, "take it of sorted(...): sorted(rows, key=...)[:n]"
            )
        return consumers.window(found, key, node, reader, self)

    # Rows in other scopes, and as values.

    def move_rows(self, rows: Rows, scope: Scope) -> Rows:
        """Return the rows as rows of another scope; they read all its outer values."""
        arguments = tuple(scope.adopt(e, rows.scope) for e in rows.arguments)
        node, row = replace_outer_values(plan_of_window(rows, self.origins), rows.row, arguments)
        return replace(rows, node=node, row=row, scope=scope, arguments=(), order=None)

    def of_outside(self, rows: Rows) -> Rows:
        """Return the rows of a whole query; inside another query, it may read the rows of that."""
        by = () if rows.order is None else rows.order.exprs
        standing = standing_of(rows) if rows.order is None else None
        stands = () if standing is None else tuple(key for key, _, _ in standing.keys)
        node, exprs = replace_outer_values(rows.node, (*rows.row, *by, *stands), rows.arguments)
        order = rows.order and rows.order.over(exprs[len(rows.row) :])
        row = exprs[: len(rows.row)]
        made = replace(rows, node=node, row=row, arguments=(), order=order)
        if standing is None:
            return made
        pairs = zip(exprs[len(rows.row) :], standing.keys, strict=True)
        keys = tuple((e, *how[1:]) for e, how in pairs)
        return replace(made, standing=replace(standing, node=node, keys=keys))

    def scalar(self, rows: Rows, node: ast.expr, reader: Any) -> Expr:
        """Return rows as a value: a frozen set, or a tuple of sorted rows; refuse lists and
        dictionaries."""
        if rows.kind == "set":
            return Call(constant(frozenset), (self.collect_rows(rows),))
        if rows.kind == "sorted":
            return consumers.as_sorted_tuple(rows, node, reader, self)
        if rows.kind in ("dict", "groups"):
            raise refusal_at(
                node,
                reader,
                "is a dictionary, as a value",
                "take items of it, or have its pairs in a set",
            )
        raise refusal_at(node, reader, *LIST_IN_ROW)

    def sequence(self, rows: Rows, node: ast.expr, reader: Any) -> Expr:
        """Return a list of ordered rows as a value, a tuple; refuse a list that lost its order."""
        found = self._as_sorted(rows)
        if found is None:
            raise refusal_at(node, reader, *LOST)
        return consumers.as_sorted_tuple(found, node, reader, self)

    def _as_sorted(self, rows: Rows) -> Rows | None:
        """Return ordered rows as sorted rows; None for rows without order."""
        if rows.kind == "sorted":
            return rows
        standing = standing_of(rows)
        if standing is None or standing.keys[0][2] is not None:
            return None
        (key, descending, _), *more = standing.keys
        return replace(rows, kind="sorted", order=Order(key, descending, more=tuple(more)))

    def exists(self, rows: Rows) -> Expr:
        """Return the test that there are rows."""
        taken_in = replace(rows, node=plan_of_window(rows, self.origins), order=None)
        return self.subquery("exists", evaluate_in_plan(taken_in, self.origins).node, rows)

    def collect_rows(self, rows: Rows) -> Expr:
        """Return all rows as a multiset."""
        return self.fold_rows(replace(rows, node=only_present(rows.node)), "Collect", rows.value)

    def fold_rows(self, rows: Rows, name: Any, value: Expr | None) -> Expr:
        """Return an aggregate of rows."""
        node = plan_of_window(rows, self.origins)
        function = None if value is None else self.function(value, rows)
        folded = self.engine.fold(name, function)
        return self.subquery("value", self.freed(plan.Aggregate(node, None, (folded,))), rows)

    def subquery(self, kind: Any, node: plan.Node, rows: Rows) -> Expr:
        """Return a value of rows, in the scope that is being read."""
        arguments = tuple(self.scope.adopt(e, rows.scope) for e in rows.arguments)
        node, _, arguments = narrow_arguments(node, (), arguments, self.scope)
        return Subquery(kind, node, arguments)

    def where(self, rows: Rows, test: Expr) -> Rows:
        """Return the rows whose bindings make an expression true."""
        node = plan_of_window(rows, self.origins)
        made = self.freed(plan.Where(node, self.function(test, rows)))
        return replace(rows, node=made, order=None)

    def equal_to(self, rows: Rows, item: Expr) -> Rows:
        """Return the rows whose value is equal to an expression of the scope that is being read."""
        if reads_no_row(item) and total(item, ()):
            return self.where(rows, Operation("==", (rows.value, item)))
        arguments = tuple(self.scope.adopt(e, rows.scope) for e in rows.arguments)
        given = replace(rows, scope=self.scope, arguments=(*arguments, item))
        return self.where(given, Operation("==", (rows.value, Outer(len(arguments)))))

    def function(self, body: Expr, rows: Rows) -> Lifted:
        """Return an expression over the bindings of rows, as a callable."""
        count = bindings(rows.node)
        return self.function_of(body, count, rows.names)

    def function_of(self, body: Expr, count: int, names: tuple[str, ...] = ()) -> Lifted:
        """Return an expression over some bindings, as a callable."""
        check_values((body,))
        names = names if len(names) == count else row_names(count)
        return Lifted(body, names, self.origins, count)

    def freed(self, node: plan.Node) -> plan.Node:
        """Return the node without sub-queries in its callables, and check the reads of these."""
        check_every_read(node)
        if not has_subqueries(node):
            return node
        made = self.engine.freed(node)
        take_as_checked(made)
        return made
