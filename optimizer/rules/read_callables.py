"""Read the callables of a node as expressions.

    where <lambda>            where s.age > 30
      students        ->        students

Sound:  see `lift.py`; what cannot be read with certainty is called as it is.
Needs:  nothing.
Pays:   all other rules look at expressions.
Source: [i3ql] language integration.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.knowledge import Shapes
from optimizer.lift import lift
from optimizer.properties import row_shape, shapes
from optimizer.traverse import with_functions


def read_callables(node: plan.Node) -> plan.Node:
    inputs = node.inputs()
    if not inputs:
        return node
    if isinstance(node, plan.Fixpoint):
        return _read_best(node)
    of = shapes(inputs[0])
    if len(inputs) == 1:
        return with_functions(node, lambda f: _read(f, of))
    right = row_shape(inputs[1])
    match = getattr(node, "match", None)

    def read(function: Function) -> Function:
        if match is not None and function is match.right_key:
            return _read(function, (right,))
        return _read(function, (*of, right))

    return with_functions(node, read)


def _read_best(node: plan.Fixpoint) -> plan.Node:
    """Which rows are kept is asked of single rows of each relation."""
    shape_of = {
        id(function): shapes(body)
        for body, best in zip(node.bodies, node.best, strict=True)
        if best is not None
        for function in (best.by, best.value)
    }
    return with_functions(node, lambda f: _read(f, shape_of.get(id(f), (None,))))


def _read(function: Function, of: Shapes) -> Function:
    return function if isinstance(function, Lifted) else lift(function, of)
