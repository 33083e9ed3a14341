"""A walk over the syntax tree of one file: where it is, and what it has seen so far.

The walker itself only descends. Handlers say what a kind of node means; they are functions in
`names.py`, `imports.py`, `definitions.py` and `blocks.py`, and `extract.py` puts them together.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from examples.live_lint.facts import Fact, ParameterUse

Handlers: TypeAlias = Mapping[type[ast.AST], Callable[["Walker", Any], None]]

LEAVES = {"ctx", "op", "ops", "id", "attr", "name", "kind", "type_comment", "type_ignores"}
CHILDREN = {
    kind: tuple(name for name in kind._fields if name not in LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


@dataclass(slots=True)
class Scope:
    """A module, class or function that the walker is in."""

    symbol: str
    kind: Literal["module", "class", "function"]
    owner_class: str | None = None
    """The symbol of the class around, if there is one."""
    visible: dict[str, str] = field(default_factory=dict)
    """Parameters that can be read here, each with the function that it belongs to; with "" those
    that need no use: of a lambda, with stars, `self`, `_name`."""
    globals: set[str] = field(default_factory=set)
    conditions: int = 0
    """The number of enclosing `if`, `try` and loops of this scope."""
    runs: str = ""
    """The symbol of the internal definition that runs this code; "" if importing it does."""
    needs: str = ""
    """The symbol that the bodies of inner functions need, as `runs` does: a class for methods."""


class Walker:
    """Walks one file. Afterwards its sets are complete."""

    def __init__(self, file: str, module: str, handlers: Handlers) -> None:
        self.file = file
        self.module = module
        self.in_package = file.endswith("__init__.py")
        self.scope = Scope(module, "module")
        self.optional = self.guarded = self.unloaded = self.annotating = 0
        self.facts: set[Fact] = set()
        self.reads: Counter[str] = Counter()
        self.mentions: set[tuple[str, str, bool]] = set()
        self.bound: set[str] = set()
        self.imported: set[str] = set()
        self.local_names: set[str] = set()
        self.chains: set[tuple[str, str]] = set()
        self.calls: list[tuple[int, str, str, int, int]] = []
        self.symbols: Counter[str] = Counter()
        self._handlers = handlers

    def walk(self, node: ast.AST) -> None:
        """Take in a node and all below it."""
        handler = self._handlers.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self.below(node)

    def below(self, node: ast.AST) -> None:
        """Visit the nodes below a node."""
        for name in CHILDREN[type(node)]:
            value = getattr(node, name, None)
            if type(value) is list:
                self.walk_all(value)
            elif isinstance(value, ast.AST):
                self.walk(value)

    def walk_all(self, nodes: Iterable[Any]) -> None:
        """Visit several nodes; skip other values."""
        handlers = self._handlers
        for node in nodes:
            handler = handlers.get(type(node))
            if handler is not None:
                handler(self, node)
            elif isinstance(node, ast.AST):
                self.below(node)

    def within(self, inner: Scope, nodes: Iterable[ast.AST]) -> None:
        """Take in nodes that are in a scope of their own."""
        outer, self.scope = self.scope, inner
        self.walk_all(nodes)
        self.scope = outer

    def read(self, name: str) -> None:
        """Record that a name is read: a parameter, or else one that the module or Python has.

        The body of a class may mean a name of the module although a function around has a
        parameter of that name, so it counts as reading both.
        """
        scope = self.scope
        is_parameter = name in scope.visible and name not in scope.globals
        if not is_parameter or scope.kind == "class":
            self.reads[name] += 1
        self.mention(name, bound=True)
        if is_parameter:
            self.use(scope.visible[name], name)

    def mention(self, name: str, *, bound: bool = False) -> None:
        """Record that a name is mentioned, maybe a private one; bound: a name of this module."""
        if name.startswith("_"):
            self.mentions.add((name, self.scope.runs, bound))

    def use(self, function: str, parameter: str) -> None:
        """Record that a function, or one inside it, uses a parameter that needs a use."""
        if function:
            self.facts.add(ParameterUse(function, parameter))

    def bind(self, name: str) -> None:
        """Record that the file gives a name a value."""
        scope = self.scope
        if scope.kind == "module" or name in scope.globals:
            self.bound.add(name)
        elif scope.kind == "function":
            self.local_names.add(name)
