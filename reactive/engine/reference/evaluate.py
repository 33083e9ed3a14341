"""Evaluate a query from scratch: one short function per plan node, and no operator.

A view must equal this evaluation after every commit. `View.verify` compares the two, and so do the
tests, over generated histories. No part of the maintenance of views is used, and no generated code.

    rows one by one, sets      asking.py
    joins, orders              bags.py, keys.py; several joins at once combinations.py
    groups                     groups.py
    recursion                  recursion.py

Cost: the rows of all nodes, and the pairs whose equated values are equal; of a recursion, its
derivations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from optimizer import plan
from optimizer.plans.properties import free, nodes
from reactive.engine.collections.zset import Pair
from reactive.engine.reference.asking import evaluate_node, inputs_of
from reactive.engine.reference.bags import Bag, Of, Tables, Variables, sum_pairs
from reactive.engine.reference.by_definition import WrittenPlan
from reactive.engine.reference.combinations import Several, combine_rows, several
from reactive.engine.reference.recursion import RECURSIONS, iterate_bodies, least_fixpoint
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
        self._several: dict[int, Several | None] = {}
        self._noted: dict[int, plan.Node] = {}
        self._readers: dict[int, set[int]] = {}

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
        self._note_readers(root)
        found: dict[int, plan.Node] = {}
        waiting = [(root, False)]
        while waiting:
            node, is_complete = waiting.pop()
            if is_complete:
                found[id(node)] = node
            elif id(node) not in found and id(node) not in self._closed:
                waiting.append((node, True))
                sources = () if isinstance(node, RECURSIONS) else self._sources(node)
                waiting.extend((source, False) for source in reversed(sources))
        return list(found.values())

    def _note_readers(self, root: plan.Node) -> None:
        """Note which nodes read each node of a plan."""
        for part in nodes(root, until=lambda each: id(each) in self._noted):
            if id(part) not in self._noted:
                self._noted[id(part)] = part
                for source in part.inputs():
                    self._readers.setdefault(id(source), set()).add(id(part))

    def _found_several(self, node: plan.Node) -> Several | None:
        """Return the inputs combined for a node; filters with several readers are stored."""
        if id(node) not in self._several:
            self._several[id(node)] = several(node, self._is_read_often)
        return self._several[id(node)]

    def _is_read_often(self, node: plan.Node) -> bool:
        """Return True for a filter with several readers."""
        return isinstance(node, plan.Where) and len(self._readers.get(id(node), ())) > 1

    def _sources(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """Return the nodes whose rows are read."""
        found = self._found_several(node)
        return inputs_of(node) if found is None else found.sources

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
                found = self._found_several(node)
                if found is None:
                    return evaluate_node(node, of, self._progress)
                rows = combine_rows(found, of, self._progress)
                return evaluate_node(node, outside, self._progress) if rows is None else rows
