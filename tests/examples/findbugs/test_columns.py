"""Facts and the columns of a recorded history are the same in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from examples.findbugs.columns import OPERANDS, RELATIONS, NoFactError, columns_of, fact_of
from examples.findbugs.facts import INSTRUCTIONS, KINDS, Fact

from .test_recorded import LINES


@pytest.mark.parametrize(("columns", "fact"), LINES, ids=[f"{type(f).__name__}" for _, f in LINES])
def test_columns_make_the_fact_that_is_written_as_them(columns: list[Any], fact: Fact) -> None:
    assert columns_of(fact) == _tuples(columns)
    assert fact_of(*_tuples(columns)) == fact


def test_every_kind_of_fact_is_of_one_relation_and_instructions_have_operands() -> None:
    kinds = [kind for relation in RELATIONS.values() for kind in relation.kinds]
    assert len(kinds) == len(KINDS) and {*kinds} == {*KINDS}
    assert {*OPERANDS} == {*INSTRUCTIONS}


@pytest.mark.parametrize(
    "columns",
    [
        ("nothing", "a/A"),
        ("throws", "a/A"),
        ("throws", "a/A", "run()V", "a/E", "more"),
        ("method_decl", "a/A", 1, "run", (1,), "V"),
        ("enclosing_method", "a/A$1", "a/A", 7),
        ("enclosing_method", "a/A$1", "a/A", ("run",)),
        ("insn", "a/A", "run()V", 0, 300, 1, None),
        ("insn", "a/A", "run()V", 0, 182, 3, None),
        ("insn", "a/A", "run()V", 0, 180, 3, "abc"),
        ("insn", "a/A", "run()V", 0, 186, 3, ("indy", "run", "no descriptor")),
        ("insn", "a/A", "run()V", 0, 186, 3, ("indy", "run", 7)),
    ],
    ids=str,
)
def test_columns_that_state_no_fact_are_refused(columns: tuple[Any, ...]) -> None:
    with pytest.raises(NoFactError, match=f"^{columns[0]}: "):
        fact_of(*columns)


def _tuples(columns: Any) -> Any:
    return tuple(map(_tuples, columns)) if type(columns) is list else columns
