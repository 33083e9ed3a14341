"""The IPython shell that runs, if one does, and what it calls the cells that code comes from.

IPython is not imported: where a shell runs, it has been.
"""

from __future__ import annotations

import sys
from typing import Any


def running_shell() -> Any:
    """The shell of IPython, or of a notebook's kernel; None where there is none."""
    module = sys.modules.get("IPython")
    find = getattr(module, "get_ipython", None)
    return None if find is None else find()


def cell_of(file: str) -> str | None:
    """The cell that a made-up file name stands for, as `In[3]`; None for other files."""
    shell = running_shell()
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if name is None else name(file)
    return None if found is None else str(found[1])
