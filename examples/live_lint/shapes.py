"""Small questions about syntax trees, each answered by a pure function."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

NEUTRAL = frozenset({"staticmethod", "classmethod", "abstractmethod"})
MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = frozenset({"list", "dict", "set", "bytearray", "defaultdict", "OrderedDict"})
IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError"})
ARGUMENT_ERRORS = frozenset({"TypeError"})
BROAD_ERRORS = frozenset({"Exception", "BaseException"})
TEST_PREFIXES = ("test", "Test")
TEST_SUFFIXES = ("Test", "Tests", "TestCase")


def is_private(name: str) -> bool:
    """Return True if a name is private by convention: `_name`, but neither `_` nor `__name__`."""
    return name.startswith("_") and not name.endswith("_")


def is_test(name: str) -> bool:
    """Return True if test runners treat a function or class of this name as a test."""
    return name.startswith(TEST_PREFIXES) or name.endswith(TEST_SUFFIXES)


def is_internal(name: str) -> bool:
    """Return True if a definition of this name is internal to its project, and is no test."""
    return is_private(name) and not is_test(name.lstrip("_"))


@dataclass(frozen=True, slots=True)
class Signature:
    """The possible arguments of calls of a function."""

    required: int
    positional: int
    open: bool


def dotted(node: ast.expr) -> tuple[str, str] | None:
    """Return the head and the rest of `a` or `a.b.c`; None for any other expression."""
    parts: list[str] = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return None
    return node.id, ".".join(reversed(parts))


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name or of a called function; "" for other expressions."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_static(node: FunctionNode) -> bool:
    """Return True if a method takes neither `self` nor `cls`."""
    return any(last_name(d) == "staticmethod" for d in node.decorator_list)


def is_plain(decorators: list[ast.expr]) -> bool:
    """Return True if decorators leave a signature alone."""
    return all(last_name(d) in NEUTRAL for d in decorators)


def signature(node: FunctionNode, *, skip_first: bool) -> Signature:
    """The signature of a function, without its first parameter if that is `self` or `cls`."""
    args = node.args
    positional = len(args.posonlyargs) + len(args.args)
    required = positional - len(args.defaults)
    skipped = int(skip_first and positional > 0)
    needed = sum(default is None for default in args.kw_defaults)
    return Signature(
        max(required - skipped, 0) + needed,
        positional - skipped,
        args.vararg is not None or args.kwarg is not None,
    )


def parameters(args: ast.arguments) -> list[ast.arg]:
    """Return all parameters, including starred ones."""
    stars = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*named_parameters(args), *stars]


def named_parameters(args: ast.arguments) -> list[ast.arg]:
    """Return the parameters without starred ones."""
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def defaults(args: ast.arguments) -> list[tuple[str, ast.expr]]:
    """Parameters that have a default, and the default."""
    named = [*args.posonlyargs, *args.args]
    by_position = zip(named[len(named) - len(args.defaults) :], args.defaults, strict=True)
    by_keyword = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    pairs = [*by_position, *by_keyword]
    return [(parameter.arg, value) for parameter, value in pairs if value is not None]


def is_mutable(value: ast.expr) -> bool:
    """Return True if an expression makes an object that can be changed."""
    if isinstance(value, ast.Call):
        return last_name(value) in MUTABLE_CALLS
    return isinstance(value, MUTABLE)


def is_stub(body: list[ast.stmt]) -> bool:
    """Return True if a body does nothing: a docstring, `pass`, `...`, `raise` or a constant."""
    return all(map(_does_nothing, body))


def hides(body: list[ast.stmt]) -> bool:
    """Return True if the body of an `except` drops the exception without a trace."""
    return all(_does_nothing(s) and not isinstance(s, ast.Raise) for s in body)


def caught(handler: ast.ExceptHandler) -> tuple[str, ...]:
    """Return the names of the exceptions of an `except` clause; none if it is bare."""
    kind = handler.type
    if kind is None:
        return ()
    return tuple(map(last_name, kind.elts if isinstance(kind, ast.Tuple) else [kind]))


def expects_import_error(handlers: list[ast.ExceptHandler]) -> bool:
    """Return True if some `except` clause catches a failing import."""
    names = [caught(handler) for handler in handlers]
    return any(not n or not (IMPORT_ERRORS | BROAD_ERRORS).isdisjoint(n) for n in names)


def expects_type_error(handlers: list[ast.ExceptHandler]) -> bool:
    """Return True if some `except` clause names an error of a call with wrong arguments."""
    return any(not ARGUMENT_ERRORS.isdisjoint(caught(handler)) for handler in handlers)


def mentions(items: list[ast.withitem], errors: frozenset[str]) -> bool:
    """Return True if a `with` names such errors: `suppress(ImportError)`, `assertRaises(...)`."""
    calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
    return any(last_name(arg) in errors for call in calls for arg in call.args)


def is_type_checking(test: ast.expr) -> bool:
    """Return True if a condition is `TYPE_CHECKING`."""
    return last_name(test) == "TYPE_CHECKING"


def is_main(test: ast.expr) -> bool:
    """Return True if a condition is `__name__ == "__main__"`."""
    match test:
        case ast.Compare(ast.Name("__name__"), [ast.Eq()], [ast.Constant("__main__")]):
            return True
        case _:
            return False


def strings(value: ast.expr | None) -> list[tuple[int, str]]:
    """Return the lines and strings of a list or tuple, as `__all__` has them."""
    if isinstance(value, ast.BinOp):
        return strings(value.left) + strings(value.right)
    if not isinstance(value, ast.List | ast.Tuple | ast.Set):
        return []
    constants = [e for e in value.elts if isinstance(e, ast.Constant)]
    return [(e.lineno, e.value) for e in constants if isinstance(e.value, str)]


def elements(nodes: list[ast.expr]) -> list[ast.expr]:
    """Return the elements of the nodes that are lists or tuples."""
    return [e for node in nodes if isinstance(node, ast.List | ast.Tuple) for e in node.elts]


def has_stars(call: ast.Call) -> bool:
    """Return True if a call passes `*` or `**`, so that its arguments cannot be counted."""
    starred = any(type(argument) is ast.Starred for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def _does_nothing(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant()):
            return True
        case ast.Return(ast.Name("NotImplemented")):
            return True
        case _:
            return False
