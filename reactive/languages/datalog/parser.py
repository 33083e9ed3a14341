"""Read the statements of a program: declarations, types, clauses, directives, components."""

from __future__ import annotations

from typing import Any

from reactive.languages.datalog import rules
from reactive.languages.datalog.best_rows import KEEPING, subsumption
from reactive.languages.datalog.formulas import Formulas
from reactive.languages.datalog.tokens import (
    Cursor,
    Span,
    Token,
    suggest_name,
    unescape_text,
    wrong,
)

IGNORED = frozenset(
    {"no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable"}
)
OPTIONS = frozenset(
    {
        *("IO", "filename", "name", "delimiter", "rfc4180", "headers", "compress", "dbname"),
        *("fact-dir", "output-dir", "operation", "columns", "format"),
    }
)
"""Options that say where rows are kept and how they are written: see `facts.py`. `limit`, which
says how many rows there are, is refused."""
REPRESENTATIONS = frozenset({"brie", "btree", "btree_delete", "eqrel", *KEEPING})
"""Qualifiers that exclude each other."""
QUALIFIERS = frozenset({*IGNORED, *KEEPING, "inline", "eqrel", "input", "output", "printsize"})
PARTS = ("Bottom", "Top", "Lub", "Glb", "Leq")
"""Parts of a lattice."""
NO_QUALIFIERS = {
    "btree_sum": "a sum depends on the order in which rows are derived: "
    "aggregate a relation, as in n = sum x : { a(x) }",
}
REFUSED = {
    "limitsize": "a limit depends on the order in which rows come",
}


def parse(text: str | list[Token]) -> list[rules.Statement]:
    """Return the statements of a text, or of its tokens.

    >>> [statement.name for statement in parse(".decl a(x: number) .output a")]
    ['a', 'a']
    """
    parser = _Parser(text)
    found: list[rules.Statement] = []
    while not parser.is_at_end:
        found += parser.statement()
    return found


