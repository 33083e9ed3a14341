"""Comprehensions over relations: reading them, and running their functions over plain lists.

Reading: aggregates are the engine's, relations are plans, and subqueries in callables become joins
when the relation is made.

Running: the result that Python computes for a query.

    debtors.on(orders=[...], customers=[...])

The function is made again with lists in place of the relations that it names; so are functions and
queries that it calls. A function that calls itself is applied to the empty set, then to its result,
until nothing changes. `sum` adds floats exactly, as views do.
"""

from __future__ import annotations

import builtins
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import itemgetter
from types import CellType, CodeType, FunctionType, GeneratorType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import global_names, meaning
from optimizer.callables.opaque import Opaque, opaque
from optimizer.callables.source import code_of
from optimizer.comprehensions.query import read_callable
from optimizer.comprehensions.rows import Rows as QueryRows
from optimizer.comprehensions.rows import is_same_place, select_value
from optimizer.errors import DuplicateKeyError, PlanError
from optimizer.expr import Constant, Expr, Function, Lifted, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting import outer_values
from optimizer.lifting.readings import UNSET, resolve
from optimizer.plans.check_reads import check_branches
from optimizer.plans.properties import nodes
from optimizer.plans.strata import (
    check_positive,
    check_stratified,
    in_strata,
    substituted_with_forms,
)
from optimizer.record import record
from optimizer.rules.read_callables import read_callables
from optimizer.rules.strengthen_outer_join import strengthen_recursion
from optimizer.subqueries.decorrelation import lateral, remove_subqueries
from optimizer.traverse import functions, has_subqueries
from reactive.api import joined_values
from reactive.api.columns import Live, is_parameter
from reactive.api.lattices import Lattice
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.order import are_plainly_comparable, pairs_in_order, tie_key
from reactive.engine.collections.zset import canonical
from reactive.engine.compiler.placement import agree
from reactive.engine.operators.accumulators import (
    Accumulator,
    CollectAccumulator,
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
    UserAccumulator,
)

MOST_ROUNDS = 10_000
PLAIN: dict[str, type[Any]] = {
    "Sum": SumAccumulator,
    "Count": CountAccumulator,
    "Min": MinAccumulator,
    "Max": MaxAccumulator,
    "Collect": CollectAccumulator,
}


def in_order(pairs: Iterable[tuple[Any, Any]], descending: bool) -> tuple[Any, ...]:
    """Return rows in the order of their keys, as `order_by` sorts them."""
    return tuple([row for _, row in pairs_in_order(pairs, descending)])


def by_themselves(values: Iterable[Any], descending: bool) -> tuple[Any, ...]:
    """Return values in their own order, as `order_by` sorts them."""
    every = list(values)
    if are_plainly_comparable(every):
        return tuple(sorted(every, reverse=descending))
    return in_order(zip(every, every, strict=True), descending)


