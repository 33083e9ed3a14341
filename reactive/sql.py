"""Public name of SQL: `python -m reactive.sql` is a live shell; see `reactive.languages.sql`."""

from typing import TYPE_CHECKING

from optimizer.lazy import make_module_getattr

if TYPE_CHECKING:
    from reactive.languages.sql.__main__ import main

__all__ = ["main"]
__path__: list[str] = []  # so that earlier module names are found, see optimizer/earlier_names.py
__getattr__ = make_module_getattr(__name__, {"main": "reactive.languages.sql.__main__"})

if __name__ == "__main__":
    from reactive.languages.sql.__main__ import main

    raise SystemExit(main())
