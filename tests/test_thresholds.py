"""Every number of the library is known as a threshold, or as none; and thresholds can be set."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Database
from reactive.engine.transactions.followers import followers_of
from tests.thresholds import (
    HIGHEST,
    LOWEST,
    NO_THRESHOLDS,
    THRESHOLDS,
    WAYS,
    Settings,
    drawn,
    thresholds,
)

ROOT = Path(__file__).parent.parent
FILES = sorted(path for name in ("optimizer", "reactive") for path in (ROOT / name).rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def constants(path: Path) -> Iterator[str]:
    """Yield the capitalized names that a module assigns a number, also several at a time."""
    module = import_module(module_of(path))
    for statement in ast.parse(path.read_text()).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for node in (node for target in targets for node in ast.walk(target)):
            if isinstance(node, ast.Name) and node.id.isupper():
                yield from [f"{module.__name__}.{node.id}"] * is_number(getattr(module, node.id))


def is_number(value: object) -> bool:
    return type(value) in (int, float)


@pytest.mark.long
def test_every_number_is_known_as_a_threshold_or_as_none() -> None:
    found = {name for path in FILES for name in constants(path)}
    assert found == THRESHOLDS.keys() | NO_THRESHOLDS.keys()
    assert not THRESHOLDS.keys() & NO_THRESHOLDS.keys()


@pytest.mark.long
def test_no_module_copies_a_threshold_of_another() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert not names & THRESHOLDS.keys(), f"{path} has a copy, which cannot be set"


@pytest.mark.parametrize("way", WAYS)
def test_thresholds_are_as_shipped_afterwards(way: str) -> None:
    before = values()
    with pytest.raises(ZeroDivisionError), thresholds(WAYS[way]):
        assert values() == {**before, **WAYS[way]}
        raise ZeroDivisionError
    assert values() == before


def test_drawn_thresholds_are_known_and_fit_each_other() -> None:
    for seed in range(50):
        settings = {**values(), **drawn(Random(seed))}
        assert settings.keys() == THRESHOLDS.keys()
        load, most = (
            settings["reactive.engine.collections.ranked.LOAD"],
            settings["reactive.engine.collections.ranked.MOST"],
        )
        assert settings["reactive.engine.collections.ranked.LEAST"] < load < most


def values() -> dict[str, int]:
    found = {}
    for name in THRESHOLDS:
        module, _, constant = name.rpartition(".")
        found[name] = getattr(import_module(module), constant)
    return found


def test_at_their_lowest_the_second_commit_is_generated_code() -> None:
    commits = {}
    for settings in (LOWEST, HIGHEST):
        with thresholds(settings):
            db = Database()
            table: Any = db.table(tuple, name="rows")
            view = table.select(lambda row: row[0] * 2).materialize()
            for number in range(3):
                table.add((number, 0))
            assert sorted(view) == [0, 2, 4]
            commits[settings["reactive.engine.dataflow.schedule.OFTEN"]] = (
                table._node.compiled_step is not None
            )
    assert commits == {0: True, 10**9: False}


@dataclass(frozen=True)
class Order:
    customer: int
    amount: int


@pytest.mark.parametrize(("settings", "expected"), [(LOWEST, True), (HIGHEST, False)])
def test_at_their_lowest_the_first_reader_of_a_value_has_an_index(
    settings: Settings, expected: bool
) -> None:
    with thresholds(settings):
        db = Database()
        table = db.table(Order)
        view = table.where(lambda o: o.customer == 1).materialize()
        table.add_all([Order(1, 2), Order(2, 3)])
        assert list(view) == [Order(1, 2)]
        assert any(node.routes for node, _ in table._node.consumers) == expected


def test_a_module_that_is_read_through_a_stand_in_has_its_own_thresholds_afterwards() -> None:
    table = Database().table(tuple[int, str], name="rows")
    table.add_all([(n, "a") for n in range(300)])
    with thresholds(HIGHEST):
        table.replace_where(lambda row: row[0] == 1, [])
    for _ in range(3):
        table.replace_where(lambda row: row[0] == 1, [])
    assert followers_of(table).by_field.indexes