class Comprehending:
    """The services of the engine for reading comprehensions."""

    bag: type = Bag
    in_order = staticmethod(in_order)
    by_themselves = staticmethod(by_themselves)

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def plan_of(self, value: Any) -> plan.Node | None:
        """Return the plan of a relation of this database; None for any other value."""
        if not self.is_relation(value):
            return None
        other: Any = value._relation_of(self._engine)
        if other._engine is not self._engine and not agree(self._engine, other._engine):
            raise PlanError(
                f"{other._called()} is of another database\n"
                "  a query reads the tables of one; subscribe to the other and copy what it needs"
            )
        in_order = getattr(other, "_order", None)
        found: plan.Node = other.plan if in_order is None else in_order()
        return found

    def is_parameter(self, value: Any) -> bool:
        """Return True for a parameter, which a query calls for its value."""
        return is_parameter(value)

    def finds_keys(self, value: Any) -> bool:
        """Return True if `value[key]` finds a row by its key."""
        if not isinstance(value, Live):
            return False
        node = getattr(value, "plan", None)
        return (isinstance(node, plan.Table) and node.key is not None) or hasattr(value, "keys")

    def text_of(self, value: Any) -> Callable[[], Any] | None:
        """Return the function that a query was written as; None if there is none."""
        text = getattr(value, "text", None) if isinstance(value, Live) else None
        return getattr(text, "function", None)

    def is_unread(self, value: Any) -> bool:
        """Return True for a query that was not read yet, as it calls one that was not defined."""
        return self.text_of(value) is not None and "plan" not in vars(value)

    def is_relation(self, value: Any) -> bool:
        """Return True for a relation, a table or a view of any database."""
        return isinstance(value, Live) and hasattr(value, "_kept_views")

    def is_lattice(self, value: Any) -> bool:
        """Return True for a lattice, which a query calls to join values."""
        return isinstance(value, Lattice)

    def fold(self, name: Any, value: Function | None) -> plan.Folded:
        """Return the aggregate of a comprehension as a part of the plan."""
        if isinstance(name, Lattice):
            return joined_values.join_of_all(name, value)
        if name == "Only":
            return _only(value)
        accumulator: Accumulator = PLAIN[name]()
        return plan.Folded(name, accumulator, value)

    def freed(self, node: plan.Node) -> plan.Node:
        """Return the node with joins in place of its subqueries."""
        return without_subqueries(node)

    def lateral(self, left: plan.Node, query: plan.Node, arguments: tuple[Expr, ...]) -> plan.Node:
        """Return the rows of `left`, each with the rows of a query for it."""
        return lateral(left, query, arguments, of_no_rows=of_no_rows, canonical=canonical)

    def fixpoint(self, body: plan.Node, level: object, name: str, joined: Any) -> plan.Node:
        """Return the least relation of a definition that names itself.

        joined: the lattice of the values of its pairs; None for a set.
        """
        kept = None if joined is None else joined_values.of_pairs(body, joined, name)
        (found,) = smallest(plan.Fixpoint((body,), level, (name,), (kept,), MOST_ROUNDS))
        return found


def without_subqueries(node: plan.Node) -> plan.Node:
    """Return the node with joins in place of the subqueries in its callables."""
    return remove_subqueries(read_callables(node), of_no_rows=of_no_rows, canonical=canonical)


def freed(node: plan.Node) -> plan.Node:
    """Return a node below the one that a relation is made of, with joins in place of subqueries."""
    return without_subqueries(node) if has_subqueries(node) else node


def of_no_rows(folded: plan.Folded) -> Any:
    """Return the value of an aggregate without rows."""
    return folded.accumulator.result(folded.accumulator.zero())


def sources_of(node: plan.Node) -> list[Any]:
    """Return the relations that callables of a node name."""
    return [
        capture.original
        for function in functions(node)
        if isinstance(function, Lifted)
        for origin in function.origins
        for capture in origin.captures
        if isinstance(capture.original, Live) and hasattr(capture.original, "_kept_views")
    ]


def lift_over_relations(engine: Any, function: Opaque, shapes: Shapes) -> Lifted:
    """Lift a callable of rows of the given shapes that names relations."""
    made = read_callable(function, shapes, Comprehending(engine))[0]
    for part in walk(made.body):
        if isinstance(part, Constant) and isinstance(part.value, FunctionType):
            _check_captures(function, part.value)
    return made


def lift_over_inner_rows(
    engine: Any, function: Opaque, shapes: Shapes, inside: Mapping[int, QueryRows]
) -> Lifted | None:
    """Lift a callable whose parameters `inside` are nested rows, as subqueries of these rows.

    Return None if the callable needs the nested rows themselves.
    """
    try:
        return read_callable(function, shapes, Comprehending(engine), inside)[0]
    except PlanError:
        return None


def _check_captures(function: Opaque, called: FunctionType) -> None:
    """Refuse a function that is called without lifting, and reads an outer row."""
    for name in outer_values.captured_outer_values(called):
        raise PlanError(
            f"{function.role}: {function} calls {called.__name__}, which reads {name!r}, a row "
            "around the query, and cannot be read itself\n"
            f"  write what it does as one expression, or give it {name!r} as an argument"
        )


def pair_with_query(engine: Any, node: plan.Node, rows: QueryRows) -> plan.Node:
    """Return the rows of a plan, each paired with every row of a query for it."""
    whole = select_value(rows, ())
    return Comprehending(engine).lateral(node, whole.node, whole.arguments)


