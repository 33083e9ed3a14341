"""Callables become expressions that compute the same; an uncertain callable stays whole."""

from __future__ import annotations

import operator
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

import pytest

from optimizer.callables.opaque import opaque
from optimizer.expr import Apply, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import written
from optimizer.lifting.lift import lift
from reactive.engine.codegen.functions import callable_of
from tests.golden.tables import JOE, SALLY, Student
from tests.written import executed

LIMIT = 30


class Color(Enum):
    RED = 1


def lifted(function: Callable[..., Any], count: int = 1, shapes: Shapes = ()) -> str:
    """Return the text of the expression for a callable, after a check of equal results."""
    taken = opaque(function, count, "where")
    read = lift(taken, shapes)
    for row in (SALLY, JOE):
        arguments = (row,) * count
        rebuilt = callable_of(read.with_body(read.body) if read.made is None else read)
        assert outcome(rebuilt, arguments) == outcome(function, arguments)
        fresh = callable_of(type(read)(read.body, read.names, read.origins, count))
        assert outcome(fresh, arguments) == outcome(function, arguments)
    return written(read)


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> object:
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


def reasons(function: Callable[..., Any], count: int = 1) -> list[str]:
    """Why parts of a callable, or all of it, could not be read."""
    body = lift(opaque(function, count, "where")).body
    return [part.reason for part in walk(body) if isinstance(part, Apply)]


def test_a_lambda_is_its_expression() -> None:
    assert lifted(lambda s: s.age > 30) == "s.age > 30"
    assert lifted(lambda s: s.age + 1 * 2 - -3) == "s.age + 1 * 2 - -3"
    assert lifted(lambda s: (s.age + 1) * 2) == "(s.age + 1) * 2"
    assert lifted(lambda s: not ((s.age or s) and s.last_name)) == (
        "not ((s.age or s) and s.last_name)"
    )
    assert lifted(lambda s: s.age if s.last_name else 0) == "s.age if s.last_name else 0"
    assert lifted(lambda s: (s.age, [s], {s.age: 1}, {1})) == "(s.age, [s], {s.age: 1}, {1})"
    assert lifted(lambda s: s.last_name[0] + s.last_name[1:-1]) == (
        "s.last_name[0] + s.last_name[1:-1]"
    )
    assert lifted(lambda s: f"{s.last_name}: {s.age:>3}!") == 'f"{s.last_name}: {s.age:>3}!"'
    assert lifted(lambda s: s.last_name.upper()) == "s.last_name.upper()"
    assert lifted(lambda s: Student("x", s.last_name, age=3)) == "Student('x', s.last_name, age=3)"


def test_a_chain_of_comparisons_is_a_conjunction() -> None:
    assert (
        lifted(lambda s: 17 <= s.age < 40 != s.age) == "17 <= s.age and s.age < 40 and 40 != s.age"
    )


def test_parameters_keep_their_names() -> None:
    assert lifted(lambda left, right: left.age == right.age, 2) == "left.age == right.age"


def test_captured_variables_are_constants() -> None:
    least, prefix = 17, ("S", "J")
    assert lifted(lambda s: s.age > least) == "s.age > 17"
    assert lifted(lambda s: s.age > LIMIT) == "s.age > 30"
    assert lifted(lambda s: s.first_name[0] in prefix) == "s.first_name[0] in prefix"
    assert lifted(lambda s, least=18: s.age > least) == "s.age > 18"
    assert lifted(lambda s: s.age == Color.RED) == "s.age == Color.RED"


def test_a_constant_keeps_its_type() -> None:
    bodies = [
        lift(opaque(f, 1, "where")).body for f in (lambda s: 1, lambda s: True, lambda s: 1.0)
    ]
    assert len(set(bodies)) == 3


def adult(s: Student) -> bool:
    """Return True for a row of an adult."""
    return bool(s.age > 17)


def assigned(s: Student) -> object:
    name = s.last_name
    initial: str = name[0]
    return initial == "D" and name != "Doe"


def chosen(s: Student) -> object:
    if s.age is None:
        return "?"
    if s.age > 30:
        kind = "old"
    elif s.last_name == "Doe":
        return s.first_name
    else:
        kind = "young"
    return kind + s.last_name


def without_return(s: Student) -> None:
    return None


def test_a_function_that_names_and_chooses_is_one_expression() -> None:
    assert lifted(adult) == "bool(s.age > 17)"
    assert lifted(assigned, shapes=(Student,)) == ("s.last_name[0] == 'D' and s.last_name != 'Doe'")
    assert lifted(chosen, shapes=(Student,)) == (
        "'?' if s.age is None else 'old' + s.last_name if s.age > 30 "
        "else s.first_name if s.last_name == 'Doe' else 'young' + s.last_name"
    )
    assert lifted(without_return) == "None"


