"""A chain of linear operators as one loop.

    d(select(f, where(p, L)))  =  [(f(row), weight) for row, weight in dL if p(row)]

State:  none.
Cost:   O(|dL|), and one per element that an unnest makes.
Source: [i3ql] fusion of selections and projections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.expr import Expr, Lifted
from optimizer.traverse import functions
from reactive.codegen import Values, build
from reactive.generated.body import Act, Body, Chain, Plan, row_names
from reactive.zset import Pair, Pairs

Loop = Callable[[Pairs], list[Pair]]
Carefully = Callable[[Pairs], Sequence[Pair]]


class Linear:
    """Runs the loop; when it raises, the plain operators."""

    __slots__ = ("_carefully", "_loop", "source", "touched")

    def __init__(self, loop: Loop, carefully: Carefully, source: str) -> None:
        self._loop = loop
        self._carefully = carefully
        self.source = source
        self.touched = 0

    def step(self, delta: Pairs) -> Sequence[Pair]:
        self.touched += len(delta)
        try:
            return self._loop(delta)
        except Exception:  # the plain operators raise it, or see that it does not count
            pass
        return self._carefully(delta)


def linear_loop(todo: Plan, chain: Chain, bindings: int) -> tuple[Loop, str]:
    """The function, and its text."""
    values = Values()
    called = [f for node in chain for f in functions(node) if isinstance(f, Lifted)]
    names = row_names(called, bindings)
    body = Body(values, names, todo.shapes, 2)
    out = todo.value()
    expect(body, todo.acts, [] if todo.is_input else [out])
    begin(body, names, "row, weight")
    body.write(todo.acts)
    body.line(f"append(({'row' if todo.is_input else body.canonical(out)}, weight))")
    head = ["def step(delta):", "    out = []", "    append = out.append"]
    lines = [*head, "    for row, weight in delta:", *body.lines, "    return out", ""]
    text = "\n".join(lines)
    return build("step", text, values), text


def expect(body: Body, acts: Sequence[Act], more: Sequence[Expr]) -> None:
    """Tell the body all that will be written."""
    body.expect(act.expr for act in acts)
    body.expect(more)


def begin(body: Body, names: Sequence[str], pair: str) -> None:
    """Take a row with several bindings apart."""
    if len(names) > 1:
        body.line(f"{', '.join(names)} = row")
