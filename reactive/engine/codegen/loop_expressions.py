"""Expressions in generated loops: inner bags, cut deep expressions, keys and columns.

`inner_bags` finds the bags in rows that a loop iterates over, and the other fields it reads.

    unnest c.orders | unnest o.lines | select (c.town, line.price)

    of c:   the bag `orders`, and `town`
    of o:   the bag `lines`, and nothing

A bag is found if the loop iterates over a field of a row, or of an inner value, reads that field
nowhere else, and reads the row only by fields. Then, of two rows that differ in the bag, the loop
needs only the changes in it (`collections/inner_changes.py`).

`Shallow` cuts deep expressions: a part nested too deeply becomes a call of a compiled function.

    ((((a + b) + c) + d) + e)   ->   part(a, b, c, d) + e       part = lambda p, q, r, s: p + q ...

All readers of expressions recurse over them: rules, code generation, Python's own compiler. Texts
written by programs are deeper than any stack. No expression that leaves the translation of a text
is deeper than `DEEPEST`, nor, written as a tree, much larger than `LARGEST`.

A part is called with whole bindings, never with their columns: it evaluates the same expressions in
the same order, and raises the same errors. Sub-queries stay outside as arguments, so that they can
be converted to joins.

Cost:  O(1) for an expression whose parts were measured before.

`key_parts` and `matching_key` write the key of a row, for a join to look up or to index.

A key written by the user is compared as it is; parts of keys found in a predicate follow `==`. A
value that equals nothing, such as NaN, is `NO_MATCH`.

`column` writes an expression over columns as one list comprehension, the fastest loop in Python.

found[pair] / kept       [found[pair] / kept for pair, kept in zip(rows_0, rows_1)]

`best_column` writes the best value of each row, compared with a few other rows, in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from operator import attrgetter, itemgetter
from typing import Any

from optimizer.expr import (
    Attempt,
    Attribute,
    Call,
    Conditional,
    Constant,
    Expr,
    Item,
    Lifted,
    Local,
    Operation,
    Outer,
    Parameter,
    Subquery,
    parts,
    rebuilt,
    row_names,
)
from optimizer.expressions.knowledge import Shapes, hashable
from optimizer.plans.side_conditions import SideTerm
from optimizer.rewriting.own_values import elements
from reactive.engine.codegen.emitter import Emitter, RowPipeline
from reactive.engine.codegen.functions import (
    BoundValues,
    CodeWriter,
    build,
    build_at_first_call,
    callable_of,
)
from reactive.engine.collections import inner_changes
from reactive.engine.collections.index import NO_MATCH, match_key

WHOLE = None
"""Stands for a whole row, in place of a field."""


def inner_bags(
    pipeline: RowPipeline, after: Sequence[Expr], places: Sequence[int]
) -> list[inner_changes.InnerBag]:
    """Return the inner bags of a pipeline's rows, given the expressions evaluated `after` it.

    `places` are the bindings that the rows of the delta have.
    """
    reads = _BindingReads(pipeline, after, places)
    return [bag for place in places for bag in reads.bags(Parameter(place))]


class _BindingReads:
    """Counts the parts that a loop reads, of each binding and of each inner bag."""

    def __init__(self, pipeline: RowPipeline, after: Sequence[Expr], places: Sequence[int]) -> None:
        self._places = list(places)
        self._each = [i for i in pipeline.instructions if i.kind == "each"]
        roots: set[Expr] = {Local(each.name) for each in self._each}
        every = [*(instruction.expr for instruction in pipeline.instructions), *after]
        self._found = Counter(read for expr in every for read in _find_row_reads(expr, roots))

    def bags(self, root: Expr) -> Iterator[inner_changes.InnerBag]:
        """Yield the bags of one root."""
        fields = {field for of, field in self._found if of == root}
        for each in self._each:
            found = _owner_and_field(_iterated_collection(each.expr))
            if found is not None and found[0] == root and self._found[found] == 1:
                read = [field for field in fields if field is not WHOLE and field != found[1]]
                if len(read) == len(fields) - 1:  # it is never read as a whole
                    yield self._bag(root, Local(each.name), read, found[1])

    def _bag(
        self,
        root: Expr,
        element: Local,
        read: Sequence[inner_changes.Field],
        bag: inner_changes.Field,
    ) -> inner_changes.InnerBag:
        """Return an inner bag with the fields and bags read beside it and in it."""
        within = list(self.bags(element))
        if not isinstance(root, Parameter) or len(self._places) == 1:
            return inner_changes.InnerBag(bag, read, within)
        asked = {of.index for of, _ in self._found if isinstance(of, Parameter)} - {root.index}
        at = self._places.index
        beside = sorted(at(place) for place in asked.intersection(self._places))
        return inner_changes.InnerBag(bag, read, within, binding=at(root.index), others=beside)


def _find_row_reads(
    expr: Expr, roots: set[Expr]
) -> Iterator[tuple[Expr, inner_changes.Field | None]]:
    """Yield the rows that an expression reads, each with the field read, or `WHOLE`."""
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        found = _owner_and_field(expr)
        if found is not None and _is_root(found[0], roots):
            yield found
        elif _is_root(expr, roots):
            yield expr, WHOLE
        else:
            waiting.extend(parts(expr))


def _is_root(expr: Expr, roots: set[Expr]) -> bool:
    return isinstance(expr, Parameter) or expr in roots


def _iterated_collection(expr: Expr) -> Expr:
    """Return the iterated collection, without the check that skips other values."""
    match expr:
        case Attempt(Call(Constant() as function, (of,)), _) if function.value is elements:
            return of
        case _:
            return expr


def _owner_and_field(expr: Expr) -> tuple[Expr, inner_changes.Field] | None:
    """Return the owner and the field of an attribute or item; None for another expression.

    The field may be read through a method of a mapping, such as `values`.
    """
    match expr:
        case Call(Attribute(mapping, name), ()) if name in inner_changes.VIEWS:
            found = _owner_and_field(mapping)
            return None if found is None else (found[0], (inner_changes.VIEWS[name], found[1]))
        case Attribute(of, name) if not name.startswith("__"):
            return of, (attrgetter, name)
        case Item(of, Constant() as key) if type(key) is Constant and key.kind in (int, str):
            return of, (itemgetter, key.value)
    return None


DEEPEST = 50
"""Maximum depth. Python's parser accepts 200 brackets; its recursion limit is 1,000 frames."""
LARGEST = 4_000
"""Maximum number of nodes; an expression that is read in several places counts in each."""
SPLIT = (Operation, Call, Conditional)
"""Large nodes that become parts; AND and OR do not, since they contain the equations of joins."""
_KEPT = (Parameter, Outer, Subquery)


