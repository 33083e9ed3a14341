"""An expression over columns as one list comprehension, which is as fast as Python goes.

found[pair] / kept       [found[pair] / kept for pair, kept in zip(rows_0, rows_1)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optimizer.expr import Expr
from reactive.engine.codegen.functions import CodeWriter, Values, build

Column = list[Any]


def column(expr: Expr, each: Sequence[str], given: Sequence[str] = ()) -> Callable[..., Column]:
    """What gives the values of an expression over local variables, from columns.

    Parameters
    ----------
    each: variables that go through columns side by side, the first arguments.
    given: variables that are columns as they are, the arguments behind them.
    """
    values = Values()
    lists = [f"rows_{place}" for place in range(len(each))]
    for name in (*each, *given, *lists):
        values.reserve(name)
    shown = CodeWriter((), values, careful=False).write(expr)
    over = lists[0] if len(lists) == 1 else f"zip({', '.join(lists)})"
    head = f"def column({', '.join((*lists, *given))}):\n"
    return build("column", f"{head}    return [{shown} for {', '.join(each)} in {over}]\n", values)
