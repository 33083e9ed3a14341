"""The facts of the imports of a file."""

from __future__ import annotations

import ast

from examples.live_lint.facts import Binding, Dynamic, Import
from examples.live_lint.walk import Handlers, Walker


def _import(walker: Walker, node: ast.Import) -> None:
    for alias in node.names:
        head, name = alias.name.partition(".")[0], _package(alias.name)
        _add(walker, alias, name, name, alias.asname or head, name if alias.asname else head)


def _import_from(walker: Walker, node: ast.ImportFrom) -> None:
    target = _absolute(walker, node.module, node.level)
    for alias in node.names:
        full = f"{target}.{alias.name}"
        _add(walker, alias, target, full, alias.asname or alias.name, full)


def _absolute(walker: Walker, name: str | None, level: int) -> str:
    """Return the module that a relative import names; as written, if outside of all packages."""
    written = "." * level + (name or "")
    parts = walker.module.split(".")
    kept = len(parts) - level + int(walker.in_package)
    if not level:
        return _package(written)
    if kept <= 0:
        return written
    return _package(".".join([*parts[:kept], name] if name else parts[:kept]))


def _package(name: str) -> str:
    """Return the module that a name stands for: `pkg.__init__` is the file of `pkg`."""
    return name.removesuffix(".__init__")


def _add(walker: Walker, alias: ast.alias, target: str, full: str, bound: str, means: str) -> None:
    _bind(walker, bound, means)
    walker.mention(alias.name)
    walker.facts.add(
        Import(
            file=walker.file,
            line=alias.lineno,
            module=walker.module,
            bound=bound,
            target=target,
            full=full,
            means=means,
            optional=walker.optional > 0,
            deferred=walker.scope.kind == "function" or walker.unloaded > 0,
            kept=walker.in_package
            or alias.asname == alias.name
            or alias.name == "__all__"
            or target == "__future__",
        )
    )


def _bind(walker: Walker, bound: str, means: str) -> None:
    scope = walker.scope.kind
    walker.imported.add(bound)
    if bound == "*":
        walker.facts.add(Dynamic(walker.module))
    elif scope == "module":
        walker.facts.add(Binding(walker.module, bound, means))
    else:
        walker.local_names.add(bound)


HANDLERS: Handlers = {ast.Import: _import, ast.ImportFrom: _import_from}
