"""Numbers of bytes as people say them: 268435456, or "256MB".

kB MB GB TB         powers of 1000
KiB MiB GiB TiB     powers of 1024
"""

from __future__ import annotations

import re

from reactive.errors import OffloadError

_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def byte_count(said: int | str | None, name: str) -> int | None:
    """How many bytes somebody means; None for no limit.

    Parameters
    ----------
    name: of the parameter, for the error.

    Raises
    ------
    OffloadError: it is no number of bytes above 0.

    Examples
    --------
    >>> byte_count("256MB", "max_waiting_bytes"), byte_count("1.5 KiB", "threshold_bytes")
    (256000000, 1536)
    """
    found = _written(said) if isinstance(said, str) else said
    if found is None and said is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise OffloadError(
            f"{name}={said!r} is no number of bytes\n"
            '  give one above 0, such as "256MB", "1GiB" or 268435456, or None for no limit'
        )
    return found


def row_count(said: int | None, name: str) -> int | None:
    """How many rows somebody means; None for no limit.

    Raises
    ------
    OffloadError: it is no number of rows, from 0 on.

    Examples
    --------
    >>> row_count(1_000_000, "max_waiting")
    1000000
    """
    if said is not None and (not isinstance(said, int) or isinstance(said, bool) or said < 0):
        raise OffloadError(
            f"{name}={said!r} is no number of rows\n  give one, or None for no limit; "
            f"bytes are said by {_BYTES[name]}"
        )
    return said


_BYTES = {"max_waiting": 'max_waiting_bytes="256MB"', "threshold_rows": 'threshold_bytes="1GB"'}


def _written(said: str) -> int | None:
    match = _WRITTEN.fullmatch(said)
    if match is None or (match[3] and not match[2]):
        return None
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])
