"""Emit no rows.

Needs:  a condition that is never true was found.
Pays:   nothing below it is run.
"""

from __future__ import annotations

from optimizer import plan
from reactive.compiler.chooser import Asking, Chooser
from reactive.compiler.physical import Nothing, Physical


def nothing(chooser: Chooser, node: plan.Node) -> Asking[Physical] | None:
    return _nothing(node) if isinstance(node, plan.Empty) else None


def _nothing(node: plan.Empty) -> Asking[Physical]:
    yield from ()
    return Nothing(node)
