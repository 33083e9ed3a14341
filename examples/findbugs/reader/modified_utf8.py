"""The encoding of texts in class files: UTF-8 with two exceptions.

The character 0 is written as two bytes, and a character beyond 0xFFFF as its two surrogates of
three bytes each. A surrogate may also stand alone, since Java's strings are of 16-bit units.

Source: the Java Virtual Machine Specification, section 4.4.7.
"""

from __future__ import annotations

from examples.findbugs.reader.cursor import Malformed

NUL = b"\xc0\x80"
BEYOND = 0xF0
"""The first of the bytes that begin a character beyond 0xFFFF in plain UTF-8."""


def decode(raw: bytes) -> str:
    r"""Return the text that the bytes stand for.

    >>> decode(b"caf\xc3\xa9 \xc0\x80 \xed\xa0\xbd\xed\xb8\x80")
    'café \x00 😀'
    """
    if 0 in raw:
        raise Malformed("a text has a byte 0")
    if raw.isascii():
        return raw.decode("ascii")
    if max(raw) >= BEYOND:
        raise Malformed(f"a text has a byte {max(raw)}")
    try:
        text = raw.replace(NUL, b"\0").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise Malformed(f"a text is not in modified UTF-8: {error.reason}") from None
    return _paired(text) if b"\xed" in raw else text


def _paired(text: str) -> str:
    """Return the text with each two surrogates that make a character as that character."""
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
