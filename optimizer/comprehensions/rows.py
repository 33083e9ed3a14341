"""Rows of a query while it is being read: the value of a comprehension, before it is consumed.

    [(o.id, o.total) for o in orders if not o.paid]

    Rows("list", where not o.paid (orders), row=((o.id, o.total),))

They are an expression, so that names can be bound to them; a finished expression contains none.

`read_call` reads a function that a query calls, in place of the call. A function that calls itself
is a fixpoint.

    def reach():
        return {(a, b) for a, b in edges} | {(a, c) for a, b in reach() for d, c in edges if b == d}

`refusal_at` builds the error for a part that a comprehension over relations cannot have, with its
place and a remedy.

    PlanError: query 'first': orders[:3] depends on the order of rows, which they do not have
      shop.py:12, column 12
      take the first of sorted(...): sorted(rows, key=...)[:n]
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any, Literal, TypeAlias

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import code_of, place_at
from optimizer.errors import PlanError
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    Subquery,
    Within,
    all_parameters,
    items_of,
    one_value,
    row_names,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import Shape, total
from optimizer.lifting.lift import Reader, Unreadable, bound_arguments, name_value, tree_of
from optimizer.lifting.readings import UNSET, resolve
from optimizer.plans.nodes.sources import values
from optimizer.plans.properties import bindings, free, is_set, shapes
from optimizer.record import record
from optimizer.subqueries import keyed_rows
from optimizer.subqueries.keyed_rows import as_expression

Kind: TypeAlias = Literal["list", "set", "iterator", "sorted", "dict", "groups", "items"]


ONE_ROW = values([()])
"""A relation of one row."""


UNIQUE = "unique"
Key: TypeAlias = tuple[Expr, bool, Any]
"""A key over the bindings of rows, its direction, and the place of None."""


@record
class Order:
    """The order of sorted rows, and the window that is taken: `limit` (None: all) after `offset`.

    more: the keys of the rows before they were sorted. `sorted` is stable, so these break ties.
    """

    key: Expr
    descending: bool = False
    offset: int = 0
    limit: int | None = None
    more: tuple[Key, ...] = ()

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys, the first one first."""
        return ((self.key, self.descending, None), *self.more)

    @property
    def is_window(self) -> bool:
        """True if not all rows are taken."""
        return self.limit is not None or self.offset > 0

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The keys without their directions."""
        return tuple(key for key, *_ in self.keys)

    def over(self, exprs: Sequence[Expr]) -> Order:
        """Return the order with other expressions as its keys."""
        more = tuple((e, *how) for e, (_, *how) in zip(exprs[1:], self.more, strict=True))
        return replace(self, key=exprs[0], more=more)


@record
class Standing:
    """The order of a list's rows: keys over the bindings of `node`.

    It holds while `node` is the plan of the rows; other rows have lost their order, which matters
    only in the list that a query returns. Rows of a window may lose it: their order chose them.
    """

    node: plan.Node
    keys: tuple[Key, ...]
    is_window: bool = False


@record
class Rows(Expr):
    """The value of a part of a callable that is read as a query.

    `row` are expressions over the bindings of `node`: the value, or the key and the value of a
    mapping. Callables of the plan read `Outer(i)`, the value of `arguments[i]` in `scope`. Groups
    are the pairs of a `defaultdict(list)`: the value of a key is the list of all its values.
    """

    kind: Kind
    node: plan.Node
    row: tuple[Expr, ...]
    names: tuple[str, ...]
    scope: Any = None
    arguments: tuple[Expr, ...] = ()
    order: Order | None = None
    standing: Standing | None = None
    joined: Any = None
    """Lattice that joins the values of a mapping's key; `UNIQUE` for one row per key."""

    @property
    def value(self) -> Expr:
        """The value that iteration yields."""
        return self.row[0]

    @property
    def is_whole(self) -> bool:
        """True if their value is the row of the plan itself."""
        return self.value == one_value(all_parameters(bindings(self.node)))


def has_rows_within(expr: Expr) -> bool:
    """Return True if an expression makes a row that contains the rows of a query."""
    return any(isinstance(part, Within) for part in walk(expr))


def check_values(row: tuple[Expr, ...]) -> None:
    """Check that no row that contains the rows of a query is used as a value.

    Raises
    ------
    PlanError: one is.
    """
    if any(map(has_rows_within, row)):
        raise PlanError(
            "a row that has others inside is a value only with the bag of them\n"
            "  name what is read of it: (o.id, len(o.lines))"
        )