class _Parser:
    """Parser of statements; each method reads one kind from the cursor."""

    def __init__(self, text: str | list[Token]) -> None:
        self._cursor = Cursor(text)
        self._formulas = Formulas(self._cursor)

    @property
    def is_at_end(self) -> bool:
        return self._cursor.token.kind == "end"

    def statement(self) -> list[rules.Statement]:
        """Read a statement, which may stand for several, or none; refuses unknown directives."""
        token = self._cursor.token
        if token.kind != "directive":
            return [self._clause()]
        start = self._cursor.read().at
        match token.text[1:]:
            case "decl":
                return [*self._declarations(start)]
            case "type":
                return [self._definition(start)]
            case "number_type" | "symbol_type" as word:
                base = word.partition("_")[0]
                return [rules.TypeDefinition(self._cursor.name("a type"), (base,), None, (), start)]
            case "input" | "output" | "printsize" as word:
                return [*self._directives(word, start)]
            case "comp":
                return [self._component(start)]
            case "init":
                return [self._init(start)]
            case "override":
                return [rules.Directive("override", self._cursor.name("a relation"), start)]
            case "functor":
                return [self._functor(start)]
            case "lattice":
                return [self._lattice(start)]
            case "debug_delta":
                self._directives("debug_delta", start)
                return []
            case "pragma":
                self._pragma()
                return []
            case "plan":
                self._plan()
                return []
            case word:
                raise wrong(start, f"{token.text} is not supported", REFUSED.get(word, ""))

    # Clauses.

    def _clause(self) -> rules.Clause:
        """Read a clause: heads, and bodies if `:-` follows; or a subsumption, with `<=`."""
        cursor = self._cursor
        start = cursor.token.at
        heads = tuple(cursor.several(self._formulas.atom))
        if cursor.take("<="):
            greater = self._formulas.atom()
            if len(heads) > 1:
                raise wrong(heads[1].at, "one row is dominated by another")
            cursor.need(":-", "a row is dominated under a condition, which may be true")
            bodies = self._formulas.bodies()
            cursor.need(".", "a clause ends with a point")
            return subsumption(heads[0], greater, bodies, cursor.since(start))
        bodies = self._formulas.bodies() if cursor.take(":-") else ((),)
        cursor.need(".", "a clause ends with a point")
        return rules.Clause(heads, bodies, cursor.since(start))

    # Declarations.

    def _declarations(self, start: Span) -> list[rules.Statement]:
        """Read the relations of one `.decl`, and the directives that its qualifiers stand for."""
        names = self._cursor.several(lambda: self._cursor.name("the name of a relation"))
        columns = tuple(self._cursor.read_list("(", self._column, ")"))
        self._no_double(columns)
        qualifiers = set[str]()
        choices: tuple[tuple[str, ...], ...] = ()
        while self._sees_qualifier():
            token = self._cursor.read()
            if token.text == "choice" and self._cursor.take("-"):
                self._cursor.need("domain")
                choices = tuple(self._cursor.several(self._choice))
                break
            if token.text not in QUALIFIERS:
                remedy = NO_QUALIFIERS.get(token.text) or suggest_name(
                    token.text, QUALIFIERS, "there are"
                )
                raise wrong(token.at, f"there is no qualifier {token.text!r}", remedy)
            other = qualifiers & (
                REPRESENTATIONS if token.text in REPRESENTATIONS else {token.text}
            )
            if other:
                what = f"qualifier {token.text!r} stands beside {next(iter(other))!r}"
                raise wrong(token.at, what, "leave one out")
            qualifiers.add(token.text)
        at = self._cursor.since(start)
        found: list[rules.Statement] = []
        for name in names:
            found.append(rules.Declaration(name, columns, frozenset(qualifiers), at, choices))
            words = ("input", "output", "printsize")
            found += [rules.Directive(word, name, at) for word in words if word in qualifiers]
        return found

    def _choice(self) -> tuple[str, ...]:
        """Read the columns of a choice domain: one, or several in brackets."""
        if not self._cursor.sees("("):
            return (self._cursor.name("a column"),)
        return tuple(self._cursor.read_list("(", lambda: self._cursor.name("a column"), ")"))

    def _sees_qualifier(self) -> bool:
        """Return True if the next name is not a relation that begins a clause."""
        cursor = self._cursor
        begins = cursor.follows("(") or cursor.is_dotted()
        return cursor.token.kind == "name" and not begins

    def _column(self) -> rules.DeclaredColumn:
        """Read a column: its name and its type."""
        start = self._cursor.token.at
        name = self._cursor.name("the name of a column")
        self._cursor.need(":", "a column has a type: x: number")
        of = self._type_name()
        is_joined = self._cursor.take("<")
        if is_joined:
            self._cursor.need(">", "a column of a lattice: x: Sign<>")
        return rules.DeclaredColumn(name, of, self._cursor.since(start), is_joined)

    def _no_double(self, columns: tuple[rules.DeclaredColumn, ...]) -> None:
        """Refuse two columns of the same name."""
        names = [column.name for column in columns]
        for place, column in enumerate(columns):
            if column.name in names[:place]:
                raise wrong(column.at, f"there are two columns {column.name!r}")

    def _type_name(self) -> str:
        return ".".join(self._cursor.several(lambda: self._cursor.name("a type"), "."))

    def _definition(self, start: Span) -> rules.TypeDefinition:
        """Read a type: a subtype, a record, branches, a union, or a symbol by default."""
        cursor = self._cursor
        name = cursor.name("the name of a type")
        if cursor.take("<:"):
            return rules.TypeDefinition(name, (self._type_name(),), None, (), cursor.since(start))
        if not cursor.take("="):
            return rules.TypeDefinition(name, ("symbol",), None, (), cursor.since(start))
        if cursor.sees("["):
            columns = tuple(cursor.read_list("[", self._column, "]"))
            self._no_double(columns)
            return rules.TypeDefinition(name, (), columns, (), cursor.since(start))
        if cursor.follows("{"):
            branches = tuple(cursor.several(self._branch, "|"))
            return rules.TypeDefinition(name, (), None, branches, cursor.since(start))
        of = tuple(cursor.several(self._type_name, "|"))
        return rules.TypeDefinition(name, of, None, (), cursor.since(start))

    def _branch(self) -> tuple[str, tuple[rules.DeclaredColumn, ...]]:
        """Read a branch of a data type: its name and its columns."""
        name = self._cursor.name("the name of a branch")
        columns = tuple(self._cursor.read_list("{", self._column, "}"))
        self._no_double(columns)
        return name, columns

    # Directives.

    def _directives(self, word: str, start: Span) -> list[rules.Statement]:
        """Read the relations of a directive, one result for each, with its options."""
        names = self._cursor.several(self._formulas.relation)
        options = tuple(
            self._cursor.read_list("(", self._option, ")") if self._cursor.sees("(") else ()
        )
        at = self._cursor.since(start)
        return [rules.Directive(word, name, at, options) for name in names]

    def _option(self) -> tuple[str, str]:
        """Read an option of a directive: its name and its value; refuses unknown names."""
        token = self._cursor.token
        name = self._cursor.name("an option")
        if name not in OPTIONS:
            raise wrong(
                token.at, f"there is no option {name!r}", suggest_name(name, OPTIONS, "there are")
            )
        self._cursor.need("=")
        value = self._cursor.read()
        is_text = value.kind == "text"
        return name, unescape_text(value.text, value.at) if is_text else value.text

    def _pragma(self) -> None:
        """Skip the texts of a `.pragma`."""
        while self._cursor.token.kind == "text":
            self._cursor.read()

    def _plan(self) -> None:
        """Skip an order of joins, which the optimizer finds itself."""
        self._cursor.several(self._version)

    def _version(self) -> None:
        self._cursor.read()
        self._cursor.need(":")
        self._cursor.read_list("(", lambda: self._cursor.read(), ")")

    def _functor(self, start: Span) -> rules.FunctorDeclaration:
        """Read a functor of the user: its name, the types of its arguments, and of its result."""
        cursor = self._cursor
        name = cursor.name("the name of a functor")
        types = tuple(cursor.read_list("(", self._argument_type, ")"))
        cursor.need(":", "a functor has a type: .functor f(x: number): number")
        result = self._type_name()
        cursor.take("stateful")
        return rules.FunctorDeclaration(name, types, result, cursor.since(start))

    def _lattice(self, start: Span) -> rules.LatticeDeclaration:
        """Read a lattice: its type, and its parts in braces."""
        cursor = self._cursor
        name = self._type_name()
        cursor.need("<", ".lattice Sign<> { Lub -> @lub(_, _) }")
        cursor.need(">")
        parts = dict(cursor.read_list("{", self._part_of_lattice, "}"))
        at = cursor.since(start)
        if "Lub" not in parts:
            raise wrong(at, f"lattice {name!r} has no Lub", "Lub -> @lub(_, _) joins two values")
        bottom = parts.get("Bottom")
        return rules.LatticeDeclaration(name, bottom, parts["Lub"], parts.get("Glb", ""), at)

    def _part_of_lattice(self) -> tuple[str, Any]:
        """Read a part of a lattice: its name, and a value or the name of a functor."""
        cursor = self._cursor
        token = cursor.token
        part = cursor.name("a part of a lattice")
        if part not in PARTS:
            remedy = suggest_name(part, PARTS, "there are")
            raise wrong(token.at, f"a lattice has no part {part!r}", remedy)
        cursor.need("-", f"{part} -> ...")
        cursor.need(">", f"{part} -> ...")
        if part in ("Bottom", "Top"):
            return part, self._formulas.one_term()
        cursor.need("@", f"{part} -> @functor(_, _)")
        functor = cursor.name("the name of a functor")
        count = len(cursor.read_list("(", lambda: cursor.need("_"), ")"))
        if count != 2:
            raise wrong(token.at, f"{part} takes two values, not {count}")
        return part, functor

    def _argument_type(self) -> str:
        """Read the type of an argument, whose name may stand before it."""
        if self._cursor.follows(":"):
            self._cursor.name("the name of an argument")
            self._cursor.need(":")
        return self._type_name()

    # Components.

    def _component(self, start: Span) -> rules.Component:
        """Read a component: its parameters, its bases, and the statements in braces."""
        cursor = self._cursor
        use = self._use()
        bases = tuple(cursor.several(self._use)) if cursor.take(":") else ()
        at = cursor.since(start)
        opening = cursor.need("{")
        inside: list[rules.Statement] = []
        while not cursor.take("}"):
            if self.is_at_end:
                what = f"'}}' is missing before {cursor.token}"
                raise wrong(cursor.token.at, what, f"for the '{{' in line {opening.line}")
            inside += self.statement()
        return rules.Component(use.name, use.types, bases, tuple(inside), at)

    def _use(self) -> rules.ComponentUse:
        """Read the name of a component, with type arguments if it has any."""
        start = self._cursor.token.at
        name = self._cursor.name("the name of a component")
        types: list[str] = []
        if self._cursor.take("<"):
            types = self._cursor.several(self._type_name)
            self._cursor.need(">")
        return rules.ComponentUse(name, tuple(types), self._cursor.since(start))

    def _init(self, start: Span) -> rules.Init:
        """Read the rest of `.init name = component`."""
        name = self._cursor.name("a name for the component")
        self._cursor.need("=", ".init name = component")
        use = self._use()
        return rules.Init(name, use, self._cursor.since(start))
