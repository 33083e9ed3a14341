"""Select the drawn plans that are played: plans that have rows, over some tables.

Most random plans are empty for any tables, and nearly all larger ones are. Empty plans test little,
so only some of them are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any

from tests.random_queries.histories import Held
from tests.random_queries.nodes import Node
from tests.random_queries.oracle import Oracle, TooLarge
from tests.random_queries.rows import START, row_of

ROWS = 5
"""Rows of each table in the evaluation of a plan."""
KEPT = 0.15
"""The part of the plans that is played whatever their rows."""


def telling(
    nodes: Sequence[Node],
    count: int,
    names: Mapping[str, Any],
    tables: Sequence[Held],
    random: Random,
    mode: str,
    now: datetime = START,
) -> list[Node]:
    """Return `count` plans, in their order; plans that have rows are preferred."""
    oracle = Oracle(
        names, [[row_of(t.kind, random, mode, now) for _ in range(ROWS)] for t in tables]
    )
    found = [(0 if random.random() < KEPT else _silence(oracle, n), n.number, n) for n in nodes]
    chosen = {number for _, number, _ in sorted(found, key=lambda each: each[:2])[:count]}
    return [*{n.number: n for n in nodes if n.number in chosen}.values()][:count]


def _silence(oracle: Oracle, node: Node) -> int:
    """Rank a plan by its silence: 0 if it has rows, or raises."""
    try:
        return 0 if oracle.rows(node) else 1
    except TooLarge:
        return 2
    except Exception:
        return 0
