"""Make the table of `docs/interpreters.md`: how each interpreter of plans runs each node.

    python -m tests.interpreters        writes the table into the page

The table is read from the sources: a cell names the function in which the interpreter matches the
node (`case plan.Node`, `isinstance(_, plan.Node)`, or a tuple of nodes that it is tested with). An
empty cell must have a reason in `WHY_NOT`; a reason for a cell that is not empty is an error.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from optimizer import plan

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "interpreters.md"
BEGIN, END = "<!-- table: python -m tests.interpreters -->\n", "<!-- end of table -->\n"


class Interpreter(NamedTuple):
    """A way to run plans, and the functions (`file:function`) that tell nodes apart for it."""

    name: str
    entries: tuple[str, ...]


COMPILER, OPERATORS = "reactive/engine/compiler", "reactive/engine/operators"
REFERENCE = "reactive/engine/reference"
INTERPRETERS = (
    Interpreter(
        "plain",
        (
            f"{OPERATORS}/plain.py:plain_operator",
            f"{OPERATORS}/plain.py:plain_join",
            f"{COMPILER}/choices/scan.py:scan",
            f"{COMPILER}/choices/have_values.py:have_values",
            f"{COMPILER}/choices/run_fixpoint.py:run_fixpoint",
            f"{COMPILER}/choices/run_loop.py:run_loop",
            f"{COMPILER}/recursion.py:add",
        ),
    ),
    Interpreter(
        "loops",
        (
            "reactive/engine/codegen/emitter.py:_add",
            f"{OPERATORS}/fuse.py:make_loop_operator",
            f"{COMPILER}/chooser.py:join_of",
            f"{COMPILER}/chooser.py:outer_join_of",
            f"{COMPILER}/choices/look_up_events.py:look_up_events",
            f"{COMPILER}/recursion.py:add",
        ),
    ),
    Interpreter(
        "whole rounds",
        (
            f"{OPERATORS}/loops/whole_round.py:_list",
            f"{OPERATORS}/loops/whole_round.py:_rows",
        ),
    ),
    Interpreter(
        "reference",
        (
            f"{REFERENCE}/asking.py:evaluate_whole",
            f"{REFERENCE}/asking.py:linear_map",
            f"{REFERENCE}/bags.py:join_rows",
            f"{REFERENCE}/combinations.py:several",
            f"{REFERENCE}/evaluate.py:_evaluate",
        ),
    ),
    Interpreter(
        "columns on Spark",
        (
            "spark_backend/fragments/compile.py:_compile",
            "spark_backend/tables/chain.py:_as_columns",
            "spark_backend/recursion/compile.py:recursion_step",
        ),
    ),
    Interpreter("few rows, for Spark", ()),
    Interpreter("buckets on Spark", ("reactive/engine/remote/fragments.py:offloaded_fragment",)),
    Interpreter("arrays", ("spark_backend/columnar/plans.py:_frame",)),
    Interpreter(
        "pipelines",
        (
            "spark_backend/tables/stateless.py:_run_node",
            "spark_backend/tables/stateless.py:_load_chain",
        ),
    ),
)

LINEAR = "spark_backend/steps/step.py:Linear"
RECURSION = "spark_backend/recursion/partition_recursion.py:Relation"
FEW_ROWS = {
    **dict.fromkeys(("Where", "Select", "Extend", "SelectMany", "Unnest"), LINEAR),
    **dict.fromkeys(("Distinct", "SetOperation"), "spark_backend/steps/step.py:ByWeight"),
    **dict.fromkeys(("SemiJoin", "AntiJoin"), "spark_backend/steps/join.py:MatchedRows"),
    **dict.fromkeys(("Fixpoint", "Component", "Iterate"), RECURSION),
    "Aggregate": "spark_backend/aggregates/totals.py:Totals",
    "Join": "spark_backend/steps/join.py:Join",
    "OrderBy": "spark_backend/steps/firsts.py:First",
    "OuterJoin": "spark_backend/steps/step.py:MaterializedChanges",
    "Recursive": "spark_backend/recursion/partition_recursion.py:OwnRows",
    "Reduce": "spark_backend/aggregates/totals.py:ReducedRows",
    "Top": "spark_backend/steps/firsts.py:Firsts",
    "UnionAll": "spark_backend/steps/step.py:BagUnion",
}
"""The class whose `direct` does a flush of few rows in the process, by the node it is a step of."""


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def _constant(path: str, name: str) -> ast.expr | None:
    """Return the value of a module-level name, which may be imported from another module."""
    for statement in _tree(path).body:
        match statement:
            case ast.Assign([ast.Name(id)], value) if id == name:
                return value
            case ast.AnnAssign(ast.Name(id), _, value) if id == name:
                return value
            case ast.ImportFrom(str(module), names):
                if any((each.asname or each.name) == name for each in names):
                    other = f"{module.replace('.', '/')}.py"
                    return _constant(other, name) if (ROOT / other).exists() else None
    return None


def _named(path: str, expression: ast.AST) -> Iterator[str]:
    """Yield the names of the node classes in an expression, through module-level names."""
    for part in ast.walk(expression):
        match part:
            case ast.Attribute(ast.Name("plan"), name):
                yield name
            case ast.Name(name):
                value = _constant(path, name)
                if value is not None:
                    yield from _named(path, value)


def _matched(path: str, function: ast.AST) -> Iterator[str]:
    """Yield the names of the node classes that a function tells apart."""
    for part in ast.walk(function):
        match part:
            case ast.MatchClass(cls):
                yield from _named(path, cls)
            case ast.Call(ast.Name("isinstance"), [_, kinds]):
                yield from _named(path, kinds)


def _functions(entry: str) -> Iterator[tuple[str, ast.AST]]:
    path, _, name = entry.partition(":")
    for part in ast.walk(_tree(path)):
        if isinstance(part, ast.FunctionDef) and part.name == name:
            yield path, part


def nodes() -> list[str]:
    """Return the names of the nodes of plans, in the order of their files.

    A set operation counts as one node with its kinds.
    """
    kinds = [kind for kind in vars(plan).values() if isinstance(kind, type)]
    made = [kind for kind in kinds if issubclass(kind, plan.Node) and kind is not plan.Node]
    made.sort(key=lambda kind: (kind.__module__, kind.__name__))
    return [
        kind.__name__
        for kind in made
        if kind is plan.SetOperation or not issubclass(kind, plan.SetOperation)
    ]


SETS = {kind.__name__ for kind in plan.SetOperation.__subclasses__()}


def found() -> dict[tuple[str, str], str]:
    """Return the place where an interpreter matches a node, by node and interpreter."""
    places: dict[tuple[str, str], str] = {}
    for interpreter in INTERPRETERS:
        for entry in interpreter.entries:
            functions = list(_functions(entry))
            assert functions, f"{entry} is not there"
            for path, function in functions:
                names = set(_matched(path, function))
                names |= {"SetOperation"} if names >= SETS else set()
                for name in names:
                    places.setdefault((name, interpreter.name), entry.rpartition("/")[2])
    for name, entry in FEW_ROWS.items():
        assert "direct" in _methods(entry), f"{entry} does no flush in the process"
        places[name, "few rows, for Spark"] = entry.rpartition("/")[2]
    return places


def _methods(entry: str) -> set[str]:
    path, _, name = entry.partition(":")
    return {
        part.name
        for kind in _tree(path).body
        if isinstance(kind, ast.ClassDef) and kind.name == name
        for part in kind.body
        if isinstance(part, ast.FunctionDef)
    }


ONLY_RULES = "stands in plans while rules run"
NOT_SENT = "its rows are sent as input"
IN_PROCESS = "runs in the process"
BY_PLAIN = "plain operator"
LOOPS = {
    **dict.fromkeys(("Table", "Values", "Empty", "View", "Given", "Known"), "input of a loop"),
    "AsofJoin": "rows in order: plain operator",
    **dict.fromkeys(("SemiJoin",), "no pairs: a loop gained nothing (0.7 to 1.0)"),
    **dict.fromkeys(("Negate", "Previous", "Tolerate", "UnionAll"), BY_PLAIN),
    **dict.fromkeys(("Reduce", "Top", "OrderBy"), "whole groups: plain operator"),
    "SetOperation": "weights of a row alone: plain operator",
    **dict.fromkeys(("Fixpoint", "Component", "Iterate"), "its bodies run as loops"),
}
ROUNDS = {
    **dict.fromkeys(("AsofJoin", "Lookup"), "no recursion passes it"),
    **dict.fromkeys(("Table", "Values", "Empty", "Known", "Given"), "list from outside the loop"),
    **dict.fromkeys(("SetOperation",), "only union: the others end the whole round"),
    **dict.fromkeys(
        ("Negate", "Previous", "Reduce", "Top", "OrderBy", "Tolerate"),
        "rounds by changes instead",
    ),
    **dict.fromkeys(("Fixpoint", "Component", "Iterate"), "a loop in a loop goes by changes"),
}
COLUMNS = {
    **dict.fromkeys(("AsofJoin", "Lookup"), IN_PROCESS),
    **dict.fromkeys(("Table", "Values", "Empty", "Known", "View", "Given"), NOT_SENT),
    **dict.fromkeys(("Negate", "Previous"), IN_PROCESS),
    "Product": "pairs without a key: in the process",
    "Tolerate": "inside an iteration in one worker",
}
BUCKETS = {
    **dict.fromkeys(("AsofJoin", "Lookup"), IN_PROCESS),
    **dict.fromkeys(("Table", "Values", "Empty", "Known", "View", "Given", "Recursive"), NOT_SENT),
    **dict.fromkeys(("Negate", "Previous", "UnionAll"), "keeps no rows to move"),
    "Product": "pairs without a key: in the process",
    "Tolerate": "inside an iteration",
}
ARRAYS = {
    **dict.fromkeys(("Table", "Values", "Empty", "Known", "View", "Given"), "a side of the loop"),
    "Tolerate": "compared after each round",
    **dict.fromkeys(("Fixpoint", "Component", "Iterate"), "the loop itself: `loop_of`"),
}
PIPELINES = {
    **dict.fromkeys(("Table", "Values", "Empty", "Known", "View", "Given"), "a frame of Spark"),
    **dict.fromkeys(("UnionAll",), "frames united"),
    **dict.fromkeys(("Negate", "Previous"), "refused: rows are only added"),
}
REST = {
    "arrays": "rows go through the loop worker",
    "pipelines": "keeps state: the view is offloaded",
}
EVERYWHERE = {"Shared": ONLY_RULES, "Settled": "planned apart: the part inside it runs"}
WHY_NOT: Mapping[str, Mapping[str, str]] = {
    "plain": {
        "Known": "a kind of table: `scan`",
        "Lookup": "a loop for all events",
        "Shared": ONLY_RULES,
    },
    "loops": LOOPS,
    "whole rounds": ROUNDS,
    "reference": {
        "Given": "no query is written with it",
        "Known": "no query is written with it",
        "Lookup": "of events, which are not stored",
        "Shared": ONLY_RULES,
    },
    "columns on Spark": COLUMNS,
    "few rows, for Spark": COLUMNS,
    "buckets on Spark": BUCKETS,
    "arrays": ARRAYS,
    "pipelines": PIPELINES,
}


def reason(node: str, interpreter: str) -> str | None:
    """Return why the interpreter does not match the node itself; None if no reason is known."""
    own = WHY_NOT[interpreter].get(node) or EVERYWHERE.get(node)
    return own or REST.get(interpreter)


def table() -> str:
    """Return the table as Markdown: a cell in code names the place, one in words is a reason."""
    places = found()
    lines = [
        f"| node | {' | '.join(each.name for each in INTERPRETERS)} |",
        f"|---|{'---|' * len(INTERPRETERS)}",
    ]
    for node in nodes():
        cells = [
            f"`{places[node, each.name]}`"
            if (node, each.name) in places
            else str(reason(node, each.name))
            for each in INTERPRETERS
        ]
        lines.append(f"| `{node}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the text of the page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    sys.exit(0)
