"""Cut deep expressions: a part that is nested too deeply becomes a call of a compiled function.

    ((((a + b) + c) + d) + e)   ->   part(a, b, c, d) + e       part = lambda p, q, r, s: p + q ...

All that reads expressions recurses over them: rules, code generation, Python's own compiler. The
texts that programs write are deeper than any stack. No expression that leaves the translation of a
text is deeper than `DEEPEST`, nor, written out as a tree, much larger than `LARGEST`.

A part is called with whole bindings, never with their columns: it evaluates what the expression
evaluates, in the same order, and raises the same. Sub-queries stay outside of it, as arguments, so
that they are made joins.

Cost:  O(1) for an expression whose parts were measured before.
"""

from __future__ import annotations

from optimizer.expr import (
    Call,
    Conditional,
    Constant,
    Expr,
    Lifted,
    Operation,
    Outer,
    Parameter,
    Subquery,
    parts,
    rebuilt,
    row_names,
)
from reactive.engine.codegen.functions import callable_of

DEEPEST = 50
"""Levels. Python's parser takes 200 brackets, and its recursion limit is 1,000 frames."""
LARGEST = 4_000
"""Nodes. An expression that is read in several places of another is written out in each."""
SPLIT = (Operation, Call, Conditional)
"""Large nodes that become parts; AND and OR do not, as they have the equations of joins."""
_KEPT = (Parameter, Outer, Subquery)


class Shallow:
    """The expressions of one text that were measured, and what became of those that are deep."""

    __slots__ = ("_known", "_parts")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr, Expr, int, int]] = {}
        """By the identity of an expression: it, what it became, its depth and size."""
        self._parts: dict[Expr, Constant] = {}

    def __call__(self, expr: Expr) -> Expr:
        """Return the expression itself, or an equivalent one that is not as deep."""
        known = self._known.get(id(expr))
        return self._measured(expr) if known is None else known[1]

    def _measured(self, expr: Expr) -> Expr:
        """Measure all parts that were not measured before, inner ones first, without recursion."""
        waiting = [expr]
        while waiting:
            each = waiting[-1]
            if id(each) in self._known:
                waiting.pop()
                continue
            inner = parts(each)
            unknown = [part for part in inner if id(part) not in self._known]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            self._known[id(each)] = (each, *self._cut(each, inner))
        return self._known[id(expr)][1]

    def _cut(self, expr: Expr, inner: tuple[Expr, ...]) -> tuple[Expr, int, int]:
        """Return what the expression becomes, with its depth and size."""
        known = [self._known[id(part)] for part in inner]
        if any(old is not new for old, new, _, _ in known):
            expr = rebuilt(expr, tuple(new for _, new, _, _ in known))
        depth = 1 + max((deep for _, _, deep, _ in known), default=0)
        size = 1 + sum(large for _, _, _, large in known)
        if depth <= DEEPEST and (size <= LARGEST or not isinstance(expr, SPLIT)):
            return expr, depth, size
        return self._part(expr)

    def _part(self, expr: Expr) -> tuple[Expr, int, int]:
        """Make a call of the expression."""
        arguments: dict[Expr, Parameter] = {}
        body = _with_arguments(expr, arguments)
        function = self._parts.get(body)
        if function is None:
            made = Lifted(body, row_names(len(arguments)), (), len(arguments))
            function = Constant(callable_of(made), ("part", object()), "part")
            self._parts[body] = function
        given = tuple(arguments)
        deep = max((self._depth(each) for each in given), default=1)
        return Call(function, given), deep + 1, len(given) + 2

    def _depth(self, argument: Expr) -> int:
        """Return the depth of an argument: a sub-query may be asked for deep values."""
        self(argument)
        return self._known[id(argument)][2]


def _with_arguments(expr: Expr, arguments: dict[Expr, Parameter]) -> Expr:
    """Put parameters of a function in the place of bindings, which are noted as its arguments."""
    if isinstance(expr, _KEPT):
        return arguments.setdefault(expr, Parameter(len(arguments)))
    old = parts(expr)
    new = tuple(_with_arguments(part, arguments) for part in old)
    return expr if all(a is b for a, b in zip(old, new, strict=True)) else rebuilt(expr, new)
