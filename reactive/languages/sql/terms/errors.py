"""Errors of a SQL text, and the arguments of a call that its translation must use.

Errors of a SQL text: the reason, the line and column, and the line itself.

PlanError: there is no column 'amonut' at line 2, column 8; did you mean 'amount'?
  where amonut > 3
        ^

Record of the arguments of a parsed tree that its translation has read.

    limit 40%      Limit(expression=40, limit_options=LimitOptions(percent=True))
    read           {expression}          limit_options is set, and unread: a PlanError

    fsum(x, null)  Anonymous("fsum", expressions=[x, Null()])
    read           expressions[0]        Null has no arguments of its own, and was not taken

A translation reads the arguments of a node by name. Every argument that is set but was not read is
refused with its place, also arguments of later releases of sqlglot. A node without arguments (NULL,
*, CURRENT_DATE) in a list of arguments is read by taking it out of the list. Such a node that is an
argument by itself is read by asking for its value, or by `take`; a test of its class does not read
it. Walking a tree (`walk`, `find_all`, `copy`, `sql`) reads nothing.

Cost:   one pass over the tree, before and after its translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError

OPENED = re.compile(r"(\w+)\s*\(\s*(?:distinct\s+)?$", re.IGNORECASE)
"""The name of a function before its first argument."""
LONGEST = 100
"""Letters that are searched for the name of a function."""
PARAMETER = re.compile(r"[\s<>=!+*/%|(-]+[:$]\w+")

BRACKET = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[()\[\]]")
"""Brackets; and texts and names, whose brackets do not count."""


def sql_error(text: str, node: exp.Expr | None, message: str, remedy: str = "") -> PlanError:
    """Return the error about a node of a parsed text. Only its tokens know where they are."""
    return error_at(text, None if node is None else start_of(node), message, remedy)


def error_at(text: str, start: int | None, message: str, remedy: str = "") -> PlanError:
    """Return the error about the character at an offset."""
    lines = [] if start is None else _caret_lines(text, start)
    where = "" if start is None else " at line {}, column {}".format(*line_and_column(text, start))
    more = [f"  {line}" for line in (*lines, remedy) if line]
    head, _, rest = message.partition("\n")
    return PlanError("\n".join([head + where, *([rest] if rest else []), *more]))


def nesting_error(text: str, node: exp.Expr | None) -> PlanError:
    """Return the error about a text that even a large stack is too small for."""
    message = "the text is nested too deeply"
    remedy = "about 1,000 levels, or 10,000 terms of one operator, can be read; write it in parts"
    start = _deepest(text) if node is None else start_of(node)
    return error_at(text, start, message, remedy)


def _deepest(text: str) -> int | None:
    """Return the offset of the bracket that most others are around; None without brackets."""
    depth, most, place = 0, 0, None
    for found in BRACKET.finditer(text):
        depth += 1 if found[0] in "([" else -1 if found[0] in ")]" else 0
        if depth > most:
            most, place = depth, found.start()
    return place


def line_and_column(text: str, start: int) -> tuple[int, int]:
    """Return line and column of an offset, both from 1 on.

    >>> line_and_column("select\\n  x", 9)
    (2, 3)
    """
    before = text[:start]
    return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1


def start_of(node: exp.Expr) -> int | None:
    """Return the offset of the first token of a node; None if it is not known."""
    found = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    return min(found, default=None) if found else _above(node)


def _above(node: exp.Expr) -> int | None:
    """Return the offset of the enclosing node, for a node without tokens; None at the top."""
    parent = node.parent
    return None if parent is None else start_of(parent)


def source_of(text: str, node: exp.Expr) -> str:
    """Return the text of a node from its first to its last token, on one line."""
    found = [each.meta for each in node.walk() if "start" in each.meta]
    if not found:
        return ""
    first, last = min(m["start"] for m in found), max(m["end"] for m in found)
    first = _start_of_call(text, first, node)
    parameter = PARAMETER.match(text, last + 1)  # which knows no place of its own
    end = last + 1 if parameter is None else parameter.end()
    return " ".join(_with_brackets(text, first, end).split())


def _start_of_call(text: str, first: int, node: exp.Expr) -> int:
    """Return the start of a text including the names of its functions.

    Some releases of sqlglot give these names no place.
    """
    from sqlglot import exp

    calls = [each for each in node.walk() if isinstance(each, exp.Func) and not each.meta]
    names = {name.lower() for call in calls for name in call.sql_names()}
    while names and (found := OPENED.search(text[:first][-LONGEST:])) is not None:
        if found[1].lower() not in names:
            break
        first -= len(found[0])
    return first


def _with_brackets(text: str, first: int, last: int) -> str:
    """Return a part of a text, extended until its brackets are balanced."""
    for opening, closing in ("()", "[]"):
        missing = text.count(opening, first, last) - text.count(closing, first, last)
        while missing > 0 and last < len(text):
            missing += (text[last] == opening) - (text[last] == closing)
            last += 1
        while missing < 0 and first > 0:
            first -= 1
            missing += (text[first] == opening) - (text[first] == closing)
    return text[first:last]


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a question that names the most similar candidate, if there is one.

    >>> nearest("amonut", ["id", "amount"])
    "; did you mean 'amount'?"
    """
    by_folded = {each.casefold(): each for each in candidates if each != name}
    found = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[found[0]]!r}?" if found else ""


