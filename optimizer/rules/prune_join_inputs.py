"""Keep in a join's indexes only the bindings and fields that are read above.

    select (r.x, m.y)               select (r[0], m.y)
      join on r.k == m.k      ->      join on r[1] == m.k
        R                               select (r.x, r.k)
        M                                 R
                                        M

Rows of stored tables are left whole: the index refers to them, which takes less memory than a copy
of two of their fields. The rule prunes computed rows, and tables that are not stored.

Sound:  the expressions read the same values. Rows that agree in the read fields add up.
Needs:  the fields are declared and part of the row's hash, so that they can be read and hashed; the
        row is not returned whole.
Pays:   smaller rows in the indexes, and no work where only other fields change.
Source: projection pruning of SQL optimizers; beyond [i3ql].
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Constant,
    Expr,
    Function,
    Item,
    Lifted,
    Parameter,
    constant,
    one_value,
    parts,
    rebuilt,
    row_names,
)
from optimizer.expressions.knowledge import Shapes, hashable, total
from optimizer.expressions.text import one_row
from optimizer.plans.properties import bindings, keeps_identity
from optimizer.plans.side_conditions import pair_shapes
from optimizer.record import record
from optimizer.traverse import functions, with_functions, with_inputs

MOST = 6


def prune_join_inputs(node: plan.Node) -> plan.Node:
    """Reduce one side of a join to the fields that are read above; unchanged if all are read."""
    if not isinstance(node, plan.Select | plan.Aggregate) or not isinstance(node.input, plan.Join):
        return node
    if isinstance(node, plan.Aggregate) and any(
        a.value is None and a.name != "Count" for a in node.aggregates
    ):
        return node
    joined = node.input
    above = [f for f in (*functions(node), joined.match.on) if f is not None]
    if joined.match.left_key is not None or not all(isinstance(f, Lifted) for f in above):
        return node
    bodies = [f.body for f in above if isinstance(f, Lifted)]
    for side in ("left", "right"):
        kept = _fields_to_keep(joined, side, bodies)
        if kept is not None:
            return _prune_side(node, joined, side, kept)
    return node


def _fields_to_keep(joined: plan.Join, side: str, bodies: list[Expr]) -> tuple[Expr, ...] | None:
    """Return the fields that are read of a side; None if they are all, too many, or pruned
    already."""
    source: plan.Node = getattr(joined, side)
    count = bindings(joined.left)
    if keeps_identity(source) or _is_as_it_should_be(source):
        return None
    of, found = pair_shapes(joined), dict[Expr, None]()
    mine = set(range(count)) if side == "left" else {count}
    for body in bodies:
        _paths(body, mine, of, found)
    whole = [path for path in found if isinstance(path, Parameter)]
    if len(found) > MOST or (side == "right" and whole):
        return None
    everything = len(whole) == count and side == "left"
    return None if everything or not found else tuple(found)


def _is_as_it_should_be(node: plan.Node) -> bool:
    """Return True if the rows of a node are pruned already, or stored whole elsewhere."""
    while isinstance(node, plan.Where):
        node = node.input
    pruned = (plan.Select, plan.Aggregate, plan.SelectMany, plan.Empty)
    return isinstance(node, (*pruned, plan.Recursive, plan.Fixpoint, plan.Component))


def _paths(expr: Expr, mine: set[int], of: Shapes, found: dict[Expr, None]) -> None:
    """Add the fields that are read of some bindings to `found`, as far as their shapes declare
    them."""
    root = expr
    while isinstance(root, Attribute) or (
        isinstance(root, Item) and isinstance(root.key, Constant)
    ):
        root = root.of
    if isinstance(root, Parameter):
        if root.index in mine:
            while not (total(expr, of) and hashable(expr, of)):
                expr = parts(expr)[0]
            found.setdefault(expr)
        return
    for part in parts(expr):
        _paths(part, mine, of, found)


def _prune_side(
    node: plan.Select | plan.Aggregate, joined: plan.Join, side: str, kept: tuple[Expr, ...]
) -> plan.Node:
    """Return the node above a join whose `side` has the expressions `kept` in place of its rows."""
    on = joined.match.on
    count = bindings(joined.left)
    source: plan.Node = getattr(joined, side)
    own = kept if side == "left" else tuple(one_row(p, count, bindings(source)) for p in kept)
    body = one_value(own)
    origins = on.origins if isinstance(on, Lifted) else ()
    names = _names_of_pair(node, count)
    made = names[:count] if side == "left" else names[count:]
    more = bindings(source)
    made = made if len(made) == more else row_names(more)
    select = plan.Select(source, Lifted(body, made, origins, more))
    change = _PrunedSide(side, kept, count)
    match = replace(joined.match, on=None if on is None else change.function(on))
    new = replace(joined, match=match, **{side: select})  # type: ignore[arg-type]
    return with_inputs(with_functions(node, change.function), [new])


def _names_of_pair(node: plan.Node, count: int) -> tuple[str, ...]:
    found = next((f.names for f in functions(node) if isinstance(f, Lifted)), ())
    return found if len(found) == count + 1 else row_names(count + 1)


@record
class _PrunedSide:
    """Rewrites reads of a side to reads of its pruned rows."""

    side: str
    kept: tuple[Expr, ...]
    count: int

    def function(self, function: Function) -> Function:
        """Return a callable of the pair that reads the kept fields of the pruned side."""
        assert isinstance(function, Lifted)
        index = 0 if self.side == "left" else self.count
        row = Parameter(index)
        single = len(self.kept) == 1
        new: dict[Expr, Expr] = {
            p: row if single else Item(row, constant(i)) for i, p in enumerate(self.kept)
        }
        if self.side == "right":
            return replace(function, body=_replace_parts(function.body, new), made=None)
        moved: dict[Expr, Expr] = {**new, Parameter(self.count): Parameter(1)}
        names = ("row", function.names[-1]) if len(function.names) == self.count + 1 else ()
        names = names or ("row", "other")
        return Lifted(_replace_parts(function.body, moved), names, function.origins, 2)


def _replace_parts(expr: Expr, new: dict[Expr, Expr]) -> Expr:
    """Return an expression with the largest parts that are keys of `new` replaced."""
    if expr in new:
        return new[expr]
    old = parts(expr)
    changed = tuple(_replace_parts(part, new) for part in old)
    return (
        expr if all(a is b for a, b in zip(old, changed, strict=True)) else rebuilt(expr, changed)
    )
