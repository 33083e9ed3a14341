"""Product: all pairs of rows of two inputs; weights multiply.

    d(L x R)  =  dL x (R + dR)  +  L x dR

It is the join on a key that all rows share, so it is that join, over indexes without a key.

State:  both inputs.
Cost:   O(|dL| * |R| + |L| * |dR|).
Source: [dbsp] bilinear operators; [i3ql] cross product.
"""

from __future__ import annotations

from collections.abc import Callable

from reactive.engine.collections.zset import Row
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.join import Join


def product(left: IndexBy, right: IndexBy, pair: Callable[[Row, Row], Row]) -> Join:
    """The operator, over two indexes made by `IndexBy(None)`.

    >>> from reactive.engine.operators.index_by import IndexBy
    >>> left, right = IndexBy(None), IndexBy(None)
    >>> both = product(left, right, lambda a, b: (a, b))
    >>> both.step(left.step([(1, 1)]), right.step([(2, 1), (3, 1)]))
    [((1, 2), 1), ((1, 3), 1)]
    """
    return Join(left, right, pair)
