"""Public name of Datalog: the class of `Database.datalog`; see `reactive.languages.datalog`."""

from typing import TYPE_CHECKING

from optimizer.lazy import make_module_getattr

if TYPE_CHECKING:
    from reactive.languages.datalog.program import Program

__all__ = ["Program"]
__path__: list[str] = []  # so that earlier module names are found, see optimizer/earlier_names.py
__getattr__ = make_module_getattr(__name__, {"Program": "reactive.languages.datalog.program"})
