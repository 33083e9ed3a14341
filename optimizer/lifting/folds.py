"""Loops that fold a collection of the row to one value, as calls that can cache it.

    sum(o.total for o in c.orders if o.day > c.since)

    %0(c.orders, lambda %values: (o.total for o in %values if o.day > c.since), lambda: (c.since,))

`%0` is a `Fold`. If the collection is a `Bag`, the bag computes it: a bag that was made of another
one iterates over the changes only, also in inner loops over collections of its values. For any
other collection the fold calls the written function.

`sum`, `len`, `any`, `all`, `min`, `max` and `Bag` are rewritten, of a comprehension whose first
`for` iterates over a variable, an attribute or an item of one, or the keys, values or items of a
mapping there, and that does not use it otherwise.

Sound:  a fold adds up one result per value, which depends on the value and on the other variables
        that it reads: a cached result is not used if one of these has changed.
Source: [slender] deep updates; delta rules of aggregates, applied to a value.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter, itemgetter
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any, TypeAlias

from optimizer.expressions.knowledge import Foldable
from optimizer.record import record

Comprehension: TypeAlias = ast.ListComp | ast.GeneratorExp
Field: TypeAlias = tuple[Any, Any]
"""An attribute or an item of a value: `attrgetter` or `itemgetter`, and its name or place."""
Read: TypeAlias = tuple[str, Field | None]
"""A variable, and the field that is read of it; None stands for all of it."""
KINDS: dict[Any, str] = {sum: "sum", len: "count", any: "any", all: "all", min: "min", max: "max"}
COLLECTED = "bag"
BAG = "%bag"
VALUES = "%values"
DEEPEST = 6
"""Depth of nested calls that are searched for folds: more than are inlined."""
OF_ALL = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@record
class InnerLoop:
    """A field of values that is iterated over, the other fields that are read, and the loops
    within."""

    bag: Field
    fields: tuple[Field, ...]
    within: tuple[InnerLoop, ...]


class Fold:
    """A fold of a collection, value by value.

    Two folds are equal if they are written alike in equal callables.

    Parameters
    ----------
    kind: one of `KINDS`, or `"bag"`.
    called: the function in the source.
    identity: value that is compared in place of the fold.
    loops: the collections of a value that are iterated over.
    """

    __slots__ = ("_hash", "_identity", "called", "is_list", "kind", "loops")

    def __init__(
        self,
        kind: str,
        called: Callable[..., Any],
        identity: object,
        *,
        is_list: bool = False,
        loops: tuple[InnerLoop, ...] = (),
    ) -> None:
        self.kind = kind
        self.called = called
        self.is_list = is_list
        self.loops = loops
        self._identity = identity
        self._hash = hash(identity)

    def __call__(
        self,
        values: Any,
        each: Callable[[Iterable[Any]], Iterable[Any]],
        beside: Callable[[], tuple[Any, ...]],
        **options: Any,
    ) -> Any:
        """Fold a collection.

        `each` iterates over the results for some of its values, which depend on the values of
        `beside`.
        """
        if isinstance(values, Foldable):
            return values._folded(self, each, beside, options)
        return self.plain(each(values), options)

    def plain(self, found: Iterable[Any], options: Mapping[str, Any]) -> Any:
        """Call the written function with the results of all values."""
        return self.called(list(found) if self.is_list else found, **options)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Fold) and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        made = (self.kind, self.called, self.is_list, self.loops)
        return _elsewhere, made  # a bag in another process has no older version


def _elsewhere(kind: str, called: Any, is_list: bool, loops: Any) -> Fold:
    return Fold(kind, called, object(), is_list=is_list, loops=loops)


def with_folds(
    node: ast.expr,
    local: Iterable[str],
    meaning: Callable[[str], Any],
    identity: object,
    bag: type | None,
) -> tuple[ast.expr, dict[str, Any]]:
    """Return a part of a callable with calls of folds in it, and the values of their names.

    Parameters
    ----------
    local: the names that are no variables of the callable's surroundings.
    meaning: name of these -> its value.
    identity: value that is compared in place of the part.
    bag: the class of the lists in its result, if not `list`.
    """
    given: dict[str, Any] = {} if bag is None else {BAG: bag}
    if bag is not None:
        node = _of_bags(node)
    reader = _Folding(local, lambda name: bag if name == BAG else meaning(name), identity)
    made = reader.visit(node)
    return (made, {**given, **reader.folds}) if reader.folds else (node, given)


def folds_of(function: Any) -> list[Fold]:
    """Return the folds that a part of a callable calls."""
    cells = getattr(function, "__closure__", None) or ()
    return [c.cell_contents for c in cells if isinstance(c.cell_contents, Fold)]


def may_fold(function: Any, depth: int = DEEPEST) -> bool:
    """Return True if a callable, or a function that it calls, may have folds that round or compare
    differently."""
    if not isinstance(function, FunctionType) or not depth:
        return False
    code = function.__code__
    names = {*code.co_names, *code.co_freevars}
    for inner in code.co_consts:
        names.update(getattr(inner, "co_names", ()))
    if not names.isdisjoint(("sum", "min", "max")):
        return True
    return any(
        may_fold(named.get(name), depth - 1) for named in _name_spaces(function) for name in names
    )


def _name_spaces(function: FunctionType) -> Iterator[Mapping[str, Any]]:
    """Iterate over the mappings of names in a function."""
    yield function.__globals__
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield {name: cell.cell_contents for name, cell in cells if _is_set_cell(cell)}


def _is_set_cell(cell: CellType) -> bool:
    """Return True if a cell has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _of_bags(node: Any) -> Any:
    """Return a list comprehension, or each in a tuple, as a call that makes a bag.

    Any other expression is unchanged.
    """
    match node:
        case ast.ListComp(element):
            made = _like(node, {"elt": _of_bags(element)})
            return ast.copy_location(ast.Call(ast.Name(BAG, ast.Load()), [made], []), node)
        case ast.Tuple(items):
            return _like(node, {"elts": [_of_bags(each) for each in items]})
        case _:
            return node


