"""A stream of orders as shops have it: few customers order much, some orders go back.

The activity of customers follows a Pareto law: a fifth of them gives more than half of the orders.
Six in a hundred orders are returned, two are corrected; both happen to recent ones. The same seed
gives the same stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from examples.hot_view.rows import Customer, Order
from examples.shops import REGIONS, amount

PARETO = 1.5
RETURNED, CORRECTED = 0.06, 0.02
RECENT = 5_000
"""So many orders can still go back."""
BATCH = 250
"""Orders that are committed together."""
FIRST = ("Ada", "Ben", "Cem", "Dora", "Emil", "Fay", "Gul", "Hana", "Ivo", "Jan", "Kim", "Lea")
LAST = ("Adler", "Berg", "Castro", "Demir", "Evans", "Fuchs", "Garcia", "Horn", "Ito", "Jansen")
SHARES = (24, 16, 28, 20, 9, 3)
PRODUCTS = ("book", "chair", "coat", "game", "kettle", "lamp", "pan", "rug", "shoes", "tea")


@dataclass(frozen=True, slots=True)
class Batch:
    """The changes of one transaction; a corrected order is both deleted and inserted."""

    new: tuple[Order, ...]
    corrected: tuple[Order, ...]
    went: tuple[Order, ...]

    @property
    def came(self) -> tuple[Order, ...]:
        """All orders that are there afterwards and were not before."""
        return self.new + self.corrected


def customers(count: int, seed: int) -> Iterator[Customer]:
    """So many customers, numbered from 1 on."""
    random = Random(f"customers {seed}")
    for number in range(1, count + 1):
        name = f"{random.choice(FIRST)} {random.choice(LAST)}"
        yield Customer(number, name, random.choices(REGIONS, SHARES)[0])


def batches(orders: int, customers: int, seed: int) -> Iterator[Batch]:
    """Yield the stream, up to a number of orders."""
    random = Random(f"orders {seed}")
    activity = list(accumulate(random.paretovariate(PARETO) for _ in range(customers)))
    recent: list[Order] = []
    for first in range(0, orders, BATCH):
        numbers = range(first, min(first + BATCH, orders))
        buyers = random.choices(range(1, customers + 1), cum_weights=activity, k=len(numbers))
        products = random.choices(PRODUCTS, k=len(numbers))
        new = (Order(*of, amount(random)) for of in zip(numbers, buyers, products, strict=True))
        went = _went(recent, len(numbers), random)
        batch = Batch(tuple(new), _corrected(went, random), went)
        recent = [*recent, *batch.came][-RECENT:]
        yield batch


def _went(recent: list[Order], new: int, random: Random) -> tuple[Order, ...]:
    """Remove and return some of the recent orders, by the number of new ones."""
    random.shuffle(recent)
    count = sum(random.random() < RETURNED + CORRECTED for _ in range(new))
    return tuple(recent.pop() for _ in range(min(count, len(recent))))


def _corrected(went: tuple[Order, ...], random: Random) -> tuple[Order, ...]:
    """Return the corrected versions of some of the deleted orders."""
    wrong = (order for order in went if random.random() < CORRECTED / (RETURNED + CORRECTED))
    return tuple(replace(order, amount=amount(random)) for order in wrong)
