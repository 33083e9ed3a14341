"""Record of the arguments of a parsed tree that its translation asked for.

    limit 40%      Limit(expression=40, limit_options=LimitOptions(percent=True))
    asked          {expression}          limit_options is set, and unread: a PlanError

    fsum(x, null)  Anonymous("fsum", expressions=[x, Null()])
    asked          expressions[0]        Null has no arguments of its own, and nobody took it

A translation that asks for a node's arguments by name cannot read past one: every argument that is
set and was not asked for is refused with its place, those of later releases of sqlglot included.
A node without arguments (NULL, *, CURRENT_DATE) in a list of arguments is read by who takes it out
of the list. One that is an argument by itself is read once its value is asked for, or `take` is
called of it: a test of its class does not read it. What walks a tree (`walk`, `find_all`, `copy`,
`sql`) asks for nothing.

Cost:   one pass over the tree, before and after its translation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.terms.errors import sql_error

TAKEN = ""
"""Is asked for of a node that is read and has no arguments of its own."""
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
    "regexpextract": frozenset({"null_if_pos_overflow"}),
    "regexpreplace": frozenset({"single_replace"}),
    "trycast": frozenset({"safe"}),
}
"""Notes of the parser about a node, by its class: they follow from the dialect, not the text."""


class Arguments(dict[str, Any]):
    """The arguments of one node, the names that were asked for, and the parts that were taken."""

    __slots__ = ("asked", "taken")

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.asked: set[str] = set()
        self.taken: dict[str, set[int]] = {}
        """The places in each argument that is a list."""

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return self._shown(name, super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return self._shown(name, super().get(name, default))

    def _shown(self, name: str, given: Any) -> Any:
        if type(given) is not list or not given:
            return given
        return Parts(given, self.taken.setdefault(name, set()))


class Parts(list[Any]):
    """A list of arguments that records the places that are taken out of it."""

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
    """Record from now on which arguments are asked for of the nodes of a tree."""
    hash(tree)  # which every node keeps: a later comparison of nodes asks for nothing
    for node in tree.walk():
        node.args = Arguments(node.args)


def take(node: exp.Expr | None) -> None:
    """Record that a node is read if it has no arguments of its own to ask for."""
    args = None if node is None else node.args
    if isinstance(args, Arguments) and not any(map(_is_set, dict.values(args))):
        args.asked.add(TAKEN)


def peek(node: exp.Expr, name: str) -> Any:
    """Return an argument without asking for it."""
    return dict.get(node.args, name)


def put(node: exp.Expr, name: str, given: Any) -> None:
    """Set an argument, or remove it by None.

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
        is_list = name == "expressions"  # the parser's word for what stands in brackets
        what = "its arguments are" if is_list else f"its {shown} is"
        raise sql_error(
            text,
            first if isinstance(first, exp.Expr) else node,
            f"cannot read all of {_called(node)}: {what} not supported",
            "leave it out",
        )


def unread(tree: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """The arguments that are set and were not asked for, each with its node, from the top."""
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
    """True for a node without arguments of its own that nobody took."""
    args = node.args
    if not isinstance(args, Arguments) or _has_arguments(node):
        return False
    return args.asked.isdisjoint((TAKEN, *args))  # FALSE has an argument that says no


class _Twins:
    """Nodes that say what another one says, of which one was read: a key of GROUP BY in SELECT."""

    def __init__(self, tree: exp.Expr) -> None:
        self._tree = tree
        self._read: set[exp.Expr] | None = None

    def was_read(self, node: exp.Expr) -> bool:
        if self._read is None:
            self._read = {n for n in self._tree.walk() if getattr(n.args, "asked", None)}
        return node in self._read and not isinstance(node, exp.Boolean)


def _has_arguments(node: exp.Expr) -> bool:
    return any(_is_set(given) for given in dict.values(node.args))


def _is_set(given: Any) -> bool:
    return given is not None and given is not False and given != [] and given != ""


def _called(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return f"{node.sql_name().lower()}()"
    return node.key.upper()