def _only(value: Function | None) -> plan.Folded:
    """Return the aggregate of the value of a group, which raises if two values differ."""
    plus = opaque(_add_value, 2, "the value of a key")
    minus = opaque(_remove_value, 2, "the value of a key")
    finish = opaque(_the_value, 1, "the value of a key")
    accumulator = UserAccumulator((), meaning(()), plus, minus, finish)
    return plan.Folded("Only", accumulator, value, (plus, minus, finish))


Held = tuple[tuple[Any, int], ...]
"""Different values with their counts."""


def _add_value(held: Held, value: Any) -> Held:
    return _change_count(held, value, 1)


def _remove_value(held: Held, value: Any) -> Held:
    return _change_count(held, value, -1)


def _change_count(held: Held, value: Any, weight: int) -> Held:
    """Return `held` with the count of a value changed; a count of 0 is left out."""
    for place, (other, count) in enumerate(held):
        if other is value or other == value:
            same = ((other, count + weight),) if count + weight else ()
            return (*held[:place], *same, *held[place + 1 :])
    return (*held, (value, weight))


def _the_value(held: Held) -> Any:
    """Return the only value, or None without one; raises `DuplicateKeyError` for several."""
    if len(held) > 1:
        shown = ", ".join(f"{value!r:.60}" for value, _ in held[:3])
        raise DuplicateKeyError(
            f"{len(held)} rows have the same key, with the values {shown}\n"
            "  a dictionary would keep the last; have one value for each key"
        )
    return held[0][0] if held else None


FIRST = ".0"


@record
class QueryText:
    """A function, and the relation of its rows if it is a generator expression."""

    function: Any
    first: Any = None

    def run(
        self,
        lists: Mapping[str, Iterable[Any]],
        *,
        tied: Sequence[Any] | None = None,
        is_by_itself: bool = False,
    ) -> Any:
        """Run the function in Python, with `lists` in place of relations by their names.

        Other relations have their current rows. With `tied`, rows with equal keys are ordered by
        themselves, as in views; rows that do not compare are ordered as in `tied`. With
        `is_by_itself`, the current rows are sorted by themselves.
        """
        names = self.names()
        for name in lists:
            if name not in names:
                known = ", ".join(sorted(names))
                raise PlanError(f"the query reads no {name!r}\n  it reads {known}")
        run = _Run({name: list(rows) for name, rows in lists.items()}, tied)
        run.is_by_itself = is_by_itself
        if self.first is not None:
            rows = run.lists.get(_relation_name(self.first))
            return list(run.made(self.function)(iter(run.rows_of(self.first, rows))))
        found = run.result(self.function)
        return list(found) if isinstance(found, GeneratorType) else found

    def names(self) -> set[str]:
        """Return the names of the relations that the function names."""
        names = _relations_of(self.function, set())
        return names if self.first is None else names | {_relation_name(self.first)}


def _relation_name(relation: Any) -> str:
    return str(getattr(relation, "name", None) or "rows")


def _relations_of(function: FunctionType, seen: set[CodeType]) -> set[str]:
    """Return the names of relations in a function, and in functions that it calls.

    The codes of all functions that are read are added to `seen`.
    """
    found: set[str] = set()
    seen.add(function.__code__)
    for name in _outer_names(function):
        value = resolve(function, name)
        called = _function_of(value)
        if called is not None and called.__code__ not in seen:
            found |= _relations_of(called, seen)
        elif isinstance(value, Live) and called is None:
            found.add(name)
    return found


def _outer_names(function: FunctionType) -> tuple[str, ...]:
    """Return the outer names that a function reads."""
    return (*function.__code__.co_freevars, *global_names(function.__code__))


def _function_of(value: Any) -> FunctionType | None:
    """Return a function, or the one a query is made from; None for any other value.

    None also for a query made from a generator expression.
    """
    if isinstance(value, FunctionType):
        return value
    text = getattr(value, "text", None) if isinstance(value, Live) else None
    made: Any = text.function if isinstance(text, QueryText) and text.first is None else None
    return made  # type: ignore[no-any-return]