def _caret_lines(text: str, start: int) -> list[str]:
    """Return the line, and a caret below the character."""
    line, column = line_and_column(text, start)
    shown = text.split("\n")[line - 1].replace("\t", " ")
    return [shown, " " * (column - 1) + "^"]


TAKEN = ""
"""The name recorded as read for a node that is read and has no arguments of its own."""
NAMES = {"db": "schema", "this": "first argument", "with_": "WITH", "from_": "FROM"}
"""Names of arguments that are no words of SQL."""
OF_PARSER: dict[str, frozenset[str]] = {
    "concat": frozenset({"safe", "coalesce"}),
    "concatws": frozenset({"safe", "coalesce"}),
    "count": frozenset({"big_int"}),
    "datatype": frozenset({"nested"}),
    "datediff": frozenset({"date_part_boundary"}),
    "div": frozenset({"safe", "typed"}),
    "dpipe": frozenset({"safe"}),
    "greatest": frozenset({"ignore_nulls"}),
    "identifier": frozenset({"quoted"}),
    "least": frozenset({"ignore_nulls"}),
    "literal": frozenset({"is_string"}),
    "mod": frozenset({"safe"}),
    "regexpextract": frozenset({"null_if_pos_overflow"}),
    "regexpreplace": frozenset({"single_replace"}),
    "trycast": frozenset({"safe"}),
}
"""Notes of the parser about a node, by its class: they follow from the dialect, not the text."""


class Arguments(dict[str, Any]):
    """The arguments of one node, with the names that were read and the parts that were taken."""

    __slots__ = ("asked", "taken")

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()
        self.taken: dict[str, set[int]] = {}
        """The places in each argument that is a list."""

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return self._wrap_list(name, super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return self._wrap_list(name, super().get(name, default))

    def _wrap_list(self, name: str, given: Any) -> Any:
        if type(given) is not list or not given:
            return given
        return Parts(given, self.taken.setdefault(name, set()))


class Parts(list[Any]):
    """A list of arguments that records the taken places."""

    __slots__ = ("_taken",)

    def __init__(self, parts: list[Any], taken: set[int]) -> None:
        super().__init__(parts)
        self._taken = taken

    def __iter__(self) -> Iterator[Any]:
        for place, part in enumerate(super().__iter__()):
            self._taken.add(place)
            yield part

    def __reversed__(self) -> Iterator[Any]:
        self._taken.update(range(len(self)))
        return super().__reversed__()

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self))[place]
        self._taken.update((places,) if isinstance(places, int) else places)
        return super().__getitem__(place)

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __contains__(self, part: object) -> bool:
        return any(part == each for each in self)


def record_arguments(tree: exp.Expr) -> None:
    """Record from now on which arguments of the nodes of a tree are read."""
    hash(tree)  # cached by every node: later comparisons of nodes read nothing
    for node in tree.walk():
        node.args = Arguments(node.args)


