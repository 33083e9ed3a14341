"""Reports captured variables that have changed since their query was made."""

from __future__ import annotations

import warnings

from optimizer.callables.captures import Capture
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place
from reactive.errors import StaleCaptureError, StaleCaptureWarning

_COPIED: dict[type, str] = {list: "tuple", set: "frozenset", dict: "dict", bytearray: "bytes"}


def report_stale(strict: bool, function: Opaque, capture: Capture, others: int) -> None:
    """Warn where the callable stands; of a strict database, raise."""
    message = stale(function, capture, others)
    if strict:
        raise StaleCaptureError(message)
    place = function.place or Place("?", 0)
    warnings.warn_explicit(message, StaleCaptureWarning, place.file, place.line)


def stale(function: Opaque, capture: Capture, others: int = 0) -> str:
    """The message; so many other callables were made there, of which it is true as well."""
    text = _of_one(function, capture)
    if not others:
        return text
    are = "callable that was made there is" if others == 1 else "callables that were made there are"
    return f"{text}\n  {others:,} other {are} concerned too"


def _of_one(function: Opaque, capture: Capture) -> str:
    name, short = capture.name, capture.name.rpartition(".")[2]
    made = "has changed since the relation was made"
    again = "  make the relation again, or bind the value"
    if capture.is_live:
        by = function if capture.reader is None else f"{capture.reader}, called by {function}"
        return (
            f"{name!r}, read by {by}, {made}; its views hold results of both values\n"
            f"{again}: `lambda row, {short}={name}: ...`"
        )
    kept = f"its views keep the value of then, {capture.frozen!r:.80}"
    if capture.now() is capture.original:
        return (
            f"{name!r}, captured by {function}, was changed in place; {kept}\n"
            f"{again}, copied: `lambda row, {name}={_COPIED[type(capture.original)]}({name}): ...`"
        )
    return (
        f"{name!r}, captured by {function}, {made}; {kept}\n"
        f"{again}: `lambda row, {name}={name}: ...`"
    )
