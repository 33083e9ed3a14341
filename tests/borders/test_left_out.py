"""A border or a language can be left out: all else works, and its users get a clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import reactive.borders
import reactive.languages

ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == LEFT_OUT or name.startswith(LEFT_OUT + "."):
            raise ModuleNotFoundError(f"No module named {LEFT_OUT!r}", name=LEFT_OUT)

sys.meta_path.insert(0, Blocked())
"""
PROGRAM = """
from dataclasses import dataclass
from reactive import Count, Database, PlanError, OffloadError, Sum

@dataclass(frozen=True)
class Order:
    id: int
    customer: str

db = Database()
orders = db.table(Order, key="id")
orders.add_all(Order(n, f"c{n % 3}") for n in range(10))
per_customer = orders.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.id), Count())
view = per_customer.materialize()
told = []
with view.subscribe(told.append):
    orders.remove(Order(9, "c0"))
with db.transaction():
    orders.upsert(Order(1, "c9"))
view.verify()
assert len(told) == 1 and len(view) == 4 and view.explain()
"""
USES = {
    "borders.durable": "Database('no/such/file.db')",
    "borders.frames": "view.to_arrow()",
    "borders.mirrors": "__import__('reactive').mirror",
    "borders.objects": "db.touch(orders)",
    "borders.offload": "view.offload()",
    "borders.sinks": "view.changes_to(print)",
    "borders.sources": "db.ingest(lambda since, stop: [], orders)",
    "borders.two_commits": "db.transaction(commit_with=object())",
    "languages.datalog": "db.datalog('.decl a(x: number)')",
    "languages.sql": "db.sql('select id from orders')",
}


def packages() -> set[str]:
    """The borders and languages that there are."""
    return {
        f"{wing.__name__.partition('.')[2]}.{folder.name}"
        for wing in (reactive.borders, reactive.languages)
        for folder in Path(wing.__path__[0]).iterdir()
        if (folder / "__init__.py").exists()
    }


def test_each_border_and_language_is_tried() -> None:
    assert USES.keys() == packages()


@pytest.mark.long
@pytest.mark.parametrize("name", USES)
def test_all_else_works_without_it_and_what_needs_it_names_it(name: str) -> None:
    code = f"""LEFT_OUT = "reactive.{name}"
{BLOCKED}
{PROGRAM}
try:
    {USES[name]}
except (PlanError, OffloadError, ModuleNotFoundError) as error:
    print(error)
db.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"reactive.{name}" in done.stdout, done.stdout
