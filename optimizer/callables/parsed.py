"""A source text, parsed once, that tells which of its nodes a code object was compiled from.

    text  --parse-->  nodes  --compile-->  codes          the same as the given code?

A statement is compiled together with the imports of its module, because the compiler calls a
method of an imported name in a way of its own. Where that does not give the code, the whole text
is compiled. Where several nodes share a name and a line, the columns of the code's instructions
tell them apart: they lie in the body of its node, and of those around it. Without columns one node
is moved far down with all that is nested in it: the code that starts down there is its own.

State: the tree, its nodes by name and line, the codes of the statements compiled so far.
Cost:  a parse per text; a compile per statement, and without columns one more per node that shares
       its line.
"""

from __future__ import annotations
import __future__

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, TypeAlias

from optimizer.callables.same_code import same_code

Syntax: TypeAlias = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.GeneratorExp
Label: TypeAlias = tuple[str, int]

FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
FAR = 10_000_000
FAILURES = (SyntaxError, ValueError, OverflowError)
FUNCTIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)
KEPT = (ast.Constant, ast.keyword, ast.MatchClass, ast.ImportFrom)


@lru_cache(maxsize=16)
def parsed(text: str, filename: str, flags: int) -> Parsed | None:
    """The text as the compiler reads it with these future flags; None if it does not.

    >>> source = parsed("f = lambda s: s.x", "people.py", 0)
    >>> code = compile("f = lambda s: s.x", "people.py", "exec", 0, True).co_consts[0]
    >>> [ast.unparse(node) for node in source.nodes_of(code)]
    ['lambda s: s.x']
    """
    try:
        try:
            return Parsed(text, filename, flags)
        except SyntaxError:  # a cell of a notebook may await
            return Parsed(text, filename, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except FAILURES:
        return None


class Parsed:
    """The nodes of a text, private names as their class spells them, and their codes."""

    def __init__(self, text: str, filename: str, flags: int) -> None:
        self._filename = filename
        self._flags = flags
        tree = self._compiled(text, ast.PyCF_ONLY_AST)
        assert isinstance(tree, ast.Module)
        self._statements = tree.body
        self._imports = list(_imports(tree.body))
        self._nodes: dict[int, dict[Label, list[Syntax]]] = {}
        self._codes: dict[int | None, dict[Label, list[CodeType]]] = {}

    def nodes_of(self, code: CodeType) -> list[Syntax]:
        """The nodes that compile to `code`: none if it is not from this text, one as a rule,
        several if they cannot be told apart."""
        label = (code.co_name, code.co_firstlineno)
        nodes = [
            (node, number)
            for number, statement in enumerate(self._statements)
            if _first_line(statement) <= label[1] <= (statement.end_lineno or 0)
            for node in self._nodes_of(number).get(label, [])
        ]
        numbers = dict.fromkeys(number for _, number in nodes)
        for number in (*numbers, None) if nodes else ():
            codes = self._codes_of(number).get(label, [])
            same = [other for other in codes if same_code(code, other)]
            if same:
                here = [node for node, at in nodes if number is None or at == number]
                has_columns = all(other.co_linetable == code.co_linetable for other in same)
                found = _by_columns(here, code) if len(here) > 1 and has_columns else here
                if len(found) == 1:
                    return found
                return _innermost([n for n in here if self._is_from(n, code, number)])
        return []

    def _nodes_of(self, number: int) -> dict[Label, list[Syntax]]:
        """The nodes of a statement, by the names and lines of their codes."""
        if number not in self._nodes:
            found = defaultdict(list)
            for node in ast.walk(self._statements[number]):
                if isinstance(node, ast.ClassDef):
                    _spell_private_names(node)
                elif isinstance(node, Syntax):
                    found[_label(node)].append(node)
            self._nodes[number] = found
        return self._nodes[number]

    def _codes_of(self, number: int | None) -> dict[Label, list[CodeType]]:
        """The codes of a statement, or of the whole text, by name and line."""
        if number not in self._codes:
            codes = defaultdict(list)
            for code in self._all_codes(number):
                codes[code.co_name, code.co_firstlineno].append(code)
            self._codes[number] = codes
        return self._codes[number]

    def _is_from(self, node: Syntax, code: CodeType, number: int | None) -> bool:
        """Whether `code` moves with the node."""
        inside = [inner for inner in ast.walk(node) if hasattr(inner, "lineno")]
        _move(inside, FAR)
        try:
            return any(same_code(code, c, shift=FAR) for c in self._all_codes(number))
        finally:
            _move(inside, -FAR)

    def _all_codes(self, number: int | None) -> Iterator[CodeType]:
        own = self._statements if number is None else [*self._imports, self._statements[number]]
        try:
            code = self._compiled(ast.Module(own, []))
        except FAILURES:  # what parses need not compile: a file may have been edited since
            return
        assert isinstance(code, CodeType)
        yield from _nested(code)

    def _compiled(self, source: str | ast.Module, flags: int = 0) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags |= self._flags
            return compile(source, self._filename, "exec", flags, dont_inherit=True)


Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
"""A line and a column where something begins, and where it ends."""


def _by_columns(nodes: list[Syntax], code: CodeType) -> list[Syntax]:
    """The node in whose body all instructions of a code are; none if that is not certain."""
    places = [
        ((line, column), (end, end_column))
        for line, end, column, end_column in code.co_positions()
        if None not in (line, end, column, end_column)
    ]
    own = [place for place in places if place[0] != place[1]]  # others are of no text
    around = [node for node in nodes if own and all(_is_in(place, _body(node)) for place in own)]
    return [n for n in around if all(_is_in(_body(n), _body(other)) for other in around)]


def _body(node: Syntax) -> Span:
    of: ast.expr | ast.stmt = node.body if isinstance(node, ast.Lambda) else node
    return (of.lineno, of.col_offset), (of.end_lineno or 0, of.end_col_offset or 0)


def _is_in(one: Any, other: Span) -> bool:
    return bool(other[0] <= one[0] and one[1] <= other[1])


def _label(node: Syntax) -> Label:
    """The name and the first line that the compiler gives to the code of a node."""
    if isinstance(node, ast.Lambda | ast.GeneratorExp):
        return ("<lambda>" if isinstance(node, ast.Lambda) else "<genexpr>"), node.lineno
    return node.name, _first_line(node)


def _first_line(statement: ast.stmt) -> int:
    """Where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _imports(statements: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """The imports of the module itself, also those inside of `if` and `try`."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _imports(ast.iter_child_nodes(statement))


def _spell_private_names(owner: ast.ClassDef) -> None:
    """Write the private names in a class as the compiler does: `self.__x` as `self._Owner__x`.

    A class inside spells its own. Were a name missed, no code would be found the same.
    """
    prefix = f"_{owner.name.lstrip('_')}"
    pending: list[tuple[ast.AST, bool]] = [(child, False) for child in owner.body]
    while pending and prefix != "_":
        node, in_function = pending.pop()
        named = not isinstance(node, KEPT) and (in_function or not isinstance(node, SCOPES))
        for field, value in ast.iter_fields(node) if named else ():
            if isinstance(value, str):
                setattr(node, field, _spelled(value, prefix))
            elif isinstance(value, list):
                value[:] = [_spelled(v, prefix) if isinstance(v, str) else v for v in value]
        body = node.body if isinstance(node, ast.ClassDef) else ()
        inside = in_function or isinstance(node, FUNCTIONS)
        pending += ((n, inside) for n in ast.iter_child_nodes(node) if n not in body)


def _spelled(name: str, prefix: str) -> str:
    private = name.startswith("__") and not name.endswith("__") and "." not in name
    return prefix + name if private else name


def _move(nodes: Iterable[Any], lines: int) -> None:
    for node in nodes:
        node.lineno += lines
        node.end_lineno += lines


def _innermost(nodes: list[Syntax]) -> list[Syntax]:
    """The nodes that hold no other: what is nested in a node moves with it."""
    return [n for n in nodes if not any(o is not n and o in nodes for o in ast.walk(n))]


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)
