"""The functions that a program can call, with the types of their arguments and what they compute.

Types are names: of a kind of values, or a letter that stands for one kind in the same call. What
may have no value (a quotient by zero, a text that is no number) gives a tuple of one value or none:
a clause derives nothing from the latter.

Numbers are Python's, without an end; with `bits=` they wrap round, as Soufflé's do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache, partial
from operator import add, and_, lshift, mul, neg, or_, rshift, sub, xor
from threading import Lock
from typing import Any

from optimizer.record import record
from reactive.errors import FixpointError
from reactive.languages.sql.runtime.automaton import Expression

Call = Callable[..., Any]
UNSIGNED_BITS = 32
"""The width of an unsigned number, if nothing is said."""


@record
class Signature:
    """The types of the arguments, of which the last may repeat, and of the result."""

    arguments: tuple[str, ...]
    result: str
    repeats: bool = False
    is_partial: bool = False


def _make_signature(*arguments: str, repeats: bool = False, is_partial: bool = False) -> Signature:
    *first, result = arguments
    return Signature(tuple(first), result, repeats, is_partial)


MATHEMATICAL = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log"),
    *("sin", "sinh", "sqrt", "tan", "tanh"),
)
"""Functions of a float; relations may have the same names."""
SIGNATURES: dict[str, tuple[Signature, ...]] = {
    "+": (_make_signature("p", "p", "p"),),
    "-": (_make_signature("n", "n", "n"), _make_signature("n", "n")),
    "*": (_make_signature("n", "n", "n"),),
    "/": (_make_signature("n", "n", "n", is_partial=True),),
    "%": (_make_signature("i", "i", "i", is_partial=True),),
    "^": (_make_signature("n", "n", "n", is_partial=True),),
    **dict.fromkeys(("band", "bor", "bxor"), (_make_signature("i", "i", "i"),)),
    **dict.fromkeys(("bshl", "bshr", "bshru"), (_make_signature("i", "i", "i", is_partial=True),)),
    **dict.fromkeys(("land", "lor", "lxor"), (_make_signature("i", "i", "i"),)),
    **dict.fromkeys(("bnot", "lnot"), (_make_signature("i", "i"),)),
    **dict.fromkeys(("max", "min"), (_make_signature("c", "c", "c", repeats=True),)),
    "cat": (_make_signature("symbol", "symbol", "symbol", repeats=True),),
    "strlen": (_make_signature("symbol", "number"),),
    "substr": (_make_signature("symbol", "number", "number", "symbol"),),
    "to_number": (_make_signature("c", "number", is_partial=True),),
    "to_unsigned": (_make_signature("c", "unsigned", is_partial=True),),
    "to_float": (_make_signature("c", "float", is_partial=True),),
    "to_string": (_make_signature("c", "symbol"),),
    "itof": (_make_signature("number", "float"),),
    "utof": (_make_signature("unsigned", "float"),),
    "ftoi": (_make_signature("float", "number", is_partial=True),),
    "ftou": (_make_signature("float", "unsigned", is_partial=True),),
    "itou": (_make_signature("number", "unsigned"),),
    "utoi": (_make_signature("unsigned", "number"),),
    "range": (
        _make_signature("n", "n", "n", is_partial=True),
        _make_signature("n", "n", "n", "n", is_partial=True),
    ),
    **dict.fromkeys(MATHEMATICAL, (_make_signature("float", "float", is_partial=True),)),
    "ord": (_make_signature("a", "number"),),
    "autoinc": (_make_signature("number", repeats=True),),
}
"""`n` is a type of numbers, `p` one that can be added, `i` one of integers, `c` one that can be
compared, and `a` any."""
TESTS = {"match": "symbol", "contains": "symbol"}
"""Tests that are written as functions."""
WORDS = frozenset({*(name for name in SIGNATURES if name.isidentifier()), *TESTS, "as"})
NUMBERED = frozenset({"ord", "autoinc"})
"""Functors that number what they are called with: see `Ordinals`."""


class Ordinals:
    """Numbers of values, in the order in which they are met first; one of a program.

    A value has the same number for as long as the program lives, also when its rows were deleted
    and come again: so `ord` and `autoinc` are functions, and views can take rows back.

    >>> numbers = Ordinals()
    >>> numbers.ord("b"), numbers.ord("a"), numbers.ord("b"), numbers.ord(7)
    (0, 1, 0, 7)
    >>> [numbers.autoinc("rule 1", text) for text in "aba"]
    [0, 1, 0]

    State: each value that was ever met.
    """

    def __init__(self) -> None:
        self._symbols: dict[Any, int] = {}
        self._others: dict[Any, int] = {None: 0}
        self._assignments: dict[Any, int] = {}

    def ord(self, value: Any) -> int:
        """Return the number of a value; an integer is its own."""
        if isinstance(value, int):
            return value
        return _number_in(self._symbols if isinstance(value, str) else self._others, value)

    def autoinc(self, *assignment: Any) -> int:
        """Return the number of an assignment of the variables of a rule, whose name is first."""
        return _number_in(self._assignments, assignment)

    def __reduce__(self) -> Any:
        raise TypeError("the numbers of ord() and autoinc() are those of this process")


_LOCK = Lock()


def _number_in(numbers: dict[Any, int], value: Any) -> int:
    """Return the number of a value, the next one if it has none."""
    found = numbers.get(value)
    if found is None:
        with _LOCK:  # two threads number one value once
            found = numbers.setdefault(value, len(numbers))
    return found


@lru_cache(maxsize=1024)
def call_of(name: str, kind: str, count: int, bits: int | None) -> Call:
    """Return the function that computes a functor for `count` arguments of a kind."""
    width = bits if kind == "number" or bits is not None else UNSIGNED_BITS
    if kind == "unsigned":
        return _wrapped(_call(name, kind, count, width), lambda n: unsigned(n, width or 32))
    if kind == "number" and bits is not None and name in _GROWING:
        return _wrapped(_call(name, kind, count, width), partial(signed, bits=bits))
    return _call(name, kind, count, width)


_GROWING = frozenset(
    {"+", "-", "*", "/", "/ number", "^", "bshl", "bshru", "bnot", "ftoi", "utoi", "range"}
)
_PLAIN: dict[str, Call] = {
    "+": add,
    "*": mul,
    "band": and_,
    "bor": or_,
    "bxor": xor,
    "max": max,
    "min": min,
    "land": lambda a, b: int(bool(a) and bool(b)),
    "lor": lambda a, b: int(bool(a) or bool(b)),
    "lxor": lambda a, b: int(bool(a) != bool(b)),
    "lnot": lambda a: int(not a),
    "bnot": lambda a: ~a,
    "cat": lambda *texts: "".join(texts),
    "strlen": len,
    "to_string": str,
    "itof": float,
    "utof": float,
    "itou": int,
    "utoi": int,
}


def _call(name: str, kind: str, count: int, bits: int | None) -> Call:
    """Return the Python function that computes a functor, for a kind, a count and `bits`."""
    match name:
        case "-":
            return neg if count == 1 else sub
        case "/ number":
            return divided
        case "% number":
            return left_over
        case "/":
            return float_quotient if kind == "float" else quotient
        case "^":
            return power if bits is None else partial(low_power, bits)
        case "bshl" | "bshr" | "bshru":
            shift = lshift if name == "bshl" else rshift
            return partial(shifted, shift, name, bits or UNSIGNED_BITS, bits is not None)
        case "to_number" | "to_unsigned":
            return partial(number_in, name == "to_unsigned")
        case "ftoi" | "ftou":
            return truncated
        case _ if name in MATHEMATICAL:
            return partial(of_float, getattr(math, name))
        case _ if name in _NAMED:
            return _NAMED[name]
        case _:
            return _PLAIN[name]


def _wrapped(call: Call, wrap: Call) -> Call:
    """Return a call whose result is put in range by `wrap`: of a tuple, each item."""

    def wrapped(*arguments: Any) -> Any:
        found = call(*arguments)
        return tuple(map(wrap, found)) if isinstance(found, tuple) else wrap(found)

    return wrapped


def signed(number: int, bits: int) -> int:
    """Return the lowest `bits` bits of a number, read in two's complement.

    >>> signed(2**31, 32), signed(-1, 32)
    (-2147483648, -1)
    """
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def unsigned(number: int, bits: int) -> int:
    """Return the lowest `bits` bits of a number, read without a sign.

    >>> unsigned(-1, 32)
    4294967295
    """
    return number & ((1 << bits) - 1)


def quotient(a: int, b: int) -> tuple[int, ...]:
    """Return the quotient, rounded towards zero; none by zero.

    >>> quotient(-7, 2), quotient(1, 0)
    ((-3,), ())
    """
    if not b:
        return ()
    whole = abs(a) // abs(b)
    return (whole if (a < 0) == (b < 0) else -whole,)


def divided(a: int, b: int) -> int:
    """Return the quotient by a number that is not zero, rounded towards zero."""
    return quotient(a, b)[0]


def left_over(a: int, b: int) -> int:
    """Return the remainder of a division by a number that is not zero."""
    return a - b * quotient(a, b)[0]


def float_quotient(a: float, b: float) -> tuple[float, ...]:
    """Return the quotient of floats; none by zero."""
    return (a / b,) if b else ()


def remainder(a: int, b: int) -> tuple[int, ...]:
    """Return the remainder of a division that is rounded towards zero; none by zero.

    >>> remainder(-7, 2), remainder(7, -2)
    ((-1,), (1,))
    """
    return (a - b * quotient(a, b)[0],) if b else ()


def of_float(function: Call, value: float) -> tuple[float, ...]:
    """Return the value of a function of a float; none where it is not defined.

    >>> of_float(math.sqrt, 4.0), of_float(math.sqrt, -1.0), of_float(math.exp, 1e9)
    ((2.0,), (), ())
    """
    try:
        return (function(value),)
    except (ArithmeticError, ValueError):
        return ()


def power(a: Any, b: Any) -> tuple[Any, ...]:
    """Return a power; none for integers with a negative exponent, or if it is not a number.

    >>> power(2, 10), power(2, -1), power(0.25, 0.5)
    ((1024,), (), (0.5,))
    """
    if isinstance(a, int) and a.bit_length() * b > MOST_BITS and abs(a) > 1:
        raise FixpointError(
            f"cannot compute a power: it has more than {MOST_BITS:,} bits\n"
            "  bound its base and its exponent, or give bits="
        )
    try:
        found = a**b
    except (ArithmeticError, ValueError):
        return ()
    return (found,) if type(found) is type(a) else ()


MOST_BITS = 8_000_000
"""The bits that one power may have."""


def low_power(bits: int, a: Any, b: Any) -> tuple[Any, ...]:
    """Return the lowest bits of a power of integers, else the `power`.

    >>> low_power(32, 3, 10**9 + 7), low_power(32, 2, -1), low_power(32, 0.25, 0.5)
    ((577888395,), (), (0.5,))
    """
    if isinstance(a, int) and b >= 0:
        return (pow(a, b, 1 << bits),)
    return power(a, b)


def shifted(
    shift: Call,
    name: str,
    bits: int,
    wraps: bool,
    a: int,
    b: int,
) -> tuple[int, ...]:
    """Return a number shifted by a number of places below the width.

    Other numbers of places wrap round, too, if numbers do (`wraps`); else there is no result.

    >>> shifted(lshift, "bshl", 32, True, 5, 33), shifted(lshift, "bshl", 32, False, 5, 33)
    ((10,), ())
    """
    if wraps:
        b %= bits
    if not 0 <= b < bits:
        return ()
    return (shift(unsigned(a, bits) if name == "bshru" else a, b),)


def substr(text: str, start: int, length: int) -> str:
    """Return `length` characters from `start`, or fewer at the end of the text."""
    return text[start : start + length] if start >= 0 and length >= 0 else ""


def number_in(is_unsigned: bool, text: str | float) -> tuple[int, ...]:
    """Return the number that a text denotes, if it is one; of a float the integral part.

    >>> number_in(False, "-12"), number_in(True, "-12"), number_in(False, "1x")
    ((-12,), (), ())
    >>> number_in(False, 1.5)
    (1,)
    """
    if not isinstance(text, str):
        return truncated(text)
    try:
        found = int(text, 0 if text.lower().lstrip("+-").startswith(("0x", "0b")) else 10)
    except ValueError:
        return ()
    return () if is_unsigned and found < 0 else (found,)


def float_in(text: str | float) -> tuple[float, ...]:
    """Return the float in a text, or a number as float, as a 1-tuple; () if there is none."""
    try:
        return (float(text),)
    except (ValueError, OverflowError):
        return ()


def truncated(value: float) -> tuple[int, ...]:
    """Return the integral part of a float; nothing for NaN and infinity."""
    try:
        return (int(value),)
    except (ValueError, OverflowError):
        return ()


def between(start: Any, end: Any, step: Any = None) -> tuple[Any, ...]:
    """Return the numbers from a start to an end, which is left out; downwards if the end is less.

    >>> between(1, 4), between(3, 0), between(0.0, 1.0, 0.5), between(0, 9, -1)
    ((1, 2, 3), (3, 2, 1), (0.0, 0.5), ())
    """
    one = type(start)(1)
    by = (one if start <= end else -one) if step is None else step
    if not by:
        return (start,) if start != end else ()
    found: list[Any] = []
    now = start
    while now < end if by > 0 else now > end:
        if len(found) >= MOST_NUMBERS or now + by == now:
            raise FixpointError(
                f"cannot list range({start}, {end}): it has more than {MOST_NUMBERS:,} numbers\n"
                "  give it a nearer end; an unsigned -1 is the greatest number there is"
            )
        found.append(now)
        now = now + by
    return tuple(found)


MOST_NUMBERS = 10_000_000
"""The numbers that one range may have."""


def matches(pattern: str, text: str) -> bool:
    """Return True if a regular expression matches all of a text; a malformed one matches none.

    >>> matches("[[:alpha:]_][[:alnum:]]*", "_x1"), matches("[[:digit:]]+", "1x")
    (True, False)
    """
    found = _compiled(pattern)
    return found is not None and found.fullmatch(text)


def mismatches(pattern: str, text: str) -> bool:
    """Return True if a valid regular expression does not match the whole text.

    >>> mismatches("a+", "b"), mismatches("(", "b")
    (True, False)
    """
    found = _compiled(pattern)
    return found is not None and not found.fullmatch(text)


CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "d": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "s": " \\t-\\r",
    "space": " \\t-\\r",
    "upper": "A-Z",
    "w": "a-zA-Z0-9_",
    "xdigit": "0-9A-Fa-f",
}
"""The classes of characters that brackets of a regular expression may name: `[[:alpha:]]`."""
_NAMED_CLASS = re.compile(r"\[([:.=])(.*?)\1\]", re.DOTALL)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Expression | None:
    """Return a regular expression in Python's spelling; None if it is wrong."""
    try:
        return Expression(re.compile(_in_python(pattern)))
    except (re.error, KeyError, OverflowError, RecursionError):
        return None


def _in_python(pattern: str) -> str:
    """Return a pattern in Python's syntax: classes named in brackets are written out.

    >>> _in_python("a[^[:digit:][.-.]x[]b[[:space:]]")
    'a[^0-9\\\\-x\\\\[]b[ \\\\t-\\\\r]'
    """
    found: list[str] = []
    place, is_inside = 0, False
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\":
            found.append(pattern[place : place + 2])
            place += 2
            continue
        if is_inside and sign == "[":
            named = _NAMED_CLASS.match(pattern, place)
            if named is not None:
                found.append(CLASSES[named[2]] if named[1] == ":" else re.escape(named[2]))
                place = named.end()
                continue
            sign = "\\["
        elif sign == "[":
            is_inside = True
        elif sign == "]":
            is_inside = False
        found.append(sign)
        place += 1
    return "".join(found)


_NAMED: dict[str, Call] = {
    "%": remainder,
    "substr": substr,
    "to_float": float_in,
    "range": between,
}
