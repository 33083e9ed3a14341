"""What a callable of `nest` gives of its row alone: a list of what is in a collection of the row.

    customers.nest(late=lambda c: [o for o in c.orders if o.day > 9])

It is the bag of the comprehension, as a comprehension over relations has it in its rows: computed
of each row, and of one whose bag changed by what changed (`lifting/folds.py`).
"""

from __future__ import annotations

import ast
from types import FunctionType

from optimizer.callables.opaque import Opaque
from optimizer.expr import Expr, all_parameters
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting.lift import Origin, Reader, Unreadable, bound_arguments, tree_of
from reactive.api.callables import Live
from reactive.engine.collections.bag import Bag


def bag_of(function: Opaque, known: Shapes) -> Expr | None:
    """The bag that a callable makes of its row; None of one that gives something else."""
    called = function.function
    if not isinstance(called, FunctionType):
        return None
    if any(isinstance(capture.original, Live) for capture in function.captures):
        return None
    try:
        tree = tree_of(called)
        if not isinstance(tree, ast.Lambda) or not isinstance(tree.body, ast.ListComp):
            return None
        bound = bound_arguments(called, tree, all_parameters(function.parameters), {})
        return Reader(called, Origin(function, known), bound).kept(tree.body, Bag)
    except Unreadable:
        return None
