"""Which bags of rows a loop goes over, and what else it reads of the rows.

    unnest c.orders | unnest o.lines | select (c.town, line.price)

    of c:   the bag `orders`, and `town`
    of o:   the bag `lines`, and nothing

A bag is found where the loop goes over a field of a row, or of a value that it goes over, reads the
field for nothing else, and of the row nothing but fields. Then it needs of two rows that differ in
the bag no more than what changed in it (`collections/inner_changes.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter

from optimizer.expr import (
    Attempt,
    Attribute,
    Call,
    Constant,
    Expr,
    Item,
    Local,
    Parameter,
    parts,
)
from optimizer.rewriting.own_values import elements
from reactive.engine.codegen.emitter import RowPipeline
from reactive.engine.collections import inner_changes

WHOLE = None
"""Stands for all of a row, where a field would be."""


def inner_bags(
    pipeline: RowPipeline, after: Sequence[Expr], places: Sequence[int]
) -> list[inner_changes.InnerBag]:
    """The bags of rows of a pipeline that feeds what evaluates these expressions `after` it.

    `places` are the bindings that rows of the delta have.
    """
    reads = _Reads(pipeline, after, places)
    return [bag for place in places for bag in reads.bags(Parameter(place))]


class _Reads:
    """What is read of each binding, and of what is gone over, with how often."""

    def __init__(self, pipeline: RowPipeline, after: Sequence[Expr], places: Sequence[int]) -> None:
        self._places = list(places)
        self._each = [i for i in pipeline.instructions if i.kind == "each"]
        roots: set[Expr] = {Local(each.name) for each in self._each}
        every = [*(instruction.expr for instruction in pipeline.instructions), *after]
        self._found = Counter(read for expr in every for read in _reads(expr, roots))

    def bags(self, root: Expr) -> Iterator[inner_changes.InnerBag]:
        """The bags of one of them."""
        fields = {field for of, field in self._found if of == root}
        for each in self._each:
            found = _field(_collection(each.expr))
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
        within = list(self.bags(element))
        if not isinstance(root, Parameter) or len(self._places) == 1:
            return inner_changes.InnerBag(bag, read, within)
        asked = {of.index for of, _ in self._found if isinstance(of, Parameter)} - {root.index}
        at = self._places.index
        beside = sorted(at(place) for place in asked.intersection(self._places))
        return inner_changes.InnerBag(bag, read, within, binding=at(root.index), others=beside)


def _reads(expr: Expr, roots: set[Expr]) -> Iterator[tuple[Expr, inner_changes.Field | None]]:
    """The rows that an expression reads, each with the field that it reads, or as a whole."""
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        found = _field(expr)
        if found is not None and _is_root(found[0], roots):
            yield found
        elif _is_root(expr, roots):
            yield expr, WHOLE
        else:
            waiting.extend(parts(expr))


def _is_root(expr: Expr, roots: set[Expr]) -> bool:
    return isinstance(expr, Parameter) or expr in roots


def _collection(expr: Expr) -> Expr:
    """What is gone over, also where it may be no collection, and the row is left out then."""
    match expr:
        case Attempt(Call(Constant() as function, (of,)), _) if function.value is elements:
            return of
        case _:
            return expr


def _field(expr: Expr) -> tuple[Expr, inner_changes.Field] | None:
    """What an attribute, or an item of a place or name, is of; or the items of a mapping there."""
    match expr:
        case Call(Attribute(mapping, name), ()) if name in inner_changes.VIEWS:
            found = _field(mapping)
            return None if found is None else (found[0], (inner_changes.VIEWS[name], found[1]))
        case Attribute(of, name) if not name.startswith("__"):
            return of, (attrgetter, name)
        case Item(of, Constant() as key) if type(key) is Constant and key.kind in (int, str):
            return of, (itemgetter, key.value)
    return None
