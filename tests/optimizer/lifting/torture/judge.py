"""Judge the syntax tree of a function by its results, in the place that defines the function.

The tree is made into a function again, with the cells, the globals and the defaults of the
original, and both are called with rows that tell similar functions apart. The verdict is "found",
"refused", or a description of the fault. Needs the standard library only: it runs on every Python.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, TypeVar

from optimizer.callables.syntax import FUTURES, NoSyntax, Syntax, syntax_of

Subject = TypeVar("Subject", bound="Callable[..., Any] | GeneratorType[Any, Any, Any]")


class Row:
    """A row with attributes of several types."""

    def __init__(self, x: object = 0, y: object = 0, name: str = "n") -> None:
        self.x, self.y, self.name = x, y, name

    def up(self) -> str:
        return self.name.upper()


ROWS = [
    Row(0, 5, "ann"),
    Row(3, 2, "bob"),
    Row(1, 1, "Sally"),
    Row(None, 4, ""),
    Row(2.5, -1, "é"),
    Row(3, 7, "ü"),
]


def judge(case: str, subject: Subject, expected: str = "found") -> Subject:
    """Append the verdict about a function, method or new generator to the report; return it.

    `expected` is "found", "refused", "either", or "found from 3.13": refused before.
    """
    record = {"case": case, "expected": _today(expected), "verdict": verdict(subject)}
    with Path(os.environ["TORTURE_REPORT"]).open("a", encoding="utf-8") as report:
        report.write(json.dumps(record) + "\n")
    return subject


def verdict(subject: Any) -> str:
    """Return "found", "refused", or how the tree of `subject` differs from the function."""
    if isinstance(subject, GeneratorType):
        return _verdict_on_generator(subject)
    function = getattr(subject, "__func__", subject)
    bound = () if function is subject else (subject.__self__,)
    tree = syntax_of(function.__code__, function.__globals__)
    if isinstance(tree, NoSyntax):
        return "refused"
    rebuilt = remade(tree, function)
    for row in ROWS:
        was, now = outcome(function, *bound, row), outcome(rebuilt, *bound, row)
        if was != now:
            return f"wrong: {ast.unparse(tree)} gives {now}, not {was}"
    return "found"


def _today(expected: str) -> str:
    if not expected.startswith("found from 3."):
        return expected
    return "found" if sys.version_info[1] >= int(expected.rpartition(".")[2]) else "refused"


def remade(tree: Syntax, function: FunctionType) -> FunctionType:
    """The tree as a function, in the surroundings of `function`."""
    free = function.__code__.co_freevars
    body = tree if isinstance(tree, ast.stmt) else ast.Return(tree)
    code = _inner(_around(body, free, function.__code__), function.__code__.co_name)
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, None, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _around(body: ast.stmt, names: tuple[str, ...], code: CodeType) -> CodeType:
    """The code of a function with these parameters and this body."""
    module = ast.parse(f"def around({', '.join(names)}): pass")
    outer = module.body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [body]
    if not isinstance(body, ast.Return) and code.co_name not in names:
        outer.body = [ast.Global([code.co_name]), body]  # a def must not hide a global of its name
    ast.fix_missing_locations(module)
    flags = code.co_flags & FUTURES
    compiled: CodeType = compile(module, "<remade>", "exec", flags, dont_inherit=True)
    return _inner(compiled, "around")


def _inner(code: CodeType, name: str) -> CodeType:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return next(c for c in inner if c.co_name == name)


def outcome(function: Callable[..., Any], *arguments: Any) -> tuple[str, str]:
    """The value or the kind of exception; of a function returned, its own outcome."""
    try:
        value = function(*arguments)
        if isinstance(value, GeneratorType):
            value = list(value)
        if isinstance(value, CoroutineType):
            return "awaited", repr(_awaited(value))
        if isinstance(value, FunctionType):
            return outcome(value, *arguments)
        return "value", repr(value)
    except Exception as error:
        return "error", type(error).__name__


def _awaited(coroutine: CoroutineType[Any, Any, Any]) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    return "suspended"


def _verdict_on_generator(generator: GeneratorType[Any, Any, Any]) -> str:
    frame = generator.gi_frame
    assert frame is not None
    tree = syntax_of(generator.gi_code, frame.f_globals)
    if isinstance(tree, NoSyntax):
        return "refused"
    assert isinstance(tree, ast.GeneratorExp)
    variables = {"outermost" if n == ".0" else n: v for n, v in frame.f_locals.items()}
    variables["outermost"] = copy.copy(variables["outermost"])
    tree.generators[0].iter = ast.Name("outermost", ast.Load())
    code = _around(ast.Return(tree), tuple(variables), generator.gi_code)
    now = list(FunctionType(code, frame.f_globals)(**variables))
    was = list(generator)
    return "found" if now == was else f"wrong: {ast.unparse(tree)} gives {now}, not {was}"
