"""What callables of one code have in common, whoever made them: they are read once.

    select(lambda o: (o.id, o.total))       made twice: one code, one expression

Sound:  a callable that captures nothing, has no defaults and names nothing but built-in functions
        is its code, and code is told apart by identity.
State:  of the process, of 1024 codes what they were read as.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

from optimizer.callables.captures import defaults, global_names
from optimizer.callables.opaque import Opaque
from optimizer.expr import Apply, Expr, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting.same_code import CodeItself

Reading = tuple[Expr, tuple[str, ...]]
"""An expression, and the names of its parameters."""


def remembered(function: Opaque, shapes: Shapes, read: Callable[[], Reading]) -> Reading:
    """What a callable was read as for arguments of these shapes, or is read as now."""
    found: Reading | None = function.readings.get(shapes)
    if found is None:
        known = of_code(function)
        found = known.get(shapes) or read()
        if not any(isinstance(part, Apply) for part in walk(found[0])):  # which tell what it is for
            function.readings[shapes] = known[shapes] = found
    return found


def of_code(function: Opaque) -> dict[Any, Any]:
    """What is known of all callables of the code of one, by what is known of the arguments; of one
    that is more than its code, nothing."""
    call = function.function
    if type(call) is not FunctionType or call.__closure__ or defaults(call):
        return {}
    known = getattr(call, "__builtins__", {})
    if function.captures or known is not vars(builtins):
        return {}
    names = global_names(call.__code__)
    if any(name in call.__globals__ or name not in known for name in names):
        return {}
    return _readings(CodeItself(call.__code__))


@lru_cache(maxsize=1024)
def _readings(code: CodeItself) -> dict[Any, Any]:
    return {}
