"""What an operator does with a single row, as lines of the generated commit that it is part of.

    if len(in_0) == 1:
        own_1.touched += 1                      no call between the commit and the loop
        try: out_1 = one_1(sums_1, in_0)
        ...
    else: out_1 = step_1(in_0)

They do what `step` and `commit` of the operator do, which are the reference; of any other delta
they call these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimizer.record import record


@record
class InLine:
    """Lines with `{n}` for the number of the node, `{out}` for what it emits, and `{given}` or,
    of two inputs, `{left}` and `{right}` for what it is given.

    step: in the place of `step`.
    finalize: in the place of `commit`.
    by_name: what they have by name; each name ends in the number of the node.
    """

    step: str
    finalize: str
    by_name: Mapping[str, Any]
