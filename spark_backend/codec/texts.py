"""Operations of text whose meaning is the same in Python and on Spark, code point by code point.

Not upper, lower, strip without characters: Java and Python know different versions of
Unicode, and Spark strips spaces where Python strips all that is blank.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_backend.codec.schema import LARGEST, Plain, Record, Whole, is_text, type_name
from spark_backend.codec.values import Inexact, Value, literal, present

LONGEST = 2**31 - 1
_STRIPS = {"strip": F.btrim, "lstrip": F.ltrim, "rstrip": F.rtrim}


def length(value: Value) -> Value:
    """`len(value)`"""
    value = present(value, "len")
    if value.of.kind in (str, bytes):
        return Value(F.length(value.column).cast("bigint"), Plain(int, low=0, high=LONGEST))
    if isinstance(value.of, Record) and value.of.kind is tuple:
        return literal(len(value.of.fields))
    if isinstance(value.of, Whole) and value.of.of is not None:
        return Value(_count(value.of, value.column), Plain(int, low=0, high=LARGEST))
    raise Inexact(f"len of {type_name(value.of)} is not Spark's")


def _count(of: Whole, column: Column) -> Column:
    """How many values are in a bag or sequence."""
    if of.kind in (tuple, frozenset):
        return F.size(column).cast("bigint")
    none = F.lit(0).cast("bigint")
    return F.aggregate(column, none, lambda found, pair: found + pair.getField("weight"))


def joined(left: Value, right: Value) -> Value:
    """`left + right`"""
    return Value(F.concat(present(left, "+").column, present(right, "+").column), Plain(str))


def piece(value: Value, bounds: list[Any]) -> Value:
    """`value[start:stop]`, for bounds that are not negative."""
    start, stop, step = bounds
    start = 0 if start is None else start
    simple = type(start) is int and (stop is None or type(stop) is int) and step in (None, 1)
    if value.of.kind is not str or not simple or start < 0 or (stop is not None and stop < 0):
        raise Inexact("the slice is not Spark's")
    count = min(LONGEST if stop is None else max(0, stop - start), LONGEST - start - 1)
    if count < 0:
        raise Inexact("the slice is too far away")
    return Value(F.substring(present(value, "[...]").column, start + 1, count), Plain(str))


def method(value: Value, name: str, arguments: list[Any]) -> Value:
    """A call of a method of `str` with constants."""
    if value.of.kind is not str:
        raise Inexact(f".{name}() of {type_name(value.of)} is not Spark's")
    column = present(value, f".{name}()").column
    match name, arguments:
        case "startswith" | "endswith", [str() | tuple() as wanted]:
            return Value(_edge(column, name, wanted), Plain(bool))
        case "strip" | "lstrip" | "rstrip", [str() as characters] if characters:
            return Value(_STRIPS[name](column, _text(characters)), Plain(str))
        case "replace", [str() as old, str() as new] if old:
            return Value(F.replace(column, _text(old), _text(new)), Plain(str))
        case _:
            raise Inexact(f".{name}() is not Spark's")


def _edge(column: Column, name: str, wanted: str | tuple[Any, ...]) -> Column:
    asked = (wanted,) if isinstance(wanted, str) else wanted
    if not all(type(text) is str for text in asked):
        raise Inexact(f".{name}() may raise")
    at = column.startswith if name == "startswith" else column.endswith
    return reduce(lambda a, b: a | b, [at(_text(text)) for text in asked], F.lit(False))


def _text(text: str) -> Column:
    if type(text) is not str or not is_text(text):
        raise Inexact("an argument of it is no text that Spark can hold")
    return F.lit(text)