class Shallow:
    """The measured expressions of one text, with replacements of the deep ones."""

    __slots__ = ("_known", "_parts")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Expr, int, int]] = {}
        """The expression, its replacement, depth and size, by the identity of the expression."""
        self._parts: dict[Expr, Constant] = {}

    def __call__(self, expr: Expr) -> Expr:
        """Return the expression itself, or an equivalent one of limited depth."""
        known = self._known.get(id(expr))
        return self._measure(expr) if known is None else known[1]

    def _measure(self, expr: Expr) -> Expr:
        """Measure all parts not measured before, inner ones first, without recursion."""
        waiting = [expr]
        while waiting:
            each = waiting[-1]
            if id(each) in self._known:
                waiting.pop()
                continue
            inner = parts(each)
            unknown = [part for part in inner if id(part) not in self._known]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            self._known[id(each)] = (each, *self._cut(each, inner))
        return self._known[id(expr)][1]

    def _cut(self, expr: Expr, inner: tuple[Expr, ...]) -> tuple[Expr, int, int]:
        """Return the replacement of an expression, with the depth and size of the replacement."""
        known = [self._known[id(part)] for part in inner]
        if any(old is not new for old, new, _, _ in known):
            expr = rebuilt(expr, tuple(new for _, new, _, _ in known))
        depth = 1 + max((deep for _, _, deep, _ in known), default=0)
        size = 1 + sum(large for _, _, _, large in known)
        if depth <= DEEPEST and (size <= LARGEST or not isinstance(expr, SPLIT)):
            return expr, depth, size
        return self._part(expr)

    def _part(self, expr: Expr) -> tuple[Expr, int, int]:
        """Return a call of a compiled function for the expression, with its depth and size."""
        arguments: dict[Expr, Parameter] = {}
        body = _with_arguments(expr, arguments)
        function = self._parts.get(body)
        if function is None:
            made = Lifted(body, row_names(len(arguments)), (), len(arguments))
            function = Constant(callable_of(made), ("part", object()), "part")
            self._parts[body] = function
        given = tuple(arguments)
        deep = max((self._depth(each) for each in given), default=1)
        return Call(function, given), deep + 1, len(given) + 2

    def _depth(self, argument: Expr) -> int:
        """Return the depth of an argument: a sub-query may have deep arguments."""
        self(argument)
        return self._known[id(argument)][2]


def _with_arguments(expr: Expr, arguments: dict[Expr, Parameter]) -> Expr:
    """Return `expr` with parameters in place of bindings; add the bindings to `arguments`."""
    if isinstance(expr, _KEPT):
        return arguments.setdefault(expr, Parameter(len(arguments)))
    old = parts(expr)
    new = tuple(_with_arguments(part, arguments) for part in old)
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)


KEYS: dict[str, Any] = {"NO_MATCH": NO_MATCH, "match_key": match_key}
"""The functions that these lines call by name."""