def relation(node: plan.Node, name: str) -> Rows:
    """Return the rows of a relation, with their order if it is ordered."""
    if isinstance(node, plan.OrderBy):
        source, count = keyed_rows.rows_of_order(node)
        known = shapes(source)
        keys = [(as_expression(k.function, known).body, k.descending, k.nulls) for k in node.keys]
        row = (one_value(all_parameters(bindings(source))[:count]),)
        names = row_names(bindings(source))
        names = (name, *names[1:]) if count == 1 else names
        return Rows(
            "list",
            source,
            row,
            names,
            standing=Standing(source, tuple(keys), source is not node.input),
        )
    count = bindings(node)
    names = (name,) if count == 1 else row_names(count)
    return Rows("list", node, (one_value(all_parameters(count)),), names)


def select_value(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """Return the rows with their value as the only binding of the plan.

    Rows whose value is that already are unchanged, with their order; other rows lose it.
    """
    if rows.is_whole and bindings(rows.node) == 1:
        return rows
    check_values(rows.row)
    made = Lifted(rows.value, rows.names, origins, bindings(rows.node))
    node = plan.Select(rows.node, made)
    return replace(rows, node=node, row=(Parameter(0),), names=("row",), order=None)


def standing_of(rows: Rows) -> Standing | None:
    """Return the order of a list or of sorted rows; None for other rows, and if they lost their
    order."""
    if rows.kind == "sorted" and rows.order is not None:
        return Standing(rows.node, rows.order.keys, rows.order.is_window)
    standing = rows.standing
    is_list = rows.kind in ("list", "iterator")
    return standing if is_list and standing is not None and standing.node is rows.node else None


def may_lose_order(rows: Rows) -> bool:
    """Return True if it has no effect that rows lost their order, or if the order chose them."""
    return rows.standing is None or rows.standing.is_window


def evaluate_in_plan(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """Return the rows; the plan computes their value if that may raise."""
    known = shapes(rows.node)
    if rows.order is not None or all(total(each, known) for each in rows.row):
        return rows
    whole = replace(rows, row=(one_value(rows.row),))
    made = select_value(whole, origins)
    count = len(rows.row)
    return replace(made, row=made.row if count == 1 else items_of(made.value, count))


def as_set(rows: Rows, origins: tuple[Opaque, ...]) -> Rows:
    """Return the different values of rows."""
    made = select_value(rows, origins) if not rows.is_whole else rows
    node = made.node if is_set(made.node) else plan.Distinct(made.node)
    return replace(made, kind="set", node=node, order=None)


def row_of_plan(node: plan.Node) -> tuple[Expr, ...]:
    """Return the value of a row of a plan."""
    return (one_value(all_parameters(bindings(node))),)


def plan_of_window(rows: Rows, origins: tuple[Opaque, ...]) -> plan.Node:
    """Return the plan of rows, with the window of sorted rows."""
    order = rows.order
    if order is None or not order.is_window:
        return rows.node
    count = bindings(rows.node)
    names = rows.names if len(rows.names) == count else row_names(count)
    keys = [plan.SortKey(Lifted(e, names, origins, count), *how) for e, *how in order.keys]
    return plan.OrderBy(rows.node, tuple(keys), order.limit, order.offset)


ROUNDS = 4


@dataclass
class Active:
    """A function without parameters that is being read, which may call itself."""

    code: CodeType
    name: str
    shape: Shape
    level: object
    is_called: bool = False
    before: Any = UNSET
    """Value of the query's name before the query is made; the text then means the query."""
    written: Any = None
    """Function that is being turned into a query."""
    is_mapping: bool = False
    """True if it returns a dictionary."""

    def was(self, found: Any, reader: Any) -> bool:
        """Return True if a value of the query's name is only the one from before the query.

        Then the name means the query. Local functions beside the query share the variable of that
        name with it.

        Parameters
        ----------
        found: the value that the name has now; False is returned for `UNSET`.
        reader: the function that reads the name.
        """
        if found is UNSET or self.written is None:
            return False
        if found is self.before:
            return True
        is_shared = self.name in reader.__code__.co_freevars
        scopes = [f.__code__.co_qualname.rpartition(".")[0] for f in (reader, self.written)]
        is_beside = is_shared and scopes[0] == scopes[1] and bool(scopes[0])
        return is_beside and _is_before(found, self.written)

    def is_of(self, callee: Any, name: str, text: Any) -> bool:
        """Return True if a call is of this function.

        Its name may have no value yet, or the value of a query that was made of the same lines
        earlier.
        """
        if callee is UNSET:
            return name == self.name
        if isinstance(callee, FunctionType):
            return callee.__code__ is self.code
        code = None if text is None or name != self.name else code_of(text)
        return code is not None and self.name != "<lambda>" and is_same_place(code, self.code)

    def rows(self) -> Rows:
        """Note that it is called, and return its rows so far, as a recursive relation."""
        self.is_called = True
        node = plan.Recursive(self.level, 0, self.name, True, (self.shape,))
        return _defined_rows(node, is_mapping=self.is_mapping)


def _defined_rows(node: plan.Node, *, is_mapping: bool) -> Rows:
    """Return the rows of a recursive relation: a set, or pairs, one for each key."""
    if is_mapping:
        return Rows("dict", node, items_of(Parameter(0), 2), ("pair",), joined=UNIQUE)
    return Rows("set", node, (Parameter(0),), ("row",))


def is_same_place(code: CodeType, other: CodeType) -> bool:
    """Return True if functions of one name are written in one scope of a file."""
    return (code.co_filename, code.co_qualname) == (other.co_filename, other.co_qualname)


def read_definition(
    function: FunctionType,
    read_body: Callable[[], Expr],
    reading: Any,
    reader: Any,
    *,
    written: FunctionType | None = None,
) -> Expr:
    """Return the result of a function without parameters.

    written: the function being turned into a query. Functions that it calls may mean the query
    by its name, which `function` does not have among its captured names then.
    """
    shape: Shape = None
    is_mapping = _returns_dictionary(function)
    name, before = function.__name__, UNSET if written is None else _meaning_before(written)
    for _ in range(ROUNDS):
        entry = Active(function.__code__, name, shape, object(), before=before, written=written)
        entry.is_mapping = is_mapping
        reading.active.append(entry)
        try:
            result = read_body()
        finally:
            reading.active.pop()
        if not entry.is_called:
            return result
        if not isinstance(result, Rows) or result.arguments or not _is_least(result):
            raise refusal_at(
                ast.Name(function.__name__),
                reader,
                "calls itself, and gives no set",
                "a recursion is the smallest set that it says of itself: {...} | {...}\n"
                "  or a dictionary whose values a lattice joins: {key: least(...) for key in keys}",
            )
        joined = result.joined
        if is_mapping:
            pairs = replace(result, kind="list", row=(tuple_of(*result.row),))
            body = select_value(pairs, reading.origins).node
        else:
            body = select_value(as_set(result, reading.origins), reading.origins).node
        found = shapes(body)[0]
        if found == shape:
            break
        shape = found if shape is None else None
    node = body if entry.level not in free(body) else None
    if node is None:
        node = reading.engine.fixpoint(body, entry.level, function.__name__, joined)
    return _defined_rows(node, is_mapping=is_mapping)


def _is_least(result: Rows) -> bool:
    """Return True for what a recursion may give: a set, or a dictionary of joined values."""
    return result.kind == "set" or (result.kind == "dict" and result.joined is not None)


def _returns_dictionary(function: FunctionType) -> bool:
    """Return True if a function returns a dictionary comprehension."""
    tree = tree_of(function)
    if isinstance(tree, ast.Lambda):
        return isinstance(tree.body, ast.DictComp)
    returned = (each.value for each in ast.walk(tree) if isinstance(each, ast.Return))
    return any(isinstance(each, ast.DictComp) for each in returned)


def _meaning_before(function: FunctionType) -> Any:
    """Return the value of a function's name while a query is made of it.

    Return `UNSET` if its text does not mean itself by the name: in a lambda, in a method, and if a
    later function of the file has the name.
    """
    *around, name = function.__qualname__.split(".")
    if name != function.__code__.co_name or name == "<lambda>":
        return UNSET
    if around and around[-1] != "<locals>":
        return UNSET
    found = resolve(function, name)
    return found if _is_before(found, function) else UNSET


def _is_before(found: Any, function: FunctionType) -> bool:
    """Return True if `found` may be a value that the name of a function had before the function.

    False for the function itself, and for a function written below it in the same scope.
    """
    if not isinstance(found, FunctionType):
        return True
    code, its = function.__code__, found.__code__
    is_later = its.co_firstlineno > code.co_firstlineno and is_same_place(its, code)
    return its is not code and not is_later


def read_call(node: ast.Call, function: FunctionType, reader: Any, reading: Any) -> Expr:
    """Return the result of a call of a function that reads relations, or takes rows.

    Refuse a recursive call with arguments, and a function that cannot be read.
    """
    arguments = tuple(map(reader.value, node.args))
    keywords = {str(k.arg): reader.value(k.value) for k in node.keywords}
    given = [*arguments, *keywords.values()]
    if given and any(entry.code is function.__code__ for entry in reading.active):
        raise refusal_at(
            node,
            reader,
            "calls itself with arguments",
            "have what they are in the rows of a function without parameters",
        )
    origin = replace(reader.origin, depth=reader.origin.depth + 1)
    try:
        tree = tree_of(function)
        bound = bound_arguments(function, tree, arguments, keywords)
        inner = Reader(function, origin, bound)
        if not given:
            return read_definition(function, lambda: inner.body(tree), reading, reader)
        body = _read_without_recursion(function, lambda: inner.body(tree), reading)
        result = body
        for each in reversed([e for e in given if not isinstance(e, Rows)]):
            has_rows = any(isinstance(e, Rows | Subquery) for e in walk(each))
            if not has_rows and not isinstance(body, Rows):
                result = name_value(each, body, result, reader.shapes)
        return result
    except Unreadable as unreadable:
        reason, *hint = unreadable.args
        raise refusal_at(
            node,
            reader,
            f"reads relations, and cannot be read: {reason}",
            *(hint or ["write its text in the query"])[:1],
        ) from None


def _read_without_recursion(
    function: FunctionType, read_body: Callable[[], Expr], reading: Any
) -> Expr:
    """Read a function that must not call itself."""
    reading.active.append(Active(function.__code__, "", None, object()))
    try:
        return read_body()
    finally:
        reading.active.pop()


ORDER = "depends on the order of rows, which they do not have"
OF_FUNCTIONS: dict[str, tuple[str, str]] = {
    "next": (ORDER, "min(rows, key=...) or max(rows, key=...) is one of them"),
    "iter": (ORDER, "use the rows themselves"),
    "enumerate": (ORDER, "number the rows where they are added, as a field of theirs"),
    "zip": (ORDER, "join them: for a in left for b in right if a.id == b.id"),
    "reversed": (ORDER, "sorted(rows, key=..., reverse=True)"),
    "islice": (ORDER, "sorted(rows, key=...)[:n]"),
    "takewhile": (ORDER, "an `if` in the comprehension"),
    "dropwhile": (ORDER, "an `if` in the comprehension"),
    "accumulate": (ORDER, "sum(b.x for b in rows if b.time <= a.time) for each row a"),
    "pairwise": (ORDER, "max((b for b in rows if b.time < a.time), key=...) for each row a"),
    "groupby": (ORDER, "d = defaultdict(list), a loop with d[key].append(value), and d"),
    "chain": ("is not read over relations", "list(a) + list(b), or two comprehensions with +"),
    "product": ("is not read over relations", "for a in left for b in right"),
    "reduce": (ORDER, "sum, min or max; or relation.aggregate(Monoid(...))"),
    "map": ("is not read over relations", "[f(row) for row in rows]"),
    "filter": ("is not read over relations", "[row for row in rows if f(row)]"),
}
LOST = (
    "gives a list whose rows lose the order of what they are made of",
    "sort the result: sorted([...], key=...), or make a set of it",
)
LIST_IN_ROW = (
    "is a list with the rows in some order, as a value",
    "sorted(...), set(...), sum(...) or len(...) of it does not depend on the order",
)

KEY_OR_ROW = (
    "means a key where it is asked of a table or view by key, and a row where it is asked of lists",
    "any(row.id == x for row in rows) asks for a key, `x in list(rows)` for a row",
)


def refusal_at(node: ast.AST, reader: Any, why: str, remedy: str) -> PlanError:
    """Return the error about a part of a callable."""
    opaque = reader.origin.function
    file = reader.function.__code__.co_filename
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1
    text = text_of_node(node)
    return PlanError(
        f"{opaque.role}: {text} {why}\n  {place_at(file, line)}, column {column}\n  {remedy}"
    )


def text_of_node(node: ast.AST) -> str:
    """Return the text of a part, in one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
