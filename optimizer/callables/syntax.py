"""The syntax tree that a function was compiled from, or why it cannot be known.

    code  --guess-->  texts  --parse, compile-->  the same code?  --yes-->  its node

A text is only a guess until compiling it gives the very code again: file names lie, files are
edited, tools rewrite. So a tree is never that of other code.

Sound: see `same_code`. What is no part of a code object is not proven by it, so the tree is
       without defaults, decorators and annotations, and the first iterable of a generator
       expression is the variable `.0`, as in its code.
Cost:  of the first function of a file a parse (10 ms per 1,000 lines), of another a compile of
       the statement around it, of the same again a copy of the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from inspect import CO_OPTIMIZED
from threading import RLock
from types import CodeType
from typing import Any

from optimizer.callables.parsed import FUTURES, Syntax, parsed
from optimizer.callables.same_code import CodeItself
from optimizer.callables.texts import HINTS, texts
from optimizer.record import record

BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
COPIED = (ast.AST, list)
BINDS = "binds in expressions"
ONE_AT_A_TIME = RLock()  # a proof moves nodes and silences warnings for a moment


@record
class NoSyntax:
    """Why there is no syntax tree, and what to do about it."""

    reason: str
    remedy: str


NO_FUNCTION = NoSyntax(
    "it is not the code of a lambda, a def or a generator expression",
    "pass the function itself",
)
NO_TEXT = NoSyntax(
    "there is no source text",
    "write it in a file, or register the text in linecache",
)
NOT_THE_TEXT = NoSyntax(
    "its source has changed since it was compiled, or a tool rewrote it",
    "reload the module; a def with an assert is rewritten by pytest: move it out of the test",
)
AMBIGUOUS = NoSyntax(
    "another function on its line compiles to the same code",
    "write them on lines of their own",
)
TOO_DEEP = NoSyntax("it is nested too deeply", "split it into several functions")


def syntax_of(code: CodeType, module: Mapping[str, Any]) -> Syntax | NoSyntax:
    """The syntax tree that `code` was compiled from, proven by compiling it again.

    Parameters
    ----------
    code: the `__code__` of a function, or the `gi_code` of a generator expression.
    module: the `__globals__` of the function: they tell where its text may be found.

    Returns
    -------
    A tree of the caller's own, or `NoSyntax`. Private names are spelled as in the code; names
    mean what the function's closure, globals and builtins say, and defaults are its `__defaults__`.
    Under `python -O` the tree still has the asserts that the code lacks.

    >>> import linecache
    >>> text = "older = lambda p, limit=30: p.age > limit"
    >>> linecache.cache["<people>"] = (len(text), None, [text], "<people>")
    >>> names = {}
    >>> exec(compile(text, "<people>", "exec"), names)
    >>> ast.unparse(syntax_of(names["older"].__code__, names))
    'lambda p, limit: p.age > limit'
    >>> print(syntax_of(eval("lambda p: p.age").__code__, {}).reason)
    there is no source text
    """
    asked = _Asked(code, {name: module[name] for name in HINTS if name in module})
    try:
        found = _found(asked)
        copy: Syntax | NoSyntax = found if isinstance(found, NoSyntax) else _copy(found)
        return copy
    except (RecursionError, MemoryError):
        return TOO_DEEP


def shared_syntax_of(code: CodeType, module: Mapping[str, Any]) -> Syntax | NoSyntax:
    """The same tree for everybody who asks: it must not be changed."""
    try:
        return _found(_Asked(code, {name: module[name] for name in HINTS if name in module}))
    except (RecursionError, MemoryError):
        return TOO_DEEP


@record
class _Asked(CodeItself):
    """A code object, and where its text may be found."""

    hints: dict[str, Any]

    __eq__ = CodeItself.__eq__
    __hash__ = CodeItself.__hash__


@lru_cache(maxsize=1024)
def _found(asked: _Asked) -> Syntax | NoSyntax:
    code = asked.code
    if not code.co_flags & CO_OPTIMIZED:
        return NO_FUNCTION
    refusal = NO_TEXT
    with ONE_AT_A_TIME:
        for text in texts(code, asked.hints):
            source = parsed(text, code.co_filename, code.co_flags & FUTURES)
            nodes = source.nodes_of(code) if source else []
            if len(nodes) == 1:
                return _proven_part(nodes[0])
            trees = {ast.dump(tree): tree for tree in map(_proven_part, nodes)}
            if len(trees) == 1:
                return trees.popitem()[1]
            refusal = AMBIGUOUS if trees else NOT_THE_TEXT
    return refusal


def _proven_part(node: Syntax) -> Syntax:
    """A copy without what is evaluated outside of the code object."""
    tree: Syntax = _copy(node)
    if isinstance(tree, ast.GeneratorExp):
        first = tree.generators[0]
        first.iter = ast.copy_location(ast.Name(".0", ast.Load()), first.iter)
        return tree
    names = tree.args
    names.defaults, names.kw_defaults = [], [None] * len(names.kwonlyargs)
    several = (*names.posonlyargs, *names.args, *names.kwonlyargs, names.vararg, names.kwarg)
    for name in several:
        if name is not None:
            name.annotation = None
    if not isinstance(tree, ast.Lambda):
        tree.decorator_list, tree.returns = [], None
        if hasattr(tree, "type_params"):
            tree.type_params = []
    return tree


def _copy(node: Any) -> Any:
    """Return a copy of a node, or of a list of nodes, with the fields that Python declares: tools
    hang others on nodes, and those on files."""
    if node.__class__ is list:
        return [_copy(item) if isinstance(item, COPIED) else item for item in node]
    kind: Any = type(node)
    copy = kind.__new__(kind)
    fields, places, own = kind._fields, kind._attributes, vars(copy)
    for name, value in vars(node).items():
        if name in places:
            own[name] = value
        elif name in fields:
            own[name] = _copy(value) if isinstance(value, COPIED) else value
    return copy


def binds(tree: ast.Lambda | ast.FunctionDef) -> bool:
    """Whether names are given values within expressions; found once, as trees are shared."""
    known: bool | None = vars(tree).get(BINDS)
    if known is None:
        own = tree.body if isinstance(tree, ast.FunctionDef) else [tree.body]
        known = any(isinstance(node, BINDING) for part in own for node in ast.walk(part))
        setattr(tree, BINDS, known)
    return known


def returns_one_expression(tree: ast.Lambda | ast.FunctionDef) -> bool:
    """Whether a function is one expression, perhaps with a docstring."""
    if isinstance(tree, ast.Lambda):
        return True
    documented = isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
    rest = tree.body[1:] if documented else tree.body
    return len(rest) == 1 and isinstance(rest[0], ast.Return) and rest[0].value is not None