def key_parts(
    pipeline: RowPipeline, written: Lifted | None, steps: Sequence[SideTerm]
) -> list[Expr]:
    """Return the parts of the key; the tests of the side become tests of the loop, in order."""
    parts: list[Expr] = []
    if written is not None:
        parts.append(pipeline.take(written.body))
    for step in steps:
        if not step.is_key:
            pipeline.test(step.function.body)
            continue
        parts.append(pipeline.take(step.function.body))
    return parts


def key_or_no_match(body: Emitter, key: Sequence[Expr], shapes: Shapes, *, is_written: bool) -> str:
    """Return the text of the key of a row, or of `NO_MATCH` if its key equals none.

    The row is stored in any case.
    """
    if not key:
        return "()"
    names = _key_variables(body, key)
    if is_written:
        (name,) = names
        plain = f"{name}.__class__ is int or {name}.__class__ is str"  # inlined from `match_key`
        return f"{name} if {plain} else match_key({name})"
    for name, part in zip(names, key, strict=True):
        if not hashable(part, shapes):
            body.line(f"hash({name})")
    nan = " or ".join(f"{name} != {name}" for name in names)
    return f"NO_MATCH if {nan} else {whole_key(names)}"


def matching_key(body: Emitter, key: Sequence[Expr], shapes: Shapes, *, is_written: bool) -> str:
    """Return the text of the key, after lines that skip a row whose key matches nothing."""
    if is_written:
        text = key_or_no_match(body, key, shapes, is_written=True)
        name = body.variable("key", text)
        body.line(f"if {name} is NO_MATCH: continue")
        return name
    names = _key_variables(body, key)
    for name in names:
        body.line(f"if {name} != {name}: continue")
    return whole_key(names)


def _key_variables(body: Emitter, key: Sequence[Expr]) -> list[str]:
    """Write the parts of a key to the loop, and return the names of their variables."""
    names = []
    for part in key:
        text = body.use(part)
        names.append(text if text.isidentifier() else body.variable("key", text))
    return names


def whole_key(names: Sequence[str]) -> str:
    """Return the text of a key with some parts."""
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


Column = list[Any]


def column(expr: Expr, each: Sequence[str], given: Sequence[str] = ()) -> Callable[..., Column]:
    """Return a function of columns that computes the column of an expression over variables.

    Parameters
    ----------
    each: variables that iterate over columns in parallel, the first arguments.
    given: variables that hold whole columns, the later arguments.
    """
    values = BoundValues()
    lists = [f"rows_{place}" for place in range(len(each))]
    for name in (*each, *given, *lists):
        values.reserve(name)
    shown = CodeWriter((), values, careful=False).write(expr)
    over = lists[0] if len(lists) == 1 else f"zip({', '.join(lists)})"
    head = f"def column({', '.join((*lists, *given))}):\n"
    return build("column", f"{head}    return [{shown} for {', '.join(each)} in {over}]\n", values)


def best_column(
    items: Sequence[Expr],
    odd: Set[int],
    each: Sequence[str],
    others: Sequence[str],
    best: str,
    *,
    place: str = "",
) -> Callable[..., Column]:
    """Return a function of columns and tuples that computes the best value of each row.

    The best value is the least, or the greatest, tuple of some expressions over a row of the
    columns and each tuple.

    Parameters
    ----------
    items: the expressions, over variables.
    odd: the places of those that may be NaN, which has no order: `Unordered` is raised then.
    each: variables that iterate over columns in parallel, the first arguments.
    others: variables of the parts of a tuple; the last argument lists the tuples.
    best: `min` or `max`.
    place: one of `others`, if it is wanted beside the value.
    """
    values = BoundValues()
    values.bind({"unordered": raise_unordered})
    lists = [f"rows_{place}" for place in range(len(each))]
    for name in (*each, *others, *lists, "found", "made"):
        values.reserve(name)
    writer = CodeWriter((), values, careful=False)
    texts = [
        _ordered_text(writer, item) if number in odd else writer.write(item)
        for number, item in enumerate(items)
    ]
    shown = f"({', '.join(texts)},)"
    shown = f"({shown}, {place})" if place else shown
    over = lists[0] if len(lists) == 1 else f"zip({', '.join(lists)})"
    inner = f"{best}([{shown} for {', '.join(others)}, in found])"
    head = f"def column({', '.join((*lists, 'found'))}):\n"
    text = f"{head}    return [{inner} for {', '.join(each)} in {over}]\n"
    return build_at_first_call(lambda: build("column", text, values))


def _ordered_text(writer: CodeWriter, expr: Expr) -> str:
    """Return the text of an expression that raises `Unordered` for NaN."""
    return f"(made if (made := {writer.write(expr)}) == made else unordered())"


class Unordered(Exception):
    """Raised for NaN among values that a loop compares."""


def raise_unordered() -> None:
    """Raise `Unordered`."""
    raise Unordered
