"""Texts of Postgres as values, against the values of the driver."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from random import Random
from typing import Any

import psycopg2
import pytest

from reactive.borders.sources.postgres.values import (
    BUILT_IN,
    TEXT,
    array_conversion,
    fit_conversion,
    frozen_json,
    parse_array,
    parse_interval,
)
from reactive.engine.collections.frozen_object import FrozenObject
from tests.postgres_server import PostgresServer

TEXTS = ["", "a", "NULL", "null", '"', "\\", "{", "}", ",", " a b ", "\n", "ä", "{1,2}", None]


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def test_arrays_are_read_as_the_driver_reads_them(database: str) -> None:
    random = Random(1)
    connection = psycopg2.connect(database)
    with connection.cursor() as cursor:
        for _ in range(200):
            width, depth = random.randrange(1, 4), random.randrange(2)
            row = [random.choice(TEXTS) for _ in range(width)]
            rows: Any = row if not depth else [row, row[::-1]]
            cursor.execute("select v, v::text from (select %s::text[] as v) t", [rows])
            value, text = cursor.fetchall()[0]
            assert parse_array(text, None) == frozen(value) == frozen(rows)
    connection.close()
    assert parse_array("{}", int) == ()


def test_intervals_have_their_length(postgres: PostgresServer, database: str) -> None:
    random = Random(2)
    for _ in range(20):
        days, micro = random.randrange(-400, 400), random.randrange(-(10**12), 10**12)
        query = f"select (interval '{days} days {micro} microseconds')::text"
        ((text,),) = postgres.execute(database, query)
        assert parse_interval(text) == timedelta(days=days, microseconds=micro)
    for text in ("1 mon", "1 year 2 days", "", "x"):
        if text:
            with pytest.raises(ValueError, match="no fixed length"):
                parse_interval(text)


def test_frozen_json_equals_what_it_says() -> None:
    found = frozen_json('{"a": {"b": [1, {"c": null}]}, "d": [[]]}')
    assert found == {"a": {"b": (1, {"c": None})}, "d": ((),)}
    assert hash(found) == hash(frozen_json('{"d": [[]], "a": {"b": [1, {"c": null}]}}'))
    assert found != frozen_json("{}") and found != 7
    assert isinstance(found["a"], FrozenObject) and len(found) == 2
    assert frozen_json("[1, [2]]") == (1, (2,)) and frozen_json("null") is None


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Line:
    item: str
    colours: frozenset[Colour]


JSONB = BUILT_IN[3802]


@pytest.mark.parametrize(
    ("conversion", "hint", "text", "value"),
    [
        (JSONB, frozenset[int], "[1, 2, 1]", frozenset({1, 2})),
        (JSONB, Line, '{"item": "a", "colours": ["red"]}', Line("a", frozenset({Colour.RED}))),
        (JSONB, tuple[Line, ...] | None, "[]", ()),
        (JSONB, tuple[timedelta, int], '["PT1S", 2]', (timedelta(seconds=1), 2)),
        (array_conversion(TEXT), tuple[Colour, ...], "{red,RED}", (Colour.RED, Colour.RED)),
        (array_conversion(TEXT), frozenset[str] | None, "{a,b,a}", frozenset("ab")),
        (array_conversion(BUILT_IN[20]), tuple[float | None, ...], "{1,NULL}", (1.0, None)),
        (
            array_conversion(BUILT_IN[20]),
            tuple[int, ...],
            "{1,NULL}",
            (1, None),
        ),  # as `row_class` has it
    ],
)
def test_what_is_inside_is_read_as_declared(
    conversion: Any, hint: Any, text: str, value: Any
) -> None:
    found = fit_conversion(conversion, hint)
    assert found is not None and found.call is not None
    again = found.call(text)
    assert again == value and type(again) is type(value)


def test_what_is_inside_and_of_another_type_is_refused() -> None:
    for hint, text in ((frozenset[int], '["a"]'), (Line, "{}"), (tuple[int, int], "[1]")):
        found = fit_conversion(JSONB, hint)
        assert found is not None and found.call is not None
        with pytest.raises(ValueError, match=r" is no |no 'item' in "):
            found.call(text)