class _Folding(ast.NodeTransformer):
    """Replaces calls by calls of folds, where possible."""

    def __init__(
        self, local: Iterable[str], meaning: Callable[[str], Any], identity: object
    ) -> None:
        self.folds: dict[str, Fold] = {}
        self._local = set(local)
        self._meaning = meaning
        self._identity = identity

    def visit(self, node: ast.AST) -> Any:
        """Return a syntax node with calls of folds in place of folds over bags."""
        if isinstance(node, OF_ALL):
            return self._comprehension(node)
        if isinstance(node, ast.Lambda):
            with self._names({a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}):
                return _like(node, {"body": self.visit(node.body)})
        if isinstance(node, ast.Call):
            made = self._fold_call(node)
            if made is not None:
                return made
        return _like(node, {name: self._field(value) for name, value in ast.iter_fields(node)})

    def _field(self, value: Any) -> Any:
        """Return the field of a node with folds in it: a node, a list of nodes, or another
        value."""
        if isinstance(value, list):
            return [self._field(each) for each in value]
        return self.visit(value) if isinstance(value, ast.AST) else value

    @contextmanager
    def _names(self, more: set[str]) -> Iterator[None]:
        """Treat more names as local within the `with` block."""
        old, self._local = self._local, self._local | more
        try:
            yield
        finally:
            self._local = old

    def _comprehension(self, node: Any, first: ast.expr | None = None) -> Any:
        """Return a comprehension whose first collection is read outside of it."""
        generators = list(node.generators)
        outside = self.visit(generators[0].iter) if first is None else first
        with self._names({name for each in generators for name in _targets(each.target)}):
            inside = [self._field(each) for each in generators]
            inside[0] = _like(inside[0], {"iter": outside})
            parts = {name: self._field(getattr(node, name)) for name in _element_fields(node)}
        return _like(node, {"generators": inside, **parts})

    def _fold_call(self, node: ast.Call) -> ast.Call | None:
        """Return the call of a fold, or None."""
        kind, called = self._kind(node.func)
        options = {k.arg for k in node.keywords}
        if not kind or len(node.args) != 1 or not isinstance(node.args[0], Comprehension):
            return None
        if options - ({"default"} if kind in ("min", "max") else set()):
            return None
        comprehension = node.args[0]
        beside = self._other_reads(comprehension)
        if beside is None:
            return None
        name = f"%{len(self.folds)}"
        identity = (self._identity, len(self.folds))
        is_list = isinstance(comprehension, ast.ListComp)
        loops = tuple(_loops(comprehension, comprehension.generators[0].target))
        self.folds[name] = Fold(kind, called, identity, is_list=is_list, loops=loops)
        given = ast.Name(VALUES, ast.Load())
        each = self._comprehension(comprehension, given)
        each = ast.GeneratorExp(each.elt, each.generators)
        values = self.visit(comprehension.generators[0].iter)
        made = ast.Call(
            ast.Name(name, ast.Load()),
            [values, _lambda_node([VALUES], each), _lambda_node([], ast.Tuple(beside, ast.Load()))],
            [self._field(k) for k in node.keywords],
        )
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def _kind(self, function: ast.expr) -> tuple[str, Any]:
        """Return the kind of fold that a call is, and the called function; `""` for another
        call."""
        if not isinstance(function, ast.Name) or function.id in self._local:
            return "", None
        called = self._meaning(function.id)
        if isinstance(called, type) and issubclass(called, Foldable) and called._collects:
            return COLLECTED, called
        kind = KINDS.get(called, "") if type(called) is BuiltinFunctionType else ""
        return (kind, called) if function.id == getattr(called, "__name__", None) else ("", None)

    def _other_reads(self, node: Comprehension) -> list[ast.expr] | None:
        """Return the reads of a comprehension other than its first collection; None if unknown."""
        of = _read_of_node(_viewed_mapping(node.generators[0].iter))
        own = _targets(node)
        if of is None or of[0] not in self._local or own & self._local or _is_odd(node):
            return None
        rest = [each for each in _reads_of_names(_rest(node), self._local) if each[0] not in own]
        if any(each in (of, (of[0], None)) for each in rest):
            return None
        return [_node_of_read(each) for each in dict.fromkeys(rest)]


