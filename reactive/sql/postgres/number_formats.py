"""TO_CHAR and TO_NUMBER of numbers, by the words of Postgres' formats.

number_written(12, "0000D0")         " 0012.0"
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from reactive.sql.postgres.formats import ordinal_ending
from reactive.sql.postgres.numbers import NotSupportedError
from reactive.sql.postgres.numerics import numeric, numeric_product, scaled

_NUMBER_TOKEN = re.compile(
    r'FM|EEEE|SG|MI|PL|PR|RN|TH|[90.,DGSLVB]|"(?P<quoted>[^"]*)"?|(?P<other>.)',
    re.IGNORECASE | re.DOTALL,
)
_ROMAN: tuple[tuple[int, str], ...] = (
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
)
_ROMAN += ((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def _number_tokens(form: str) -> list[tuple[str, str]]:
    """The words of a format with their texts; other letters have no word."""
    made = []
    for found in _NUMBER_TOKEN.finditer(form):
        if found["quoted"] is not None:
            made.append(("", found["quoted"]))
        elif found["other"] is not None:
            made.append(("", found["other"]))
        else:
            made.append((found[0].upper(), found[0]))
    return made


def number_written(value: Any, form: str) -> str:
    """TO_CHAR of a number.

    >>> number_written(-12, "999"), number_written(Decimal("3.14159"), "FM9.99")
    (' -12', '3.14')
    """
    if isinstance(value, float | Decimal) and not math.isfinite(value) and form:
        raise NotSupportedError("to_char() of a number that is not finite")
    return _number_form(form).shown(value)


@lru_cache(512)
def _number_form(form: str) -> _NumberForm:
    return _NumberForm(_number_tokens(form))


class _NumberForm:
    """A format of numbers: the digits before and behind the point, and the sign."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        words = [word for word, _ in tokens]
        self.tokens, self.words = tokens, words
        self.bare = "FM" in words
        point = next((n for n, w in enumerate(words) if w in (".", "D")), len(words))
        digits = [w for w in words[:point] if w in ("9", "0")]
        behind = [w for w in words[point:] if w in ("9", "0")]
        self.before, self.behind = len(digits), len(behind)
        self.first_zero = digits.index("0") if "0" in digits else self.before
        self.last_zero = max((n for n, w in enumerate(behind, 1) if w == "0"), default=0)
        shift = words.index("V") if "V" in words else len(words)
        self.shift = sum(w in ("9", "0") for w in words[shift:])
        self.signs = [w for w in words if w in ("S", "MI", "PR", "SG")]
        if len(self.signs) > 1 or sum(w in (".", "D", "V") for w in words) > 1:
            raise NotSupportedError("this format of a number")
        if "RN" in words and {*words} - {"RN", "FM"}:
            raise NotSupportedError("RN beside other words of a format")

    def shown(self, value: Any) -> str:
        if "RN" in self.words:
            return self._roman(value)
        if "EEEE" in self.words:
            return self._scientific(value)
        if self.shift:
            value = numeric_product(numeric(value), 10**self.shift)
        negative, whole, rest = self._digits(value)
        if max(1, len(whole)) > self.before and self.before + self.behind:
            whole, rest = "#" * self.before, "#" * len(rest)
        elif self.bare:
            rest = rest[: self.last_zero] + rest[self.last_zero :].rstrip("0")
        digits = whole.rjust(self.before, " ")
        if self.first_zero < self.before:
            kept = digits[: self.first_zero]
            digits = kept + digits[self.first_zero :].replace(" ", "0")
        elif digits and not whole and (not rest if self.bare else not self.behind):
            digits = digits[:-1] + "0"
        return self._assembled(digits, rest, negative=negative)

    def _digits(self, value: Any) -> tuple[bool, str, str]:
        """The sign, and the digits before and behind the point."""
        if isinstance(value, float):
            size = len(f"{abs(value):.0f}")
            places = max(0, min(self.behind, 15 - size))
            negative, text = math.copysign(1, value) < 0, f"{abs(value):.{places}f}"
        else:
            made = scaled(numeric(value), self.behind)
            negative, text = made < 0, f"{abs(made):f}"
        whole, _, rest = text.partition(".")
        return negative, whole.lstrip("0"), rest

    def _roman(self, value: Any) -> str:
        number = round(value) if isinstance(value, float) else int(scaled(numeric(value), 0))
        text = "#" * 15
        if abs(number) >= 1 << 31:
            raise OverflowError("integer out of range")
        if 0 < number < 4000:
            text = ""
            for size, letters in _ROMAN:
                text += letters * (number // size)
                number %= size
        text = text.lower() if ("RN", "rn") in self.tokens else text
        return text if self.bare else text.rjust(15)

    def _scientific(self, value: Any) -> str:
        if {*self.words} - {"9", "0", ".", "D", "EEEE", "FM"} or self.before != 1:
            raise NotSupportedError("EEEE with other words of a format")
        if isinstance(value, float):
            text = f"{value:.{self.behind}e}"
        else:
            made = numeric(value)
            place = made.adjusted() if made else 0
            made = scaled(made.scaleb(-place), self.behind)
            if abs(made) >= 10:
                made, place = scaled(made.scaleb(-1), self.behind), place + 1
            text = f"{made:f}e{'-' if place < 0 else '+'}{abs(place):02}"
        return text if text.startswith("-") else f" {text}"

    def _assembled(self, digits: str, rest: str, *, negative: bool) -> str:
        made: list[str] = []
        place, behind, begun, past = 0, 0, False, False
        sign = self._sign(negative=negative)
        for word, text in self.tokens:
            starts = word in (".", "D") or (word in ("9", "0") and digits[place : place + 1] != " ")
            if starts and not begun:
                begun = True
                made.append(sign)
            if word in ("9", "0") and not past:
                letter = digits[place]
                place += 1
                made.append("" if letter == " " and self.bare else letter)
            elif word in ("9", "0"):
                made.append(rest[behind : behind + 1])
                behind += 1
            elif word in (".", "D"):
                past = True
                made.append("." if self.behind else "")
            else:
                made.append(self._other(word, text, digits, begun=begun, negative=negative))
        return "".join(made)

    def _other(self, word: str, text: str, digits: str, *, begun: bool, negative: bool) -> str:
        """Return the text of a format word that is not a digit."""
        blank = "" if self.bare else " "
        match word:
            case "," | "G":
                return "," if begun else blank
            case "S":
                return "" if self._leads() else "-" if negative else "+"
            case "SG":
                return "-" if negative else "+"
            case "MI":
                return "-" if negative else blank
            case "PL":
                return blank if negative else "+"
            case "PR":
                return ">" if negative else blank
            case "L":
                return blank
            case "TH":
                return (
                    ""
                    if negative or self.behind
                    else ordinal_ending(int(digits.strip(" #") or 0), text)
                )
            case "":
                return text
            case _:
                return ""

    def _leads(self) -> bool:
        words = [w for w, _ in self.tokens if w in ("9", "0", ".", "D", "S")]
        return words[:1] == ["S"]

    def _sign(self, *, negative: bool) -> str:
        """The sign before the first digit."""
        blank = "" if self.bare else " "
        if self.signs == ["PR"]:
            return "<" if negative else blank
        if self.signs == ["S"]:
            return ("-" if negative else "+") if self._leads() else ""
        if self.signs:
            return ""
        return "-" if negative else blank


def number_read(text: str, form: str) -> Decimal:
    """TO_NUMBER, of digits, signs, points and commas."""
    words = [word for word, _ in _number_tokens(form)]
    if any(w not in ("9", "0", ".", "D", ",", "G", "S", "FM", "MI") for w in words):
        raise NotSupportedError("a format of to_number() but 9, 0, D, G, S, MI, FM, . and ,")
    negative, whole, rest, past, place = False, "", "", False, 0
    limit = [w for w in words if w in ("9", "0")]
    point = next((n for n, w in enumerate(words) if w in (".", "D")), len(words))
    before = sum(w in ("9", "0") for w in words[:point])
    for letter in text.strip():
        place += 1
        if letter in "+-":
            if "S" in words or "MI" in words or place == 1:
                negative = letter == "-"
                continue
            raise ValueError(f"{text!r} does not fit {form!r}")
        if letter == ".":
            if point == len(words):
                break
            past = True
        elif letter == ",":
            continue
        elif letter.isdigit():
            if past:
                rest += letter
            elif len(whole) < before:
                whole += letter
            else:
                break
        else:
            raise ValueError(f"invalid input syntax for type numeric: {text!r}")
    if not whole + rest:
        raise ValueError(f"invalid input syntax for type numeric: {text!r}")
    rest = rest[: len(limit) - before]
    return Decimal(f"{'-' if negative else ''}{whole or '0'}{'.' + rest if rest else ''}")
