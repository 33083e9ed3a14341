"""Find the parameters of a function that get an argument in each call by a callable."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

from optimizer.callables.syntax import NoSyntax, shared_syntax_of


def always_passed(caller: Callable[..., Any], name: str, called: FunctionType) -> frozenset[str]:
    """Return the parameters that each use of `name` in a caller passes; none if it is used
    otherwise.

    >>> def least(row, of=()): return min(of)
    >>> sorted(always_passed(lambda row: least(row, [1]) or least(row, of=[2]), "least", least))
    ['of', 'row']
    """
    code, names = getattr(caller, "__code__", None), getattr(caller, "__globals__", {})
    tree = None if code is None else shared_syntax_of(code, names)
    if tree is None or isinstance(tree, NoSyntax):
        return frozenset()
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_name(n.func, name)]
    uses = [n for n in ast.walk(tree) if _is_name(n, name)]
    if not calls or len(calls) < len(uses):
        return frozenset()
    return frozenset.intersection(*[_passed_parameters(call, called) for call in calls])


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _passed_parameters(call: ast.Call, called: FunctionType) -> frozenset[str]:
    """Return the parameters that a call surely passes: by position before a `*`, and by keyword."""
    positional = called.__code__.co_varnames[: called.__code__.co_argcount]
    starred = [n for n, a in enumerate(call.args) if isinstance(a, ast.Starred)]
    given = positional[: starred[0] if starred else len(call.args)]
    return frozenset([*given, *(k.arg for k in call.keywords if k.arg is not None)])
