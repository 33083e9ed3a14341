"""Two code objects are the same only if no field, no constant and no position differs."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from inspect import CO_NESTED
from types import CodeType
from typing import Any

import pytest

from optimizer.callables.syntax import same_code


def code_without_places(tree: ast.expr | ast.stmt) -> CodeType:
    """The code of a tree as if all of it stood in one place."""
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            vars(node).update(lineno=1, end_lineno=1, col_offset=0, end_col_offset=0)
    statement = tree if isinstance(tree, ast.stmt) else ast.Expr(tree, lineno=1, col_offset=0)
    return compile(ast.Module([statement], []), "<places>", "exec", dont_inherit=True)


def _constant(text: str) -> CodeType:
    code = compile(text, "<code>", "eval", dont_inherit=True).co_consts[0]
    assert isinstance(code, CodeType)
    return code


def _placeless(text: str) -> CodeType:
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.Lambda)
    return code_without_places(tree)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1", "True"),
        ("1", "1.0"),
        ("0.0", "-0.0"),
        ("0j", "-0j"),
        ("'a'", "b'a'"),
        ("(0, (1, 2))", "(0, (1, True))"),
        ("(0, (1, 2))", "(0, (1, 2, 3))"),
        ("x in {1, 2}", "x in {True, 2}"),
        ("x in {1, 2}", "x in {1, 2, 3}"),
        ("x.a", "x.b"),
        ("x.a + 1", "x.a - 1"),
        ("lambda: 1", "lambda: 2"),
        ("lambda: x", "lambda: y"),
        ("lambda y: lambda: y", "lambda y: lambda: x"),
        ("[y for y in x]", "[z for z in x]"),
    ],
)
def test_different_code_is_not_the_same(first: str, second: str) -> None:
    one, other = _placeless(f"lambda x: {first}"), _placeless(f"lambda x: {second}")
    assert same_code(one, _placeless(f"lambda x: {first}"))
    assert not same_code(one, other)
    assert not same_code(other, one)


@pytest.mark.parametrize("moved", ["lambda x: x.a +1", "\nlambda x: x.a+1", "lambda x: x.a+\\\n1"])
def test_the_same_code_at_another_place_is_not_the_same(moved: str) -> None:
    assert not same_code(_constant("lambda x: x.a+1"), _constant(moved))


def test_code_further_down_is_the_same_but_for_the_shift() -> None:
    text = "lambda x: (\n  lambda y: x + y)"
    code, lower = _constant(text), _constant(f"\n\n\n{text}")
    assert not same_code(code, lower)
    assert same_code(code, lower, shift=3)


def test_every_field_of_a_code_object_counts() -> None:
    code = _constant("lambda a, b: a + b")
    changes: dict[str, Any] = {
        "co_argcount": 1,
        "co_flags": code.co_flags ^ CO_NESTED,
        "co_stacksize": code.co_stacksize + 1,
        "co_varnames": ("a", "c"),
        "co_name": "g",
        "co_qualname": "A.f",
        "co_firstlineno": 9,
        "co_exceptiontable": b"\x80\x01\x01\x00",
        "co_names": ("z",),
        "co_consts": (*code.co_consts, 5),
    }
    replace: Callable[..., CodeType] = functools.partial(CodeType.replace, code)
    same = {name for name, value in changes.items() if same_code(code, replace(**{name: value}))}
    assert same == set()
