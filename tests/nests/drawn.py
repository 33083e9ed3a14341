"""Drawn nested queries, and their results in plain Python.

A shape is a table, the condition between its rows and the rows around, their order, and the inner
shapes. Shapes are used again inside others, so that two parents share a child; a table is as often
inside itself as inside others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from reactive import Bag

TABLES = "abc"
NAN = float("nan")
TAGS = (None, NAN, "x", "y", 1.5, 1, 1.0)
NUMBERS = 4


class Row(NamedTuple):
    id: int
    ref: int
    tag: Any
    bag: Bag[int] = Bag()


LINKS: list[Callable[[Any], Callable[[Any], Any]]] = [
    lambda c: lambda o: o.ref == c.id,
    lambda c: lambda o: o.tag == c.tag,
    lambda c: lambda o: o.ref == c.ref and o.tag == c.tag,
    lambda c: lambda o: o.id == c.ref and o.ref == c.id,
    lambda c: lambda o: o.ref == c.id and o.id < 3,
    lambda c: lambda o: o.ref < c.ref,
    lambda c: lambda o: c.id in o.bag,
    lambda c: lambda o: len(o.bag) == c.ref,
    lambda c: lambda o: True,
]
FAR = [
    lambda b, c: lambda o: o.ref == c.id and o.id != b.id,
    lambda b, c: lambda o: o.id == b.ref,
    lambda b, c: lambda o: o.ref == b.ref and o.id == c.ref,
    lambda b, c: lambda o: o.tag == b.tag and o.ref == c.ref,
]
"""Conditions that also read the row two levels further out."""


@dataclass(eq=False)
class Shape:
    """A drawn query and its inner shapes.

    `first` is the number of rows in their order; 9: all; None: they have no order. A `joined` shape
    reads its rows through a join with another table; a `placed` shape orders its rows by their
    inner rows.
    """

    table: str
    link: Callable[..., Any]
    is_far: bool
    first: int | None
    inside: dict[str, Shape]
    joined: str | None = None
    placed: bool = False


class Draw:
    """Draw shapes; earlier shapes are reused."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made: dict[tuple[int, bool], list[Shape]] = {}

    def shape(self, depth: int, level: int = 0) -> Shape:
        """One of a number of levels."""
        random = self._random
        made = self._made.setdefault((depth, level > 1), [])
        if level and made and random.random() < 0.3:
            return random.choice(made)
        count = random.choice((1, 1, 2)) if depth > 1 else 0
        is_far = level > 1 and random.random() < 0.4
        links: list[Any] = FAR if is_far else LINKS
        found = Shape(
            random.choice(TABLES),
            random.choice(links),
            is_far,
            random.choice((None, None, 1, 2, 9)),
            {name: self.shape(depth - 1, level + 1) for name in "xy"[:count]},
            random.choice(TABLES) if random.random() < 0.15 else None,
            random.random() < 0.3,
        )
        made.append(found)
        return found


def order(row: Any) -> Any:
    return (-row.id, row.ref, str(row.tag), str(sorted(row.bag)))


def query(tables: dict[str, Any], shape: Shape, *around: Any) -> Any:
    """Return the relation of a shape, given stand-ins for the rows around it."""
    made = tables[shape.table]
    if shape.joined is not None:
        made = made.join(tables[shape.joined], on=lambda o, p: o.ref == p.id).select(
            lambda o, p: Row(o.id, p.ref, o.tag, p.bag)
        )
    if around:
        made = made.where(shape.link(*around[-2:]) if shape.is_far else shape.link(around[-1]))
    is_ordered = shape.first is not None and bool(around)
    if is_ordered and not (shape.placed and shape.inside):
        made = _first(made.order_by(order), shape)
    if not shape.inside:
        return made
    made = made.nest(**{name: asked(tables, s, around) for name, s in shape.inside.items()})
    if not (is_ordered and shape.placed):
        return made
    keys: Any = {1: lambda c, x: order(c), 2: lambda c, x, y: order(c)}
    return _first(made.order_by(keys[len(shape.inside)]), shape)


