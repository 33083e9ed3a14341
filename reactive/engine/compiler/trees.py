"""From a shredded nest to the tree that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from optimizer.expr import Function, Lifted
from optimizer.plans.properties import bindings
from optimizer.plans.shredding import Shredded, levels
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.index import itself, match_key
from reactive.engine.collections.zset import Row
from reactive.engine.compiler.physical import Nest
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.tree import tree as trees
from reactive.engine.operators.tree.levels import Level
from reactive.engine.operators.tree.sequences import RowOrder
from reactive.engine.remote import level_rows, remote_tree
from reactive.engine.remote.remote_operator import RemoteOperator


def tree_of(
    node: Nest,
    indexes: Sequence[IndexBy],
    wiring: Sequence[int],
    inside: Callable[[], AbstractContextManager[None]],
) -> trees.Tree:
    """The tree over the indexes of a node, each of which comes by the port that `wiring` says.

    Rows of a level in an order come by their label and are kept by the tree, not by the index.
    """
    top_places = node.places[0]
    places = ((top_places[0], *top_places), *node.places[1:])
    rows = [(each.index, each.index, each.handle) for each in indexes]
    return trees.Tree(_levels(node, places, rows, wiring), inside, node.large)


def tree_elsewhere(
    node: Nest,
    operators: Sequence[RemoteOperator],
    wiring: Sequence[int],
    inside: Callable[[], AbstractContextManager[None]],
) -> remote_tree.RemoteTree:
    """The same over parts that keep the levels elsewhere."""
    key, parts = _key(node), [level_rows.LevelRows(operator) for operator in operators]
    by_key = level_rows.LevelRows(operators[node.places[0][0]], key)
    rows = [(part, part, itself) for part in parts]
    rows[node.places[0][0]] = by_key, parts[node.places[0][0]], itself
    by_port = dict(zip(wiring, parts, strict=True))
    made = _levels(node, node.places, rows, wiring)
    ports = [by_port[port] for port in range(len(by_port))]
    every = partial(_every, node, operators)
    return remote_tree.RemoteTree(made, ports, inside, every, node.large)


def _every(node: Nest, operators: Sequence[RemoteOperator]) -> remote_tree.AllRows | None:
    found: remote_tree.AllRows | None = None
    if node.elsewhere is not None:
        found = node.elsewhere.every(operators)
    return found


def _levels(
    node: Nest,
    places: Sequence[Sequence[int]],
    indexes: Sequence[tuple[Any, Any, Callable[[Row], Any]]],
    wiring: Sequence[int],
) -> list[Level]:
    """The levels, each of which has its rows at the first of its places, and what shows what is
    inside of it at the others. An index is given as what has the rows of a level, as what shows
    others, and what tells its rows apart.
    """
    every = levels(node.top)
    namings: list[Any] = [node.nesting]
    made: list[Level] = []
    for number, level in enumerate(every):
        first = places[number][0]
        roots = 0 if level.kind is None else level.kind.roots  # type: ignore[attr-defined]
        rows, others, handle = indexes[first]
        made.append(
            Level(
                number,
                namings[number],
                level.kind,
                is_made=level.is_made,
                width=_width(level),
                rows=None if level.order is not None else rows if number == 0 else others,
                handle=handle,
                port=wiring[first],
                label=None if level.label is None else _label(level.label, level),
                order=_order(level),
            )
        )
        namings += [namings[number].levels[each.place - roots] for each in level.inside]
    below: Iterator[Level] = iter(made[1:])
    for level, own, found in zip(every, made, places, strict=True):
        for each, place in zip(level.inside, found[1:], strict=True):
            under = _label(level.key(each.key), level)
            own.put(next(below), each.place, indexes[place][1], under)
    return made


def _key(node: Nest) -> Callable[[Row], Any]:
    """The key of the view, of a row of the top level."""
    top, key = node.top, node.nesting.key
    if not top.is_made and bindings(top.rows) == 1:
        return lambda row: key((row,))
    width = _width(top)
    return lambda row: key(row[:width])


def _width(level: Shredded) -> int:
    """How many parts a row has."""
    if not level.is_made:
        return bindings(level.rows)
    if level.kind is None:
        return 1
    return len(level.kind._fields) - len(level.inside)  # type: ignore[attr-defined]


def orders(node: Nest) -> list[Function]:
    """The callables of what rows stand by."""
    return [level.order for level in levels(node.top) if level.order is not None]


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