class Filter:
    """Something with a method, and that can be called."""

    least = 17

    def accepts(self, s: Student) -> bool:
        return bool(s.age > self.least)

    def __call__(self, s: Student) -> object:
        return s.age == 17

    @staticmethod
    def always(s: Student) -> object:
        return s.age != 3


def test_methods_and_objects_that_can_be_called_are_read() -> None:
    assert lifted(Filter().accepts) == "bool(s.age > self.least)"
    assert lifted(Filter()) == "s.age == 17"
    assert lifted(Filter.always) == "s.age != 3"
    assert lifted(str.upper) == "upper(row)"


def between(low: int, s: Student, high: int) -> object:
    return low < s.age < high


def test_a_partial_is_read_with_its_arguments() -> None:
    assert lifted(partial(between, 20, high=40)) == "20 < row.age and row.age < 40"


def test_getters_of_module_operator_are_read() -> None:
    assert lifted(operator.attrgetter("age")) == "row.age"
    assert lifted(operator.attrgetter("age", "last_name")) == "(row.age, row.last_name)"
    assert lifted(operator.itemgetter(0)) == "row[0]"
    assert lifted(operator.itemgetter(0, 1)) == "(row[0], row[1])"
    assert lifted(operator.methodcaller("count", 1)) == "row.count(1)"


def test_builtins_and_classes_are_calls() -> None:
    assert lifted(len) == "len(row)"
    assert lifted(str) == "str(row)"


def double(value: Any) -> Any:
    return 2 * value


def fourfold(value: Any) -> Any:
    return double(double(value))


def endless(value: Any) -> Any:
    return endless(value)


def test_small_functions_are_read_in_the_place_of_their_calls() -> None:
    assert lifted(lambda s: double(s.age) > 40, shapes=(Student,)) == "2 * s.age > 40"
    assert lifted(lambda s: fourfold(s.age), shapes=(Student,)) == "2 * (2 * s.age)"
    assert lifted(lambda s: double(value=s.age), shapes=(Student,)) == "2 * s.age"


def test_functions_that_call_themselves_are_read_so_deep_only() -> None:
    assert written(lift(opaque(lambda s: endless(s), 1, "select"))) == "endless(s)"


def test_a_function_of_several_statements_is_called() -> None:
    assert lifted(lambda s: chosen(s) == "old", shapes=(Student,)) == "chosen(s) == 'old'"


def test_a_part_that_has_no_node_is_kept_with_what_it_reads() -> None:
    function = lambda s: s.age == 17 and any(c == "D" for c in s.last_name)  # noqa: E731
    assert lifted(function) == "s.age == 17 and any((c == 'D' for c in s.last_name))"
    assert [r.partition(" at ")[0] for r in reasons(function)] == [
        "call with a generator or starred arguments"
    ]
    assert lifted(lambda s: [c + "." for c in s.last_name]) == ("[c + '.' for c in s.last_name]")
    assert lifted(lambda s: max(*s.last_name, "a")) == "max(*s.last_name, 'a')"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def f(s):\n    for c in s.last_name:\n        return c\n", "'for' statement"),
        (
            "def f(s):\n    total = 0\n    total += s.age\n    return total\n",
            "augmented assignment",
        ),
        (
            "def f(s):\n    try:\n        return s.age\n    except Exception:\n        return 0\n",
            "'try'",
        ),
        ("def f(s):\n    return s and (age := s.age) or age\n", "':=', 'await' or 'yield' in it"),
        ("def f(*rows):\n    return rows[0].age\n", "any number of arguments"),
        (
            "def f(s):\n    a, b = s.first_name, s.age\n    return b\n",
            "assignment to more than a name",
        ),
    ],
)
def test_an_opaque_callable_says_why(text: str, reason: str) -> None:
    function = executed(text, {})["f"]
    (found,) = reasons(function)
    assert reason in found
    assert lifted(function).startswith("f ")


@pytest.mark.parametrize(
    "line", ["x = x + x", "if s.age > {0}: x = {0}"], ids=["assignments", "choices"]
)
def test_what_doubles_with_every_line_is_given_up(line: str) -> None:
    lines = "".join(f"    {line.format(n)}\n" for n in range(40))
    function = executed(f"def f(s):\n    x = s.age\n{lines}    return x\n", {})["f"]
    (reason,) = reasons(function)
    assert reason.startswith("it is too long")


def test_a_callable_without_source_says_what_would_help() -> None:
    function = eval("lambda s: s.age > 3")
    (reason,) = reasons(function)
    assert reason.splitlines() == [
        "there is no source text",
        "write it in a file, or register the text in linecache",
    ]


def test_what_is_no_python_code_is_called() -> None:
    class Odd:
        def __init__(self) -> None:
            self.asked = 17

        def __call__(self, *rows: Any) -> bool:
            return bool(rows[0].age == self.asked)

    found = [reasons(function)[0].splitlines()[0] for function in (Odd(), partial(len))]
    assert found == [
        "it takes any number of arguments",
        "it is a partial of what is no Python function",
    ]
