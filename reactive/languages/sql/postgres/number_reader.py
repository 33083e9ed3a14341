"""TO_NUMBER: numbers that are read by the words of Postgres' formats.

number_read("<12>", "99PR")          -12

A place of the format takes a digit or the point, and passes over any other letter of the text.
"""

from __future__ import annotations

from decimal import Decimal

from reactive.languages.sql.postgres.number_formats import SIGNS, NumberFormat, number_format
from reactive.languages.sql.postgres.numbers import OutOfRangeError
from reactive.languages.sql.postgres.numerics import round_to_scale

_SCALE_OF_SHIFTED = 16
"""The digits behind the point that a number has once V shifts it."""


def number_read(text: str, form: str) -> Decimal | None:
    """Read the digits of a text by a format (TO_NUMBER); None of no format; RN and EEEE raise.

    >>> number_read("$1,234.5-", "L9,999.9S"), number_read("<12>", "99PR"), number_read("34", "9V9")
    (Decimal('-1234.5'), Decimal('-12'), Decimal('3.4000000000000000'))
    """
    if not form:
        return None
    found = number_format(form)
    if found.is_roman or found.is_scientific:
        raise ValueError(f"postgres does not read numbers by {'RN' if found.is_roman else 'EEEE'}")
    return _ReadDigits(found, text).number()


class _ReadDigits:
    """The digits that were read of a text, and the place in the text."""

    def __init__(self, form: NumberFormat, text: str) -> None:
        self._form, self._text, self._place = form, text, 0
        self._sign, self._digits, self._behind = "", "", -1
        self._is_signed = "S" in form.names
        self._sign_leads = self._is_signed and form.sign_after is not None

    def number(self) -> Decimal:
        """Read the text by the words of the format; raise without digits, or for too many."""
        for word, written in self._form.words:
            if self._place >= len(self._text):
                break
            self._read_word(word, written)
        digits = self._digits.removesuffix(".")
        if not digits.strip("."):
            raise ValueError(f"invalid input syntax for type numeric: {self._text!r}")
        made = Decimal(self._sign + digits)
        if abs(made) >= 10 ** (self._form.before + self._form.shift):
            raise OutOfRangeError(f"numeric field overflow: {made}")
        if "V" in self._form.names:
            made = round_to_scale(made.scaleb(-self._form.shift), _SCALE_OF_SHIFTED)
        return made or made.copy_abs()

    def _read_word(self, word: str, written: str) -> None:
        """Read what one word of the format stands for, and go past it in the text."""
        match word:
            case "9" | "0" | "." | "D":
                self._read_place(word)
                self._place += 1
            case "," | "G":
                if "FM" not in self._form.names and self._letter() == ",":
                    self._place += 1
            case "MI" | "PL" | "SG":
                self._read_sign({"MI": "-", "PL": "+"}.get(word, "+-"))
            case "L":
                self._skip(1)
            case "TH" if not self._form.has_point:
                self._skip(2)
            case "":
                self._place += len(written)

    def _letter(self) -> str:
        """Return the next letter of the text, without going past it; empty at the end."""
        return self._text[self._place : self._place + 1]

    def _skip(self, count: int) -> None:
        """Go over letters that are no part of a number."""
        while count and self._letter() and self._letter() not in "0123456789.,+-":
            self._place, count = self._place + 1, count - 1

    def _read_sign(self, signs: str) -> None:
        """Read a letter if it is one of the signs; else skip one that is no part of a number."""
        if self._letter() and self._letter() in signs:
            self._sign = self._letter()
            self._place += 1
        else:
            self._skip(1)

    def _read_place(self, word: str) -> None:
        """Read a digit or the point, with a sign before or behind it."""
        if self._letter() == " ":
            self._place += 1
        if not self._sign and not self._digits and word in ("9", "0"):
            self._read_sign_before()
        letter, is_read = self._letter(), False
        if letter.isascii() and letter.isdigit():
            if self._behind == self._form.behind:
                return
            self._digits += letter
            self._behind += self._behind >= 0
            is_read = True
        elif letter == "." and self._form.has_point and self._behind < 0:
            self._digits, self._behind, is_read = f"{self._digits}.", 0, True
        if letter and not self._sign and self._digits.strip("."):
            self._read_sign_behind(is_read=is_read)

    def _read_sign_before(self) -> None:
        """Read a sign, or the `<` of PR, unless S stands behind the digits."""
        letter = self._letter()
        if self._is_signed and not self._sign_leads:
            return
        if letter and letter in "+-":
            self._sign = letter
        elif letter == "<" and "PR" in self._form.names:
            self._sign = "-"
        self._place += bool(self._sign)

    def _read_sign_behind(self, *, is_read: bool) -> None:
        """Read a sign behind the digit just read (S), or here if none was (MI, PL, SG)."""
        following = self._text[self._place + 1 : self._place + 2]
        if self._is_signed and is_read and following and following in "+-":
            self._sign = following
            self._place += 1
        elif not is_read and not self._is_signed and self._form.names & SIGNS:
            self._sign = self._letter() if self._letter() in "+-" else ""
