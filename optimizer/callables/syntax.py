"""Find the syntax tree that a function was compiled from, or the reason why it is unknown.

    code  --guess-->  texts  --parse, compile-->  the same code?  --yes-->  its node

A text is only a guess until compiling it gives the very code again: file names lie, files are
edited, tools rewrite. So a tree is never that of other code.

Sound: see `same_code`. A code object proves only its own parts, so the tree has no defaults,
       decorators and annotations, and the first iterable of a generator expression is the variable
       `.0`, as in its code.
Cost:  a parse for the first function of a file (10 ms per 1,000 lines), a compile of the statement
       around it for another function, a copy of the tree for the same function again.

`SourceTree` parses a source text once, and finds the node that a code object was compiled from.

    text  --parse-->  nodes  --compile-->  codes          the same as the given code?

A statement is compiled together with the imports of its module, because the compiler emits other
code for a method call of an imported name. If that does not yield the code, the whole text is
compiled. Nodes with the same name and line are distinguished by the columns of the code's
instructions: they lie in the body of its node, and of the nodes around it. Without columns, one
node is moved far down with all nodes inside it: the code that starts there is its own.

State: the tree, its nodes by name and line, the codes of the statements compiled so far.
Cost:  a parse per text; a compile per statement, and without columns one more per node that shares
       its line.

`same_code` compares two code objects: equal if the compiler makes both of one text at one place.

    def f(x): return x + 1      the same code as      def f(x): return x + 1
                                but not as            def f(x): return x + True

Python's own `==` of code objects takes `1` for `1.0` inside of nested constants, and leaves out
the qualified name. Here every field counts, each constant with its type, and every position.

Sound: equal code with equal cells, globals and defaults gives equal results.
"""

from __future__ import annotations
import __future__

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from inspect import CO_OPTIMIZED
from operator import attrgetter, itemgetter
from threading import RLock
from types import CodeType
from typing import Any, TypeAlias

from optimizer.callables.source import HINTS, texts
from optimizer.record import record

Syntax: TypeAlias = ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef | ast.GeneratorExp
Label: TypeAlias = tuple[str, int]

FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
FAR = 10_000_000
FAILURES = (SyntaxError, ValueError, OverflowError)
FUNCTIONS = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)
KEPT = (ast.Constant, ast.keyword, ast.MatchClass, ast.ImportFrom)


