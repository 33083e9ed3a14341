"""Scopes: the meaning of names at their place, and names for unnamed functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from examples.graphs.points_to.facts import Fact

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
MAYBE = "?"
"""The prefix of a full name that is either a module, or an attribute of one."""
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(slots=True)
class Scope:
    """A module, class or function whose code is being read."""

    symbol: str
    module: str
    facts: set[Fact]
    names: frozenset[str]
    """The names that belong to it."""
    outer: Scope | None = None
    """The scope around, whose names are seen here; classes are left out, as Python does."""
    is_class: bool = False
    owner: str = ""
    """The class of a method, also for definitions inside the method."""
    self_name: str = ""
    """The first parameter of a method."""
    generated: str = ""
    """In a generator: the variable of the yielded objects."""
    imported: dict[str, str] = field(default_factory=dict)
    """Names bound by imports here, with the full names of the imported objects."""
    symbols: set[str] = field(default_factory=set)
    """The functions and classes of the file so far."""
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def inside(self, symbol: str, names: Iterable[str], *, is_class: bool = False) -> Scope:
        """Return a scope of a definition in here."""
        outer = self.outer if self.is_class else self
        own = frozenset(names)
        return Scope(symbol, self.module, self.facts, own, outer, is_class, symbols=self.symbols)

    def add(self, fact: Fact) -> None:
        """State something."""
        self.facts.add(fact)

    def fresh(self) -> str:
        """Return a variable for an expression."""
        return f"{self.symbol}:{next(self._numbers)}"

    def own(self, name: str) -> str:
        """Return the variable of a name that is given a value here."""
        return f"{self.symbol}:{name}" if name in self.names else self.variable(name)

    def variable(self, name: str) -> str:
        """Return the variable that a name stands for; that of the module, if no function has it."""
        scope = self.home(name)
        return f"{self.module if scope is None else scope.symbol}:{name}"

    def home(self, name: str) -> Scope | None:
        """Return the scope that a name belongs to; None for a name of Python itself."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope

    def import_of(self, name: str) -> str:
        """Return the full name of the object that an import bound to a name; "" if none did."""
        scope = self.home(name)
        return "" if scope is None else scope.imported.get(name, "").lstrip(MAYBE)

    def is_module(self, name: str) -> bool:
        """Return True if a name is certainly that of a module, unlike `b` in `from a import b`."""
        scope = self.home(name)
        found = "" if scope is None else scope.imported.get(name, "")
        return found != "" and not found.startswith(MAYBE)

    def define(self, name: str) -> str:
        """Return the symbol of a definition in here; a second one of the name gets a number."""
        symbol = f"{self.symbol}.{name}"
        numbered = (f"{symbol}#{number}" for number in count(2))
        while symbol in self.symbols:
            symbol = next(numbered)
        self.symbols.add(symbol)
        return symbol


def bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that code gives values to, without what functions and classes in it do."""
    for node in own_nodes(nodes):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]


def elsewhere(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that code declares global or nonlocal."""
    for node in own_nodes(nodes):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names


def has_yield(nodes: Iterable[ast.AST]) -> bool:
    """Return True if the body of a function is that of a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(nodes))


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all nodes below, without those inside functions and classes."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, INNER):
            stack.extend(ast.iter_child_nodes(node))
