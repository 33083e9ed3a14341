"""Golden files of the operators: the changes that each emits, for given input changes.

    t.join(u, on=lambda a, b: a[0] == b[0])      the query, over tables of pairs

    t + ("x", 1)                                 the changes of one commit
    u + ("x", 7)

      + (("x", 1), ("x", 7))                     the changes that its view emits

Each commit is also made and rolled back first, which must leave no trace; and the view is compared
with an evaluation from scratch after it. The class name of an operator finds its golden file, or
its test; `HELPERS` gives the purpose of files without one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reactive
from reactive import Count, Database, Max, Sum
from tests.replica import Replica
from tests.written import evaluated

FOLDER = Path(__file__).parent.parent.parent / "golden" / "operators"
OPERATORS = Path(reactive.__file__).parent / "engine" / "operators"
HELPERS = {
    "accumulators": "the sums and values that `aggregate` and `sums_by` keep",
    "cycles": "joins in a cycle, put together: tests/engine/operators/loops/test_paths.py",
    "closing_asof": "as-of joins of streams: tests/api/test_asof_of_streams.py",
    "closing_sets": "set operations over streams: tests/api/test_sets_of_streams.py",
    "frontiers": "what is closed in the rows of a plan: tests/api/test_interval_joins.py",
    "fuse": "several operators as one loop: tests/engine/operators/loops, tests/engine/codegen",
    "hash_matching": "values that may clash: tests/errors/test_made_values_that_clash.py",
    "next_change": "when a bound that moves changes something: tests/api/test_clock.py",
    "statistics": "what aggregates of statistics keep: tests/api/test_statistics.py",
    "tolerant": "aggregates of one's own that may raise: tests/api/test_rows_that_raise.py",
}


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.txt")):
        for number, text in enumerate(path.read_text().split("\n---\n"), 1):
            yield pytest.param(text.strip("\n"), id=f"{path.stem}-{number}")


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("text", [*cases()])
def test_what_goes_in_and_what_comes_out(text: str, optimize: bool) -> None:
    query, *blocks = text.split("\n\n")
    assert "\n\n".join([query, *played(query, blocks[::2], optimize=optimize)]) == text


def played(query: str, commits: list[str], *, optimize: bool) -> Iterator[str]:
    """Yield the commits, each followed by the emitted changes."""
    db = Database(optimize=optimize)
    tables: dict[str, Any] = {name: db.table(tuple, name=name) for name in "tu"}
    names = {**tables, "db": db, "Count": Count, "Sum": Sum, "Max": Max}
    view = evaluated(query, names).materialize()
    replica, told = Replica(view), list[Any]()
    subscription = view.subscribe(told.append)
    for commit in commits:
        called_off(db, tables, commit)
        assert told == []
        with db.transaction():
            change(tables, commit)
        view.verify()
        replica.check()
        yield commit
        yield shown(told)
        told.clear()
    subscription.close()


def called_off(db: Database, tables: dict[str, Any], commit: str) -> None:
    """The commit, undone at its end."""
    with pytest.raises(KeyError), db.transaction():
        change(tables, commit)
        raise KeyError


def change(tables: dict[str, Any], commit: str) -> None:
    for line in commit.splitlines():
        name, sign, row = line.split(" ", 2)
        verb = tables[name].add if sign == "+" else tables[name].remove
        verb(evaluated(row, {}))


def shown(told: list[Any]) -> str:
    """Return a line for each inserted or deleted copy of a row."""
    lines = [
        f"  {'+' if weight > 0 else '-'} {row!r}"
        for delta in told
        for row, weight in delta.items()
        for _ in range(abs(weight))
    ]
    return "\n".join(sorted(lines, key=lambda line: (line[2] == "+", line)) or ["  nothing"])


def test_every_operator_has_a_test_of_its_name() -> None:
    names = {path.stem: _names(path) for path in OPERATORS.glob("*.py") if path.stem != "__init__"}
    golden = {path.stem for path in FOLDER.glob("*.txt")}
    own = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert golden <= set().union(*names.values()), "a golden file is about no operator"
    assert {file for file, found in names.items() if not found & (golden | own)} == HELPERS.keys()


def _names(path: Path) -> set[str]:
    """The names that a file defines, written as file names are, and its own."""
    defined = (
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    )
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() for name in defined)
    return {path.stem, *(word.removeprefix("make_") for word in words)}
