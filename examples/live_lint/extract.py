"""From the text of one file to its facts: pure, and one pass over the syntax tree.

What a file says about itself only (is a name read, does a body do nothing) is settled here. What
takes two files, or the absence of a fact, is left to the queries in `checks.py`.
"""

from __future__ import annotations

import ast
import re
import warnings

from examples.live_lint import blocks, definitions, imports, names
from examples.live_lint.facts import (
    Binding,
    Broken,
    Call,
    Dotted,
    Dynamic,
    Fact,
    Module,
    NameUse,
    PrivateUse,
    Silenced,
)
from examples.live_lint.shapes import is_private
from examples.live_lint.walk import Handlers, Walker

HANDLERS: Handlers = {
    **names.HANDLERS,
    **imports.HANDLERS,
    **definitions.HANDLERS,
    **blocks.HANDLERS,
}
NOQA = re.compile(rb"#\s*noqa\b", re.IGNORECASE)


def extract(file: str, module: str, source: bytes) -> frozenset[Fact]:
    """All facts of a file.

    Parameters
    ----------
    file: its path, as findings show it.
    module: its name in imports.
    source: its bytes. If Python cannot read them, that is the only fact about the file.
    """
    facts: set[Fact] = {Module(file, module), *_silenced(file, source)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        facts |= _facts(tree, file, module)
    except SyntaxError as error:
        facts |= {Broken(file, error.lineno or 1, error.msg), Dynamic(module)}
    except (ValueError, RecursionError, MemoryError) as error:
        facts |= {Broken(file, 1, str(error)), Dynamic(module)}
    return frozenset(facts)


def _facts(tree: ast.Module, file: str, module: str) -> set[Fact]:
    walker = Walker(file, module, HANDLERS)
    walker.walk(tree)
    facts = walker.facts
    facts.update(NameUse(module, name) for name in walker.reads)
    facts.update(
        PrivateUse(module, name, user, bound)
        for name, user, bound in walker.mentions
        if is_private(name)
    )
    facts.update(Binding(module, name, f"{module}.{name}") for name in walker.bound)
    facts.update(
        Dotted(module, head, rest)
        for head, rest in walker.chains
        if rest and head in walker.imported
    )
    callable_heads = walker.imported - walker.local_names
    facts.update(
        Call(file, line, module, head, rest, positional, keywords)
        for line, head, rest, positional, keywords in walker.calls
        if head in callable_heads
    )
    return facts


def _silenced(file: str, source: bytes) -> list[Silenced]:
    if b"noqa" not in source.lower():
        return []
    lines = enumerate(source.splitlines(), start=1)
    return [Silenced(file, number) for number, line in lines if NOQA.search(line)]