@lru_cache(maxsize=16)
def parse_source(text: str, filename: str, flags: int) -> SourceTree | None:
    """Return the text as the compiler reads it with these future flags; None if it does not.

    >>> source = parse_source("f = lambda s: s.x", "people.py", 0)
    >>> code = compile("f = lambda s: s.x", "people.py", "exec", 0, True).co_consts[0]
    >>> [ast.unparse(node) for node in source.nodes_of(code)]
    ['lambda s: s.x']
    """
    try:
        try:
            return SourceTree(text, filename, flags)
        except SyntaxError:  # a cell of a notebook may await
            return SourceTree(text, filename, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except FAILURES:
        return None


class SourceTree:
    """The nodes of a text, private names as their class spells them, and their codes."""

    def __init__(self, text: str, filename: str, flags: int) -> None:
        self._filename = filename
        self._flags = flags
        tree = self._compile_source(text, ast.PyCF_ONLY_AST)
        assert isinstance(tree, ast.Module)
        self._statements = tree.body
        self._first_lines = [_first_line(statement) for statement in tree.body]
        self._imports = list(_imports(tree.body))
        self._nodes: dict[int, dict[Label, list[Syntax]]] = {}
        self._codes: dict[int | None, dict[Label, list[CodeType]]] = {}

    def nodes_of(self, code: CodeType) -> list[Syntax]:
        """Return the nodes that compile to `code`.

        The list is empty if the code is not from this text. It has one node as a rule, several if
        they cannot be distinguished.
        """
        label = (code.co_name, code.co_firstlineno)
        nodes = [
            (node, number)
            for number, first in enumerate(self._first_lines)
            if first <= label[1] <= (self._statements[number].end_lineno or 0)
            for node in self._nodes_of(number).get(label, [])
        ]
        numbers = dict.fromkeys([number for _, number in nodes])
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
        """Return the nodes of a statement, by the names and lines of their codes."""
        if number not in self._nodes:
            found = defaultdict(list)
            for node in ast.walk(self._statements[number]):
                if isinstance(node, ast.ClassDef):
                    _spell_private_names(node)
                elif isinstance(node, Syntax):
                    found[_code_label(node)].append(node)
            self._nodes[number] = found
        return self._nodes[number]

    def _codes_of(self, number: int | None) -> dict[Label, list[CodeType]]:
        """Return the codes of a statement, or of the whole text, by name and line."""
        if number not in self._codes:
            codes = defaultdict(list)
            for code in self._all_codes(number):
                codes[code.co_name, code.co_firstlineno].append(code)
            self._codes[number] = codes
        return self._codes[number]

    def _is_from(self, node: Syntax, code: CodeType, number: int | None) -> bool:
        """Return True if `code` moves with the node."""
        inside = [inner for inner in ast.walk(node) if hasattr(inner, "lineno")]
        _move(inside, FAR)
        try:
            return any(same_code(code, c, shift=FAR) for c in self._all_codes(number))
        finally:
            _move(inside, -FAR)

    def _all_codes(self, number: int | None) -> Iterator[CodeType]:
        """Yield all code objects of the text, or of its imports and one statement; none if it does
        not compile."""
        own = self._statements if number is None else [*self._imports, self._statements[number]]
        try:
            code = self._compile_source(ast.Module(own, []))
        except FAILURES:  # a text may parse and not compile: a file may have been edited since
            return
        assert isinstance(code, CodeType)
        yield from _nested_codes(code)

    def _compile_source(self, source: str | ast.Module, flags: int = 0) -> object:
        """Compile a source with the flags of the original code, without showing warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags |= self._flags
            return compile(source, self._filename, "exec", flags, dont_inherit=True)


Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]
"""Line and column of a begin, and of an end."""


def _by_columns(nodes: list[Syntax], code: CodeType) -> list[Syntax]:
    """Return the node whose body has all instructions of a code; none if that is not certain."""
    places = [
        ((line, column), (end, end_column))
        for line, end, column, end_column in code.co_positions()
        if None not in (line, end, column, end_column)
    ]
    own = [place for place in places if place[0] != place[1]]  # instructions without a text
    if not own:
        return []
    whole = min(own)[0], max(map(itemgetter(1), own))
    around = [node for node in nodes if _is_in(whole, _span_of_body(node))]
    if len(around) < 2:
        return around
    return [
        n for n in around if all(_is_in(_span_of_body(n), _span_of_body(other)) for other in around)
    ]


def _span_of_body(node: Syntax) -> Span:
    """Return the first and the last position of a lambda's body, or of a whole function."""
    of: ast.expr | ast.stmt = node.body if isinstance(node, ast.Lambda) else node
    return (of.lineno, of.col_offset), (of.end_lineno or 0, of.end_col_offset or 0)


def _is_in(one: Any, other: Span) -> bool:
    return bool(other[0] <= one[0] and one[1] <= other[1])


def _code_label(node: Syntax) -> Label:
    """Return the name and the first line that the compiler gives to the code of a node."""
    if isinstance(node, ast.Lambda | ast.GeneratorExp):
        return ("<lambda>" if isinstance(node, ast.Lambda) else "<genexpr>"), node.lineno
    return node.name, _first_line(node)


def _first_line(statement: ast.stmt) -> int:
    """Return the line where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first: int = min([statement.lineno, *map(attrgetter("lineno"), decorators)])
    return first


def _imports(statements: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """Iterate over the imports of the module itself, also those inside of `if` and `try`."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If | ast.Try | ast.With | ast.ExceptHandler):
            yield from _imports(ast.iter_child_nodes(statement))


def _spell_private_names(owner: ast.ClassDef) -> None:
    """Write the private names in a class as the compiler does: `self.__x` as `self._Owner__x`.

    A class inside spells its own. If a name were missed, no code would be the same.
    """
    prefix = f"_{owner.name.lstrip('_')}"
    pending: list[tuple[ast.AST, bool]] = [(child, False) for child in owner.body]
    while pending and prefix != "_":
        node, in_function = pending.pop()
        named = not isinstance(node, KEPT) and (in_function or not isinstance(node, SCOPES))
        for field, value in ast.iter_fields(node) if named else ():
            if isinstance(value, str):
                setattr(node, field, _spell_private_name(value, prefix))
            elif isinstance(value, list):
                value[:] = [
                    _spell_private_name(v, prefix) if isinstance(v, str) else v for v in value
                ]
        body = node.body if isinstance(node, ast.ClassDef) else ()
        inside = in_function or isinstance(node, FUNCTIONS)
        pending += ((n, inside) for n in ast.iter_child_nodes(node) if n not in body)


def _spell_private_name(name: str, prefix: str) -> str:
    """Return a name as the compiler spells it in a class; `prefix` is `_` and the class's name."""
    private = name.startswith("__") and not name.endswith("__") and "." not in name
    return prefix + name if private else name


def _move(nodes: Iterable[Any], lines: int) -> None:
    """Shift the line numbers of nodes by `lines`, in place."""
    for node in nodes:
        node.lineno += lines
        node.end_lineno += lines


def _innermost(nodes: list[Syntax]) -> list[Syntax]:
    """Return the nodes that contain no other: a nested node moves with the node around."""
    return [n for n in nodes if not any(o is not n and o in nodes for o in ast.walk(n))]


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects within a code object, outer ones first; not the code object itself."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested_codes(constant)


def code_of_lambda(node: ast.Lambda, within: CodeType) -> CodeType | None:
    """Return the code of a lambda inside other code, found by columns; None without these."""
    return next((code for code in _nested_codes(within) if _by_columns([node], code)), None)


FIELDS = attrgetter(
    "co_code",
    "co_names",
    "co_name",
    "co_qualname",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_flags",
    "co_exceptiontable",
    "co_stacksize",
)


@record
class CodeItself:
    """A code object by identity: code objects of equal texts in different files are equal."""

    code: CodeType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodeItself) and self.code is other.code

    def __hash__(self) -> int:
        return id(self.code)


