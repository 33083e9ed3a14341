"""Whether two code objects are what the compiler makes of one text at one place.

    def f(x): return x + 1      the same code as      def f(x): return x + 1
                                but not as            def f(x): return x + True

Python's own `==` of code objects takes `1` for `1.0` inside of nested constants, and leaves out
the qualified name. Here every field counts, each constant with its type, and every position.

Sound: equal code with equal cells, globals and defaults gives equal results.
"""

from __future__ import annotations

from operator import attrgetter
from types import CodeType

from optimizer.record import record

FIELDS = attrgetter(
    "co_code",
    "co_names",
    "co_name",
    "co_qualname",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_flags",
    "co_exceptiontable",
    "co_stacksize",
)


@record
class CodeItself:
    """A code object by identity: code objects of equal texts in different files are equal."""

    code: CodeType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodeItself) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


def same_code(code: CodeType, other: CodeType, *, shift: int = 0) -> bool:
    """Whether `other` is `code` compiled from the same text, `shift` lines further down.

    Columns are compared where both sides have them: `-X no_debug_ranges` leaves them out.

    >>> def code(text): return compile(text, "people.py", "eval").co_consts[0]
    >>> same_code(code("lambda s: s.x + 1"), code("lambda s: s.x + 1"))
    True
    >>> same_code(code("lambda s: s.x + 1"), code("lambda s: s.x + 1.0"))
    False
    """
    return (
        FIELDS(code) == FIELDS(other)
        and code.co_firstlineno + shift == other.co_firstlineno
        and _same_positions(code, other, shift)
        and _same(code.co_consts, other.co_consts, shift)
    )


def _same_positions(code: CodeType, other: CodeType, shift: int) -> bool:
    if code.co_linetable == other.co_linetable:  # it counts from the first line
        return True
    pairs = zip(code.co_positions(), other.co_positions(), strict=True)
    return all(
        (None if line is None else line + shift) == other_line
        and (None in columns or None in other_columns)
        for (line, _, *columns), (other_line, _, *other_columns) in pairs
    )


def _same(value: object, other: object, shift: int) -> bool:
    """Whether two constants are the same: `1`, `True`, `1.0`, `0.0` and `-0.0` all differ."""
    if type(value) is not type(other):
        return False
    match value, other:
        case CodeType(), CodeType():
            return same_code(value, other, shift=shift)
        case tuple(), tuple():
            return len(value) == len(other) and all(
                _same(a, b, shift) for a, b in zip(value, other, strict=True)
            )
        case frozenset(), frozenset():
            return len(value) == len(other) and all(
                any(_same(a, b, shift) for b in other) for a in value
            )
        case slice(), slice():
            bounds = attrgetter("start", "stop", "step")
            return _same(bounds(value), bounds(other), shift)
        case float() | complex(), _:
            return repr(value) == repr(other)
        case _:
            return value == other
