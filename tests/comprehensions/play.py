"""Make queries of texts, change the tables, and compare after every commit."""

from __future__ import annotations

import linecache
import warnings
from collections import Counter, defaultdict
from itertools import count
from random import Random
from typing import Any

from reactive.api.family import find_difference
from reactive.errors import PlanError
from tests.comprehensions.rows import Tables, apply
from tests.comprehensions.texts import Texts

COMMITS = 6
SHUFFLES = 24
_numbers = count()


class Difference(AssertionError):
    """A view and its text do not agree."""


def function_of(text: str, names: dict[str, Any]) -> Any:
    """The function that a text defines, whose source can be found."""
    file = f"<comprehension {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = {**names, "defaultdict": defaultdict}
    exec(compile(text, file, "exec", dont_inherit=True), module)
    return module["query"]


def play(text: str, seed: int) -> str:
    """Play a text; return `"played"`, `"refused"`, or `"raises"` if it raises from the start.

    Raises
    ------
    Difference: the view differs from the result of Python.
    """
    random = Random(seed)
    tables = Tables()
    query = function_of(text, tables.names())
    for _ in range(random.choice((0, 1, 3))):
        apply(tables.change(random), tables.db)
    made = tables.db.query(query)
    try:
        view = made.materialize("played")
    except Exception as error:
        expect_raise(made, error, random, tables, text)
        return "raises"
    for number in range(COMMITS):
        _compare(view, text, seed, number)
        changes = tables.change(random)
        before = {name: list(rows) for name, rows in tables.names().items() if name in "abdtn"}
        try:
            apply(changes, tables.db)
        except Exception as error:
            held = _after(changes, before)
            expect_raise(made, error, random, tables, text, held)
    _compare(view, text, seed, COMMITS)
    return "played"


def _compare(view: Any, text: str, seed: int, number: int) -> None:
    try:
        found = find_difference(view)
    except Exception as error:
        found = f"Python raises {error!r}"
    if found is not None:
        raise Difference(f"{text}\nseed {seed}, commit {number}: {found}")


def _after(changes: list[tuple[Any, bool, Any]], before: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the rows of the tables after the changes."""
    rows = {name: Counter(each) for name, each in before.items()}
    for table, comes, row in changes:
        if not comes:
            rows[table.name] -= Counter([row])
            continue
        if table.name == "d":
            rows["d"] = Counter(r for r in rows["d"] if r.id != row.id)
        rows[table.name][row] += 1
    return {name: list(each.elements()) for name, each in rows.items()}


def expect_raise(
    made: Any,
    error: Exception,
    random: Random,
    tables: Tables,
    text: str,
    held: dict[str, Any] | None = None,
) -> None:
    """Python raises too, for one order of the rows."""
    rows = held or {name: list(getattr(tables, name)) for name in "abdtn"}
    given = rows | {
        "big": [row for row in rows["a"] if row.v > 2],
        "view": [(row.k, row.v) for row in rows["b"]],
    }
    used = {name: each for name, each in given.items() if name in made.text.names()}
    for _ in range(SHUFFLES):
        for each in used.values():
            random.shuffle(each)
        try:
            made.on(**used)
        except Exception:
            return
    raise Difference(f"{text}\nthe view raises {error!r}, and Python does not, over {used}")


def play_many(number: int, seed: int, depth: int = 3, *, report: Any = None) -> Counter[str]:
    """Play texts; return the number of texts per outcome."""
    found: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        for each in range(seed, seed + number):
            text = Texts(Random(each)).function(depth)
            try:
                found[play(text, each)] += 1
            except PlanError as error:
                found["refused"] += 1
                if report is not None:
                    report(each, text, error)
            except Exception as error:
                if report is None:
                    raise
                found["differs"] += 1
                report(each, text, error)
    return found
