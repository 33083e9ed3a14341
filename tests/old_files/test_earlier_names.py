"""Modules are found by the names that they had before they moved, and are the same ones."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from optimizer.earlier_names import MOVED, current_name, earlier_name

ROOT = Path(__file__).parents[2]
COMMANDS = ("reactive.sql", "reactive.sources.postgres")


@pytest.mark.parametrize("before", sorted(MOVED))
def test_an_earlier_name_finds_the_module_of_today(before: str) -> None:
    now = import_module(MOVED[before])
    if before not in ("reactive.sql", "reactive.datalog"):  # modules of today
        assert import_module(before) is now
    assert now.__spec__ is not None and now.__spec__.name == now.__name__ == MOVED[before]
    assert earlier_name(MOVED[before]) == before and current_name(before) == MOVED[before]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("reactive.sql.runtime.intervals", "reactive.languages.sql.runtime.intervals"),
        ("reactive.operators.generated.single", "reactive.engine.operators.loops.single"),
        ("reactive.subscriptions.relay", "reactive.api.subscriptions.relay"),
        ("reactive.transactions.read_only", "reactive.borders.durable.read_only"),
        ("reactive.transactions.commit", "reactive.engine.transactions.commit"),
    ],
)
def test_a_module_below_is_imported_once(before: str, now: str) -> None:
    assert import_module(before) is import_module(now) is sys.modules[before]
    assert earlier_name(now) == before


def test_no_module_is_found_that_there_never_was() -> None:
    for name in ("reactive.operators.nothing", "reactive.nothing", "reactive.sql.nothing"):
        with pytest.raises(ModuleNotFoundError, match=name.replace(".", r"\.")):
            import_module(name)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_run_by_the_name_that_users_type(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", command, "--help"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert f"python -m {command}" in done.stdout


def test_public_modules_are_thin() -> None:
    for name, word in (("reactive.sql", "main"), ("reactive.datalog", "Program")):
        module = import_module(name)
        assert module.__all__ == [word] and callable(getattr(module, word))
