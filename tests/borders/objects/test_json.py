"""Rows of objects, with lists, dictionaries and sets, are written as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pydantic
import pydantic_core
import pytest

from reactive import Database, to_python, tracked

Encode = Callable[[Any], str | bytes]


@tracked
@dataclass(eq=False)
class Data:
    id: int
    lines: list[Any]
    tags: dict[str, Any]
    kinds: set[str]


@tracked
class Structure(msgspec.Struct):
    id: int
    lines: list[Any]
    tags: dict[str, Any]
    kinds: set[str]


@tracked
class Model(pydantic.BaseModel):
    id: int
    lines: list[Any]
    tags: dict[str, Any]
    kinds: set[str]


@tracked(exclude=["kinds"])
class Part:
    id: int
    lines: list[Any]
    tags: dict[str, Any]
    kinds: set[str]


def by_orjson(value: Any) -> Any:
    return pytest.importorskip("orjson").dumps(value, default=to_python)


ENCODERS: list[Encode] = [
    lambda value: json.dumps(value, default=to_python),
    lambda value: msgspec.json.encode(value, enc_hook=to_python),
    lambda value: pydantic_core.to_json(value, fallback=to_python),
    lambda value: pydantic.TypeAdapter(object).dump_json(value, fallback=to_python, warnings=False),
    lambda value: json.dumps(to_python(value)),
    by_orjson,
]
PLAIN = {"id": 1, "lines": [[1, {"a": [2]}], "x"], "tags": {"b": [3]}, "kinds": ["c"]}


def row_of(kind: Any) -> Any:
    orders = Database().table(kind, key="id")
    orders.add(kind(id=1, lines=[[1, {"a": [2]}], "x"], tags={"b": [3]}, kinds={"c"}))
    return orders[1]


@pytest.mark.parametrize("encode", ENCODERS)
@pytest.mark.parametrize("kind", [Data, Structure, Model])
def test_encoders_write_rows_and_parts_of_them(kind: Any, encode: Encode) -> None:
    row = row_of(kind)
    assert json.loads(encode(row)) == PLAIN
    for name, value in PLAIN.items():
        assert json.loads(encode(getattr(row, name))) == value


def test_views_give_plain_data_of_them() -> None:
    db = Database()
    orders = db.table(Data, key="id")
    orders.add(Data(1, [[1, {"a": [2]}], "x"], {"b": [3]}, {"c"}))
    assert orders.materialize().to_python() == [PLAIN]
    row: Any = orders[1]
    assert (row.lines[:0].to_python(), row.tags.to_python(), row.kinds.to_python()) == (
        [],
        {"b": [3]},
        ["c"],
    )


def test_what_is_not_in_a_row_is_left_out() -> None:
    assert to_python(row_of(Part)) == {n: v for n, v in PLAIN.items() if n != "kinds"}


def test_json_has_dates_as_texts() -> None:
    row = row_of(Data)
    made = json.loads(json.dumps([row, (date(2026, 1, 1),)], default=to_python))
    assert made[1] == ["2026-01-01"]
    assert (to_python(7), to_python(("a", None))) == (7, ["a", None])
