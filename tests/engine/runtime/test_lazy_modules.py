"""Imports of a small program: few modules; all others are loaded on demand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import reactive
from reactive.engine.runtime.lazy_modules import LAZY_MODULES

ROOT = Path(__file__).parents[3]
IMPORTED = 223
"""Modules of our own that `import reactive` takes at most: each costs 0.2 to 0.4 ms."""
OWN = "[m for m in sys.modules if m.partition('.')[0] in ('optimizer', 'reactive')]"
SMALL_PROGRAM = """
from dataclasses import dataclass
from reactive import Count, Database, Sum

@dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: int

orders = Database().table(Order)
orders.add_all(Order(n, f"c{n % 3}", n) for n in range(10))
sums = (orders.where(lambda o: o.amount > 3).group_by(lambda o: o.customer)
              .aggregate(Sum(lambda o: o.amount), Count()).materialize())
told = []
subscription = sums.subscribe(told.append)
orders.add(Order(10, "c1", 5))
orders.remove(Order(10, "c1", 5))
assert len(told) == 2 and sums["c1"] and len(sums) == 3
"""


def run(code: str) -> Any:
    """Return the value of `told` in a new process that runs `code`, as JSON."""
    command = [sys.executable, "-c", f"import json, sys\n{code}\nprint(json.dumps(told))"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return json.loads(done.stdout)


def is_lazy(module: str) -> bool:
    return module in LAZY_MODULES or module in LAZY_OF_OPTIMIZER


LAZY_OF_OPTIMIZER: set[str] = set(
    run(
        "import optimizer.lazy, optimizer\n"
        "told = [f'{p}.{n}' for p, m in list(sys.modules.items()) if p.startswith('optimizer')"
        " for n, v in vars(m).items() if isinstance(v, optimizer.lazy.Lazy)]"
    )
)


def test_an_import_takes_few_modules_and_none_of_the_lazy_ones() -> None:
    found = run(f"import reactive\ntold = {OWN}")
    assert [module for module in found if is_lazy(module)] == []
    assert len(found) <= IMPORTED


def test_a_small_program_imports_none_of_the_lazy_ones() -> None:
    found = run(f"{SMALL_PROGRAM}\ntold = {OWN}")
    assert [module for module in found if is_lazy(module)] == []


@pytest.mark.long
def test_all_lazy_modules_can_be_imported_first() -> None:
    assert len(LAZY_OF_OPTIMIZER) >= 5
    for module in ("optimizer.plans.multiway", *LAZY_MODULES[::12]):
        assert run(f"import {module}\ntold = '{module}' in sys.modules")


def test_lazy_modules_are_listed_in_order() -> None:
    assert list(LAZY_MODULES) == sorted(set(LAZY_MODULES))


def test_public_names_are_there_without_having_been_asked_for() -> None:
    told = run(
        "import reactive\n"
        "names = dir(reactive)\n"
        "from reactive import *\n"
        "told = [n for n in reactive.__all__ if n not in names or n not in globals()]"
    )
    assert told == []
    with pytest.raises(AttributeError, match="has no attribute 'Databases'"):
        _ = reactive.Databases


def test_public_classes_that_are_not_imported_yet_are_unpickled() -> None:
    told = run(
        "import pickle\n"
        "text = b'creactive.offload.status\\nOffloadStatus\\n.'\n"
        "found = pickle.loads(text)\n"
        "import reactive\n"
        "told = found is reactive.OffloadStatus"
    )
    assert told


STANDARD = 10
"""Classes that the standard decorator makes during `import reactive`: each takes 0.4 ms."""


def test_an_import_makes_few_classes_by_the_standard_decorator() -> None:
    made: int = run(
        "import dataclasses\n"
        "told, make = 0, dataclasses._process_class\n"
        "def counted(*given, **named):\n"
        "    global told\n"
        "    told += 1\n"
        "    return make(*given, **named)\n"
        "dataclasses._process_class = counted\n"
        "import reactive"
    )
    assert 0 < made <= STANDARD
