"""Checks of functions and classes: what they promise to each other and to their callers."""

from __future__ import annotations

from examples.live_lint import relations as r
from examples.live_lint.facts import Parameter, ParameterUse
from examples.live_lint.finding import Finding
from examples.live_lint.reachability import running
from examples.live_lint.shapes import is_private
from examples.live_lint.tables import Tables
from reactive import Relation


def unused_private(t: Tables) -> Relation[Finding]:
    """A private function or method whose name no module mentions."""
    return (
        t.functions.where(lambda f: f.plain and is_private(f.name))
        .anti_join(t.private_uses, left_key=lambda f: f.name, right_key=lambda u: u.name)
        .select(
            lambda f: Finding(f.file, f.line, "unused-private", f"{f.name} is never used anywhere")
        )
    )


def unreachable_definition(t: Tables) -> Relation[Finding]:
    """A private function or class that no entry point leads to, though something may mention it."""
    return (
        t.internals.anti_join(running(t), left_key=r.symbol, right_key=lambda symbol: symbol)
        .anti_join(unused_private(t), left_key=r.file_and_line, right_key=r.file_and_line)
        .select(
            lambda i: Finding(
                i.file, i.line, "unreachable-definition", f"nothing that is ever run uses {i.name}"
            )
        )
    )


def unused_parameter(t: Tables) -> Relation[Finding]:
    """A parameter never used by a function that no base or derived class asks for."""
    free = t.functions.where(lambda f: f.plain and not f.stub and not is_special(f.name))
    promised = r.overrides(t).select_many(lambda o: (o.symbol, o.base)).distinct()
    return (
        t.parameters.anti_join(
            t.parameter_uses, left_key=function_and_name, right_key=function_and_name
        )
        .anti_join(promised, left_key=lambda p: p.function, right_key=lambda symbol: symbol)
        .join(free, left_key=lambda p: p.function, right_key=r.symbol)
        .select(
            lambda p, f: Finding(
                f.file, f.line, "unused-parameter", f"{f.name} does not use {p.name}"
            )
        )
    )


def override_parameters(t: Tables) -> Relation[Finding]:
    """A method that cannot be called as the method of another module that it overrides."""
    return (
        r.overrides(t)
        .join(r.methods(t), left_key=lambda o: o.symbol, right_key=r.symbol)
        .join(r.methods(t), left_key=lambda o, f: o.base, right_key=r.symbol)
        .where(lambda o, f, base: f.module != base.module and not is_special(o.symbol))
        .where(lambda o, f, base: f.required > base.required or f.positional < base.positional)
        .join(t.functions, left_key=lambda o, f, base: f.symbol, right_key=r.symbol)
        .select(
            lambda o, f, base, at: Finding(
                at.file,
                at.line,
                "override-parameters",
                f"{at.name} takes {r.arity(f)}, but {base.symbol} takes {r.arity(base)}",
            )
        )
    )


def missing_super_init(t: Tables) -> Relation[Finding]:
    """A class whose `__init__` does not call that of its base, which has one."""
    inits = t.functions.where(lambda f: f.name == "__init__" and f.kind == "method")
    doing = inits.where(lambda f: not f.stub).select(lambda f: f.owner).distinct()
    return (
        inits.anti_join(t.init_calls, left_key=lambda f: f.owner, right_key=r.symbol)
        .join(r.inherits(t), left_key=lambda f: f.owner, right_key=r.symbol)
        .semi_join(doing, left_key=lambda f, i: i.base, right_key=lambda owner: owner)
        .select(
            lambda f, i: Finding(
                f.file, f.line, "missing-super-init", f"__init__ does not call that of {i.base}"
            )
        )
    )


def wrong_arguments(t: Tables) -> Relation[Finding]:
    """A call of another module's function with more or fewer arguments than it takes."""
    return (
        t.calls.join(r.meanings(t), left_key=r.head_in_module, right_key=r.module_and_name)
        .join(r.meanings(t), left_key=lambda c, b: r.full_name(b, c), right_key=r.full_symbol)
        .join(r.functions(t), left_key=lambda c, b, end: end.full, right_key=r.symbol)
        .where(
            lambda c, b, end, f: (
                c.positional > f.positional or c.positional + c.keywords < f.required
            )
        )
        .select(
            lambda c, b, end, f: Finding(
                c.file,
                c.line,
                "wrong-arguments",
                f"{f.symbol} takes {r.arity(f)}, not {c.positional + c.keywords}",
            )
        )
    )


def is_special(name: str) -> bool:
    """Whether Python itself calls a function: `__name__`, or private to a class: `__name`."""
    return name.rpartition(".")[2].startswith("__")


def function_and_name(row: Parameter | ParameterUse) -> tuple[str, str]:
    """The key of a parameter."""
    return row.function, row.name
