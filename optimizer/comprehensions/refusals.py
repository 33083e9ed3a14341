"""What a comprehension over relations cannot have, with where it is written and what to do.

PlanError: query 'first': orders[:3] depends on the order of rows, which they do not have
  shop.py:12, column 12: orders[:3]
  take the first of sorted(...): sorted(rows, key=...)[:n]
"""

from __future__ import annotations

import ast
from typing import Any

from optimizer.callables.source import place_at
from optimizer.errors import PlanError

ORDER = "depends on the order of rows, which they do not have"
OF_FUNCTIONS: dict[str, tuple[str, str]] = {
    "next": (ORDER, "min(rows, key=...) or max(rows, key=...) is one of them"),
    "iter": (ORDER, "use the rows themselves"),
    "enumerate": (ORDER, "number the rows where they are added, as a field of theirs"),
    "zip": (ORDER, "join them: for a in left for b in right if a.id == b.id"),
    "reversed": (ORDER, "sorted(rows, key=..., reverse=True)"),
    "islice": (ORDER, "sorted(rows, key=...)[:n]"),
    "takewhile": (ORDER, "an `if` in the comprehension"),
    "dropwhile": (ORDER, "an `if` in the comprehension"),
    "accumulate": (ORDER, "sum(b.x for b in rows if b.time <= a.time) for each row a"),
    "pairwise": (ORDER, "max((b for b in rows if b.time < a.time), key=...) for each row a"),
    "groupby": (ORDER, "d = defaultdict(list), a loop with d[key].append(value), and d"),
    "chain": ("is not read over relations", "list(a) + list(b), or two comprehensions with +"),
    "product": ("is not read over relations", "for a in left for b in right"),
    "reduce": (ORDER, "sum, min or max; or relation.aggregate(Monoid(...))"),
    "map": ("is not read over relations", "[f(row) for row in rows]"),
    "filter": ("is not read over relations", "[row for row in rows if f(row)]"),
}
LOST = (
    "gives a list whose rows lose the order of what they are made of",
    "sort the result: sorted([...], key=...), or make a set of it",
)
LIST_IN_ROW = (
    "is a list with the rows in some order, as a value",
    "sorted(...), set(...), sum(...) or len(...) of it does not depend on the order",
)

KEY_OR_ROW = (
    "means a key where it is asked of a table or view by key, and a row where it is asked of lists",
    "any(row.id == x for row in rows) asks for a key, `x in list(rows)` for a row",
)


def refused(node: ast.AST, reader: Any, why: str, remedy: str) -> PlanError:
    """The error about a part of what a reader reads."""
    opaque = reader.origin.function
    file = reader.function.__code__.co_filename
    line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1
    text = shown(node)
    return PlanError(
        f"{opaque.role}: {text} {why}\n  {place_at(file, line)}, column {column}\n  {remedy}"
    )


def shown(node: ast.AST) -> str:
    """The text of a part, in one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
