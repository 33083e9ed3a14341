"""Generated functions: their names, and their namespaces."""

from __future__ import annotations

import builtins

from optimizer.callables.source import Place
from reactive import Database
from reactive.engine.codegen import functions
from reactive.engine.codegen.functions import BoundValues, build


def test_code_is_generated_at_a_prompt_too_which_keeps_its_last_value() -> None:
    values = BoundValues(["pairs", "_"])
    builtins._ = 1  # type: ignore[attr-defined]
    try:
        text = "def count(pairs):\n    return sum(1 for _ in pairs)\n"
        assert build("count", text, values)([1, 2]) == 2
    finally:
        del builtins._  # type: ignore[attr-defined]


def test_a_query_from_scratch_compiles_no_expression_again() -> None:
    with Database() as db:
        table = db.table(tuple[int, int], name="pairs")
        view = db.query(lambda: [x + y for x, y in table if x > 1 and y > 1]).materialize()
        table.add_all([(n, n) for n in range(4)])
        functions._code_at.cache_clear()
        view.verify()
        first = functions._code_at.cache_info()
        view.verify()
        second = functions._code_at.cache_info()
    assert 0 < first.misses == second.misses
    assert second.hits >= first.hits + first.misses


def test_what_the_interpreter_learns_of_an_expression_is_of_that_one() -> None:
    for place, file in ((Place(__file__, 1), __file__), (None, functions.NOWHERE)):
        one, other = (eval(functions._code_at_place("lambda: 1", place)) for _ in range(2))
        assert one.__code__ == other.__code__ and one.__code__ is not other.__code__
        assert (one.__code__.co_filename, one.__code__.co_firstlineno) == (file, 1)
