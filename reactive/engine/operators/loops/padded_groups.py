"""Left join of constant rows with groups, in a layout: each row has its group, or None.

    ranks <-  nodes left join sums on n == s.key  | select Rank(n, 0.15 if s is None else ...)

    group of n     fields of the row are columns over the key, the totals, and n
    no group       the row is constant while the keys of the groups are

State:  none.
Cost:   one look at each constant row per evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Constant,
    Expr,
    Lifted,
    Local,
    Operation,
    all_parameters,
    constant,
    one_value,
    reads,
    substitute,
    transform,
)
from optimizer.expressions.text import project_node
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import residual
from reactive.engine.codegen.loop_expressions import Column, column
from reactive.engine.codegen.nest import ListSink
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.operators.fuse import make_key_lister
from reactive.engine.operators.loops.nests import alone_loop
from reactive.engine.operators.plain import all_read, sides

Row = Any
KEY = Local("key")


@dataclass(frozen=True, slots=True)
class Padding:
    """The constant rows of a left join with groups.

    Parameters
    ----------
    join: the left join; its right input is the aggregate.
    slot: the slot of the constant rows; `keys` lists the keys that these look up.
    own: the keys by which groups are found, computed from the keys of the groups.
    """

    join: plan.OuterJoin
    slot: int
    keys: Callable[[list[Row]], tuple[list[Any], list[Row]]]
    own: Callable[[Column], Column]

    def split(self, rows: list[Row], names: Column) -> tuple[list[Row], list[Row]] | None:
        """Return the row of each group, and the rows without a group.

        Return None if some rows have no key, two rows have the same, or a group has no row.
        """
        asked, listed = self.keys(rows)
        row_of = dict(zip(asked, listed, strict=True))
        if not len(row_of) == len(listed) == len(rows):
            return None
        own = list(map(match_key, self.own(names)))
        taken = set(own)
        if not taken <= row_of.keys() or len(taken) < len(own) or NO_MATCH in taken:
            return None
        alone = [row for key, row in row_of.items() if key not in taken]
        return [row_of[key] for key in own], alone


def padding_of(node: plan.Node, slot_of: Callable[[plan.Node], tuple[int, bool]]) -> Padding | None:
    """Return the padding of a left join of constant rows with an aggregate; None for others."""
    if not isinstance(node, plan.OuterJoin) or not isinstance(node.right, plan.Aggregate):
        return None
    if node.kind != "left" or bindings(node.left) != 1 or residual(node) is not None:
        return None
    slot, varies = slot_of(node.left)
    left, (written, steps) = sides(node)
    functions = [*([] if written is None else [written]), *(step.function for step in steps)]
    called = [*([] if left[0] is None else [left[0]]), *(step.function for step in left[1])]
    if varies or not functions or not all_read([*functions, *called]):
        return None
    if not all(step.is_key for step in (*steps, *left[1])):
        return None
    count = bindings(node.right)
    keys = [_over_groups(f.body, count) for f in functions if isinstance(f, Lifted)]
    key = one_value([transform(each, project_node) for each in keys])
    if not reads(key) <= {0}:
        return None
    own = column(substitute(key, (KEY,) * count), ["key"])
    return Padding(node, slot, make_key_lister(node.left, left, 1), own)


def _over_groups(expr: Expr, count: int) -> Expr:
    """Rewrite an expression over the row of a group as one over the key and the totals."""
    return substitute(expr, (one_value(all_parameters(count)),))


def with_group(expr: Expr, count: int) -> Expr:
    """Rewrite an expression over a constant row and its group, which is there.

    The result is over the key and the totals, `count` in all, and then the constant row.
    """
    group = one_value(all_parameters(count))
    row = all_parameters(count + 1)[-1]

    def decided(part: Expr) -> Expr:
        match part:
            case Operation("is" | "is not" as symbol, (of, Constant(None))) if of == group:
                return constant(symbol == "is not")
        return project_node(part)

    return transform(substitute(expr, (row, group)), decided)


def rows_of_none(
    join: plan.OuterJoin, chain: Sequence[plan.Node]
) -> Callable[[list[Row]], list[Row]]:
    """Return the function from constant rows to the rows that a chain makes of them and None."""
    kept = shapes(join)
    return alone_loop(
        1, kept, tuple(chain), "left", lambda pipeline: ListSink(pipeline, batch=True)
    )
