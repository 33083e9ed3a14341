"""Have what remote operators set apart at barriers applied: by those that share what they keep, in
one go.

State:  none.
Cost:   an `apply` for each barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from reactive.engine.remote.remote import Sharing
from reactive.engine.remote.remote_operator import RemoteOperator


def send_together(operators: Sequence[tuple[RemoteOperator, bool]]) -> None:
    """Have what one set apart at barriers applied, once; or several, whose remotes share what they
    keep. Another thread that does so is waited for, also one that fills; one that is still to be
    filled is left out.

    Parameters
    ----------
    operators: with whether each is quiet: nobody asks how its output changes, as far as is known.
    """
    with ExitStack() as stack:
        for operator, _ in sorted(operators, key=lambda pair: id(pair[0])):
            stack.enter_context(operator._sending)
        ready = [pair for pair in operators if pair[0].is_filled]
        for operator, _ in ready:
            if operator.lost is not None:
                raise operator.lost
            operator._try_again()
        while any(operator._batches for operator, _ in ready):
            barrier = min(o._barriers[0] for o, _ in ready if o._batches)
            due = [(o, q) for o, q in ready if o._barriers[:1] == [barrier]]
            first = due[0][0].remote
            if isinstance(first, Sharing):
                first.take_in([operator._prepare() for operator, _ in due])
            for operator, quiet in due:
                operator._apply(quiet=quiet)
        for operator, _ in ready:
            if operator._owed is not None:
                raise operator._owed
