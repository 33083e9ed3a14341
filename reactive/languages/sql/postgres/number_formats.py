"""TO_CHAR of numbers, by the words of Postgres' formats.

numeric_written(12, "0000D0")        " 0012.0"

A format has places for digits, and each place takes the next letter of the number: the point is a
letter of it, too. A place that finds no letter left ends the text, whatever follows in the format.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache

from reactive.languages.sql.postgres.formats import ordinal_ending
from reactive.languages.sql.postgres.numbers import NotSupportedError, OutOfRangeError, int4, int8
from reactive.languages.sql.postgres.numerics import numeric_product, round_to_scale, to_numeric

_WORD = re.compile(
    r"FM|EEEE|eeee|SG|MI|PL|PR|RN|TH|SP|fm|sg|mi|pl|pr|rn|th|sp|[90.,BCDGLSVbcdglsv]"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"?|\\(?P<escaped>")|(?P<other>.)',
    re.DOTALL,
)
_ROMAN: tuple[tuple[int, str], ...] = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_WIDTH = 15
"""The letters of a Roman number, unless the format says FM."""
_PLACES = ("9", "0", ".", "D")


class FormatError(ValueError):
    """A format that Postgres refuses."""


def integer_written(value: int, form: str) -> str:
    """Write an integer in a format (TO_CHAR); digits that V shifts are cut to 32 bits.

    >>> integer_written(-12, "999"), integer_written(7, "99V9"), integer_written(4, "FMRN")
    (' -12', '  70', 'IV')
    """
    return _whole_written(value, form, is_wide=False)


def bigint_written(value: int, form: str) -> str:
    """Write a bigint in a format (TO_CHAR)."""
    return _whole_written(value, form, is_wide=True)


def _whole_written(value: int, form: str, *, is_wide: bool) -> str:
    """Return to_char() of an integer; `is_wide`: of a bigint, which raises if V overflows it."""
    found = number_format(form)
    if not form:
        return ""
    if found.is_roman:
        return found.roman(int4(value) if is_wide else value)
    if found.is_scientific:
        shown = _scientific(to_numeric(value), found.behind)
        return shown if is_wide else _add_blank_sign(f"{float(value):.{found.behind}e}")
    value *= 10**found.shift
    value = int8(value) if is_wide else (value + (1 << 31)) % (1 << 32) - (1 << 31)
    digits = str(abs(value)) + ("." + "0" * found.behind if found.behind else "")
    return found.write_number(digits, found.behind, negative=value < 0)


def numeric_written(value: Decimal, form: str) -> str:
    """Write a numeric in a format (TO_CHAR).

    >>> numeric_written(Decimal("3.14159"), "FM9.99"), numeric_written(Decimal("-1e9"), "9.9")
    ('3.14', '-#.#')
    """
    found = number_format(form)
    if not form:
        return ""
    if found.is_roman:
        return found.roman(int4(int(_round_to_whole(value))))
    if found.is_scientific:
        return _scientific(value, found.behind) if value.is_finite() else found.crosses()
    if found.shift:
        value = numeric_product(value, Decimal(10**found.shift))
    made = round_to_scale(value, found.behind)
    negative = made < 0 if not made.is_nan() else False
    return found.write_number(f"{abs(made):f}", found.behind, negative=negative)


def _round_to_whole(value: Decimal) -> Decimal:
    """Return a numeric rounded to a whole number; raise for infinity and NaN."""
    if not value.is_finite():
        raise OutOfRangeError(f"integer out of range: {value}")
    return round_to_scale(value, 0)


def float_written(value: float, form: str) -> str:
    """Return TO_CHAR of a float of double precision, with up to 15 digits."""
    return _float_written(value, form, 15)


def real_written(value: float, form: str) -> str:
    """Return TO_CHAR of a float of single precision, with up to 6 digits."""
    return _float_written(value, form, 6)


def _float_written(value: float, form: str, most: int) -> str:
    """Return to_char() of a float, with up to `most` digits."""
    found = number_format(form)
    if not form:
        return ""
    if found.is_roman:
        return found.roman(round(value) if math.isfinite(value) else 0)
    if found.is_scientific:
        is_there = math.isfinite(value)
        return _add_blank_sign(f"{value:.{found.behind}e}") if is_there else found.crosses()
    if found.shift:
        value *= 10.0**found.shift
    size = len(_write_digits(value, 0))
    behind = max(0, min(found.behind, most - size))
    negative = math.copysign(1, value) < 0 and value == value
    return found.write_number(_write_digits(value, behind), behind, negative=negative)


def _write_digits(value: float, behind: int) -> str:
    """Return the digits of a float without its sign, `behind` of them after the point."""
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity"
    return f"{abs(value):.{behind}f}"


def _add_blank_sign(text: str) -> str:
    """Return a text with a blank for its sign, unless it has a minus."""
    return text if text.startswith("-") else f" {text}"


def _scientific(value: Decimal, behind: int) -> str:
    place = value.adjusted() if value else 0
    made = round_to_scale(value.scaleb(-place), behind)  # 9.99 may be 10.0, which Postgres leaves
    return _add_blank_sign(f"{made:f}e{'-' if place < 0 else '+'}{abs(place):02}")


def _split_format(form: str) -> list[tuple[str, str]]:
    """Return the words of a format with their texts; other letters have no word."""
    made = []
    for found in _WORD.finditer(form):
        if found["quoted"] is not None:
            made.append(("", re.sub(r"\\(.)", r"\1", found["quoted"], flags=re.DOTALL)))
        elif found["escaped"] or found["other"] is not None:
            made.append(("", found["escaped"] or found["other"]))
        else:
            made.append((found[0].upper(), found[0]))
    return made


@lru_cache(512)
def number_format(form: str) -> NumberFormat:
    """Return the parsed form of a format."""
    return NumberFormat(_split_format(form))


class NumberFormat:
    """A format of numbers: its words, the digits before and behind the point, and the sign.

    Raises
    ------
    FormatError: words that do not go together.
    """

    def __init__(self, words: list[tuple[str, str]]) -> None:
        self.words = words
        self.before = self.behind = self.shift = 0
        self.first_zero: int | None = None
        """The place of the first 0 before the point."""
        self.zeros_end = 0
        self.sign_after: int | None = None
        """The digits before an S that stands before the point; None for no S, or one behind it."""
        self.names = set[str]()
        for word, _ in words:
            self._take(word)
            self.names.add(word)
        self.is_bare = "FM" in self.names
        self.is_roman, self.is_scientific = "RN" in self.names, "EEEE" in self.names
        if self.is_roman and self.names - {"RN", "FM", "", "9", "0"}:
            raise NotSupportedError("RN beside other words of a format")
        self.has_point = bool(self.names & {".", "D"})

    def _take(self, word: str) -> None:
        """Count the places of a word; refuse a word that cannot follow the earlier ones."""
        names = self.names
        if "EEEE" in names and word:
            raise FormatError('"EEEE" must be the last pattern used')
        apart = _APART.get(word, frozenset()) & names
        if apart:
            raise FormatError(f"cannot use {word!r} and {min(apart)!r} together")
        match word:
            case "9" | "0" if "PR" in names:
                raise FormatError(f'"{word}" must be ahead of "PR"')
            case "9" if "V" in names:
                self.shift += 1
            case "9" | "0":
                is_behind = bool(names & {".", "D"})
                if word == "0" and self.first_zero is None and not is_behind:
                    self.first_zero = self.before
                self.before += not is_behind
                self.behind += is_behind
                if word == "0":
                    self.zeros_end = self.before + self.behind
            case "S":
                self.sign_after = None if names & {".", "D"} else self.before

    def crosses(self) -> str:
        """Return the text of a number that EEEE cannot show."""
        return " " + "#" * self.before + "." + "#" * (self.behind + 4)

    def roman(self, number: int) -> str:
        """Return the text of an integer in Roman digits."""
        text = "#" * _WIDTH
        if 0 < number < 4000:
            text = ""
            for size, letters in _ROMAN:
                text += letters * (number // size)
                number %= size
        made = [word for word in self.words if word[0] in ("RN", "")]
        return "".join(self._roman(text, *word) for word in made)

    def _roman(self, text: str, word: str, written: str) -> str:
        """Return the number for the word RN, in its case; `written` for other letters."""
        if not word:
            return written
        text = text if self.is_bare else text.rjust(_WIDTH)
        return text.lower() if written == "rn" else text

    def write_number(self, digits: str, behind: int, *, negative: bool) -> str:
        """Return the text of a number with `behind` digits after the point."""
        before = self.before + self.shift
        size = len(digits.partition(".")[0])
        if size > before:
            digits, size = "#" * before + "." + "#" * behind, before
        return _Writing(self, digits, before - size, before + behind, negative=negative).text()


_POINTS, SIGNS = frozenset({".", "D"}), frozenset({"MI", "PL", "SG"})
_APART: dict[str, frozenset[str]] = {
    **dict.fromkeys((".", "D"), _POINTS | {"V"}),
    "V": _POINTS,
    "S": SIGNS | {"S", "PR"},
    **dict.fromkeys(SIGNS, frozenset({"S"})),
    "PR": SIGNS | {"S"},
    "EEEE": SIGNS | {"S", "PR", "FM", "RN", "V", "B"},
}
"""The words that may not stand before a word."""


class _Writing:
    """The text of one number: its letters so far, and the place in the number."""

    def __init__(
        self, form: NumberFormat, number: str, blanks: int, count: int, *, negative: bool
    ) -> None:
        self._form, self._number, self._blanks = form, number, blanks
        self._negative, self._is_bare = negative, form.is_bare
        self._place = self._current = 0
        self._is_in = False
        self._brackets = "PR" in form.names and (negative or not form.is_bare)
        self._follows = form.sign_after in (None, form.before + form.shift)
        """If the sign of S comes behind the number."""
        if form.names & SIGNS:
            self._has_sign = bool(form.names & {"MI", "SG"})
        else:
            self._has_sign = not negative and form.is_bare and "S" not in form.names
        self._end = count - 1 + (not self._has_sign and not blanks)
        self._last = self._last_shown() if form.is_bare and form.has_point else None

    def _last_shown(self) -> int | None:
        """Return the place of the last letter that FM leaves; None without a point."""
        point = self._number.find(".")
        if point < 0:
            return None
        last = len(self._number.rstrip("0")) - 1
        zeros = self._form.zeros_end - self._blanks
        return max(last, min(len(self._number) - 1, zeros)) if zeros > 0 else last

    def text(self) -> str:
        """Return the text, up to the first place that finds no letter left."""
        made: list[str] = []
        for word, written in self._form.words:
            if word in _PLACES:
                found = self._letter(word)
                made += found
                if self._number_ended:
                    break
            else:
                made.append(self._other(word, written))
        return "".join(made)

    _number_ended = False

    def _letter(self, word: str) -> list[str]:
        """Return the text at the current place, for a digit or the point, and go to the next."""
        made = [self._sign_before()]
        first_zero = self._form.first_zero
        is_zero = first_zero is not None and first_zero <= self._current
        self._is_in = False
        if self._current < self._blanks:
            self._is_in = is_zero
            made.append("0" if is_zero else "" if self._is_bare else " ")
        else:
            made.append(self._take_letter(word))
        if not self._number_ended:
            made.append(self._sign_behind())
        self._current += 1
        return made

    def _take_letter(self, word: str) -> str:
        """Consume the next letter of the number, and return the text to write for it.

        The text is empty behind the end of the number, and for a letter that is not written.
        """
        if self._place >= len(self._number):
            is_shown = self._last is None or self._place <= self._last or word == "0"
            self._number_ended = is_shown
            return ""
        letter, place, last = self._number[self._place], self._place, self._last
        is_blank = self._is_blank()
        self._place += 1
        ends_with_point = last is not None and self._number[last] == "."
        if letter == ".":
            return letter
        if last is not None and place > last and word != "0":
            return ""
        if is_blank:
            return ("0" if ends_with_point else "") if self._is_bare else " "
        self._is_in = True
        return letter

    def _is_blank(self) -> bool:
        """Return True for the 0 before the point, which only a format with a 0 shows."""
        is_first = self._place == 0 and self._number.startswith("0")
        return is_first and self._form.first_zero is None and self._behind() > 0

    def _behind(self) -> int:
        """Return the number of digits after the point."""
        return len(self._number.partition(".")[2])

    def _sign_before(self) -> str:
        """Return the sign, or a blank for it, once, at its place; else an empty text."""
        if self._has_sign:
            return ""
        is_first_zero = self._form.first_zero == self._current
        if self._current < self._blanks and not is_first_zero:
            return ""
        ends_with_point = self._last is not None and self._number[self._last] == "."
        if self._is_blank() and not ends_with_point:
            return ""
        if "S" in self._form.names:
            if self._follows:
                return ""
            self._has_sign = True
            return "-" if self._negative else "+"
        self._has_sign = True
        if self._brackets:
            return "<" if self._negative else " "
        return "-" if self._negative else "" if self._is_bare else " "

    def _sign_behind(self) -> str:
        """Return the sign, or a blank for it, if it follows this place; else an empty text."""
        end = self._end + (self._blanks > 0) + self._form.has_point
        if self._last is not None and self._last == self._place:
            end = self._current
        if self._current + 1 != end:
            return ""
        if self._has_sign and self._brackets:
            return ">" if self._negative else " "
        if "S" in self._form.names and self._follows:
            return "-" if self._negative else "+"
        return ""

    def _other(self, word: str, written: str) -> str:
        """Return the text for a word that is no place of a digit; TH of no number raises."""
        blank = "" if self._is_bare else " "
        match word:
            case "," | "G":
                return "," if self._is_in else blank
            case "L":
                return " "
            case "MI":
                return "-" if self._negative else blank
            case "PL":
                return blank if self._negative else "+"
            case "SG":
                return "-" if self._negative else "+"
            case "TH":
                if self._negative or self._form.has_point or self._number.startswith("#"):
                    return ""
                if not self._number.isdigit():
                    raise ValueError(f"{self._number!r} is not a number")
                return ordinal_ending(int(self._number[-2:]), written)
            case "":
                return written
            case _:
                return ""
