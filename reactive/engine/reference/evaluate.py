"""Evaluate a query from scratch: one short function per plan node, and no operator.

Products of several inputs below filters are joined one input after the other.

    where a.k == b.k and b.j == c.j        a, then b by k, then c by j
      product                        ->
        product a b
        c

A combination of rows is skipped as soon as some of its rows are known to disagree. That requires
that no input has an error row (`keys.py`), and that no value computed from rows of several inputs
raises or cannot be looked up; otherwise all combinations are built. Each predicate is tested on the
combinations of as many inputs as it has parameters.

Cost: the combinations whose equated values are equal.

A view must equal this evaluation after every commit. `View.verify` compares the two, and so do the
tests, over generated histories. No part of the maintenance of views is used, and no generated code.

    rows one by one, sets      asking.py
    joins, orders              bags.py, keys.py; filtered products are here
    groups                     groups.py
    recursion                  recursion.py

Cost: the rows of all nodes, and the pairs whose equated values are equal; of a recursion, its
derivations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import prod
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.plans.properties import below_wheres, bindings, free
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.index import ERROR_KEY, FILTERED
from reactive.engine.collections.values import has_plain_equality
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.reference.asking import evaluate_node, inputs_of
from reactive.engine.reference.bags import STRIDE, TRIED, Bag, Of, Tables, Variables, sum_pairs
from reactive.engine.reference.by_definition import WrittenPlan
from reactive.engine.reference.keys import Conditions, Joint, conditions
from reactive.engine.reference.recursion import RECURSIONS, iterate_bodies, least_fixpoint
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.engine.runtime.progress import SILENT, Progress

__all__ = [
    "Bag",
    "Tables",
    "define_queries",
    "define_query",
    "evaluate",
    "evaluate_part",
    "through",
]


Placed = tuple[Any, Row, int]
"""A key, a row and its weight; rows with different keys are not combined."""


@record
class Several:
    """Inputs whose rows are all combined, and predicates on the rows of the first inputs."""

    inputs: tuple[plan.Node, ...]
    predicates: tuple[tuple[int, Function], ...]


def several(node: plan.Node) -> Several | None:
    """Return at least three inputs with a product among them and filters above; None otherwise."""
    if not isinstance(below_wheres(node), plan.Product | plan.Join):
        return None
    inputs: list[plan.Node] = []
    asked: list[tuple[plan.Node, Function]] = []
    has_product = False
    while isinstance(node, plan.Where | plan.Product | plan.Join):
        if isinstance(node, plan.Where):
            asked.append((node, node.predicate))
            node = node.input
            continue
        if isinstance(node, plan.Join):
            if node.match.on is None or node.match.left_key is not None:
                break
            asked.append((node, node.match.on))
        has_product |= isinstance(node, plan.Product)
        inputs.append(node.right)
        node = node.left
    if len(inputs) < 2 or not (asked and has_product):
        return None
    first = bindings(node) - 1
    predicates = tuple((bindings(above) - first, asks) for above, asks in reversed(asked))
    return Several((node, *reversed(inputs)), predicates)


def combine_rows(found: Several, of: Of, progress: Progress = SILENT) -> Bag:
    """Return the combinations that satisfy all predicates."""
    first = bindings(found.inputs[0])
    bags = [of(source) for source in found.inputs]
    told = conditions([asks for _, asks in found.predicates], first, len(bags))
    sides = [_place_rows(bag, place) for bag, place in zip(bags, told.places, strict=True)]
    if not (
        any(place is ERROR_KEY for side in sides for place, _, _ in side)
        or _is_combination_misread(found, told, sides)
    ):
        with suppress(_NotKnown):
            return _Combinations(found, told, sides).rows(progress)
    told = conditions((), first, len(bags))
    sides = [_place_rows(bag, place) for bag, place in zip(bags, told.places, strict=True)]
    return _Combinations(found, told, sides).rows(progress)


class _NotKnown(Exception):
    """A value computed from rows of several inputs raises, or cannot be looked up."""


def _place_rows(bag: Bag, place: Callable[[Row], Any]) -> list[Placed]:
    return [(place(row), row, weight) for row, weight in bag.items()]


def _is_combination_misread(
    found: Several, told: Conditions, sides: Sequence[list[Placed]]
) -> bool:
    """Return True if a skipped combination satisfies the predicates; only some are tested."""
    first = bindings(found.inputs[0])
    asks = [(number + first - 1, callable_of(ask)) for number, ask in found.predicates]
    lengths = list(map(len, sides))
    for number in range(min(TRIED, prod(lengths))):
        chosen = [side[number * STRIDE ** (at + 1) % len(side)] for at, side in enumerate(sides)]
        keys, rows = [key for key, _, _ in chosen], [row for _, row, _ in chosen]
        arguments = (rows[0],) if first == 1 else rows[0]
        arguments = (*arguments, *rows[1:])
        if not _is_combination_compared(told, keys, arguments) and all(
            ask(*arguments[:count]) for count, ask in asks
        ):
            return True
    return False


def _is_combination_compared(told: Conditions, keys: Sequence[Any], arguments: Row) -> bool:
    """Return True if rows with the given keys are combined."""
    if FILTERED in keys:
        return False
    if any(keys[e.side][e.part] != keys[e.other][e.other_part] for e in told.equations):
        return False
    try:
        return all(keys[j.side][j.part] == _joint_value(j, arguments) for j in told.joint)
    except _NotKnown:
        return True


def _joint_value(joint: Joint, arguments: Row) -> Any:
    """Return a value computed from rows of several inputs, for a look-up."""
    try:
        value = joint.value(arguments)
        if has_plain_equality(value):
            return value
    except Exception as error:  # the predicate will raise it again
        reraise_asynchronous(error)
    raise _NotKnown


class _Combinations:
    """Builds combinations, adding one input at a time."""

    def __init__(self, found: Several, told: Conditions, sides: Sequence[list[Placed]]) -> None:
        self._is_one = bindings(found.inputs[0]) == 1
        self._sides = [[p for p in side if p[0] is not FILTERED] for side in sides]
        self._equations, self._joint = told.equations, told.joint
        self._asks: dict[int, list[Callable[..., object]]] = {}
        for number, asks in found.predicates:
            self._asks.setdefault(number, []).append(callable_of(asks))

    def rows(self, progress: Progress) -> Bag:
        """Return the combined rows of all inputs."""
        so_far: list[tuple[list[Any], Row, int]] = []
        for key, row, weight in self._sides[0]:
            arguments = (row,) if self._is_one else row
            if self._fits(1, arguments):
                so_far.append(([key], arguments, weight))
        for number in range(1, len(self._sides)):
            so_far = self._with(number, so_far, progress)
        return Counter({row: weight for _, row, weight in so_far})

    def _with(self, number: int, so_far: Any, progress: Progress) -> Any:
        """Extend combinations by the rows of one more input."""
        mine, theirs = self._parts(number)
        joint = [each for each in self._joint if each.side == number]
        mine += [each.part for each in joint]
        index: dict[Any, list[Placed]] = {}
        for placed in self._sides[number]:
            index.setdefault(tuple([placed[0][part] for part in mine]), []).append(placed)
        made = []
        for keys, row, weight in progress.over(so_far):
            sought = [keys[side][part] for side, part in theirs]
            sought += [_joint_value(each, row) for each in joint]
            for key, other, times in index.get(tuple(sought), ()):
                arguments = (*row, other)
                if self._fits(number + 1, arguments):
                    made.append(([*keys, key], arguments, weight * times))
        return made

    def _parts(self, number: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the parts of the key of an input, and the earlier parts that they are equal to."""
        mine, theirs = [], []
        for e in self._equations:
            if max(e.side, e.other) == number and e.side != e.other:
                ends = [(e.side, e.part), (e.other, e.other_part)]
                (before, own) = sorted(ends)
                mine.append(own[1])
                theirs.append(before)
        return mine, theirs

    def _fits(self, number: int, arguments: Row) -> bool:
        return all(asks(*arguments) for asks in self._asks.get(number, ()))


