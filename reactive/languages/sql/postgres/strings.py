"""Texts and bytes of Postgres."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import unicodedata
from typing import Any, Final

from reactive.languages.sql.postgres.forms import joined_text, text_of
from reactive.languages.sql.postgres.numbers import NotSupportedError


def part(text: Any, start: int, length: int | None = None) -> Any:
    """Return SUBSTRING of a text or bytes: places before 1 are empty; a negative length raises."""
    if length is None:
        return text[max(0, start - 1) :]
    if length < 0:
        raise ValueError("negative substring length not allowed")
    return text[max(0, start - 1) : max(0, start - 1 + length)]


def overlaid(text: str, new: str, start: int, length: int | None = None) -> str:
    """Replace `length` letters of a text by `new`, from `start` on (OVERLAY).

    Raise if they start before the text. Without a `length` it is that of `new`.
    """
    count = len(new) if length is None else length
    if start <= 0:
        raise ValueError("negative substring length not allowed")
    return text[: start - 1] + new + text[max(0, start - 1 + count) :]


def left(text: str, count: int) -> str:
    """Return the first letters (LEFT); all but the last ones if the count is negative."""
    return text[:count]


def right(text: str, count: int) -> str:
    """Return the last letters (RIGHT); all but the first ones if the count is negative."""
    if count == -(2**31):  # its opposite is no integer there
        return text
    return text[-count:] if count else ""


def trimmed(text: str, letters: str = " ") -> str:
    """Remove letters at both ends (BTRIM)."""
    return text.strip(letters) if letters else text


def trimmed_left(text: str, letters: str = " ") -> str:
    """Remove letters at the beginning (LTRIM)."""
    return text.lstrip(letters) if letters else text


def trimmed_right(text: str, letters: str = " ") -> str:
    """Remove letters at the end (RTRIM)."""
    return text.rstrip(letters) if letters else text


def split_part(text: str, delimiter: str, place: int) -> str:
    """Return the part at `place` between delimiters (SPLIT_PART).

    A negative place counts from the end; '' for a place without a part; 0 raises.
    """
    if not place:
        raise ValueError("field position must not be zero")
    found = text.split(delimiter) if delimiter and text else [text]
    index = place - 1 if place > 0 else place + len(found)
    return found[index] if 0 <= index < len(found) else ""


def split(text: str | None, delimiter: str | None, null: str | None = None) -> Any:
    """Split a text (STRING_TO_ARRAY); NULL of NULL, an empty array of ''.

    With a delimiter of NULL each letter is an element. An element equal to `null` becomes NULL.
    """
    if text is None:
        return None
    if not text:
        return ()
    if delimiter is None:
        found: list[str] = list(text)
    else:
        found = text.split(delimiter) if delimiter else [text]
    return tuple(None if null is not None and each == null else each for each in found)


def joined(*values: Any) -> str:
    """Join texts (CONCAT); NULL is left out."""
    return "".join(joined_text(value) for value in values if value is not None)


def joined_by(separator: str, *values: Any) -> str:
    """Join texts with a separator (CONCAT_WS); NULL is left out."""
    return separator.join(joined_text(value) for value in values if value is not None)


def initial_capitals(text: str) -> str:
    """Convert the first letter of each word to upper, the others to lower case (INITCAP)."""
    made, inside = [], False
    for letter in text:
        made.append(letter.lower() if inside else letter.upper())
        inside = letter.isalnum()
    return "".join(made)


def upper(text: str) -> str:
    """Convert each letter that has one upper letter (UPPER)."""
    return "".join(up if len(up := letter.upper()) == 1 else letter for letter in text)


def lower(text: str) -> str:
    """Convert each letter that has one lower letter (LOWER)."""
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def code_of(text: str) -> int:
    """Return the number of the first letter (ASCII)."""
    return ord(text[0]) if text else 0


def letter_of(code: int) -> str:
    """Return the letter of a number (CHR); raise if there is none."""
    if code <= 0 or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
        raise ValueError(f"requested character is not valid: {code}")
    return chr(code)


def translated(text: str, old: str, new: str) -> str:
    """Replace each letter of `old` by the one in its place in `new`, if any (TRANSLATE)."""
    table: dict[int, int | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), ord(new[place]) if place < len(new) else None)
    return text.translate(table)


def replaced(text: str, old: str, new: str) -> str:
    """Replace each occurrence of `old` in a text by `new` (REPLACE); none if `old` is empty."""
    return text.replace(old, new) if old else text


def reversed_(text: str) -> str:
    """Reverse the letters (REVERSE)."""
    return text[::-1]


def place_of(text: Any, wanted: Any) -> int:
    """Return the place of one text in another (STRPOS and POSITION)."""
    return int(text.find(wanted)) + 1


def starts_with(text: str, beginning: str) -> bool:
    """Return True if a text begins with another (STARTS_WITH)."""
    return text.startswith(beginning)


def size(value: Any) -> int:
    """Count the bytes of a text or of bytes (OCTET_LENGTH)."""
    return len(value.encode() if isinstance(value, str) else value)


def bits(value: Any) -> int:
    """Count the bits of a text or of bytes (BIT_LENGTH)."""
    return 8 * size(value)


def md5(value: Any) -> str:
    """Return the MD5 of a text or of bytes, in hexadecimal digits."""
    return hashlib.md5(value.encode() if isinstance(value, str) else value).hexdigest()


def sha(value: bytes, name: str) -> bytes:
    """Return a digest of bytes (SHA256 and the like)."""
    return hashlib.new(name, value).digest()


def encoded(value: bytes, form: str) -> str:
    """Encode bytes as hex, base64 or escape (ENCODE); raise for other forms."""
    match form.lower():
        case "hex":
            return value.hex()
        case "base64":
            text = base64.b64encode(value).decode()
            return "\n".join(text[n : n + 76] for n in range(0, len(text), 76))
        case "escape":
            return "".join(_escape_byte(byte) for byte in value)
        case _:
            raise ValueError(f"unrecognized encoding: {form!r}")


def _escape_byte(byte: int) -> str:
    """Return a byte as ENCODE writes it: a letter, or a backslash and octal digits."""
    if byte == 92:
        return "\\\\"
    return chr(byte) if 0 < byte < 128 else f"\\{byte:03o}"


def decoded(text: str, form: str) -> bytes:
    """Decode a text of hex, base64 or escape (DECODE); raise for other forms and texts."""
    from reactive.languages.sql.postgres.forms import bytes_

    match form.lower():
        case "hex":
            return bytes_("\\x" + text)
        case "base64":
            plain = re.sub(r"\s", "", text)
            try:
                return base64.b64decode(plain, validate=True)
            except binascii.Error as error:
                raise ValueError(f"invalid base64: {error}") from None
        case "escape":
            if text.startswith("\\x"):
                raise ValueError("invalid input syntax for type bytea")
            return bytes_(text)
        case _:
            raise ValueError(f"unrecognized encoding: {form!r}")


PARTS: Final = (1, 2, 3, 4, 9, 10, 13, 14, 15, 16)
"""The parts of ISO 8859 of LATIN1 to LATIN10."""
CODECS: Final[dict[str, str]] = {
    "utf8": "utf-8",
    "unicode": "utf-8",
    "sqlascii": "utf-8",
    "koi8": "koi8_r",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "alt": "cp866",
    "win": "cp1251",
    **dict.fromkeys(("abc", "tcvn", "tcvn5712", "vscii"), "cp1258"),
    **{f"latin{n}": f"iso8859_{part}" for n, part in enumerate(PARTS, 1)},
    **{f"iso8859{part}": f"iso8859_{part}" for part in (*PARTS, 5, 6, 7, 8)},
    **{f"{w}{n}": f"cp{n}" for w in ("win", "windows") for n in (866, 874, *range(1250, 1259))},
}
"""Python's names of encodings by the letters and digits of Postgres's names."""
MANY_BYTES: Final = frozenset(
    {
        *("big5", "euccn", "eucjis2004", "eucjp", "euckr", "euctw", "gb18030", "gbk", "johab"),
        *("mskanji", "muleinternal", "shiftjis", "shiftjis2004", "sjis", "uhc"),
        *(f"{word}{page}" for word in ("win", "windows") for page in (932, 936, 949, 950)),
    }
)
"""Encodings of Postgres with more than one byte for a letter, which are not read here."""


def text_of_bytes(value: bytes, encoding: str) -> str:
    """Decode bytes of an encoding (CONVERT_FROM); raise for other bytes, and for 0."""
    made = value.decode(_codec(encoding))
    if "\0" in made:
        raise ValueError("invalid byte sequence: 0x00")
    return made


def bytes_of_text(text: str, encoding: str) -> bytes:
    """Encode a text in an encoding (CONVERT_TO)."""
    return text.encode(_codec(encoding))


def _codec(encoding: str) -> str:
    """Return Python's name of an encoding.

    Raises
    ------
    NotSupportedError: a multibyte encoding other than UTF-8.
    ValueError: Postgres has no encoding of this name.
    """
    folded = re.sub(r"[^a-z0-9]", "", encoding.lower())
    if folded in MANY_BYTES:
        raise NotSupportedError(f"the encoding {encoding!r}")
    if folded not in CODECS:
        raise ValueError(f"invalid encoding name {encoding!r}")
    return CODECS[folded]


def byte_at(value: bytes, place: int) -> int:
    """Return the byte at a place, from 0 on (GET_BYTE); raise if there is none."""
    if not 0 <= place < len(value):
        raise ValueError(f"index {place} out of valid range")
    return value[place]


def quoted_literal(text: Any) -> str:
    """Write a text as a literal (QUOTE_LITERAL)."""
    plain = text_of(text)
    escaped = plain.replace("'", "''")
    return f"E'{escaped.replace(chr(92), chr(92) * 2)}'" if "\\" in plain else f"'{escaped}'"


def quoted_or_null(text: Any) -> str:
    """Write a text as a literal, or NULL (QUOTE_NULLABLE)."""
    return "NULL" if text is None else quoted_literal(text)


WORDS = frozenset(
    [
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "authorization",
        "between",
        "bigint",
        "binary",
        "bit",
        "boolean",
        "both",
        "case",
        "cast",
        "char",
        "character",
        "check",
        "coalesce",
        "collate",
        "collation",
        "column",
        "concurrently",
        "constraint",
        "create",
        "cross",
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "dec",
        "decimal",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "exists",
        "extract",
        "false",
        "fetch",
        "float",
        "for",
        "foreign",
        "freeze",
        "from",
        "full",
        "grant",
        "greatest",
        "group",
        "grouping",
        "having",
        "ilike",
        "in",
        "initially",
        "inner",
        "inout",
        "int",
        "integer",
        "intersect",
        "interval",
        "into",
        "is",
        "isnull",
        "join",
        "lateral",
        "leading",
        "least",
        "left",
        "like",
        "limit",
        "localtime",
        "localtimestamp",
        "national",
        "natural",
        "nchar",
        "none",
        "normalize",
        "not",
        "notnull",
        "null",
        "nullif",
        "numeric",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "out",
        "outer",
        "overlaps",
        "overlay",
        "placing",
        "position",
        "precision",
        "primary",
        "real",
        "references",
        "returning",
        "right",
        "row",
        "select",
        "session_user",
        "setof",
        "similar",
        "smallint",
        "some",
        "substring",
        "symmetric",
        "system_user",
        "table",
        "tablesample",
        "then",
        "time",
        "timestamp",
        "to",
        "trailing",
        "treat",
        "trim",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "values",
        "varchar",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
        "xmlattributes",
        "xmlconcat",
        "xmlelement",
        "xmlexists",
        "xmlforest",
        "xmlnamespaces",
        "xmlparse",
        "xmlpi",
        "xmlroot",
        "xmlserialize",
        "xmltable",
    ]
)
"""Names that have to be quoted."""


def quoted_name(text: str) -> str:
    """Write a text as a name, quoted where it must be (QUOTE_IDENT)."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", text) and text not in WORDS:
        return text
    return '"' + text.replace('"', '""') + '"'