def take(node: exp.Expr | None) -> None:
    """Record that a node is read if it has no arguments of its own to ask for."""
    args = None if node is None else node.args
    if isinstance(args, Arguments) and not any(map(_is_set, dict.values(args))):
        args.asked.add(TAKEN)


def take_all(tree: exp.Expr) -> None:
    """Record that all of a tree is read, as copies of it are checked in its place."""
    for node in tree.walk():
        args = node.args
        if isinstance(args, Arguments):
            args.asked.update((TAKEN, *args))
            for name, given in dict.items(args):
                if isinstance(given, list):
                    args.taken.setdefault(name, set()).update(range(len(given)))


def peek(node: exp.Expr, name: str) -> Any:
    """Return an argument without recording that it was read."""
    return dict.get(node.args, name)


def put(node: exp.Expr, name: str, given: Any) -> None:
    """Set an argument of a node; None removes it.

    The node compares as it was written: a new hash would ask for all arguments of it and of the
    nodes around it.
    """
    if given is None:
        dict.pop(node.args, name, None)
        return
    dict.__setitem__(node.args, name, list(given) if isinstance(given, Parts) else given)
    node._set_parent(name, given)


def refuse_unread(tree: exp.Expr, text: str) -> None:
    """Check that everything that a text says was read.

    Raises
    ------
    PlanError: an argument is set, and the translation did not ask for it.
    """
    for node, name in unread(tree):
        given = peek(node, name)
        first = given[0] if isinstance(given, list) else given
        shown = NAMES.get(name, name.strip("_").replace("_", " ").upper())
        is_list = name == "expressions"  # the parser's name for arguments in brackets
        what = "its arguments are" if is_list else f"its {shown} is"
        raise sql_error(
            text,
            first if isinstance(first, exp.Expr) else node,
            f"cannot read all of {_name_of_node(node)}: {what} not supported",
            "leave it out",
        )


def unread(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the arguments that are set and were not asked for, each with its node, from the top."""
    todo, same = [tree], _Twins(tree)
    while todo:
        node = todo.pop()
        args = node.args
        if isinstance(args, Arguments) and not args.asked and same.was_read(node):
            continue
        for name, given in dict.items(args):
            is_node = isinstance(given, exp.Expr)
            if not _is_set(given) or (name in OF_PARSER.get(node.key, ()) and not is_node):
                continue
            if isinstance(args, Arguments) and name not in args.asked:
                yield node, name
                continue
            if is_node and _is_unread_word(given):
                yield node, name
                continue
            parts = given if isinstance(given, list) else [given]
            inner = [part for part in parts if isinstance(part, exp.Expr)]
            taken = args.taken.get(name) if isinstance(args, Arguments) else None
            if taken is not None and any(
                place not in taken and isinstance(part, exp.Expr) and not _has_arguments(part)
                for place, part in enumerate(parts)
            ):
                yield node, name
            todo += inner


def _is_unread_word(node: exp.Expr) -> bool:
    """Return True for a node without arguments of its own that was not taken."""
    args = node.args
    if not isinstance(args, Arguments) or _has_arguments(node):
        return False
    return args.asked.isdisjoint((TAKEN, *args))  # FALSE has an argument that says no


class _Twins:
    """Nodes that equal a node that was read, such as a key of GROUP BY in SELECT."""

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self._read: set[exp.Expr] | None = None

    def was_read(self, node: exp.Expr) -> bool:
        """Return True if the node equals one that was read, and is no boolean."""
        if self._read is None:
            self._read = {n for n in self._tree.walk() if getattr(n.args, "asked", None)}
        return node in self._read and not isinstance(node, exp.Boolean)


def _has_arguments(node: exp.Expr) -> bool:
    return any(_is_set(given) for given in dict.values(node.args))


def _is_set(given: Any) -> bool:
    """Return True if an argument has a value other than None, False, an empty list or text."""
    return given is not None and given is not False and given != [] and given != ""


def _name_of_node(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return f"{node.sql_name().lower()}()"
    return node.key.upper()