def evaluate(
    node: plan.Node,
    tables: Tables,
    progress: Progress = SILENT,
    *,
    by_definition: bool = True,
) -> Bag:
    """Return the rows of a query with their weights; `tables` returns the rows of a table.

    Sub-queries are evaluated by definition, or with `by_definition=False` as the joins of their
    translation.
    """
    if not by_definition:
        return _Evaluation(tables, progress).rows(node, {})
    with define_query(node, tables, progress) as (root, rows):
        return rows(root)


@contextmanager
def define_query(
    node: plan.Node, tables: Tables, progress: Progress = SILENT
) -> Iterator[tuple[plan.Node, Of]]:
    """Return the query whose callables ask its sub-queries by definition.

    Also return the function that evaluates a node of that query.
    """
    with define_queries([node], tables, progress) as ((root,), rows):
        yield root, rows


@contextmanager
def define_queries(
    several: Sequence[plan.Node], tables: Tables, progress: Progress = SILENT
) -> Iterator[tuple[list[plan.Node], Of]]:
    """Do as `define_query` for several queries; shared nodes are evaluated once."""
    evaluation = _Evaluation(tables, progress)
    definitions = [WrittenPlan(lambda source: evaluation.rows(source, {})) for _ in several]
    try:
        roots = [each.write(node) for each, node in zip(definitions, several, strict=True)]
        yield roots, lambda source: evaluation.rows(source, {})
    finally:
        for each in definitions:
            each.close()


