"""Which of the plans that were drawn are played: those that have rows, of some tables.

Most random plans are empty, whatever is in the tables; the larger ones nearly all. They say little,
so only some of them are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.random_queries.histories import Held
from tests.random_queries.nodes import Node
from tests.random_queries.oracle import Oracle, TooLarge
from tests.random_queries.rows import row_of

ROWS = 5
"""Rows of each of the tables over which a plan is looked at."""
KEPT = 0.15
"""The part of the plans that is played whatever their rows."""


def telling(
    nodes: Sequence[Node],
    count: int,
    names: Mapping[str, Any],
    tables: Sequence[Held],
    random: Random,
    mode: str,
) -> list[Node]:
    """Some of the plans, in their order; those that have rows, as far as there are enough."""
    oracle = Oracle(names, [[row_of(t.kind, random, mode) for _ in range(ROWS)] for t in tables])
    found = [(0 if random.random() < KEPT else _silence(oracle, n), n.number, n) for n in nodes]
    chosen = {number for _, number, _ in sorted(found, key=lambda each: each[:2])[:count]}
    return [*{n.number: n for n in nodes if n.number in chosen}.values()][:count]


def _silence(oracle: Oracle, node: Node) -> int:
    """How little a plan says: 0 if it has rows, or raises."""
    try:
        return 0 if oracle.rows(node) else 1
    except TooLarge:
        return 2
    except Exception:
        return 0
