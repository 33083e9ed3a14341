"""Checks of functions and classes: what they promise to each other and to their callers."""

from __future__ import annotations

from examples.live_lint import relations as r
from examples.live_lint.finding import Finding
from examples.live_lint.reachability import running
from examples.live_lint.shapes import is_private
from examples.live_lint.tables import Tables
from reactive import Relation, live


def unused_private(t: Tables) -> Relation[Finding]:
    """A private function or method whose name no module mentions."""
    return live(
        Finding(f.file, f.line, "unused-private", f"{f.name} is never used anywhere")
        for f in t.functions
        if f.plain and is_private(f.name) and f.name not in {u.name for u in t.private_uses}
    )


def unreachable_definition(t: Tables) -> Relation[Finding]:
    """A private function or class that no entry point leads to, though something may mention it."""
    reached, unused = running(t), unused_private(t)
    return live(
        Finding(i.file, i.line, "unreachable-definition", f"nothing that is ever run uses {i.name}")
        for i in t.internals
        if i.symbol not in reached and (i.file, i.line) not in {(u.file, u.line) for u in unused}
    )


def unused_parameter(t: Tables) -> Relation[Finding]:
    """A parameter never used by a function that no base or derived class asks for."""
    promised = r.overrides(t).select_many(lambda o: (o.symbol, o.base)).distinct()
    return live(
        Finding(f.file, f.line, "unused-parameter", f"{f.name} does not use {p.name}")
        for p in t.parameters
        if (p.function, p.name) not in {(u.function, u.name) for u in t.parameter_uses}
        and p.function not in promised
        for f in t.functions
        if f.symbol == p.function and f.plain and not f.stub and not is_special(f.name)
    )


def override_parameters(t: Tables) -> Relation[Finding]:
    """A method that cannot be called as the method of another module that it overrides."""
    overrides, methods = r.overrides(t), r.methods(t)
    return live(
        Finding(
            at.file,
            at.line,
            "override-parameters",
            f"{at.name} takes {r.arity(f)}, but {base.symbol} takes {r.arity(base)}",
        )
        for o in overrides
        for f in methods
        for base in methods
        if f.symbol == o.symbol and base.symbol == o.base
        if f.module != base.module and not is_special(o.symbol)
        if f.required > base.required or f.positional < base.positional
        for at in t.functions
        if at.symbol == f.symbol
    )


def missing_super_init(t: Tables) -> Relation[Finding]:
    """A class whose `__init__` does not call that of its base, which has one."""
    bases = r.inherits(t)
    inits = live(f for f in t.functions if f.name == "__init__" and f.kind == "method")
    return live(
        Finding(f.file, f.line, "missing-super-init", f"__init__ does not call that of {i.base}")
        for f in inits
        if f.owner not in {c.symbol for c in t.init_calls}
        for i in bases
        if i.symbol == f.owner and i.base in {g.owner for g in inits if not g.stub}
    )


def wrong_arguments(t: Tables) -> Relation[Finding]:
    """A call of another module's function with more or fewer arguments than it takes."""
    meanings, functions = r.meanings(t), r.functions(t)
    return live(
        Finding(
            c.file,
            c.line,
            "wrong-arguments",
            f"{f.symbol} takes {r.arity(f)}, not {c.positional + c.keywords}",
        )
        for c in t.calls
        for b in meanings
        if (b.module, b.name) == (c.module, c.head)
        for end in meanings
        if r.full_symbol(end) == r.full_name(b, c)
        for f in functions
        if f.symbol == end.full
        if c.positional > f.positional or c.positional + c.keywords < f.required
    )


def is_special(name: str) -> bool:
    """Return True if Python calls a function itself (`__name__`), or it is private (`__name`)."""
    return name.rpartition(".")[2].startswith("__")
