"""What an earlier process left of a view's state: whose it is, and what its tables are to hold.

Cost: O(plan) per view with a name; O(rows of the tables) once, where they are put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes
from reactive.collections.zset import repeat
from reactive.remote.adoption import Adopt, to_restore
from reactive.remote.remote_operator import RemoteOperator
from reactive.transactions.transaction import Transaction

if TYPE_CHECKING:
    from reactive.transactions.engine import Engine


def fill(engine: Engine, operator: RemoteOperator, adopt: Adopt | None) -> None:
    """Hand over what the inputs hold, or first have them hold what an earlier process left."""
    if (adopt or operator.remote.adopt) != "state":
        operator.fill(adopt)
        return
    with Transaction(engine):
        for read, pairs in to_restore(operator.fragment, operator.differs()).items():
            table = engine.table_of(read)
            table.remove_all(repeat((row, -n) for row, n in pairs if n < 0))
            table.add_all(repeat((row, n) for row, n in pairs if n > 0))
    with engine.inside():
        operator.restored()
    operator.fill("process")


def views_of(
    engine: Engine, node: plan.Node, run: Callable[[plan.Node], plan.Node]
) -> dict[str, str]:
    """The fingerprints of the views with a name that read a node, or that are being made.

    Parameters
    ----------
    run: the plan that is run for a plan as written.
    """
    making = engine.graph.making
    channels = [leaf.leaf for leaf in engine.graph.leaves()]
    plans = {c.name: run(c.plan) for c in channels if c.name is not None}
    found = {name: root for name, root in plans.items() if node in nodes(root)}
    if making is not None and making.name is not None:
        found[making.name] = run(making.plan)
    return {name: fingerprint(root) for name, root in found.items()}
