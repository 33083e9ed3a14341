"""A short text for a query that is the same in every process where the query means the same.

    plan --> its nodes, expressions, callables, what they capture, types --> SHA-256

A callable counts by its source and not by its line, so that a file may be edited around it; without
known source, by its code, which another version of Python compiles differently. Captured values
count by type and content, classes and functions of the user by their parts, classes and functions
of libraries by name. Numbers of tables, names of parameters and places do not count.

Sound:  an object that is no plain data counts by its class and the plain data in its fields, and by
        nothing that these refer to.
Cost:   O(plan, and the code that it names); callables are parsed once per file.

`without_zone` finds comparisons of a field of instants with a constant that has no time zone.

    calls.where(lambda c: c.begins > datetime(2024, 1, 1))

    def is_late(time):                        found in a function of the user, too, which is
        return time > datetime(2024, 1, 1)    lifted with the arguments of its call
    calls.where(lambda c: is_late(c.begins))

with `begins: Annotated[datetime, timezone.utc]`: `>` would raise for every row, `==` be False.
A comparison with an attribute (`limits.last`) or a variable of a method is found as well if it is a
time that clocks show twice: it cannot be frozen as an instant, as variables of functions are.

Sound:  only fields that are declared as instants are compared. Functions that catch exceptions, or
        read a zone or a class, are accepted.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import partial
from inspect import getattr_static
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, MethodType, ModuleType
from typing import Any, get_args, get_origin

from optimizer import plan
from optimizer.callables.captures import (
    UNSET,
    ambiguous_variable,
    attribute,
    defaults,
    global_names,
    is_users,
)
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import PACKAGES, Place
from optimizer.callables.syntax import NoSyntax, shared_syntax_of, syntax_of
from optimizer.earlier_names import earlier_name
from optimizer.expr import Apply, Attribute, Call, Constant, Expr, Lifted, Operation
from optimizer.expressions.knowledge import Shape
from optimizer.expressions.simplification import COMPARISONS, zoned_fields
from optimizer.expressions.text import text
from optimizer.kinds.instants import with_instants
from optimizer.lifting.readings import resolve
from optimizer.lifting.symbols import OPERATORS

LENGTH = 32
PLAIN = (int, float, complex, str, bytes, bool, type(None))
GENERATED = ("<string>", "<attrs generated")
"""Prefixes of the file names of generated code, such as the methods of a dataclass."""


def fingerprint(*values: Any) -> str:
    """Return the fingerprint of plans, types and values, in this order.

    >>> from optimizer.plan import Distinct, Table
    >>> first, second = (Distinct(Table(n, "orders", None, True, int)) for n in (1, 2))
    >>> fingerprint(first) == fingerprint(second)
    True
    >>> fingerprint(first) == fingerprint(Distinct(Table(1, "orders", None, True, str)))
    False
    """
    return _Digests().of(values)[:LENGTH]


class _Digests:
    """The digest of each visited value; a value inside itself is named by its depth.

    State: the values, so that no `id` is used again.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}
        self._open: dict[int, int] = {}

    def of(self, value: Any) -> str:
        """Return the digest of a value, computed once; inside itself, a text with its depth."""
        number = id(value)
        if number in self._known:
            return self._known[number][1]
        if number in self._open:
            return f"the {self._open[number]}th around it"
        self._open[number] = len(self._open)
        try:
            text = "\0".join(self._parts(value))
        finally:
            del self._open[number]
        found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._known[number] = (value, found)
        return found

    def _all(self, *values: Any) -> list[str]:
        return [self.of(value) for value in values]

    def _parts(self, value: Any) -> list[str]:
        """Return the kind of a value, and the digests of its parts."""
        match value:
            case Place():
                return ["place"]
            case Constant():
                return ["constant", self.of(value.value)]
            case Lifted():
                return ["lifted", *self._all(value.body, value.parameters)]
            case Opaque():
                return ["opaque", *self._all(value.function, value.parameters)]
            case plan.Values():
                return ["values", *self._all(value.rows, value.of)]
            case plan.Table():
                return ["table", *self._all(value.name, value.key, value.stored, value.row_type)]
            case plan.Folded():
                return ["Folded", *self._digest_folded(value)]
            case FunctionType():
                return ["function", *self._function(value)]
            case MethodType():
                return ["method", *self._all(value.__self__, value.__func__)]
            case partial():
                return ["partial", *self._all(value.func, value.args, value.keywords)]
            case type() if not isinstance(value, GenericAlias):
                return ["class", *self._class(value)]
            case _:
                return [type(value).__name__, *self._content(value)]

    def _content(self, value: Any) -> Iterator[str]:
        """Iterate over the content of data, of a generic type, or of an object."""
        match value:
            case Enum():
                yield from (self.of(type(value)), value.name)
            case _ if type(value) in PLAIN:
                yield repr(value)
            case tuple() | list():
                yield from (self.of(type(value)), *self._all(*value))
            case set() | frozenset():
                yield from sorted(self._all(*value))
            case Mapping():
                yield from self._all(*value.keys(), *value.values())
            case ModuleType():
                yield earlier_name(value.__name__)
            case BuiltinFunctionType():
                owner = value.__self__
                yield from (
                    value.__qualname__,
                    earlier_name(str(value.__module__), value.__qualname__),
                    self.of(owner),
                )
            case _ if get_origin(value) is not None:
                yield from self._all(get_origin(value), *get_args(value))
            case _:
                yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        """Digest a record by its fields, an object of a library by its pickle, others by plain
        data."""
        yield self.of(type(value))
        if is_dataclass(value):
            for field in fields(value):
                if field.compare:
                    yield from (field.name, self.of(getattr(value, field.name)))
        elif _is_own_module(type(value).__module__):
            yield from self._all(*sorted(_made_with(value).items()))
        elif not _is_users(type(value).__module__):
            yield _pickle_digest(value)
        else:
            for name, held in sorted(_attributes_of_object(value).items()):
                yield from (name, self.of(held if _is_plain_data(held) else type(held)))

    def _digest_folded(self, value: plan.Folded) -> Iterator[str]:
        """Digest an aggregate by its fields; its two names count as one, the label."""
        yield self.of(type(value))
        for field in fields(value):
            if field.name != "own_name" and (field.name != "direction" or value.direction):
                held = value.label if field.name == "name" else getattr(value, field.name)
                yield from (field.name, self.of(held))

    def _function(self, function: FunctionType) -> Iterator[str]:
        """Digest a function of the user by its code and variables, one of a library by its name."""
        yield function.__qualname__.rpartition(".")[2]
        if not _is_users(function.__module__, function.__code__):
            yield earlier_name(str(function.__module__), function.__qualname__)
            return
        yield _code(function.__code__, function.__globals__)
        yield self.of(defaults(function))
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            try:
                yield from (name, self.of(cell.cell_contents))
            except ValueError:
                yield name  # not assigned yet
        for name in sorted(global_names(function.__code__)):
            value = function.__globals__.get(name, UNSET)
            if value is not UNSET:
                yield from (name, self.of(value))

    def _class(self, kind: type) -> Iterator[str]:
        """Digest a class of the user by its fields and methods, one of a library by its name."""
        yield kind.__qualname__
        if not _is_users(kind.__module__):
            yield "" if _is_own_module(kind.__module__) else kind.__module__
            return
        yield from self._all(*kind.__bases__)
        for name, annotation in inspect.get_annotations(kind).items():
            yield from (name, annotation if isinstance(annotation, str) else self.of(annotation))
        for name, held in vars(kind).items():
            method = _method_of_class(held, kind.__module__)
            if method is not None:
                yield from (name, self.of(method))
            elif not name.startswith("__") and _is_plain_data(held):
                yield from (name, self.of(held))


