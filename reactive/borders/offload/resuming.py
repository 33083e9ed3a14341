"""What an earlier process left of a view's state: whose it is, and what its tables are to hold.

Cost: O(plan) per view with a name; O(rows of the tables) once, where they are put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes
from reactive.engine.collections.zset import Row, repeat
from reactive.engine.remote.adoption import Adopt, to_restore
from reactive.engine.remote.remote_operator import RemoteOperator
from reactive.engine.transactions.transaction import Transaction

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


def fill(engine: Engine, operators: Sequence[RemoteOperator], adopt: Adopt | None) -> None:
    """Hand over what the inputs hold, or first have them hold what an earlier process left."""
    from_state = [o for o in operators if (adopt or o.remote.adopt) == "state" and not o.is_filled]
    if from_state:
        with Transaction(engine):
            for table, rows in _missing(engine, from_state).items():
                table.remove_all(repeat((row, -n) for row, n in rows.items() if n < 0))
                table.add_all(repeat((row, n) for row, n in rows.items() if n > 0))
        with engine.inside():
            for operator in from_state:
                operator.restored()
    for operator in operators:
        operator.fill("process" if operator in from_state else adopt)


def _missing(engine: Engine, operators: Sequence[RemoteOperator]) -> dict[Any, dict[Row, int]]:
    """What tables are to be given, and what is to go; of what several have the same, once."""
    found: dict[Any, dict[Row, int]] = {}
    for operator in operators:
        for read, pairs in to_restore(operator.fragment, operator.differs()).items():
            rows = found.setdefault(engine.table_of(read), {})
            for row, weight in pairs:
                rows[row] = max(weight, rows.get(row, 0), key=abs)
    return found


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