def _first(made: Any, shape: Shape) -> Any:
    return made if shape.first == 9 else made.limit(shape.first)


def asked(tables: dict[str, Any], shape: Shape, around: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda row: query(tables, shape, *around, row)


Group = tuple[Callable[[Any], Any], Callable[[list[Any]], Any]]
KEYS: list[Callable[[Any], Any]] = [
    lambda o: o.ref,
    lambda o: o.tag,
    lambda o: (o.id, o.tag),
    lambda o: len(o.bag),
]
GROUPS: dict[str, Group] = {
    "all": (lambda mine: mine, Bag),
    "first": (
        lambda mine: mine.order_by(order).limit(2),
        lambda rows: tuple(sorted(rows, key=order)[:2]),
    ),
    "groups": (
        lambda mine: mine.group_by(lambda o: o.id).rows(),
        lambda rows: Bag(_grouped(rows, lambda o: o.id, Bag)),
    ),
    "groups of groups": (
        lambda mine: mine.group_by(lambda o: o.id).rows(
            lambda some: some.group_by(lambda o: o.tag).rows(lambda few: few.order_by(order))
        ),
        lambda rows: Bag(
            _grouped(
                rows,
                lambda o: o.id,
                lambda some: Bag(
                    _grouped(some, lambda o: o.tag, lambda few: tuple(sorted(few, key=order)))
                ),
            )
        ),
    ),
    "nest": (
        lambda mine: mine.nest(y=lambda o: mine.where(lambda p: p.id == o.ref)),
        lambda rows: Bag([(o, Bag([p for p in rows if p.id == o.ref])) for o in rows]),
    ),
}
"""Inner rows of a group: as a query, and by plain Python over its rows."""


def groups(source: Any, key: Callable[[Any], Any], inside: str) -> Any:
    """The rows of a relation in groups."""
    return source.group_by(key).rows(GROUPS[inside][0])


def expected_groups(weights: Weights, key: Callable[[Any], Any], inside: str) -> Weights:
    """Return the groups by plain Python, each group once."""
    there = [row for row, weight in weights.items() for _ in range(weight)]
    return dict.fromkeys(_grouped(there, key, GROUPS[inside][1]), 1)


def _grouped(rows: list[Any], key: Callable[[Any], Any], inside: Callable[[Any], Any]) -> Any:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [(value, inside(some)) for value, some in found.items()]


Weights = Mapping[Any, int]


def expected(rows: Mapping[str, Weights], shape: Shape, *around: Any) -> Any:
    """Return the rows of a shape by plain Python, from rows with their weights."""
    found = rows[shape.table]
    if shape.joined is not None:
        found = _joined(found, rows[shape.joined])
    if not around:
        return {
            (row, *_inside(rows, shape, (row,))): weight for row, weight in found.items() if weight
        }
    test = shape.link(*around[-2:]) if shape.is_far else shape.link(around[-1])
    there = [row for row, weight in found.items() for _ in range(weight) if test(row)]
    if shape.first is not None:
        there = sorted(there, key=order)
        there = there if shape.first == 9 else there[: shape.first]
    made: list[Any] = there
    if shape.inside:
        made = [(row, *_inside(rows, shape, (*around, row))) for row in there]
    return Bag(made) if shape.first is None else tuple(made)


def _inside(
    rows: Mapping[str, Weights], shape: Shape, around: tuple[Any, ...]
) -> Iterator[tuple[Any, ...]]:
    return (expected(rows, each, *around) for each in shape.inside.values())


def _joined(left: Weights, right: Weights) -> Weights:
    found: Counter[Row] = Counter()
    for o, weight in left.items():
        for p, times in right.items():
            if o.ref == p.id:
                found[Row(o.id, p.ref, o.tag, p.bag)] += weight * times
    return found
