"""An exception from outside, at any of the moments at which CPython looks for signals."""

from __future__ import annotations

import contextlib
import dis
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import reactive

HERE = str(Path(reactive.__file__).parent) + os.sep
BACK = {dis.opmap[name] for name in dis.opmap if name.startswith("JUMP_BACKWARD")}
CALLS = {dis.opmap[name] for name in dis.opmap if name in ("CALL", "CALL_FUNCTION_EX")}
RESUME = dis.opmap["RESUME"]
FINALIZERS = ("__del__", "_clear_entry")
"""Methods and callbacks of weak references, whose exceptions CPython prints and drops."""


def interrupt() -> None:
    raise KeyboardInterrupt


def is_closed(frame: FrameType) -> bool:
    """Return True if the frame is a generator that is closed because its last reference is gone.

    An exception raised there is lost. An exception that a `with` block throws into a generator does
    not count.
    """
    opcode = frame.f_code.co_code[frame.f_lasti]
    above = frame.f_back
    return opcode != RESUME and not (above and above.f_code.co_filename == contextlib.__file__)


class Moments:
    """Call `act` at the nth moment when CPython looks for signals, in frames of the library.

    By default it raises `KeyboardInterrupt`, as a second Ctrl-C does.
    Frames are known by their `id`: CPython 3.11 crashes now and then if a frame of a function that
    has ended is held while its opcodes are traced.
    """

    def __init__(self, moment: int, act: Callable[[], object] = interrupt) -> None:
        self._left = moment
        self._act = act
        self._last: dict[int, int | None] = {}
        self._called: set[int] = set()
        self.where: str | None = None

    def __enter__(self) -> Moments:
        sys.settrace(self._call)
        return self

    def __exit__(self, *of: object) -> None:
        sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_back is not None:
            self._called.add(id(frame.f_back))
        name = frame.f_code.co_filename
        if not name.startswith((HERE, "<reactive ")) or frame.f_code.co_name in FINALIZERS:
            return None
        if is_closed(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._last[id(frame)] = RESUME  # which tells of no opcode of its own before Python 3.12
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            now, key = frame.f_code.co_code[frame.f_lasti], id(frame)
            last = self._last.get(key)
            after_call = last in CALLS and key not in self._called
            self._last[key] = now
            self._called.discard(key)
            if after_call or last in BACK or (last == RESUME and now != RESUME):
                self._left -= 1
                if self._left < 0:
                    self.where = f"{frame.f_code.co_name} in {frame.f_code.co_filename}"
                    self.where += f":{frame.f_lineno}"
                    sys.settrace(None)
                    self._last, self._called = {}, set()
                    self._act()
                    return None
        elif event == "return":
            self._last.pop(id(frame), None)
            self._called.discard(id(frame))
        return self._step
