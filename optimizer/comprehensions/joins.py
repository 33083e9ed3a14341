"""Lattices in comprehensions: the join of values, and dictionaries of joined values.

    least(c + e.length for ...)                    the join of all values: an aggregate
    {town: least(... for ...) for town in towns}   in a recursion: pairs of a key and a value, of
                                                   which the relation keeps one per key, joined

The pairs come from the loops of the dictionary and of each argument of the lattice, one in the
other; so a key without values has no row.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions import calls, touching
from optimizer.comprehensions.rows import Rows, evaluate_in_plan, refusal_at
from optimizer.comprehensions.unions import combined, elements_as_rows
from optimizer.expr import Expr, items_of

PAIRS = "pairs_of_a_dictionary"
Loops = ast.GeneratorExp | ast.ListComp | ast.SetComp


def read_join(node: ast.Call, lattice: Any, reader: Any, reading: Any) -> Expr | None:
    """Read a call of a lattice as the aggregate of all values; None if they read no relation."""
    if not any(touching.touches(each, reader, reading) for each in node.args):
        return None
    _check_join(node, reader)
    rows = _concatenated([_values_of(each, reader, reading) for each in node.args], reading)
    return reading.fold_rows(rows, lattice, rows.value)  # type: ignore[no-any-return]


def read_dictionary(node: ast.DictComp, lattice: Any, reader: Any, reading: Any) -> Rows | None:
    """Read a dictionary whose values are calls of a lattice as pairs, if it is recursive.

    Return None for any other one: it has all of its keys.
    """
    call = node.value
    assert isinstance(call, ast.Call)
    _check_join(call, reader)
    known = [entry.is_called for entry in reading.active]
    for entry in reading.active:
        entry.is_called = False
    parts = [_values_of(each, reader, reading) for each in _loops_of_pairs(node, call)]
    is_recursive = any(entry.is_called for entry in reading.active)
    for entry, was_called in zip(reading.active, known, strict=True):
        entry.is_called |= was_called
    if not is_recursive:
        return None
    rows = _concatenated(parts, reading)
    pairs = replace(rows, kind="dict", row=items_of(rows.value, 2), joined=lattice)
    return evaluate_in_plan(pairs, reading.origins)


def _values_of(node: ast.expr, reader: Any, reading: Any) -> Rows:
    """Return the values of a collection as rows, whether it reads a relation or not."""
    found = reading.value(node, reader)
    if isinstance(found, Rows):
        return calls.iterate_rows(found, node, reader, reading)
    return elements_as_rows(reader.expr(node) if found is None else found, "list", reading)


def _concatenated(parts: Sequence[Rows], reading: Any) -> Rows:
    """Return the rows of all parts as a list."""
    first, *others = parts
    for each in others:
        first = combined(plan.UnionAll, first, each, "list", reading)
    return replace(first, kind="list")


def _check_join(call: ast.Call, reader: Any) -> None:
    """Refuse a call of a lattice whose arguments are not collections, one by one."""
    if call.keywords or not call.args or any(isinstance(a, ast.Starred) for a in call.args):
        raise refusal_at(
            call,
            reader,
            "does not give a lattice values to join",
            "give it collections of values: least(c + e.length for ...), or least([0], (...))",
        )


def _loops_of_pairs(node: ast.DictComp, call: ast.Call) -> tuple[ast.ListComp, ...]:
    """Return the comprehensions of the pairs of a key and a value; made once, with its code."""
    known: tuple[ast.ListComp, ...] | None = vars(node).get(PAIRS)
    if known is None:
        known = tuple(
            ast.fix_missing_locations(ast.copy_location(made, node))
            for each in call.args
            for made in _pairs_with(node, each)
        )
        setattr(node, PAIRS, known)
    return known


def _pairs_with(node: ast.DictComp, given: ast.expr) -> Iterator[ast.ListComp]:
    """Yield the pairs of a dictionary with each value of an argument of the lattice."""
    match given:
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
            loops = _with_own_names(given, _names_stored(node.generators) | _names_in(node.key))
            pair = ast.Tuple([node.key, loops.elt], ast.Load())
            yield ast.ListComp(pair, [*node.generators, *loops.generators])
        case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts) if not any(
            isinstance(each, ast.Starred) for each in elts
        ):
            for each in elts:
                yield ast.ListComp(ast.Tuple([node.key, each], ast.Load()), node.generators)
        case _:
            target, value = ast.Name("%value", ast.Store()), ast.Name("%value", ast.Load())
            loop = ast.comprehension(target, given, [], 0)
            pair = ast.Tuple([node.key, value], ast.Load())
            yield ast.ListComp(pair, [*node.generators, loop])


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _names_stored(loops: Sequence[ast.comprehension]) -> set[str]:
    return set[str]().union(*(_names_in(loop.target) for loop in loops))


def _with_own_names(loops: Loops, taken: set[str]) -> Loops:
    """Return a comprehension whose variables have no name that is taken around it."""
    same = _names_stored(loops.generators) & taken
    if not same:
        return loops
    made: Loops = _Renaming(same).visit(deepcopy(loops))
    made.generators[0].iter = loops.generators[0].iter  # it reads what is around
    return made


class _Renaming(ast.NodeTransformer):
    """Renames variables."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Return the name with a mark, if it is one of the names."""
        named = f"{node.id}%" if node.id in self._names else node.id
        return ast.copy_location(ast.Name(named, node.ctx), node)