def _method_of_class(held: Any, module: str) -> FunctionType | None:
    """Return the function behind an attribute of a class, if it is written in `module`; else
    None."""
    function = held.fget if isinstance(held, property) else getattr(held, "__func__", held)
    if not isinstance(function, FunctionType) or function.__module__ != module:
        return None
    return None if function.__code__.co_filename.startswith(GENERATED) else function


def _code(code: CodeType, module: dict[str, Any]) -> str:
    """Return the source of code as Python writes it; the compiled code if there is no source."""
    found = syntax_of(code, module)
    if not isinstance(found, NoSyntax):
        return ast.unparse(found)
    inner = [_code(c, module) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return "\0".join([code.co_code.hex(), *code.co_names, *code.co_varnames, *inner])


def _is_own_module(module: Any) -> bool:
    """Return True if a module is part of this library."""
    return str(module).partition(".")[0] in PACKAGES


def _is_users(module: Any, code: CodeType | None = None) -> bool:
    """Return True if a module is the user's: not Python's, this library's or an installed
    package's."""
    if str(module).partition(".")[0] in sys.stdlib_module_names or _is_own_module(module):
        return False
    file = getattr(sys.modules.get(str(module)), "__file__", None) or ""
    file = file if code is None else code.co_filename
    return "site-packages" not in file and "dist-packages" not in file


def _is_plain_data(value: Any, depth: int = 3) -> bool:
    """Return True if a value is plain data, which counts by its content."""
    if type(value) in PLAIN or isinstance(value, Enum):
        return True
    if isinstance(value, dict):
        return _is_plain_data([*value, *value.values()], depth)
    is_container = isinstance(value, tuple | list | set | frozenset)
    return is_container and depth > 0 and all(_is_plain_data(one, depth - 1) for one in value)


def _made_with(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of this library.

    A class with attributes that are computed on demand returns them as before their computation.
    """
    tell = getattr(value, "_fingerprinted", None)
    return _attributes_of_object(value) if tell is None else tell()


def _attributes_of_object(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, of its slots and its dictionary."""
    names = [n for kind in type(value).__mro__ for n in _slots(kind)]
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _pickle_digest(value: Any) -> str:
    """Return a digest of a library object's pickle; empty if it cannot be pickled."""
    try:
        return hashlib.sha256(pickle.dumps(value, 4)).hexdigest()
    except Exception:  # it holds a lock, or a file
        return ""


ASKING = frozenset({"tzinfo", "utcoffset", "isinstance", "type", "hasattr", "replace"})
"""Names in a function that may compare an instant with a time without zone on purpose."""
ROWS = ("row", "other", "third")
"""Names of rows in a message."""
DEEPEST = 4
"""Functions that call one another."""
Shaped = Callable[[Expr], Shape]
"""Returns the class of an expression."""


def without_zone(expr: Expr, shape: Shaped) -> str | None:
    """Return the message about an expression that compares an instant with a naive constant, itself
    or in a function that it calls.

    Return None for any other expression.
    """
    match expr:
        case Operation():
            return _zone_mismatch(expr, shape)
        case Call(Constant() as called, given) if called.kind is FunctionType:
            return _in_call(called.value, given, shape)
        case Call(Constant() as owner, given) if owner.kind.__module__ != "builtins":
            return _in_method(owner, "__call__", given, shape)
        case Call(Attribute(Constant() as owner, name), given):
            return _in_method(owner, name, given, shape)
        case Apply(called, given):
            return _in_call(called.function, given, shape)
        case _:
            return None


def _zone_mismatch(expr: Operation, shape: Shaped) -> str | None:
    """Return why a comparison mixes times with and without a zone, or is ambiguous; None if it does
    not."""
    if expr.operator not in COMPARISONS or len(expr.operands) != 2:
        return None
    for operand in expr.operands:
        value = _constant(operand)
        if with_instants(value) is not value:
            return _shown_twice(text(operand, ROWS))
    pair = {_has_zone(each, shape): each for each in expr.operands}
    if pair.keys() != {True, False}:
        return None
    instant, naive = text(pair[True], ROWS), text(pair[False], ROWS)
    return f"{instant} is an instant, and {naive} has no time zone"


def _shown_twice(name: str) -> str:
    """Return the message for a time that clocks show twice, with a remedy."""
    return (
        f"{name} is or holds a time that clocks show twice, and Python compares what they show\n"
        "  give the time an offset: time.astimezone(timezone.utc)"
    )


def _in_method(
    owner: Constant, name: str, arguments: tuple[Expr, ...], shape: Shaped
) -> str | None:
    """Return the message for an ambiguous time, or an instant compared with a naive time, in a
    method.

    Return None if there is none. Variables of a method cannot be frozen as instants.
    """
    method = getattr_static(owner.kind, name, None)
    if not isinstance(method, FunctionType) or not is_users(method):
        return None
    read = ambiguous_variable(method)
    return _shown_twice(read) if read else _in_call(method, (owner, *arguments), shape)


def _in_call(
    function: Any, arguments: tuple[Expr, ...], shape: Shaped, depth: int = 0
) -> str | None:
    """Return the message for an instant that a called function compares with a naive time.

    Return None if there is none, or if the function has no text.
    """
    if not isinstance(function, FunctionType) or depth > DEEPEST or not is_users(function):
        return None
    is_owned = bool(arguments) and isinstance(arguments[0], Constant)
    if not is_owned and not any(_may_be_zoned(each, shape) for each in arguments):
        return None
    tree = shared_syntax_of(function.__code__, function.__globals__)
    if isinstance(tree, NoSyntax) or not isinstance(tree, ast.Lambda | ast.FunctionDef):
        return None
    if any(map(_may_expect, ast.walk(tree))):
        return None
    read = _CalledVariables(function, tree, arguments)
    for node in ast.walk(tree):
        for found in read.comparisons(node):
            if message := _zone_mismatch(found, shape):
                return message
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            inner = tuple([read.expr(each) or Constant(None, None) for each in node.args])
            other = read.variable(node.func.id)
            if message := _in_call(other, inner, shape, depth + 1):
                return message
    return None


def _may_expect(node: ast.AST) -> bool:
    """Return True if part of a function may handle times without a zone."""
    if isinstance(node, ast.Try | ast.With):
        return True
    return getattr(node, "id", getattr(node, "attr", None)) in ASKING


class _CalledVariables:
    """The variables of a function that is called with some expressions."""

    def __init__(
        self, function: FunctionType, tree: ast.Lambda | ast.FunctionDef, given: tuple[Expr, ...]
    ) -> None:
        self._function = function
        own = tree.args
        names = [each.arg for each in (*own.posonlyargs, *own.args)]
        nodes = list(ast.walk(tree))
        again = {each.id for each in nodes if isinstance(each, ast.Name) and _is_bound(each)}
        every = [each.arg for each in nodes if isinstance(each, ast.arg)]
        self._bound = {
            name: expr
            for name, expr in zip(names, given, strict=False)
            if name not in again and every.count(name) == 1
        }
        self._own = {*every, *again}

    def comparisons(self, node: ast.AST) -> Iterator[Operation]:
        """Iterate over the comparisons of two operands in a node.

        Operands that cannot be read, and nodes other than comparisons, give none.
        """
        if not isinstance(node, ast.Compare):
            return
        operands = [node.left, *node.comparators]
        for left, sign, right in zip(operands, node.ops, operands[1:], strict=False):
            one, two = self.expr(left), self.expr(right)
            symbol = OPERATORS[type(sign)]
            if symbol in COMPARISONS and one is not None and two is not None:
                yield Operation(symbol, (one, two))

    def expr(self, node: ast.expr) -> Expr | None:
        """Return a parameter, a field of one, or a constant; None for any other node."""
        match node:
            case ast.Name(name) if name in self._bound:
                return self._bound[name]
            case ast.Name(name):
                value = self.variable(name)
                return None if value is UNSET else Constant(value, None, name)
            case ast.Attribute(inner, name):
                of = self.expr(inner)
                return None if of is None else Attribute(of, name)
            case _:
                return None

    def variable(self, name: str) -> Any:
        """Return the value of a variable from outside; UNSET if there is none."""
        return UNSET if name in self._own else resolve(self._function, name)


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _may_be_zoned(expr: Expr, shape: Shaped) -> bool:
    kind = shape(expr)
    return _has_zone(expr, shape) is True or bool(isinstance(kind, type) and zoned_fields(kind))


def _has_zone(expr: Expr, shape: Shaped) -> bool | None:
    """Return True for a field of instants, False for a constant without zone, None for other
    expressions."""
    value = _constant(expr)
    if isinstance(value, datetime):
        return value.tzinfo is not None
    match expr:
        case Attribute(inner, name):
            kind = shape(inner)
            return True if isinstance(kind, type) and name in zoned_fields(kind) else None
        case _:
            return None


TIMELESS = frozenset({int, float, str, bytes, bool, date})
"""Classes whose values contain no time. The value of a slot of one is not read."""


def _constant(expr: Expr) -> Any:
    """Return the value of a constant, or of an attribute of one, that may have a time zone.

    Return UNSET for other expressions.
    """
    match expr:
        case Constant():
            return UNSET if expr.kind in TIMELESS else expr.value
        case Attribute(inner, name):
            owner = _constant(inner)
            return UNSET if owner is UNSET else attribute(owner, name)
        case _:
            return UNSET