class _Run:
    """One evaluation: the lists, and the results so far of functions that call themselves."""

    def __init__(self, lists: dict[str, list[Any]], tied: Sequence[Any] | None) -> None:
        self.lists = lists
        self.is_by_itself = False
        self._so_far: dict[CodeType, Any] = {}
        self._asked: set[CodeType] = set()
        self._standing: dict[int, Any] = {id(builtins.sum): exact_sum}
        if tied is not None:
            ties = Ties(tied)
            settled = {builtins.sorted: ties.sorted, builtins.min: ties.min, builtins.max: ties.max}
            self._standing |= {id(old): new for old, new in settled.items()}

    def result(self, function: FunctionType) -> Any:
        """Return the result of a function without parameters; the least set, if it is recursive."""
        code = function.__code__
        if code in self._so_far:
            self._asked.add(code)
            return self._so_far[code]
        self._so_far[code] = joined_values.EmptyResult()
        try:
            while True:
                found = self.made(function)()
                if code not in self._asked:
                    return found
                if isinstance(found, dict):
                    named = (resolve(function, name) for name in _outer_names(function))
                    found = joined_values.without_bottoms(found, named)
                if found == self._so_far[code]:
                    return found
                self._so_far[code] = found
        finally:
            del self._so_far[code]
            self._asked.discard(code)

    def made(self, function: FunctionType) -> FunctionType:
        """Return the function over lists in place of relations, and results of query functions."""
        code = function.__code__
        cells = tuple(CellType(self._standing_for(function, name)) for name in code.co_freevars)
        names = {name: self._standing_for(function, name) for name in global_names(code)}
        known = {name: value for name, value in names.items() if value is not UNSET}
        module = {**known, "__builtins__": builtins, "__name__": function.__module__}
        made = FunctionType(code, module, function.__name__, function.__defaults__, cells or None)
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    def _standing_for(self, function: FunctionType, name: str) -> Any:
        """Return what a name of a query function stands for: a list for a relation, a result."""
        value = resolve(function, name)
        if value is UNSET and name == function.__name__:
            return _Result(self, function)
        called = _function_of(value)
        if name == function.__name__ and _is_again(called, function):
            return _Result(self, function)
        if called is not None:
            if not called.__code__.co_argcount and _relations_of(called, set()):
                return _Result(self, called)
            return self.made(called) if _relations_of(called, set()) else value
        if isinstance(value, Live):
            return self.rows_of(value, self.lists.get(name))
        return self._standing.get(id(value), value)

    def rows_of(self, relation: Any, given: list[Any] | None) -> list[Any]:
        """Return the rows in `given`; if it is None, the current rows of a relation.

        A relation that is not a view is materialized for that.
        """
        if given is not None:
            return given
        if hasattr(relation, "materialize") and not hasattr(relation, "zset"):
            with relation.materialize() as view:
                return self._in_order_of(view)
        return self._in_order_of(relation)

    def _in_order_of(self, view: Any) -> list[Any]:
        """Return the rows of a table or view, in their order or sorted by themselves."""
        is_sequence = hasattr(view, "_of_all_places")
        return sorted(view, key=tie_key) if self.is_by_itself and not is_sequence else list(view)


class _Result:
    """The result of another query, which a query calls, or iterates over by its name."""

    def __init__(self, run: _Run, function: FunctionType) -> None:
        self._run, self._function = run, function

    def __call__(self) -> Any:
        return self._run.result(self._function)

    def _rows(self) -> Any:
        """Return the rows of the result as a list; of a dictionary, its items."""
        found = self()
        if isinstance(found, dict):
            return list(found.items())
        return list(found) if isinstance(found, GeneratorType) else found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows())

    def __len__(self) -> int:
        return len(self._rows())

    def __contains__(self, row: object) -> bool:
        return row in self._rows()

    def __getitem__(self, key: Any) -> Any:
        return self()[key]


def _is_again(called: FunctionType | None, function: FunctionType) -> bool:
    """Return True if a function is the same, or was made from the same lines before."""
    if called is None:
        return False
    code, own = code_of(called), function.__code__
    same = code is not None and own.co_name != "<lambda>" and is_same_place(code, own)
    return code is own or same


def exact_sum(values: Iterable[Any], start: Any = 0) -> Any:
    """Sum values as `sum` does; floats are added exactly, and rounded once."""
    every = list(values)
    numbers = all(isinstance(v, int | float) for v in every)
    if numbers and any(isinstance(v, float) for v in every):
        return math.fsum(every) + start if start else math.fsum(every)
    return sum(every, start)