# Reads of variables.


def _rest(node: Comprehension) -> list[ast.AST]:
    """Return all parts but the first collection."""
    first, *others = node.generators
    return [node.elt, *first.ifs, *others]


def _reads_of_names(nodes: Iterable[ast.AST], names: Iterable[str]) -> Iterator[Read]:
    """Iterate over the reads of some variables."""
    waiting, known = list(nodes), set(names)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            waiting += [node.func.value, *node.args, *node.keywords]  # a method reads all
            continue
        found = _read_of_node(node)
        if found is not None and found[0] in known:
            yield found
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _read_of_node(node: ast.AST) -> Read | None:
    """Return the read of a variable, or of an attribute or item of one; None for other nodes."""
    match node:
        case ast.Name(name, ast.Load()):
            return name, None
        case ast.Attribute(ast.Name(name, ast.Load()), field, ast.Load()):
            return name, (attrgetter, field)
        case ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(place), ast.Load()):
            return (name, (itemgetter, place)) if type(place) in (int, str) else None
        case _:
            return None


def _viewed_mapping(node: ast.expr) -> ast.expr:
    """Return the mapping whose keys, values or items are iterated over; any other node as is."""
    match node:
        case ast.Call(ast.Attribute(of, "keys" | "values" | "items"), [], []):
            return of
        case _:
            return node


def _node_of_read(read: Read) -> ast.expr:
    """Return the syntax of a read: a name, its attribute, or its item."""
    name, field = read
    of = ast.Name(name, ast.Load())
    if field is None:
        return of
    how, key = field
    if how is attrgetter:
        return ast.Attribute(of, key, ast.Load())
    return ast.Subscript(of, ast.Constant(key), ast.Load())


def _targets(node: ast.AST) -> set[str]:
    """Return the names that loops in a node bind, and the names of parameters."""
    every = list(ast.walk(node))
    stored = {e.id for e in every if isinstance(e, ast.Name) and isinstance(e.ctx, ast.Store)}
    return stored | {e.arg for e in every if isinstance(e, ast.arg)}


def _is_odd(node: ast.AST) -> bool:
    """Return True if a node binds names in expressions, or awaits or yields."""
    odd = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    every = list(ast.walk(node))
    return any(
        isinstance(e, odd) or (isinstance(e, ast.comprehension) and e.is_async) for e in every
    )


def _loops(node: Comprehension, target: ast.expr) -> Iterator[InnerLoop]:
    """Iterate over the later loops over fields of the loop variable, which are read there only.

    A target of several variables yields none.
    """
    if not isinstance(target, ast.Name):
        return
    read = Counter(found for found in _reads_of_names(_rest(node), [target.id]))
    fields = [field for _, field in read if field is not None]
    for later in node.generators[1:]:
        found = _read_of_node(later.iter)
        if found is not None and read[found] == 1 and len(fields) == len(read):
            bag = found[1]
            if bag is not None:
                others = tuple(field for field in fields if field != bag)
                yield InnerLoop(bag, others, tuple(_loops(node, later.target)))


# Making nodes.


def _lambda_node(names: list[str], body: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, []), body)


def _element_fields(node: Any) -> tuple[str, ...]:
    return ("key", "value") if isinstance(node, ast.DictComp) else ("elt",)


def _like(node: Any, changed: Mapping[str, Any]) -> Any:
    """Return a copy of a node with other parts; trees of callables are shared, and must not
    change."""
    made = type(node)(**{**dict(ast.iter_fields(node)), **changed})
    return ast.copy_location(made, node)
