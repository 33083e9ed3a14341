"""Functions that a query calls: read in the place of the call; one that calls itself is a fixpoint.

def reach():
    return {(a, b) for a, b in edges} | {(a, c) for a, b in reach() for b2, c in edges if b == b2}
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.source import code_of
from optimizer.comprehensions.refusals import refused
from optimizer.comprehensions.rows import Rows, as_set, selected
from optimizer.expr import Expr, Parameter, Subquery, walk
from optimizer.expressions.knowledge import Shape
from optimizer.lifting.lift import Reader, Unreadable, bound_arguments, named, tree_of
from optimizer.lifting.part import UNSET, resolve
from optimizer.plans.properties import free, shapes

ROUNDS = 4


@dataclass
class Active:
    """A function without parameters that is being read, which may call itself."""

    code: CodeType
    name: str
    shape: Shape
    level: object
    is_called: bool = False
    before: Any = UNSET
    """Value of the query's name before the query is made; the text then means the query."""
    written: Any = None
    """Function of which a query is being made."""

    def was(self, found: Any, reader: Any) -> bool:
        """Return True if a value that a function has under the name is the one before the query.

        Local functions beside the query share the variable of that name with it.
        """
        if found is UNSET or self.written is None:
            return False
        if found is self.before:
            return True
        is_shared = self.name in reader.__code__.co_freevars
        scopes = [f.__code__.co_qualname.rpartition(".")[0] for f in (reader, self.written)]
        is_beside = is_shared and scopes[0] == scopes[1] and bool(scopes[0])
        return is_beside and _is_before(found, self.written)

    def is_of(self, called: Any, name: str, text: Any) -> bool:
        """Whether a call is of this function; its name may have no value yet, or that of a query
        which was made of the same lines before."""
        if called is UNSET:
            return name == self.name
        if isinstance(called, FunctionType):
            return called.__code__ is self.code
        code = None if text is None or name != self.name else code_of(text)
        return code is not None and self.name != "<lambda>" and is_same_place(code, self.code)

    def rows(self) -> Rows:
        """Its rows so far."""
        self.is_called = True
        node = plan.Recursive(self.level, 0, self.name, True, (self.shape,))
        return Rows("set", node, (Parameter(0),), ("row",))


def is_same_place(code: CodeType, other: CodeType) -> bool:
    """Return True if functions of one name are written in one scope of a file."""
    return (code.co_filename, code.co_qualname) == (other.co_filename, other.co_qualname)


def defined(
    function: FunctionType,
    read: Callable[[], Expr],
    reading: Any,
    reader: Any,
    *,
    written: FunctionType | None = None,
) -> Expr:
    """Return what a function without parameters returns.

    written: the function of which a query is being made. Functions that it calls may mean the query
             by its name, which `function` does not have among its captured names then.
    """
    shape: Shape = None
    name, before = function.__name__, UNSET if written is None else _meaning_before(written)
    for _ in range(ROUNDS):
        entry = Active(function.__code__, name, shape, object(), before=before, written=written)
        reading.active.append(entry)
        try:
            result = read()
        finally:
            reading.active.pop()
        if not entry.is_called:
            return result
        if not isinstance(result, Rows) or result.kind != "set" or result.arguments:
            raise refused(
                ast.Name(function.__name__),
                reader,
                "calls itself, and gives no set",
                "a recursion is the smallest set that it says of itself: {...} | {...}",
            )
        body = selected(as_set(result, reading.origins), reading.origins).node
        found = shapes(body)[0]
        if found == shape:
            break
        shape = found if shape is None else None
    node = body if entry.level not in free(body) else None
    node = node or reading.engine.fixpoint(body, entry.level, function.__name__)
    return Rows("set", node, (Parameter(0),), ("row",))


def _meaning_before(function: FunctionType) -> Any:
    """Return what the name of a function stands for while a query is made of it.

    Return `UNSET` where its text does not mean itself by the name: in a lambda, in a method, and if
    a later function of the file has the name.
    """
    *around, name = function.__qualname__.split(".")
    if name != function.__code__.co_name or name == "<lambda>":
        return UNSET
    if around and around[-1] != "<locals>":
        return UNSET
    found = resolve(function, name)
    return found if _is_before(found, function) else UNSET


def _is_before(found: Any, function: FunctionType) -> bool:
    """Return True of another value that the name of a function had before the function."""
    if not isinstance(found, FunctionType):
        return True
    code, its = function.__code__, found.__code__
    is_later = its.co_firstlineno > code.co_firstlineno and is_same_place(its, code)
    return its is not code and not is_later


def called(node: ast.Call, function: FunctionType, reader: Any, reading: Any) -> Expr:
    """What a call of a function that reads relations gives, or that is given some."""
    arguments = tuple(map(reader.value, node.args))
    keywords = {str(k.arg): reader.value(k.value) for k in node.keywords}
    given = [*arguments, *keywords.values()]
    if given and any(entry.code is function.__code__ for entry in reading.active):
        raise refused(
            node,
            reader,
            "calls itself with arguments",
            "have what they are in the rows of a function without parameters",
        )
    origin = replace(reader.origin, depth=reader.origin.depth + 1)
    try:
        tree = tree_of(function)
        bound = bound_arguments(function, tree, arguments, keywords)
        inner = Reader(function, origin, bound)
        if not given:
            return defined(function, lambda: inner.body(tree), reading, reader)
        body = _guarded(function, lambda: inner.body(tree), reading)
        result = body
        for each in reversed([e for e in given if not isinstance(e, Rows)]):
            has_rows = any(isinstance(e, Rows | Subquery) for e in walk(each))
            if not has_rows and not isinstance(body, Rows):
                result = named(each, body, result, reader.shapes)
        return result
    except Unreadable as unreadable:
        reason, *hint = unreadable.args
        raise refused(
            node,
            reader,
            f"reads relations, and cannot be read: {reason}",
            *(hint or ["write its text in the query"])[:1],
        ) from None


def _guarded(function: FunctionType, read: Callable[[], Expr], reading: Any) -> Expr:
    """Read a function that must not call itself."""
    reading.active.append(Active(function.__code__, "", None, object()))
    try:
        return read()
    finally:
        reading.active.pop()
