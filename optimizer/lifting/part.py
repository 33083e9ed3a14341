"""A part of a function as a function of its own, and what names mean inside a function."""

from __future__ import annotations

import ast
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

from optimizer.callables.opaque import Opaque
from optimizer.callables.source import place_at
from optimizer.lifting import folds

UNSET: Final[Any] = object()


def resolve(function: FunctionType, name: str) -> Any:
    """What a free name means in a function; `UNSET` if it means nothing yet."""
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:
            return UNSET
    if name in function.__globals__:
        return function.__globals__[name]
    builtins = function.__globals__.get("__builtins__", {})
    names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    return names.get(name, UNSET)


def part_of(
    node: ast.expr,
    parameters: list[str],
    function: FunctionType,
    origin: Opaque,
    bag: type | None = None,
) -> Opaque | None:
    """The part as a callable with the same globals and closure; None if it has none of its own.

    Two parts are equal if they are written alike in callables that are equal. With `bag`, the lists
    that it gives are bags.
    """
    identity = (origin.identity, function.__code__, ast.dump(node), tuple(parameters), bag)
    run, given = folds.with_folds(node, parameters, lambda n: resolve(function, n), identity, bag)
    free = [n for n in function.__code__.co_freevars if n.isidentifier() and n not in parameters]
    free += given
    inner = ast.Lambda(_arguments(parameters), run)
    outer = ast.Expression(ast.Lambda(_arguments(free), inner))
    ast.copy_location(inner, node)
    ast.copy_location(outer.body, node)
    ast.fix_missing_locations(outer)
    try:
        module = compile(outer, function.__code__.co_filename, "eval", dont_inherit=True)
        code = _only(_only(module))
    except (SyntaxError, ValueError, RecursionError):
        return None
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in given.items()}
    closure: tuple[CellType, ...] = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, origin.name, None, closure or None)
    place = place_at(function.__code__.co_filename, node.lineno)
    name = ast.unparse(node)
    name = name if len(name) <= 40 else f"{name[:37]}..."
    return Opaque(made, len(parameters), name, place, (), identity, origin.role, is_part=True)


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _only(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))