def same_code(code: CodeType, other: CodeType, *, shift: int = 0) -> bool:
    """Return True if `other` is `code` compiled from the same text, `shift` lines further down.

    Columns are compared if both sides have them: `-X no_debug_ranges` leaves them out.

    >>> def code(text): return compile(text, "people.py", "eval").co_consts[0]
    >>> same_code(code("lambda s: s.x + 1"), code("lambda s: s.x + 1"))
    True
    >>> same_code(code("lambda s: s.x + 1"), code("lambda s: s.x + 1.0"))
    False
    """
    return (
        FIELDS(code) == FIELDS(other)
        and code.co_firstlineno + shift == other.co_firstlineno
        and _same_positions(code, other, shift)
        and _same(code.co_consts, other.co_consts, shift)
    )


def _same_positions(code: CodeType, other: CodeType, shift: int) -> bool:
    """Return True if two code objects have equal positions, `shift` lines apart; unknown columns
    match any."""
    if code.co_linetable == other.co_linetable:  # it counts from the first line
        return True
    pairs = zip(code.co_positions(), other.co_positions(), strict=True)
    return all(
        (None if line is None else line + shift) == other_line
        and (None in columns or None in other_columns)
        for (line, _, *columns), (other_line, _, *other_columns) in pairs
    )


def _same(value: object, other: object, shift: int) -> bool:
    """Return True if two constants are the same: `1`, `True`, `1.0`, `0.0` and `-0.0` all
    differ."""
    if type(value) is not type(other):
        return False
    match value, other:
        case CodeType(), CodeType():
            return same_code(value, other, shift=shift)
        case tuple(), tuple():
            return len(value) == len(other) and all(
                _same(a, b, shift) for a, b in zip(value, other, strict=True)
            )
        case frozenset(), frozenset():
            return len(value) == len(other) and all(
                any(_same(a, b, shift) for b in other) for a in value
            )
        case slice(), slice():
            bounds = attrgetter("start", "stop", "step")
            return _same(bounds(value), bounds(other), shift)
        case float() | complex(), _:
            return repr(value) == repr(other)
        case _:
            return value == other


BINDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
COPIED = (ast.AST, list)
STATELESS = frozenset(
    kind
    for base in (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
    for kind in base.__subclasses__()
)
"""Kinds of nodes without fields and places; the parser has one object of each."""
BINDS = "binds in expressions"
ONE_AT_A_TIME = RLock()  # a proof moves nodes and silences warnings for a moment


@record
class NoSyntax:
    """The reason why there is no syntax tree, and a remedy."""

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
    """Return the syntax tree that `code` was compiled from, proven by compiling it again.

    Parameters
    ----------
    code: the `__code__` of a function, or the `gi_code` of a generator expression.
    module: the `__globals__` of the function: hints for its text.

    Returns
    -------
    A tree of the caller's own, or `NoSyntax`. Private names are spelled as in the code; names
    have the values of the function's closure, globals and builtins, and defaults are its
    `__defaults__`. Under `python -O` the tree still has the asserts that the code lacks.

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
    asked = _CodeIdentity(code, {name: module[name] for name in HINTS if name in module})
    try:
        found = _find_syntax(asked)
        copy: Syntax | NoSyntax = found if isinstance(found, NoSyntax) else _copy(found)
        return copy
    except (RecursionError, MemoryError):
        return TOO_DEEP


def shared_syntax_of(code: CodeType, module: Mapping[str, Any]) -> Syntax | NoSyntax:
    """Return a tree that all callers share: it must not be changed."""
    try:
        return _find_syntax(
            _CodeIdentity(code, {name: module[name] for name in HINTS if name in module})
        )
    except (RecursionError, MemoryError):
        return TOO_DEEP


@record
class _CodeIdentity(CodeItself):
    """A code object, and the hints for its text."""

    hints: dict[str, Any]

    __eq__ = CodeItself.__eq__
    __hash__ = CodeItself.__hash__


@lru_cache(maxsize=1024)
def _find_syntax(asked: _CodeIdentity) -> Syntax | NoSyntax:
    """Return the syntax of a code object, read from the first text that has only one candidate.

    Return `NoSyntax` with the reason if no text has it.
    """
    code = asked.code
    if not code.co_flags & CO_OPTIMIZED:
        return NO_FUNCTION
    refusal = NO_TEXT
    with ONE_AT_A_TIME:
        for text in texts(code, asked.hints):
            source = parse_source(text, code.co_filename, code.co_flags & FUTURES)
            nodes = source.nodes_of(code) if source else []
            if len(nodes) == 1:
                return _proven_part(nodes[0])
            trees = {ast.dump(tree): tree for tree in map(_proven_part, nodes)}
            if len(trees) == 1:
                return trees.popitem()[1]
            refusal = AMBIGUOUS if trees else NOT_THE_TEXT
    return refusal


def _proven_part(node: Syntax) -> Syntax:
    """Return a copy without the parts that are evaluated outside of the code object."""
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
    """Return a copy of a node, or of a list of nodes, with the fields that Python declares.

    Tools add other fields to nodes, and those refer to files.
    """
    if node.__class__ is list:
        return [_copy(item) if isinstance(item, COPIED) else item for item in node]
    kind: Any = type(node)
    if kind in STATELESS:
        return node
    copy = kind.__new__(kind)
    fields, places, own = kind._fields, kind._attributes, vars(copy)
    for name, value in vars(node).items():
        if name in places:
            own[name] = value
        elif name in fields:
            own[name] = _copy(value) if isinstance(value, COPIED) else value
    return copy


def binds(tree: ast.Lambda | ast.FunctionDef) -> bool:
    """Return True if names are bound within expressions; cached, because trees are shared."""
    known: bool | None = vars(tree).get(BINDS)
    if known is None:
        own = tree.body if isinstance(tree, ast.FunctionDef) else [tree.body]
        known = any(isinstance(node, BINDING) for part in own for node in ast.walk(part))
        setattr(tree, BINDS, known)
    return known


def returns_one_expression(tree: ast.Lambda | ast.FunctionDef) -> bool:
    """Return True if a function is one expression, perhaps with a docstring."""
    if isinstance(tree, ast.Lambda):
        return True
    documented = isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant)
    rest = tree.body[1:] if documented else tree.body
    return len(rest) == 1 and isinstance(rest[0], ast.Return) and rest[0].value is not None
