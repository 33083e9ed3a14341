"""FORMAT and PRINTF of DuckDB: values in the places of a template.

    formatted("{:>5}|{0}", ...)       {[place][:[[fill]align][sign][#][0][width][,][.digits][type]]}
    printed("%5d|%s", ...)            %[flags][width][.digits]type

Integers, floats, booleans and texts have types of places of their own; a place of another type is
an error of the row, and so are the forms of fmt that are not here.
"""

from __future__ import annotations

import math
import re
from typing import Any

_PLACE = re.compile(r"\{\{|\}\}|\{(\d*)(?::([^{}]*))?\}|[{}]")
_SPEC = re.compile(
    r"(?:(?P<fill>[^{}])?(?P<align>[<>^]))?(?P<sign>[-+ ])?(?P<hash>#)?(?P<zero>0)?"
    r"(?P<width>[1-9]\d*)?(?P<comma>,)?(?:\.(?P<digits>\d+))?(?P<type>[a-zA-Z%])?"
)
_PERCENT = re.compile(
    r"%(?:%|(?P<flags>[-+ 0#,]*)(?P<width>[1-9]\d*)?(?:\.(?P<digits>\d+))?(?:ll?)?"
    r"(?P<type>[a-zA-Z])|(?P<bad>.?))",
    re.DOTALL,
)
_INTEGERS, _FLOATS = frozenset("dxXob"), frozenset("eEfFgG")
MOST_DIGITS = 23
MOST = 100_000
"""The greatest width, and the most digits."""


def formatted(template: str, *values: Any) -> str:
    """Return a template with values in its places, counted from 0 or in their order.

    >>> formatted("{1} {0:.2f}|{0:>6}", 1.5, "a")
    'a 1.50|   1.5'
    """
    if re.search(r"\{\d", template) and re.search(r"\{[:}]", template.replace("{{", "")):
        raise ValueError("places are counted, or in their order")
    count = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] in ("{{", "}}"):
            return found[0][0]
        if found[0] in ("{", "}"):
            raise ValueError(f"{template!r:.60} is no template")
        place = int(found[1]) if found[1] else count
        count += 1
        return _write(_value_at(values, place), found[2] or "")

    return _PLACE.sub(fill, template)


def printed(template: str, *values: Any) -> str:
    """Return a template of `printf` with values in the order of its places.

    >>> printed("%05d|%-4s|%.1f%%", 42, "a", 2.25)
    '00042|a   |2.2%'
    """
    count = 0

    def fill(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] == "%%":
            return "%"
        if found["type"] is None:
            raise ValueError(f"{found[0]!r} is no place of printf()")
        value = _value_at(values, count)
        count += 1
        return _print(value, found)

    return _PERCENT.sub(fill, template)


def _value_at(values: tuple[Any, ...], place: int) -> Any:
    if place >= len(values):
        raise ValueError(f"there is no argument {place + 1}")
    return values[place]


def _refuse(value: Any, kind: str) -> ValueError:
    return ValueError(f"{value!r:.60} has no form {kind!r}")


def _write(value: Any, written: str) -> str:
    """Return a value as a place of `format` says."""
    found = _SPEC.fullmatch(written)
    if found is None:
        raise ValueError(f"the form {written!r} is not supported")
    kind = found["type"]
    if isinstance(value, bool) and kind is None:
        value = "true" if value else "false"
    if isinstance(value, str):
        if kind not in (None, "s") or any(
            found[part] for part in ("sign", "hash", "zero", "comma")
        ):
            raise _refuse(value, written)
    elif isinstance(value, float):
        if (kind is None and found["digits"]) or kind not in (None, *_FLOATS) or found["hash"]:
            raise _refuse(value, written)
        if not math.isfinite(value):
            return _write_infinite(value, found)
        if kind is not None:
            _check_digits(value, kind, found["digits"])
    elif (kind or "d") not in _INTEGERS or found["digits"] or (kind == "o" and found["hash"]):
        raise _refuse(value, written)
    if found["zero"] and found["align"]:
        raise _refuse(value, written)
    _check_size(found)
    if kind is None and isinstance(value, float):  # the shortest digits, as a text of this width
        text = ("{:" + (found["sign"] or "") + (found["comma"] or "") + "}").format(value)
        return _pad(text, found)
    return format(int(value) if isinstance(value, bool) else value, written)


def _check_digits(value: float, kind: str, digits: str | None) -> None:
    """Refuse more digits than a float has, of which DuckDB writes others than the exact ones."""
    count = int(digits or 6)
    if kind in "fF":
        count += len(str(int(abs(value))))
    if count > MOST_DIGITS:
        raise ValueError(f"{value!r} has no {count} digits")


def _write_infinite(value: float, found: re.Match[str], flags: str = "") -> str:
    """Return infinity, or NaN, in the width of its place."""
    parts = found.groupdict()
    if found["width"] and "0" in (*flags, parts.get("zero")):
        raise _refuse(value, found[0])
    sign = flags or parts.get("sign") or ""
    mark = "+" if "+" in sign else " " if " " in sign else ""
    text = repr(value) if value < 0 else mark + repr(value)
    text = text.upper() if (found["type"] or "e").isupper() else text
    if "align" in parts:
        return _pad(text, found)
    width = int(found["width"] or 0)
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _pad(text: str, found: re.Match[str]) -> str:
    """Return the text of a number in the width of its place."""
    width = int(found["width"] or 0)
    if found["align"]:
        return format(text, f"{found['fill'] or ' '}{found['align']}{width or ''}")
    if found["zero"]:
        return text.zfill(width)
    return text.rjust(width)


def _check_size(found: re.Match[str]) -> None:
    if max(int(found["width"] or 0), int(found["digits"] or 0)) > MOST:
        raise ValueError("a place is too wide")


def _print(value: Any, found: re.Match[str]) -> str:
    """Return a value as a place of `printf` says."""
    flags, kind, digits = found["flags"], found["type"], found["digits"]
    _check_size(found)
    is_left, width = "-" in flags, int(found["width"] or 0)
    if isinstance(value, str) or (isinstance(value, bool) and kind == "s"):
        text = value if isinstance(value, str) else str(value).lower()
        if kind != "s":
            raise _refuse(value, found[0])
        text = text if digits is None else text[: int(digits)]
        return text.ljust(width) if is_left else text.rjust(width)
    if isinstance(value, float) is (kind not in _FLOATS) or kind not in _FLOATS | set("diuxXo"):
        raise _refuse(value, found[0])
    if isinstance(value, float) and not math.isfinite(value):
        return _write_infinite(value, found, flags)
    if isinstance(value, float):
        _check_digits(value, kind, digits)
    if kind in "uxXo" and value < 0:
        value = int(value) + (1 << 64)
    if digits is not None and not isinstance(value, float):
        raise _refuse(value, found[0])
    comma = "," if "," in flags else ""
    sign = "+" if "+" in flags else " " if " " in flags else ""
    kind = "d" if kind in "iu" else kind
    if "#" in flags and kind not in "xX":
        raise _refuse(value, found[0])
    mark = "#" if "#" in flags and value else ""
    zero = "0" if "0" in flags and not is_left else ""
    align = "<" if is_left else ""
    form = f"{align}{sign}{mark}{zero}{width or ''}{comma}{'' if digits is None else '.' + digits}"
    return format(int(value) if isinstance(value, bool) else value, form + kind)
