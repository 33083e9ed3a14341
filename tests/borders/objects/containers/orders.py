"""Orders whose lists, dictionaries and sets change, and queries over them with their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from reactive import Sum, live, tracked
from tests.borders.objects.containers.play import at, drawn_edit, drawn_path


@dataclass(frozen=True)
class Line:
    what: str
    qty: int


@tracked
class Box:
    """An object in a list, which changes itself."""

    weight: int
    seals: list[int]


@tracked
class Order:
    id: int
    town: str
    lines: list[Line]
    boxes: list[Box]
    tags: dict[int, int]
    kinds: set[int]
    free: list[Any]


def drawn_line(random: Random) -> Line:
    return Line(random.choice("abc"), random.randrange(9))


def drawn_order(random: Random, number: int) -> Order:
    few = random.choice((0, 2, 3, 90))
    return Order(
        number,
        random.choice(("Bonn", "Rome")),
        [drawn_line(random) for _ in range(few)],
        [Box(random.randrange(9), [1]) for _ in range(random.randrange(4))],
        {random.randrange(99): random.randrange(5) for _ in range(few)},
        {random.randrange(99) for _ in range(few)},
        [1, [2]],
    )


Of = Callable[[list[Order]], Iterable[Any]]


def queries(orders: Any, prices: Any) -> list[tuple[Any, Of]]:
    """Return relations, each with a function of its rows, computed from the live objects."""
    unnested = orders.unnest(lambda o: o.lines)
    return [
        (
            unnested.select(lambda o, x: (o.town, x.what, x.qty)),
            lambda every: ((o.town, x.what, x.qty) for o in every for x in o.lines),
        ),
        (
            unnested.where(lambda o, x: x.qty > 4).select(lambda o, x: (o.id, x)),
            lambda every: ((o.id, x) for o in every for x in o.lines if x.qty > 4),
        ),
        (
            unnested.join(prices, on=lambda o, x, p: x.what == p[0]).select(
                lambda o, x, p: (o.id, x.qty * p[1])
            ),
            lambda every: (
                (o.id, x.qty * PRICES[x.what]) for o in every for x in o.lines if x.what in PRICES
            ),
        ),
        (
            orders.select(
                lambda o: (
                    o.id,
                    sum(x.qty for x in o.lines if x.what != "a"),
                    len(o.lines),
                    max((x.qty for x in o.lines), default=-1),
                    any(x.qty > 7 for x in o.lines),
                    len([x for x in o.lines if x.qty]),
                )
            ),
            lambda every: (
                (
                    o.id,
                    sum(x.qty for x in o.lines if x.what != "a"),
                    len(o.lines),
                    max((x.qty for x in o.lines), default=-1),
                    any(x.qty > 7 for x in o.lines),
                    len([x for x in o.lines if x.qty]),
                )
                for o in every
            ),
        ),
        (
            orders.unnest(lambda o: o.boxes)
            .unnest(lambda o, b: b.seals)
            .select(lambda o, b, s: (o.id, b.weight, s)),
            lambda every: ((o.id, b.weight, s) for o in every for b in o.boxes for s in b.seals),
        ),
        (
            orders.select(lambda o: (o.id, sum(b.weight * len(b.seals) for b in o.boxes))),
            lambda every: ((o.id, sum(b.weight * len(b.seals) for b in o.boxes)) for o in every),
        ),
        (
            live((o.town, k) for o in orders for k in o.kinds),
            lambda every: ((o.town, k) for o in every for k in o.kinds),
        ),
        (
            orders.select_many(lambda o: [(o.town, x.what) for x in o.lines if x.qty > o.id]),
            lambda every: ((o.town, x.what) for o in every for x in o.lines if x.qty > o.id),
        ),
        (
            orders.unnest(lambda o: o.tags).select(lambda o, key: (o.id, key)),
            lambda every: ((o.id, key) for o in every for key in o.tags),
        ),
        (
            orders.unnest(lambda o: o.tags.items()).select(lambda o, item: (o.id, item)),
            lambda every: ((o.id, item) for o in every for item in o.tags.items()),
        ),
        (
            orders.select(lambda o: (o.id, sum(n for n in o.tags.values()), o.tags.get(7))),
            lambda every: ((o.id, sum(o.tags.values()), o.tags.get(7)) for o in every),
        ),
        (
            orders.unnest(lambda o: enumerate(o.lines)).select(lambda o, n: (o.id, n)),
            lambda every: ((o.id, n) for o in every for n in enumerate(o.lines)),
        ),
        (
            orders.select(lambda o: (o.id, len(o.free), 1 in o.free, o.lines[0:2] == o.lines)),
            lambda every: ((o.id, len(o.free), 1 in o.free, len(o.lines) < 3) for o in every),
        ),
        (
            unnested.select(lambda o, x: x)
            .group_by(lambda x: x.what)
            .aggregate(Sum(lambda x: x.qty)),
            _sums,
        ),
    ]


PRICES = {"a": 2, "c": 5}


def _sums(every: Iterable[Order]) -> Iterable[Any]:
    sums: Counter[str] = Counter()
    seen = {x.what for o in every for x in o.lines}
    for o in every:
        for x in o.lines:
            sums[x.what] += x.qty
    return [(what, sums[what]) for what in seen]


def changed(random: Random, order: Order) -> None:
    """Change something in an order; it may raise."""
    match random.randrange(9):
        case 0 | 1:
            _changed_lines(random, order.lines)
        case 2:
            if order.boxes:
                box = random.choice(order.boxes)
                box.weight += 1
                box.seals.append(random.randrange(9))
        case 3:
            order.boxes.insert(0, random.choice(order.boxes) if order.boxes else Box(1, []))
        case 4:
            order.boxes[random.randrange(2) :] = [Box(3, [4]), *order.boxes[1:]]
        case 5:
            order.tags[random.randrange(99)] = random.randrange(5)
            order.tags.pop(random.randrange(99), None)
        case 6:
            order.kinds ^= {random.randrange(99), random.randrange(99)}
        case 7:
            drawn_edit(random, at(order.free, path := drawn_path(random, order.free)))(
                at(order.free, path)
            )
        case _:
            order.town = random.choice(("Bonn", "Rome"))
            order.lines = [drawn_line(random) for _ in range(random.choice((0, 3, 80)))]


def _changed_lines(random: Random, lines: list[Line]) -> None:
    line, size = drawn_line(random), len(lines)
    match random.randrange(8):
        case 0 | 1:
            lines.append(line)
        case 2:
            lines.insert(random.randrange(size + 1), line)
        case 3:
            lines[random.randrange(size)] = line
        case 4:
            del lines[random.randrange(size)]
        case 5:
            lines.sort(key=lambda each: each.qty, reverse=size % 2 == 0)
        case 6:
            lines[1:3] = [line, line]
        case _:
            lines.extend(drawn_line(random) for _ in range(9))
