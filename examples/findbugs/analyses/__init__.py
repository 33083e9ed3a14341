"""All analyses. A new one is a function like the others, and its name in `ANALYSES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from examples.findbugs.analyses.calls import (
    bx_boxing_immediately_unboxed_to_perform_coercion,
    dm_gc,
    dm_run_finalizers_on_exit,
    dp_do_inside_do_privileged,
    sw_swing_methods_invoked_in_swing_thread,
)
from examples.findbugs.analyses.classes import (
    cn_idiom,
    imse_dont_catch_imse,
    se_bad_field_inner_class,
)
from examples.findbugs.analyses.fields import (
    ci_confused_inheritance,
    ms_pkgprotect,
    ms_should_be_final,
)
from examples.findbugs.analyses.methods import (
    cn_idiom_no_super_call,
    eq_abstract_self,
    fi_public_should_be_protected,
    ug_sync_set_unsync_get,
)
from examples.findbugs.facts import Fact
from examples.findbugs.tables import Tables
from reactive import Database, Relation

Analysis: TypeAlias = Callable[[Tables], Relation[*tuple[Any, ...]]]

ANALYSES: dict[str, Analysis] = {
    "A": bx_boxing_immediately_unboxed_to_perform_coercion,
    "B": ci_confused_inheritance,
    "C": cn_idiom,
    "D": cn_idiom_no_super_call,
    "E": dm_gc,
    "F": dm_run_finalizers_on_exit,
    "G": dp_do_inside_do_privileged,
    "H": eq_abstract_self,
    "I": fi_public_should_be_protected,
    "J": imse_dont_catch_imse,
    "K": ms_pkgprotect,
    "L": ms_should_be_final,
    "M": se_bad_field_inner_class,
    "N": sw_swing_methods_invoked_in_swing_thread,
    "O": ug_sync_set_unsync_get,
}
"""The analyses, by the letter that [i3ql] gives them."""


def kinds_read(letters: Iterable[str] = tuple(ANALYSES)) -> tuple[type[Fact], ...]:
    """The facts that some analyses read, each kind once; others need not be made of class files."""
    tables = Tables(Database())
    read = [table for letter in letters for table in ANALYSES[letter](tables).tables()]
    return tuple(dict.fromkeys(table.row_type for table in read))


def name_of(analysis: Analysis) -> str:
    """The name of an analysis, as FindBugs has it."""
    return analysis.__name__.upper()


def description(analysis: Analysis) -> str:
    """Return one sentence about the findings of an analysis."""
    return (analysis.__doc__ or "").partition("\n")[0]