def plain(value: Any) -> Any:
    """Convert a value to the form that it has in a row, at all depths.

    Lists become tuples, sets are frozen, and a mapping becomes the frozen set of its items. Any
    other value is unchanged.
    """
    if isinstance(value, set | frozenset):
        return frozenset(map(plain, value))
    if isinstance(value, list) or type(value) is tuple:
        return tuple(map(plain, value))
    if isinstance(value, Mapping):
        return frozenset((plain(k), plain(v)) for k, v in value.items())
    return value


class Ties:
    """Replacements of `sorted`, `min` and `max` that order tied rows as a view does.

    >>> Ties([2 + 0j, 1 + 0j]).sorted([1 + 0j, 2 + 0j, 3 + 0j], key=lambda number: number.imag)
    [(2+0j), (1+0j), (3+0j)]
    """

    def __init__(self, rows: Sequence[Any]) -> None:
        self._places: defaultdict[Any, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            self._places[row].append(place)

    def sorted(self, values: Iterable[Any], *, key: Any = None, reverse: bool = False) -> list[Any]:
        """Sort as `sorted` does, with tied rows in the order of the view."""
        of: Callable[[Any], Any] = (lambda row: row) if key is None else key
        return list(in_order([(of(value), value) for value in self._order_values(values)], reverse))

    def min(self, *values: Any, **options: Any) -> Any:
        """Return the least value as `min` does, the first tied row in the order of the view."""
        return self._best(min, values, options, reverse=False)

    def max(self, *values: Any, **options: Any) -> Any:
        """Return the greatest value as `max` does, the first tied row in the order of the view."""
        return self._best(max, values, options, reverse=True)

    def _best(
        self,
        best: Callable[..., Any],
        values: tuple[Any, ...],
        options: dict[str, Any],
        *,
        reverse: bool,
    ) -> Any:
        """Return the result of `best`: of tied rows, the first in the order of the view."""
        if len(values) != 1 or options.get("key") is None:
            return best(*values, **options)
        (found,) = values
        ordered = self.sorted(found, key=options["key"], reverse=reverse)
        return ordered[0] if ordered else best(*values, **options)

    def _order_values(self, values: Iterable[Any]) -> list[Any]:
        """Return values in the order of the list, each copy at a place; absent values last."""
        every = list(values)
        places = []
        copies: Counter[Any] = Counter()
        try:
            for value in map(plain, every):
                known = self._places.get(value, ())
                places.append(known[copies[value]] if copies[value] < len(known) else inf)
                copies[value] += 1
        except TypeError:  # an unhashable value is not a row
            return every
        return [value for _, value in sorted(zip(places, every, strict=True), key=itemgetter(0))]


# The plan of the least fixpoint of relations.


def smallest(node: plan.Fixpoint) -> Sequence[plan.Node]:
    """Return the plans of the least relations of a definition, in strata as small as possible.

    Raises
    ------
    StratificationError: recursion through a negation, an aggregate, an outer join or an order.
    PlanError: rows of negative weight are read, or branches give rows of different classes.
    """
    check_stratified(strengthen_recursion(node))
    check_positive(node)
    check_branches(node)
    above = level_of(node)  # nested definitions have different numbers
    return in_strata(node, lambda part: _with_level(part, max(above, level_of(part))))


def _with_level(node: plan.Fixpoint, level: int) -> plan.Fixpoint:
    return replace(node, level=level, bodies=tuple(set_level(b, node, level) for b in node.bodies))


def level_of(node: plan.Fixpoint | plan.Iterate) -> int:
    """Return the level of a definition, equal for equal ones: one above those inside it."""
    inside = [n.level for n in nodes(node) if isinstance(n, plan.Fixpoint | plan.Iterate)]
    return 1 + max((n for n in inside if n is not node.level), default=0)


def set_level(body: plan.Node, node: plan.Fixpoint | plan.Iterate, level: int) -> plan.Node:
    """Return a body whose recursive relations are of another level."""
    return substituted_with_forms(body, node.level, lambda relation: replace(relation, level=level))
