"""Modules are found by their earlier names, and are the same objects."""

from __future__ import annotations

import pickle
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
    assert now.__spec__ is not None and now.__spec__.name == now.__name__ == current_name(before)
    assert earlier_name(MOVED[before]) == before


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("reactive.sql.runtime.intervals", "reactive.languages.sql.runtime.intervals"),
        ("reactive.operators.generated.whole", "reactive.engine.operators.loops.whole_round"),
        ("reactive.subscriptions.latest", "reactive.api.subscriptions.latest"),
        ("reactive.transactions.read_only", "reactive.borders.durable.read_only"),
        ("reactive.transactions.commit", "reactive.engine.transactions.commit"),
    ],
)
def test_a_module_below_is_imported_once(before: str, now: str) -> None:
    assert import_module(before) is import_module(now) is sys.modules[before]
    assert earlier_name(now) == before


@pytest.mark.parametrize(
    ("before", "now", "name"),
    [
        ("reactive.operators.outer_join", "reactive.engine.operators.matching", "OuterJoin"),
        ("reactive.operators.matching", "reactive.engine.operators.matching", "Matching"),
        ("reactive.dataflow.borrowed", "reactive.engine.dataflow.leaves", "BorrowedLeaf"),
        ("reactive.sql.runtime.sort_keys", "reactive.languages.sql.runtime.rows", "Tied"),
    ],
)
def test_a_merged_module_is_imported_by_its_earlier_names(before: str, now: str, name: str) -> None:
    assert import_module(before) is import_module(current_name(before)) is import_module(now)
    assert current_name(before) == now and earlier_name(now, f"{name}.method") == before


def test_a_class_is_unpickled_by_the_module_that_it_was_in() -> None:
    for text in (
        b"creactive.operators.outer_join\nOuterJoin\n.",
        b"coptimizer.plans.nodes.top\nTop\n.",
    ):
        found = pickle.loads(text)
        assert pickle.loads(pickle.dumps(found)) is found


def _merged_modules() -> list[tuple[str, str, list[str]]]:
    """Return the current module, a module merged into it, and the names of the latter."""
    found, today = [], ""
    for line in (ROOT / "optimizer" / "merged_names.txt").read_text().splitlines():
        if line.startswith(" "):
            leaf, _, names = line.strip().partition(":")
            found.append((today, f"{today.rpartition('.')[0]}.{leaf}", names.split()))
        else:
            today = line.partition(" = ")[0]
    return found


def test_merged_modules_have_the_names_of_their_parts() -> None:
    merged = _merged_modules()
    assert len({before for _, before, _ in merged}) == len(merged) > 400
    for now, before, names in merged:
        assert not (ROOT / f"{before.replace('.', '/')}.py").exists(), before
        assert current_name(before) == now
        module = import_module(now)
        for name in names:
            assert name == "<lambda>" or hasattr(module, name), f"{now}.{name}"
            assert current_name(earlier_name(now, name)) == now


def test_an_import_does_not_read_the_list_of_merged_modules() -> None:
    code = (
        "import reactive, optimizer.earlier_names as e;"
        "print(e._read_merged_names.cache_info().currsize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "0\n"


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
        assert word in module.__all__ and callable(getattr(module, word))
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == name]
        assert set(own) <= {"__getattr__"}, "all that it has is defined elsewhere"
