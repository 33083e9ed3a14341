"""The node of `relation.previous()`: the rows as they were before the last commit.

    commit      1      2      3
    input       a      a b    b
    previous    -      a      a b

It changes also in a commit that touches nothing of its input: then what changed in the one before
is there.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from optimizer.plans import costs
from optimizer.plans.facts import Facts, as_first, same_rows
from optimizer.plans.headlines import by_name
from optimizer.plans.plan_node import Node
from optimizer.record import record


@record
class Previous(Node):
    """The rows of the input before the last commit. `moment` is the engine's: where it keeps how
    the input changed in that commit. No rule reaches through it."""

    input: Node
    moment: Any = field(compare=False, repr=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("past",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=by_name,
    )
