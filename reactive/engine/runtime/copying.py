"""What lives with its database is neither copied nor pickled, and says what can be.

copy.copy(view), copy.deepcopy(...)     TypeError: cannot copy view 'totals': ...
pickle.dumps(view)                      TypeError: cannot pickle view 'totals': ...
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from reactive.engine.runtime.boundary import boundary


@boundary
class NotCopied:
    """Base of such classes."""

    __slots__ = ()
    _copy_instead: ClassVar[str]
    _pickle_instead: ClassVar[str]

    def _called(self) -> str:
        """What it is called in a sentence."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        raise TypeError(f"cannot copy {self._called()}: {_WHY}\n  {self._copy_instead}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(f"cannot pickle {self._called()}: {_WHY}\n  {self._pickle_instead}")


_WHY = "it lives with its database"
