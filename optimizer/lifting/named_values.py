"""Names that expressions give to values, with `:=`: later reads of a name become its value.

    (d := o.day - c.first) > 0 and d < 7    ->    (d := o.day - c.first) > 0 and o.day - c.first < 7

The named value stays where it is written, and is evaluated there first.

Sound:  a read is replaced only where the value was surely given before it: not after an `and`, a
        branch or a loop that may have skipped it, and not in code that runs later. If a read is
        left, the function cannot be read. The reader of callables checks that evaluating a value
        again is as good as once (`is_value`).
Cost:   O(size), once per tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TypeAlias

from optimizer.callables.syntax import NoSyntax

Function: TypeAlias = ast.Lambda | ast.FunctionDef
LOOPS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
LATER = (*LOOPS, ast.Lambda, ast.FunctionDef, ast.ClassDef)
INLINED = "with named values inlined"
REFUSED = NoSyntax("':=', 'await' or 'yield' in it", "write it without")


def inline_named_values(tree: Function) -> Function | NoSyntax:
    """Return a function that reads no name that `:=` gives to a value; cached with the tree.

    Return `NoSyntax` if a value may be missing where its name is read.
    """
    known: Function | NoSyntax | None = vars(tree).get(INLINED)
    if known is None:
        known = _inlined(tree)
        setattr(tree, INLINED, known)
    return known


def _inlined(tree: Function) -> Function | NoSyntax:
    own = tree.body if isinstance(tree, ast.FunctionDef) else [tree.body]
    every = [node for part in own for node in ast.walk(part)]
    if any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in every):
        return REFUSED
    named = [node for node in every if isinstance(node, ast.NamedExpr)]
    if any(isinstance(part, LATER) for node in named for part in ast.walk(node.value)):
        return REFUSED
    made = deepcopy(tree)
    inliner = _Inliner()
    if isinstance(made, ast.FunctionDef):
        made.body = inliner.statements(made.body)
    else:
        made.body = inliner.visit(made.body)
    return REFUSED if _reads(made, {node.target.id for node in named}) else made


def _reads(tree: ast.AST, names: set[str]) -> bool:
    """Return True if one of the names is read, or is one that a loop or statement sets, too."""
    targets = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)}
    return any(
        isinstance(node, ast.Name) and node.id in names and id(node) not in targets
        for node in ast.walk(tree)
    )


class _Inliner(ast.NodeTransformer):
    """Replaces reads of names by values, in the order of evaluation."""

    def __init__(self) -> None:
        self._values: dict[str, ast.expr] = {}
        """The values of the names that have one for sure."""

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return statements that are run one after the other; others than those that the reader
        knows stay as they are."""
        made: list[ast.stmt] = []
        for statement in body:
            match statement:
                case ast.If():
                    statement.test = self.visit(statement.test)
                    before = dict(self._values)
                    statement.body = self.statements(statement.body)
                    self._values = dict(before)
                    statement.orelse = self.statements(statement.orelse)
                    self._keep(before, [*statement.body, *statement.orelse])
                case ast.Return() | ast.Assign() | ast.AnnAssign() | ast.Expr():
                    self.generic_visit(statement)
            made.append(statement)
        return made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if value is None else deepcopy(value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        node.value = self.visit(node.value)
        self._values[node.target.id] = _without_names(node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node.values = [*self._visit_all(node.values[:1]), *self._maybe(node.values[1:])]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self.visit(node.left)
        first, rest = node.comparators[:1], node.comparators[1:]
        node.comparators = [*self._visit_all(first), *self._maybe(rest)]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.visit(node.test)
        (node.body,) = self._maybe([node.body])
        (node.orelse,) = self._maybe([node.orelse])
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        for place, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            node.keys[place] = None if key is None else self.visit(key)
            node.values[place] = self.visit(value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node  # it runs later

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._loop(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return self._loop(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self._loop(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        return self._loop(node)

    def _loop(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ast.expr:
        """Replace reads in a comprehension; names from inside have no value after it."""
        before = dict(self._values)
        for generator in node.generators:
            generator.iter = self.visit(generator.iter)
            self._forget_values_of(generator.target)
            generator.ifs = self._visit_all(generator.ifs)
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.visit(node.key), self.visit(node.value)
        else:
            node.elt = self.visit(node.elt)
        self._keep(before, [node])
        return node

    def _forget_values_of(self, target: ast.expr) -> None:
        """Forget the values that read a variable of a loop, which has another value from here."""
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        for name, value in [*self._values.items()]:
            if name in names or not names.isdisjoint(_names(value)):
                del self._values[name]

    def _visit_all(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        return [self.visit(node) for node in nodes]

    def _maybe(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """Visit expressions of which each is evaluated only after the ones before it, or none."""
        before = dict(self._values)
        made = self._visit_all(nodes)
        self._keep(before, nodes)
        return made

    def _keep(self, before: Mapping[str, ast.expr], nodes: Sequence[ast.AST]) -> None:
        """Keep values from before nodes that may have been skipped, but not of names in these."""
        given = {name for node in nodes for name in _given(node)}
        self._values = {name: value for name, value in before.items() if name not in given}


def _without_names(value: ast.expr) -> ast.expr:
    """Return a copy of a value without `:=` in it: the names are given where it is written."""

    class Bare(ast.NodeTransformer):
        def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
            found: ast.expr = self.visit(node.value)
            return found

    made: ast.expr = Bare().visit(deepcopy(value))
    return made


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _given(node: ast.AST) -> Iterator[str]:
    return (each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr))
