"""A query evaluated from scratch: one short function per plan node, and no operator.

This is what a view must equal after every commit. `View.verify` compares the two, and so do the
tests, over generated histories. Nothing of what maintains views is used, nor code that is made.

    rows one by one, sets      evaluate_nodes.py
    joins, filtered products   evaluate_joins.py, evaluate_products.py, evaluate_keys.py
    groups, orders             evaluate_groups.py, evaluate_order.py
    recursion                  evaluate_recursion.py

Cost: that of the rows that all nodes have, and of the pairs of which something must be equal; of a
recursion, that of the rows that it comes to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from optimizer import plan
from optimizer.plans.properties import free
from reactive.engine.collections.zset import Pair
from reactive.engine.reference.bags import Bag, Of, Tables, Variables, added
from reactive.engine.reference.by_definition import Definitions
from reactive.engine.reference.nodes import inputs_of, rows_of
from reactive.engine.reference.products import combined, several
from reactive.engine.reference.recursion import RECURSIONS, iterated, smallest
from reactive.engine.runtime.progress import SILENT, Progress

__all__ = ["Bag", "Tables", "defined", "defined_together", "evaluate", "evaluate_part", "through"]


def evaluate(
    node: plan.Node,
    tables: Tables,
    progress: Progress = SILENT,
    *,
    by_definition: bool = True,
) -> Bag:
    """The rows of a query with their weights; `tables` gives the rows of a table.

    Sub-queries are evaluated by definition, or with `by_definition=False` as the joins that they
    were translated to.
    """
    if not by_definition:
        return _Evaluation(tables, progress).rows(node, {})
    with defined(node, tables, progress) as (root, rows):
        return rows(root)


@contextmanager
def defined(
    node: plan.Node, tables: Tables, progress: Progress = SILENT
) -> Iterator[tuple[plan.Node, Of]]:
    """The query whose callables ask the sub-queries in it by definition, and the function that
    evaluates a node of that query."""
    with defined_together([node], tables, progress) as ((root,), rows):
        yield root, rows


@contextmanager
def defined_together(
    several: Sequence[plan.Node], tables: Tables, progress: Progress = SILENT
) -> Iterator[tuple[list[plan.Node], Of]]:
    """Do as `defined` for several queries; a node that they share is evaluated once."""
    evaluation = _Evaluation(tables, progress)
    definitions = [Definitions(lambda source: evaluation.rows(source, {})) for _ in several]
    try:
        roots = [each.of(node) for each, node in zip(definitions, several, strict=True)]
        yield roots, lambda source: evaluation.rows(source, {})
    finally:
        for each in definitions:
            each.close()


def evaluate_part(node: plan.Node, given: Variables) -> Bag:
    """The rows of a query that reads no table, but relations that are given."""
    return _Evaluation(lambda table: (), SILENT).rows(node, given)


def through(chain: Sequence[plan.Node], pairs: Iterable[Pair]) -> Iterable[Pair]:
    """What linear nodes, each of which reads the one before it, make of rows of any weights."""
    bag = added(pairs)
    for node in chain:
        given = bag
        bag = rows_of(node, lambda source: given)
    return bag.items()


class _Evaluation:
    """What does not depend on a recursion in which it stands is evaluated once."""

    def __init__(self, tables: Tables, progress: Progress) -> None:
        self._tables = tables
        self._progress = progress
        self._closed: dict[int, Bag] = {}

    def rows(self, root: plan.Node, variables: Variables) -> Bag:
        """The rows of a plan; of relations that are given, inside what defines them."""
        known: dict[int, Bag] = {}
        for part in self._missing(root):
            self._progress.at(part)
            known[id(part)] = found = self._of(part, known, variables)
            if not free(part):
                self._closed[id(part)] = found
        return self._closed.get(id(root)) or known.get(id(root), Counter())

    def _missing(self, root: plan.Node) -> list[plan.Node]:
        """The parts whose rows are not known yet, inputs first."""
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

    def _of(self, node: plan.Node, known: dict[int, Bag], variables: Variables) -> Bag:
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
                return iterated(node, outside, self._progress)[0]
            case plan.Component(plan.Iterate() as iterate, index):
                return iterated(iterate, outside, self._progress)[index]
            case plan.Fixpoint():
                return smallest(node, outside, self._progress)[0]
            case plan.Component(plan.Fixpoint() as fixpoint, index):
                return smallest(fixpoint, outside, self._progress)[index]
            case _:
                found = several(node)
                if found is not None:
                    return combined(found, of, self._progress)
                return rows_of(node, of, self._progress)


def _sources(node: plan.Node) -> tuple[plan.Node, ...]:
    """The nodes whose rows are asked for."""
    found = several(node)
    return inputs_of(node) if found is None else found.inputs
