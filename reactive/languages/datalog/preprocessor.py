"""Lines of the C preprocessor in a program, which Soufflé runs over each text.

    #define EDGE(a, b) edge(a, b)           #undef, #ifdef, #ifndef, #if, #elif, #else, #endif,
    EDGE("x", "y").                         #include, #error; #pragma and #line mean nothing

A use of a macro is replaced by the tokens of its definition, which keep their places: an error in
them shows the line of the definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from optimizer.errors import PlanError
from optimizer.record import record
from reactive.languages.datalog.tokens import Span, Token, macro_tokens, wrong

MOST = 100_000
"""Tokens of one use of a macro."""
_LINE = re.compile(r"#\s*(\w*)")
_DEFINED = re.compile(r"defined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_OPERATORS = {"&&": " and ", "||": " or ", "!": " not "}
_CONDITION = re.compile(r"(?:\d+|and|or|not|==|!=|<=|>=|[-+*<>()\s])*")


@record
class Macro:
    """A macro: its body, and its parameters if it is used as a function."""

    body: tuple[Token, ...]
    parameters: tuple[str, ...] | None = None


class Preprocessor:
    """The macros that are defined at a place of a program, and the conditions around it."""

    def __init__(self, macros: Mapping[str, str]) -> None:
        self.macros: dict[str, Macro] = {}
        self.skips = False
        """True in lines whose condition is false."""
        self._open: list[tuple[bool, bool]] = []
        """Of each condition around: if its lines count here, and if one of its branches did."""
        for name, text in macros.items():
            if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise PlanError(f"macros: a macro is a name and a text, not {name!r}: {text!r:.60}")
            body = macro_tokens(Span(text, 0, len(text), f"macro {name}"))
            self.macros[name] = Macro(tuple(body))

    @property
    def depth(self) -> int:
        """The number of conditions around."""
        return len(self._open)

    # Lines.

    def line(self, token: Token) -> Token | None:
        """Read a line; return the name of the file that it includes, if it does so.

        Raises
        ------
        PlanError: the line has no meaning.
        """
        found = _LINE.match(token.text)
        assert found is not None
        word, at = found[1], token.at
        rest = Span(at.text, at.start + found.end(), at.end, at.file)
        match word:
            case "ifdef" | "ifndef":
                name = self._name(rest)
                self._begin((name in self.macros) == (word == "ifdef"))
            case "if":
                self._begin(not self.skips and self._holds(rest))
            case "elif" | "else" if self._open:
                was_taken = self._end()
                counts = not was_taken and not self.skips and (word == "else" or self._holds(rest))
                self._begin(counts, was_taken or counts)
            case "endif" if self._open:
                self._end()
            case "elif" | "else" | "endif":
                raise wrong(at, f"there is no #if before #{word}")
            case _ if self.skips:
                pass
            case "define":
                self._define(rest)
            case "undef":
                self.macros.pop(self._name(rest), None)
            case "include":
                return self._file(rest)
            case "error":
                raise wrong(at, rest.words().strip() or "#error")
            case "" | "pragma" | "line" | "warning":
                pass
            case _:
                raise wrong(at, f"there is no line #{word} of the preprocessor")
        return None

    def _begin(self, counts: bool, was_taken: bool | None = None) -> None:
        """Begin a branch of a condition."""
        self._open.append((counts, counts if was_taken is None else was_taken))
        self.skips = self.skips or not counts

    def _end(self) -> bool:
        """End the innermost condition; return True if one of its branches counted."""
        _, was_taken = self._open.pop()
        self.skips = not all(counts for counts, _ in self._open)
        return was_taken

    def _name(self, rest: Span) -> str:
        found = macro_tokens(rest)
        if not found or found[0].kind != "name":
            raise wrong(rest, "the name of a macro is missing")
        return found[0].text

    def _define(self, rest: Span) -> None:
        self._name(rest)
        first, *body = macro_tokens(rest)
        parameters: tuple[str, ...] | None = None
        if body and body[0].text == "(" and body[0].at.start == first.at.end:
            closing = next((n for n, each in enumerate(body) if each.text == ")"), None)
            if closing is None:
                raise wrong(body[0].at, "the parameters of a macro do not end", "close them with )")
            parameters = tuple(each.text for each in body[1:closing] if each.text != ",")
            body = body[closing + 1 :]
        self.macros[first.text] = Macro(tuple(body), parameters)

    def _file(self, rest: Span) -> Token:
        words = rest.words()
        found = re.match(r'\s*("[^"]*"|<[^>]*>)', words)
        if found is None:
            raise wrong(rest, "the name of a file is missing")
        return Token("text", f'"{found[1][1:-1]}"', rest)

    def _holds(self, rest: Span) -> bool:
        """Return True if a condition holds: numbers, comparisons, `defined(X)`, `&&`, `||`, `!`.

        A name that is no macro is 0.
        """
        words = re.sub(r"//[^\n]*|/\*.*?\*/", " ", rest.words()).replace("\\\n", " ")
        words = _DEFINED.sub(lambda f: str(int((f[1] or f[2]) in self.macros)), words)
        words = re.sub(r"[A-Za-z_]\w*", lambda f: self._number(f[0]), words)
        words = re.sub(r"&&|\|\||!(?!=)", lambda f: _OPERATORS[f[0]], words)
        words = re.sub(r"\b0+(?=\d)", "", words)
        if not words.strip() or "**" in words or not _CONDITION.fullmatch(words):
            raise wrong(rest, "this condition of the preprocessor cannot be read")
        try:
            return bool(eval(f"({words.strip()})", {"__builtins__": {}}))
        except (SyntaxError, TypeError):
            raise wrong(rest, "this condition of the preprocessor cannot be read") from None

    def _number(self, name: str) -> str:
        macro = self.macros.get(name)
        tokens = () if macro is None else macro.body
        is_number = len(tokens) == 1 and tokens[0].text.isdecimal()
        return tokens[0].text if is_number else "0"

    # Uses of macros.

    def use(self, found: Sequence[Token], place: int) -> tuple[list[Token], int] | None:
        """Return the tokens of the macro that is used at a place, and the place behind its use.

        Return None if there is no macro at the place.
        """
        if found[place].kind != "name" or found[place].text not in self.macros:
            return None
        return self._use(found, place, frozenset())

    def _use(
        self, found: Sequence[Token], place: int, inside: frozenset[str]
    ) -> tuple[list[Token], int] | None:
        token = found[place]
        macro = self.macros.get(token.text) if token.kind == "name" else None
        if macro is None or token.text in inside:
            return None
        body, end = list(macro.body), place + 1
        if macro.parameters is not None:
            if end >= len(found) or found[end].text != "(":
                return None
            given, end = _arguments(found, end)
            if len(given) != max(1, len(macro.parameters)) and (given != [[]] or macro.parameters):
                count = f"{len(macro.parameters)} arguments, not {len(given)}"
                raise wrong(token.at, f"macro {token.text!r} takes {count}")
            whole = [self._all(each, inside) for each in given]
            body = _with_arguments(body, macro.parameters, given, whole)
        made = self._all(_joined(body), inside | {token.text})
        if len(made) > MOST:
            raise wrong(token.at, f"macro {token.text!r} stands for more than {MOST:,} tokens")
        return made, end

    def _all(self, found: Sequence[Token], inside: frozenset[str]) -> list[Token]:
        """Return tokens with those of macros in the places where they are used."""
        made: list[Token] = []
        place = 0
        while place < len(found):
            used = self._use(found, place, inside)
            if used is None:
                made.append(found[place])
                place += 1
            else:
                made += used[0]
                place = used[1]
            if len(made) > MOST:
                break
        return made


def _arguments(found: Sequence[Token], place: int) -> tuple[list[list[Token]], int]:
    """Return the arguments in the brackets that begin at a place, and the place behind them."""
    opening, depth = found[place], 0
    given: list[list[Token]] = [[]]
    for end in range(place, len(found)):
        token = found[end]
        is_sign = token.kind == "sign"
        depth += is_sign * ((token.text in "([{") - (token.text in ")]}"))
        if not depth:
            return given, end + 1
        if depth == 1 and token.text == "," and is_sign:
            given.append([])
        elif end > place:
            given[-1].append(token)
    raise wrong(opening.at, "the arguments of a macro do not end", "close them with )")


def _with_arguments(
    body: Sequence[Token],
    parameters: Sequence[str],
    given: Sequence[list[Token]],
    whole: Sequence[list[Token]],
) -> list[Token]:
    """Return a body with arguments in place of parameters: as they are beside `#` and `##`."""
    made: list[Token] = []
    place = 0
    while place < len(body):
        token = body[place]
        following = body[place + 1] if place + 1 < len(body) else token
        if token.text == "#" and following.text in parameters:
            words = " ".join(each.text for each in given[parameters.index(following.text)])
            quoted = words.replace("\\", "\\\\").replace('"', '\\"')
            made.append(Token("text", f'"{quoted}"', token.at))
            place += 2
            continue
        if token.kind == "name" and token.text in parameters:
            is_joined = following.text == "##" or bool(made and made[-1].text == "##")
            made += (given if is_joined else whole)[parameters.index(token.text)]
        else:
            made.append(token)
        place += 1
    return made


def _joined(body: Sequence[Token]) -> list[Token]:
    """Return a body with one token in place of two that `##` joins."""
    made: list[Token] = []
    tokens: Iterator[Token] = iter(body)
    for token in tokens:
        following = next(tokens, None) if token.text == "##" and made else None
        if following is None:
            made.append(token)
            continue
        before = made.pop()
        words = before.text + following.text
        again = macro_tokens(Span(words, 0, len(words)))
        made += [replace(each, at=before.at) for each in again]
    return made
