"""The reference of the API: docstrings, where a page says `<!-- reference: Table, Delta -->`.

In the repository the comment is not seen, and the tables above it are what is read.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import reactive
from reactive.engine.runtime.closeable import NameHint

if TYPE_CHECKING:
    from sphinx.application import Sphinx

COMMENT = re.compile(r"^<!-- reference: (.*?) -->$", re.MULTILINE)
SECTIONS = {"Parameters", "Raises", "Returns"}
ENTRY = re.compile(r"([^\s:`][^:`]*): (.*)")
CODE = re.compile(r"(?<!`)`((?:[^`\n]|\n(?!\s*\n))+)`(?!`)")
PAGE = re.compile(r"docs/(\w+)\.md")
SOURCE = re.compile(r"\[([a-z0-9]+)\](?!\w)")
MADE_BY_USERS = {
    "Bag",
    "Database",
    "SparkOffload",
    "SparkSource",
    "ChangesFolder",
    "RowsFolder",
    "KafkaTopic",
    "ZSet",
}


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_reference)
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("autodoc-process-bases", keep_exported)
    app.connect("autodoc-process-signature", as_written)


def names_in(text: str) -> list[str]:
    """The names whose docstrings a page has."""
    return [name for found in COMMENT.findall(text) for name in found.split(", ")]


def add_reference(app: Sphinx, page: str, source: list[str]) -> None:
    from sphinx.ext.autodoc import mock

    with mock(app.config.autodoc_mock_imports):  # as autodoc does, which imports the names later
        source[0] = COMMENT.sub(lambda found: directives(names_in(found[0])), source[0])


def directives(names: list[str]) -> str:
    parts = [(name.rpartition(".")[2], directive(name)) for name in names]
    return "\n\n".join(f"## `{name}`\n\n```{{eval-rst}}\n{text}\n```" for name, text in parts)


def directive(path: str) -> str:
    package, _, name = path.rpartition(".")
    package = package or "reactive"
    found = getattr(import_module(package), name)
    if not inspect.isclass(found):
        return f".. autofunction:: {package}.{name}"
    if issubclass(found, BaseException | Warning):
        return f".. autoexception:: {package}.{name}\n   :show-inheritance:"
    members = own_members(found) if package == "reactive" else []
    lines = [f".. autoclass:: {package}.{name}"]
    lines += ["   :show-inheritance:"] * any(map(is_exported, found.__bases__))
    lines += [f"   :members: {', '.join(members)}", "   :undoc-members:"] * bool(members)
    return "\n".join(lines)


def own_members(of: type) -> list[str]:
    """The public members that no exported base has."""
    exported = [base for base in of.__mro__[1:] if is_exported(base)]
    known = {inherited for base in exported for inherited in base.__mro__}
    names = [name for name in dir(of) if not name.startswith("_")]
    return [name for name in names if is_member(name, owner(name, of), known)]


def owner(name: str, of: type) -> type:
    return next(base for base in of.__mro__ if name in vars(base))


def is_member(name: str, of: type, known: set[type]) -> bool:
    ours = of.__module__.startswith("reactive.") and of not in known
    return ours and not isinstance(vars(of)[name], NameHint)


def is_exported(of: type) -> bool:
    return getattr(reactive, of.__name__, None) is of


def keep_exported(app: Sphinx, name: str, of: type, options: Any, bases: list[Any]) -> None:
    plain = [getattr(base, "__origin__", base) for base in bases]
    bases[:] = [base for base in plain if is_exported(base) or base.__module__ == "builtins"]


def as_written(
    app: Sphinx, what: str, name: str, of: Any, options: Any, signature: str | None, returns: str
) -> tuple[str, str | None] | None:
    """Parameters without types, whose shapes the docstrings tell; and what a function gives."""
    if signature is None:
        return None
    if inspect.isclass(of):
        return signature if is_made_by_users(of) else "", None
    given = getattr(of, "__annotations__", {}).get("return")
    return signature, given if isinstance(given, str) and given not in {"None", "Any"} else None


def is_made_by_users(of: type) -> bool:
    return of.__name__ in MADE_BY_USERS or issubclass(of, reactive.Aggregation)


def as_rst(app: Sphinx, what: str, name: str, of: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with sections, whose entries are `name: text`."""
    lines[:] = [linked(line) for line in sections(joined(lines))]


def joined(lines: list[str]) -> list[str]:
    """Code in backticks that goes on in the next line is literal text in one line."""

    def whole(code: re.Match[str]) -> str:
        return f"``{' '.join(code[1].split())}``" if "\n" in code[1] else code[0]

    return CODE.sub(whole, "\n".join(lines)).split("\n")


def sections(lines: list[str]) -> Iterator[str]:
    inside = False
    for line, following in pairwise([*lines, ""]):
        if line in SECTIONS and set(following) == {"-"}:
            inside = True
            yield from (f".. rubric:: {line}", "")
        elif inside and set(line) == {"-"}:
            continue
        elif inside and (entry := ENTRY.fullmatch(line)):
            yield from (f"``{entry[1]}``", f"    {entry[2]}")
        else:
            inside = inside and bool(line)
            yield line


def linked(line: str) -> str:
    """Pages and papers that a docstring names are links to them."""
    line = PAGE.sub(r":doc:`/\1`", line)
    return SOURCE.sub(r":doc:`[\1] </sources>`", line) if "Source: " in line else line
