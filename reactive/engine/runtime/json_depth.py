"""The depth of a text of JSON, found without recursion, which parsers in C do not survive.

[{"a": [1]}]     3
"[[["            0
"""

from __future__ import annotations

import re

NESTED = 500
"""Brackets within each other that are read."""
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(text: str) -> bool:
    """Return True if lists and objects are nested more than `NESTED` deep.

    >>> is_too_deep("[" * 501), is_too_deep("[" * 500), is_too_deep("[]" * 501)
    (True, False, False)
    """
    if len(text) <= NESTED or text.count("[") + text.count("{") <= NESTED:
        return False
    depth = 0
    for found in _BRACKET.finditer(text):
        sign = found[0]
        depth += (sign in "[{") - (sign in "]}")
        if depth > NESTED:
            return True
    return False
