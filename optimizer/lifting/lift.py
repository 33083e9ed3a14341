"""Lift: read a callable as an expression over its parameters, or leave it whole, with the reason.

    lambda s: s.age > limit     ->     s.age > 30
    s.first_name.startswith     ->     opaque: ...

The syntax tree is the callable's own (`syntax.py` proves it). Names have the values of when the
relation was made: parameters, captured variables, globals, built-ins. A function may have several
statements if it only names values, chooses and returns. Expressions without a node of their own
(comprehensions, nested lambdas, starred arguments) become functions of the parameters that they
read, and are called.

Small functions that a callable calls are inlined if they return one expression.

Sound:  an expression evaluates the same parts as the callable, in its order. A named value that is
        used n times is repeated n times, if that makes no difference (`is_value`).
Source: [i3ql] language integration; "lift" is our word, not that of the DBSP papers.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter, methodcaller
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from optimizer.callables.captures import unread_parameters
from optimizer.callables.opaque import Opaque
from optimizer.callables.syntax import NoSyntax, binds, returns_one_expression, shared_syntax_of
from optimizer.expr import (
    NONE,
    And,
    Apply,
    Attribute,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    First,
    Formatted,
    Item,
    Lifted,
    Operation,
    Or,
    Parameter,
    Text,
    constant,
    is_longer,
    row_names,
    walk,
)
from optimizer.expressions.knowledge import IS_MONOTONE, Shapes, is_of_values, is_value, total
from optimizer.expressions.simplification import evaluated_attribute
from optimizer.expressions.text import surely
from optimizer.lifting import frozen_containers, named_values, outer_values
from optimizer.lifting.readings import (
    UNSET,
    Queries,
    Reading,
    of_all_kin,
    part_of,
    read_cached,
    resolve,
)
from optimizer.lifting.symbols import DISPLAYS, OPERATORS, by_identity
from optimizer.record import record

LARGEST = 400
"""Nodes that an expression may have; `if` statements can double it."""
LONGEST = 60
"""Nodes of a function that is inlined."""
DEEPEST = 5
TOO_LONG = "it is too long"
HINT = ("write it as one expression, or as names, choices and returns",)


class Unreadable(Exception):
    """The callable stays opaque; the arguments are the reason, and a remedy."""


def lift(function: Opaque, shapes: Shapes = ()) -> Lifted:
    """Return the callable as an expression; as a call of it, if it cannot be lifted."""
    body, names = read_cached(function, shapes, _read_wholly)
    return Lifted(body, names, (function,), function.parameters, function)


def lift_all(function: Opaque, shapes: Shapes = ()) -> Reading | None:
    """Return the expression of all callables that differ from `function` in plain values only.

    Slots stand for the values. Return None if the values decide how it is read, or it has none.
    """
    return of_all_kin(function, shapes, _read_wholly)


def _read_wholly(function: Opaque, shapes: Shapes) -> Reading:
    """Return the expression of a callable, or a call of it; and names of its parameters."""
    arguments = tuple(Parameter(index) for index in range(function.parameters))
    try:
        body, names = read_callable_as_expr(function.function, Origin(function, shapes), arguments)
        _check_length(body)
        if function.copies:
            body = frozen_containers.freeze_containers(body, function.copies)
    except Unreadable as unreadable:
        reason = "\n".join((*unreadable.args, *HINT)[:2])
        body, names = Apply(function, _read_by(function), reason), ()
    except RecursionError:
        body, names = Apply(function, _read_by(function), "it is nested too deeply"), ()
    return body, names or row_names(function.parameters)


@record
class Origin:
    """The callable that is being read, the shapes of its arguments, the depth of calls, and the
    reader of its queries, if it may have some."""

    function: Opaque
    shapes: Shapes
    depth: int = 0
    queries: Queries | None = None


def _read_by(function: Opaque) -> tuple[Expr, ...]:
    """Return the arguments of an opaque callable; None for arguments that it does not read."""
    unread = unread_parameters(function.function)
    return tuple(NONE if i in unread else Parameter(i) for i in range(function.parameters))


def read_callable_as_expr(
    function: Callable[..., Any], origin: Origin, arguments: tuple[Expr, ...]
) -> tuple[Expr, tuple[str, ...]]:
    """Return the expression of a call with the given arguments, and the names of the parameters.

    Raise `Unreadable` if the callable has no code that can be read.
    """
    match function:
        case FunctionType():
            tree = tree_of(function)
            bound = bound_arguments(function, tree, arguments, {})
            names = tuple(a.arg for a in [*tree.args.posonlyargs, *tree.args.args])
            free = [n for n in names if bound.get(n) in arguments]
            return Reader(function, origin, bound).body(tree), tuple(free)[: len(arguments)]
        case MethodType():
            owner = constant(function.__self__, "self")
            inner, names = read_callable_as_expr(function.__func__, origin, (owner, *arguments))
            return inner, names[1:] if len(names) > len(arguments) else names
        case functools.partial():
            if not isinstance(function.func, FunctionType):
                raise Unreadable(
                    "it is a partial of what is no Python function", "write a lambda instead"
                )
            given = tuple(map(constant, function.args))
            keywords = {name: constant(value) for name, value in function.keywords.items()}
            tree = tree_of(function.func)
            bound = bound_arguments(function.func, tree, (*given, *arguments), keywords)
            return Reader(function.func, origin, bound).body(tree), ()
        case attrgetter() | itemgetter() | methodcaller():
            return _getter(function, arguments[0]), ()
        case BuiltinFunctionType() | type():
            return Call(constant(function), arguments), ()
        case _:
            call = getattr(type(function), "__call__", None)  # noqa: B004
            if isinstance(call, FunctionType):
                return read_callable_as_expr(MethodType(call, function), origin, arguments)
            if type(function).__name__ in ("method_descriptor", "wrapper_descriptor"):
                return Call(constant(function), arguments), ()
            raise Unreadable(
                f"a {type(function).__name__} has no Python code to read",
                "pass a lambda that calls it",
            )


def tree_of(function: FunctionType) -> ast.Lambda | ast.FunctionDef:
    """Return the shared syntax tree of a function; raise `Unreadable` if it cannot be read."""
    tree = shared_syntax_of(function.__code__, function.__globals__)
    if isinstance(tree, NoSyntax):
        raise Unreadable(tree.reason, tree.remedy)
    if not isinstance(tree, ast.Lambda | ast.FunctionDef):
        raise Unreadable("it is no plain function")
    if not binds(tree):
        return tree
    inlined = named_values.inline_named_values(tree)
    if isinstance(inlined, NoSyntax):
        raise Unreadable(inlined.reason, inlined.remedy)
    return inlined


def bound_arguments(
    function: FunctionType,
    tree: ast.Lambda | ast.FunctionDef,
    arguments: tuple[Expr, ...],
    keywords: Mapping[str, Expr],
) -> dict[str, Expr]:
    """Return the parameters with their arguments, or their defaults; raise `Unreadable` if they do
    not fit."""
    declared = tree.args
    if declared.vararg or declared.kwarg:
        raise Unreadable("it takes any number of arguments", "name its parameters")
    positional = [a.arg for a in [*declared.posonlyargs, *declared.args]]
    if len(arguments) > len(positional) or any(a.arg in keywords for a in declared.posonlyargs):
        raise Unreadable("it does not take these arguments")
    defaults = dict(
        zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False)
    ) | (function.__kwdefaults__ or {})
    given = dict(zip(positional, arguments, strict=False))
    names = [*positional, *(a.arg for a in declared.kwonlyargs)]
    if given.keys() & keywords.keys() or not keywords.keys() <= set(names):
        raise Unreadable("it does not take these arguments")
    given |= keywords
    for name in names:
        if name not in given:
            if name not in defaults:
                raise Unreadable("it does not take these arguments")
            given[name] = constant(defaults[name], name)
    return given


def _getter(function: Any, row: Expr) -> Expr:
    """Return the result of an object of module `operator`; raise `Unreadable` for one with
    keywords."""
    kind, given = function.__reduce__()[:2]
    if isinstance(kind, functools.partial):  # a methodcaller with keywords
        raise Unreadable("it is a methodcaller with keywords")
    if isinstance(function, methodcaller):
        return Call(Attribute(row, given[0]), tuple(map(constant, given[1:])))
    found = [
        functools.reduce(Attribute, name.split("."), row)
        if isinstance(function, attrgetter)
        else Item(row, constant(name))
        for name in given
    ]
    return found[0] if len(found) == 1 else Display("tuple", tuple(found))


class Reader:
    """Reads the body of one function."""

    def __init__(
        self, function: FunctionType, origin: Origin, bound: MutableMapping[str, Expr]
    ) -> None:
        self.function = function
        self.origin = origin
        self.bound = bound
        self._choices = 0
        if function.__closure__:
            outer_values.bind_outer_values(function, bound, origin.queries)

    def body(self, tree: ast.Lambda | ast.FunctionDef) -> Expr:
        """Read the body of a lambda or function as one expression."""
        if isinstance(tree, ast.Lambda):
            return self.value(tree.body)
        queries = self.origin.queries
        return self._block(tree.body if queries is None else queries.statements(tree.body))

    @property
    def shapes(self) -> Shapes:
        """The shapes of the parameters of expressions."""
        queries = self.origin.queries
        return self.origin.shapes if queries is None else queries.shapes

    def value(self, node: ast.expr) -> Expr:
        """Return the value of a name, or of a `return`: an expression, or rows of a query."""
        queries = self.origin.queries
        found = None if queries is None else queries.value(node, self)
        return self.expr(node) if found is None else found

    def _block(self, statements: Sequence[ast.stmt]) -> Expr:
        """Return the result of a function whose remaining statements are these.

        Raise `Unreadable` for a statement that has no expression.
        """
        if not statements:
            return NONE
        first, rest = statements[0], statements[1:]
        match first:
            case ast.Return(value):
                return NONE if value is None else self.value(value)
            case ast.If(test, body, orelse):
                chosen = self._truth(test)
                if isinstance(chosen, bool):
                    return self._block([*(body if chosen else orelse), *rest])
                self._choices += 1
                if self._choices > LARGEST:
                    raise Unreadable(TOO_LONG)
                outer = dict(self.bound)
                then = self._block([*body, *rest])
                self.bound = dict(outer)
                otherwise = self._block([*orelse, *rest])
                self.bound = outer
                return Conditional(chosen, then, otherwise)
            case (
                ast.Assign([ast.Name(name)], value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ):
                self.bound[name] = found = self.value(value)
                _check_length(found)
                then = self._block(rest)
                return self._after(name, found, then, rest)
            case ast.Expr(ast.Constant()) | ast.Pass():
                return self._block(rest)
            case _:
                raise Unreadable(f"{statement_shown(first)} at line {first.lineno}")

    def _truth(self, test: ast.expr) -> Expr | bool:
        """Return a test as an expression; a bool if only constants decide it."""
        queries = self.origin.queries
        return self.expr(test) if queries is None else queries.truth(test, self)

    def _after(self, name: str, value: Expr, then: Expr, rest: Sequence[ast.stmt]) -> Expr:
        """Return the expression after an assignment."""
        queries = self.origin.queries
        found = None if queries is None else queries.after(name, value, then, rest)
        return name_value(value, then, then, self.shapes) if found is None else found

    def expr(self, node: ast.expr) -> Expr:
        """Return the expression of a syntax node; nodes that read relations are read by the
        queries."""
        queries = self.origin.queries
        found = None if queries is None else queries.read(node, self)
        return self._expr(node) if found is None else found

    def _expr(self, node: ast.expr) -> Expr:
        """Return the expression of a syntax node; parts without a translation stay as callables."""
        match node:
            case ast.Constant(value):
                return constant(value)
            case ast.Name(name):
                return self._name(node, name)
            case ast.Attribute(of, name):
                return evaluated_attribute(self.expr(of), name)
            case ast.Subscript(of, key):
                return Item(self.expr(of), self.expr(key))
            case ast.Slice(lower, upper, step):
                ends = (NONE if e is None else self.expr(e) for e in (lower, upper, step))
                return Display("slice", tuple(ends))
            case ast.BoolOp(operator, values):
                make = And if isinstance(operator, ast.And) else Or
                return make(tuple(map(self.expr, values)))
            case ast.UnaryOp(operator, operand):
                return Operation(OPERATORS[type(operator)], (self.expr(operand),))
            case ast.BinOp(left, operator, right):
                return Operation(OPERATORS[type(operator)], (self.expr(left), self.expr(right)))
            case ast.Compare(left, operators, rights):
                return self._comparison(node, [left, *rights], operators)
            case ast.IfExp(test, then, otherwise):
                return Conditional(self.expr(test), self.expr(then), self.expr(otherwise))
            case ast.Tuple(items) | ast.List(items) | ast.Set(items):
                if any(isinstance(item, ast.Starred) for item in items):
                    return self.kept(node)
                return Display(DISPLAYS[type(node)], tuple(map(self.expr, items)))  # type: ignore[arg-type]
            case ast.Dict(keys, values) if all(keys):
                pairs = zip(keys, values, strict=True)
                return Display("dict", tuple(self.expr(e) for kv in pairs for e in kv if e))
            case ast.Call():
                return self._call(node)
            case ast.JoinedStr(values):
                return Text(tuple(map(self.expr, values)))
            case ast.NamedExpr(_, value):
                return self._named_value(value)
            case ast.FormattedValue(value, conversion, spec):
                mark = "" if conversion < 0 else f"!{chr(conversion)}"
                return Formatted(self.expr(value), mark, None if spec is None else self.expr(spec))
            case _:
                return self.kept(node)

    def _named_value(self, node: ast.expr) -> Expr:
        """Return a value that is evaluated again where its name is read; raise `Unreadable` if that
        may make a difference."""
        found = self.expr(node)
        if not is_value(found, self.shapes):
            raise Unreadable(
                "':=' names a value that may be an iterator",
                "write it without, or give the rows a class that declares its fields",
            )
        return found

    def _name(self, node: ast.Name, name: str) -> Expr:
        """Return the value of a name; raise `Unreadable` for a local variable that may be unset."""
        if name in self.bound:
            return self.bound[name]
        if name in self.function.__code__.co_varnames or name in self.function.__code__.co_cellvars:
            raise Unreadable(f"{name!r} may have no value when it is read")
        value = resolve(self.function, name)
        return self.kept(node) if value is UNSET else constant(value, name)

    def _comparison(
        self, whole: ast.Compare, operands: list[ast.expr], operators: list[ast.cmpop]
    ) -> Expr:
        """Read a chain of comparisons as a conjunction; keep it as code if a middle part calls
        something."""
        sides = list(map(self.expr, operands))
        if any(isinstance(e, Call | Apply) for middle in sides[1:-1] for e in walk(middle)):
            return self.kept(whole)  # each is called once
        if any(map(by_identity, operators, sides, sides[1:])):
            return self.kept(whole)
        pairs = zip(sides, operators, sides[1:], strict=False)
        links = tuple(Operation(OPERATORS[type(op)], (a, b)) for a, op, b in pairs)
        return links[0] if len(links) == 1 else And(links)

    def _call(self, node: ast.Call) -> Expr:
        """Read a call, inlined if possible; keep it as code if it has starred or generator
        arguments."""
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        lazy = any(isinstance(a, ast.GeneratorExp) for a in node.args)
        if starred or lazy or any(k.arg is None for k in node.keywords):
            return self.kept(node)
        function = self.expr(node.func)
        arguments = tuple(map(self.expr, node.args))
        keywords = tuple((str(k.arg), self.expr(k.value)) for k in node.keywords)
        return self._inline_call(function, arguments, keywords) or Call(
            function, arguments, keywords
        )

    def _inline_call(
        self, function: Expr, arguments: tuple[Expr, ...], keywords: tuple[tuple[str, Expr], ...]
    ) -> Expr | None:
        """Return the result of a small function; None for other calls."""
        called = function.value if isinstance(function, Constant) else None
        if getattr(called, IS_MONOTONE, False):
            return None  # the analysis of recursions reads the declaration, not the body
        if not isinstance(called, FunctionType) or self.origin.depth >= DEEPEST:
            return None
        inner = replace(self.origin, depth=self.origin.depth + 1)
        try:
            tree = tree_of(called)
            if not returns_one_expression(tree):
                return None
            bound = bound_arguments(called, tree, arguments, dict(keywords))
            body = Reader(called, inner, bound).body(tree)
            if sum(1 for _ in walk(body)) > LONGEST:
                return None
            result = body
            for argument in reversed([*arguments, *(value for _, value in keywords)]):
                result = name_value(argument, body, result, self.shapes)
            return result
        except (Unreadable, RecursionError):
            return None

    def kept(self, node: ast.expr, bag: type | None = None) -> Expr:
        """Return a part that has no node as a function of the variables that it reads.

        `bag` is the class of its lists, if not `list`.
        """
        if self.origin.queries is not None:
            self.origin.queries.check_kept(node, self)
        names = free_names(node)
        needed = [name for name in self.bound if name in names]
        made = part_of(node, needed, self.function, self.origin.function, bag)
        if made is None:
            raise Unreadable(f"{ast.unparse(node)!r:.60} in it")
        arguments = tuple(self.bound[name] for name in needed)
        return Apply(made, arguments, f"{kind_shown(node)} at line {node.lineno}")


def free_names(node: ast.AST) -> set[str]:
    """Return the names of a part, without those of parameters of lambdas in it."""
    if isinstance(node, ast.Name):
        return {node.id}
    found = set[str]().union(*map(free_names, ast.iter_child_nodes(node)))
    if not isinstance(node, ast.Lambda):
        return found
    own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    inside = free_names(node.body) - own
    return inside | free_names(node.args)


def _check_length(expr: Expr) -> None:
    """Raise `Unreadable` for an expression that is too long."""
    if is_longer(expr, LARGEST):
        raise Unreadable(TOO_LONG)


def _has(body: Expr, value: Expr) -> bool:
    return any(each is value for each in walk(body))


def name_value(value: Expr, body: Expr, result: Expr, shapes: Shapes) -> Expr:
    """Return `result`, whose `body` uses a named value any number of times.

    Raise `Unreadable` if the value may be an iterator that is used twice or not at all.
    """
    if total(value, shapes) and is_value(value, shapes):
        return result
    if is_value(value, shapes) or (is_of_values(value, shapes) and not _has(body, value)):
        return First((value,), result)
    if sum(e is value for e in walk(body)) == 1 and any(e is value for e in surely(body)):
        return result
    raise Unreadable(
        "it uses a value twice that may be an iterator, or not always",
        "call it where it is used, or give the rows a class that declares its fields",
    )


# Names, in messages, of parts that cannot be lifted.


def statement_shown(node: ast.stmt) -> str:
    """Return the kind of a statement, for messages."""
    known = {
        ast.Assign: "an assignment to more than a name",
        ast.AugAssign: "an augmented assignment",
        ast.FunctionDef: "a nested function",
        ast.ClassDef: "a nested class",
        ast.Assert: "an 'assert'",
        ast.Expr: "an expression whose value is not used",
    }
    name = type(node).__name__.lower()
    return known.get(type(node), f"a {name!r} statement")


def kind_shown(node: ast.expr) -> str:
    """Return the kind of an expression, for messages."""
    known = {
        ast.GeneratorExp: "generator expression",
        ast.ListComp: "list comprehension",
        ast.SetComp: "set comprehension",
        ast.DictComp: "dict comprehension",
        ast.Lambda: "nested lambda",
        ast.Name: "a name without a value yet",
    }
    if isinstance(node, ast.Call):
        return "call with a generator or starred arguments"
    return known.get(type(node), type(node).__name__)