_SPECIFIER = re.compile(r"%(?:%|(?:(\d+)\$)?(-?)(\d*)([sIL])?)")


def formatted(form: str, *values: Any) -> str:
    """Fill a format (FORMAT): `%s` a value, `%I` a name, `%L` a literal."""
    place = 0

    def write_specifier(found: re.Match[str]) -> str:
        nonlocal place
        if found[0] == "%%":
            return "%"
        if found[4] is None:
            raise ValueError(f"unrecognized format() type specifier: {found[0]!r}")
        place = int(found[1]) if found[1] else place + 1
        if not 0 < place <= len(values):
            raise ValueError("too few arguments for format()")
        text = _write_format_value(values[place - 1], found[4])
        width = int(found[3] or 0)
        return text.ljust(width) if found[2] else text.rjust(width)

    return _SPECIFIER.sub(write_specifier, form)


def _write_format_value(value: Any, letter: str) -> str:
    """Return a value as text, as a literal (`L`) or as a name (`I`, which refuses NULL)."""
    if letter == "L":
        return quoted_or_null(None if value is None else joined_text(value))
    if letter == "I":
        if value is None:
            raise ValueError("null values cannot be formatted as an SQL identifier")
        return quoted_name(joined_text(value))
    return "" if value is None else joined_text(value)


def normal(text: str, form: str = "NFC") -> str:
    """Return a normal form of Unicode (NORMALIZE)."""
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def cut(text: str, length: int) -> str:
    """Cast to VARCHAR(n): the first letters."""
    return text[:length]


def fitting(text: str, length: int) -> str:
    """Assign to VARCHAR(n): cut off blanks, and raise if other letters are too many."""
    if len(text) > length and text[length:].strip(" "):
        raise ValueError(f"value too long for type character varying({length})")
    return text[:length]
