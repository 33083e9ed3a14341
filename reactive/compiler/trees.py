"""From a shredded nest to the tree that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from optimizer.expr import Function, Lifted
from optimizer.plans.properties import bindings
from optimizer.plans.shredding import Shredded, levels
from reactive.codegen.functions import compiled_of
from reactive.collections.index import match_key
from reactive.collections.zset import Row
from reactive.compiler.physical import Nest
from reactive.operators.index_by import IndexBy
from reactive.operators.tree import tree as trees
from reactive.operators.tree.levels import Level
from reactive.operators.tree.sequences import RowOrder


def tree_of(
    node: Nest,
    indexes: Sequence[IndexBy],
    wiring: Sequence[int],
    inside: Callable[[], AbstractContextManager[None]],
) -> trees.Tree:
    """The tree over the indexes of a node, each of which comes by the port that `wiring` says.

    Rows of a level in an order come by their label and are kept by the tree, not by the index.
    """
    every = levels(node.levels)
    namings: list[Any] = [node.nesting]
    made: list[Level] = []
    for number, level in enumerate(every):
        first = node.places[number][0]
        roots = 0 if level.kind is None else level.kind.roots  # type: ignore[attr-defined]
        width = _width(level)
        made.append(
            Level(
                number,
                namings[number],
                level.kind,
                is_made=level.is_made,
                width=width,
                rows=None if level.order is not None else indexes[first].index,
                handle=indexes[first].handle,
                port=wiring[first],
                label=None if level.label is None else _label(level.label, level),
                order=_order(level),
            )
        )
        namings += [namings[number].levels[each.place - roots] for each in level.inside]
    below: Iterator[Level] = iter(made[1:])
    for level, own, places in zip(every, made, node.places, strict=True):
        begin = int(level.label is not None)
        for each, place in zip(level.inside, places[begin:], strict=True):
            under = _label(level.key(each.key), level)
            own.put(next(below), each.place, indexes[place].index, under)
    return trees.Tree(made, inside, node.large)


def _width(level: Shredded) -> int:
    """How many parts a row has."""
    if not level.is_made:
        return bindings(level.rows)
    if level.kind is None:
        return 1
    return len(level.kind._fields) - len(level.inside)  # type: ignore[attr-defined]


def orders(node: Nest) -> list[Function]:
    """The callables of what rows stand by."""
    return [level.order for level in levels(node.levels) if level.order is not None]


def _label(function: Lifted, level: Shredded) -> Callable[[Row], Any]:
    """The label of a row."""
    call = _of_row(function, level)
    return lambda row: match_key(call(row))


def _order(level: Shredded) -> RowOrder | None:
    """By what the rows of a label stand, if they do."""
    if level.order is None:
        return None
    keys, sequence = _of_row(level.order, level), level.sequence
    assert sequence is not None
    standing, is_held_whole = sequence.standing(), bool(level.inside) and not level.is_made
    tie = None if is_held_whole else sequence.tie
    return RowOrder(lambda row: standing(keys(row)), tie, descending=sequence.descending)


def _of_row(function: Lifted, level: Shredded) -> Callable[[Row], Any]:
    """A callable of the bindings of a row as one of the row."""
    call = compiled_of(function)
    return call if level.is_made or bindings(level.rows) == 1 else lambda row: call(*row)
