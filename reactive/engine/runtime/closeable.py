"""What `with` does for everything that can be closed."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closeable:
    """A context manager whose end is `close()`."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
