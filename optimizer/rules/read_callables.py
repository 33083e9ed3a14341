"""Lift the callables of a node to expressions.

    where <lambda>            where s.age > 30
      students        ->        students

Sound:  see `lift.py`; a callable that cannot be lifted with certainty is called as written, and so
        is a function that keeps its groups.
Needs:  nothing.
Pays:   all other rules look at expressions.
Source: [i3ql] language integration.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting.lift import lift
from optimizer.plans.nodes.groups import keeper
from optimizer.traverse import with_called


def read_callables(node: plan.Node) -> plan.Node:
    return with_called(node, _lift_function)


def _lift_function(function: Function, of: Shapes) -> Function:
    if isinstance(function, Lifted) or keeper(function) is not None:
        return function
    return lift(function, of)
