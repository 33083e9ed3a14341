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
from examples.findbugs.facts import (
    ClassDecl,
    Fact,
    FieldAccess,
    FieldDecl,
    Handler,
    InnerClass,
    Invoke,
    MethodDecl,
)
from examples.findbugs.tables import Tables
from reactive import Relation

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
"""By the letter that [i3ql] gives them."""

READS: dict[str, tuple[type[Fact], ...]] = {
    "A": (Invoke, ClassDecl),
    "B": (FieldDecl, ClassDecl),
    "C": (ClassDecl, MethodDecl, Invoke),
    "D": (MethodDecl, ClassDecl, Invoke),
    "E": (Invoke,),
    "F": (Invoke,),
    "G": (Invoke, ClassDecl),
    "H": (MethodDecl,),
    "I": (MethodDecl,),
    "J": (Handler,),
    "K": (FieldDecl, ClassDecl, FieldAccess),
    "L": (FieldDecl, ClassDecl),
    "M": (InnerClass, ClassDecl),
    "N": (Invoke, MethodDecl),
    "O": (MethodDecl, ClassDecl),
}
"""The facts that each analysis reads; the others need not be made of a class file."""


def kinds_read(letters: Iterable[str] = tuple(ANALYSES)) -> tuple[type[Fact], ...]:
    """The facts that some analyses read, each kind once."""
    return tuple(dict.fromkeys(kind for letter in letters for kind in READS[letter]))


def name_of(analysis: Analysis) -> str:
    """The name of an analysis, as FindBugs has it."""
    return analysis.__name__.upper()


def description(analysis: Analysis) -> str:
    """What an analysis finds, in a sentence."""
    return (analysis.__doc__ or "").partition("\n")[0]