def evaluate_part(node: plan.Node, given: Variables, tables: Tables = lambda table: ()) -> Bag:
    """Return the rows of a part of a query, for given rows of the recursions around it."""
    return _Evaluation(tables, SILENT).rows(node, given)


def through(chain: Sequence[plan.Node], pairs: Iterable[Pair]) -> Iterable[Pair]:
    """Return the result of a chain of linear nodes over rows of any weights."""
    bag = sum_pairs(pairs)
    for node in chain:
        given = bag
        bag = evaluate_node(node, lambda source: given)
    return bag.items()


class _Evaluation:
    """Evaluates plans; nodes independent of a recursion around them are evaluated once."""

    def __init__(self, tables: Tables, progress: Progress) -> None:
        self._tables = tables
        self._progress = progress
        self._closed: dict[int, Bag] = {}

    def rows(self, root: plan.Node, variables: Variables) -> Bag:
        """Return the rows of a plan; `variables` are the rows of recursive relations."""
        known: dict[int, Bag] = {}
        for part in self._missing(root):
            self._progress.at(part)
            known[id(part)] = found = self._evaluate(part, known, variables)
            if not free(part):
                self._closed[id(part)] = found
        return self._closed.get(id(root)) or known.get(id(root), Counter())

    def _missing(self, root: plan.Node) -> list[plan.Node]:
        """Return the nodes whose rows are not known yet, inputs first."""
        found: dict[int, plan.Node] = {}
        waiting = [(root, False)]
        while waiting:
            node, is_complete = waiting.pop()
            if is_complete:
                found[id(node)] = node
            elif id(node) not in found and id(node) not in self._closed:
                waiting.append((node, True))
                sources = () if isinstance(node, RECURSIONS) else _sources(node)
                waiting.extend((source, False) for source in reversed(sources))
        return list(found.values())

    def _evaluate(self, node: plan.Node, known: dict[int, Bag], variables: Variables) -> Bag:
        """Return the rows of a node, given rows of its inputs and the recursions in progress."""

        def of(source: plan.Node) -> Bag:
            rows = known.get(id(source))
            return self._closed[id(source)] if rows is None else rows

        def outside(source: plan.Node) -> Bag:
            return self.rows(source, variables)

        match node:
            case plan.Table():
                return Counter(dict(self._tables(node)))
            case plan.Recursive(level, index):
                return variables[level, index]
            case plan.Iterate():
                return iterate_bodies(node, outside, self._progress)[0]
            case plan.Component(plan.Iterate() as iterate, index):
                return iterate_bodies(iterate, outside, self._progress)[index]
            case plan.Fixpoint():
                return least_fixpoint(node, outside, self._progress)[0]
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                return least_fixpoint(fixpoint, outside, self._progress)[index]
            case _:
                found = several(node)
                if found is not None:
                    return combine_rows(found, of, self._progress)
                return evaluate_node(node, of, self._progress)


def _sources(node: plan.Node) -> tuple[plan.Node, ...]:
    """Return the nodes whose rows are read."""
    found = several(node)
    return inputs_of(node) if found is None else found.inputs
