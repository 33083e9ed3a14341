"""The texts of paths in Postgres (`jsonpath`) as trees of steps.

    $.a[*] ? (@ > 1)      filter of items of key "a" of root, by compare

Source: PostgreSQL documentation, "The SQL/JSON Path Language".
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from reactive.engine.collections.jsonb import read_number

_TOKEN = re.compile(
    r'\s*(?:(?P<text>\$?"(?:[^"\\]|\\.)*")|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))'
    r"|(?P<name>\$?(?:[^\W\d]|\\.)(?:[\w$]|\\.)*)"
    r"|(?P<mark>\*\*|&&|\|\||==|!=|<>|<=|>=|[$@.,()\[\]{}?*+/%<>!-]))",
    re.DOTALL,
)
COMPARISONS = frozenset({"==", "!=", "<>", "<", "<=", ">", ">="})
METHODS = frozenset({"type", "size", "double", "ceiling", "floor", "abs"})
_DEEPEST = 100


class PathStep(NamedTuple):
    """A step of a path: its kind, the path before it or its operands, and its arguments."""

    kind: str
    of: tuple[Any, ...] = ()
    more: tuple[Any, ...] = ()


class JsonPath(NamedTuple):
    """A path, and True if it is `lax`: structures that it does not fit are no errors."""

    root: PathStep
    lax: bool


PREDICATES = frozenset({"and", "or", "not", "compare", "exists", "starts", "regex", "unknown"})
"""Kinds of steps that are true, false or unknown."""


@lru_cache(maxsize=1_000)
def read_path(text: str) -> JsonPath:
    """Return the path that a text spells.

    Raises
    ------
    ValueError: it spells none, or one with functions that are not supported.
    """
    return _PathReader(text).parse()


def _unquote(text: str) -> str:
    """Return a text in quotes; a few escapes of JavaScript beside those of JSON."""
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        inner = re.sub(r"\\x([0-9a-fA-F]{2})|\\u\{([0-9a-fA-F]{1,6})\}", _code, text)
        inner = inner.replace("\\v", "\v").replace("\\'", "'")
        return str(json.loads(inner, strict=False))


def _code(found: re.Match[str]) -> str:
    return json.dumps(chr(int(found[1] or found[2], 16)))[1:-1]


class _PathReader:
    """The reader of one path."""

    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._place, self._depth = text, list[tuple[str, str]](), 0, 0
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._error(text[place:])
            self._tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
            place = found.end()

    def _error(self, near: str) -> ValueError:
        return ValueError(f"{self._text!r:.80} is no jsonpath: near {near!r:.40}")

    @property
    def _next(self) -> str:
        return self._tokens[self._place][1] if self._place < len(self._tokens) else ""

    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next
        if not token or (wanted and token != wanted):
            raise self._error(token)
        self._place += 1
        return token

    def _takes(self, *wanted: str) -> str:
        """Return the next token and go past it if it is one of some; else an empty text."""
        if self._kind == "text" or self._next not in wanted:
            return ""
        return self._take()

    def parse(self) -> JsonPath:
        """Return the whole path."""
        mode = self._takes("lax", "strict")
        root = self._or()
        if self._next:
            raise self._error(self._next)
        return JsonPath(root, mode != "strict")

    def _or(self) -> PathStep:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"a jsonpath is nested deeper than {_DEEPEST} levels")
        made = self._and()
        while self._takes("||"):
            made = PathStep("or", (self._test(made), self._test(self._and())))
        self._depth -= 1
        return made

    def _and(self) -> PathStep:
        made = self._comparison()
        while self._takes("&&"):
            made = PathStep("and", (self._test(made), self._test(self._comparison())))
        return made

    def _test(self, step: PathStep) -> PathStep:
        """Return a step that is a condition; refuse others."""
        if step.kind not in PREDICATES:
            raise self._error(self._next)
        return step

    def _comparison(self) -> PathStep:
        if self._takes("!"):
            return PathStep("not", (self._test(self._comparison()),))
        left = self._sum()
        symbol = self._takes(*COMPARISONS)
        if symbol:
            return PathStep("compare", (left, self._sum()), ("!=" if symbol == "<>" else symbol,))
        if self._takes("starts"):
            self._take("with")
            return PathStep("starts", (left, self._primary()))
        if self._takes("like_regex"):
            pattern = _unquote(self._take())
            flags = _unquote(self._take()) if self._takes("flag") else ""
            return PathStep("regex", (left,), (pattern, flags))
        if self._takes("is"):
            self._take("unknown")
            return PathStep("unknown", (self._test(left),))
        return left

    def _sum(self) -> PathStep:
        made = self._product()
        while symbol := self._takes("+", "-"):
            made = PathStep("arithmetic", (made, self._product()), (symbol,))
        return made

    def _product(self) -> PathStep:
        made = self._unary()
        while symbol := self._takes("*", "/", "%"):
            made = PathStep("arithmetic", (made, self._unary()), (symbol,))
        return made

    def _unary(self) -> PathStep:
        symbol = self._takes("+", "-")
        return PathStep("sign", (self._unary(),), (symbol,)) if symbol else self._steps()

    def _steps(self) -> PathStep:
        made = self._primary()
        while True:
            if self._takes("."):
                made = self._member(made)
            elif self._takes("["):
                made = self._places(made)
            elif self._takes("?"):
                self._take("(")
                made = PathStep("filter", (made, self._test(self._or())))
                self._take(")")
            else:
                return made

    def _primary(self) -> PathStep:
        kind, token = self._kind, self._take()
        if kind == "text":
            quoted = token.startswith("$")
            name = _unquote(token.removeprefix("$"))
            return PathStep("variable" if quoted else "literal", (), (name,))
        if kind == "number":
            return PathStep("literal", (), (read_number(token.rstrip(".")),))
        match token:
            case "$":
                return PathStep("root")
            case "@":
                return PathStep("current")
            case "(":
                made = self._or()
                self._take(")")
                return made
            case "exists":
                self._take("(")
                made = PathStep("exists", (self._or(),))
                self._take(")")
                return made
            case "true" | "false" | "null":
                return PathStep(
                    "literal", (), ({"true": True, "false": False, "null": None}[token],)
                )
            case "last":
                return PathStep("last")
        if kind == "name" and token.startswith("$"):
            return PathStep("variable", (), (token[1:],))
        raise self._error(token)

    def _member(self, of: PathStep) -> PathStep:
        """Return the step behind a dot."""
        if self._takes("**"):
            return PathStep("levels", (of,), self._levels())
        if self._takes("*"):
            return PathStep("values", (of,))
        kind, token = self._kind, self._take()
        if kind == "text" and not token.startswith("$"):
            return PathStep("key", (of,), (_unquote(token),))
        if kind != "name":
            raise self._error(token)
        if self._takes("("):
            if token not in METHODS:
                raise ValueError(f"the method .{token}() of a jsonpath is not supported")
            self._take(")")
            return PathStep(token, (of,))
        return PathStep("key", (of,), (re.sub(r"\\(.)", r"\1", token),))

    def _levels(self) -> tuple[int, int | None]:
        """Return the least and the greatest level of `**`."""
        if not self._takes("{"):
            return 0, None
        first = self._level()
        last = self._level() if self._takes("to") else first
        self._take("}")
        return -1 if first is None else first, last

    def _level(self) -> int | None:
        token = self._take()
        if token == "last":
            return None
        if not token.isdigit():
            raise self._error(token)
        return int(token)

    def _places(self, of: PathStep) -> PathStep:
        """Return the step in brackets."""
        if self._takes("*"):
            self._take("]")
            return PathStep("items", (of,))
        ranges = []
        while True:
            first = self._sum()
            ranges.append((first, self._sum() if self._takes("to") else None))
            if not self._takes(","):
                break
        self._take("]")
        return PathStep("places", (of,), tuple(ranges))
