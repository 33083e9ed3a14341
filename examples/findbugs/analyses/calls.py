"""Analyses that look for calls: each gives rows of `invoke`."""

from __future__ import annotations

from examples.findbugs.access import (
    PUBLIC,
    STATIC,
    is_primitive,
    package,
)
from examples.findbugs.facts import Invoke
from examples.findbugs.keys import of_class, of_method, of_name
from examples.findbugs.reader.opcodes import INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL
from examples.findbugs.tables import Tables
from reactive import Relation

PRIVILEGED = (
    "java/security/PrivilegedAction",
    "java/security/PrivilegedExceptionAction",
)


def bx_boxing_immediately_unboxed_to_perform_coercion(t: Tables) -> Relation[Invoke]:
    """A primitive is boxed only to be unboxed as another type: `new Integer(i).longValue()`."""
    boxing = t.invoke.where(
        lambda s: (
            s.opcode == INVOKESPECIAL
            and len(s.params) == 1
            and is_primitive(s.params[0])
            and s.receiver is not None
            and package(s.receiver) == "java/lang"
        )
    ).semi_join(t.class_decl.where(lambda c: c.major >= 49), left_key=of_class, right_key=of_name)
    unboxing = t.invoke.where(
        lambda v: v.opcode == INVOKEVIRTUAL and not v.params and v.name.endswith("Value")
    )
    return boxing.join(
        unboxing,
        on=lambda s, v: (
            s.cls == v.cls
            and s.method == v.method
            and s.receiver == v.receiver
            and s.next_pc == v.pc
            and s.params[0] != v.ret
        ),
    ).select(lambda s, v: v)


def dm_gc(t: Tables) -> Relation[Invoke]:
    """The garbage collector is called, outside of java.lang."""
    return t.invoke.where(
        lambda i: (
            i.name == "gc"
            and not i.params
            and i.ret == "V"
            and (
                (i.opcode == INVOKESTATIC and i.receiver == "java/lang/System")
                or (i.opcode == INVOKEVIRTUAL and i.receiver == "java/lang/Runtime")
            )
            and not i.cls.startswith("java/lang")
        )
    )


def dm_run_finalizers_on_exit(t: Tables) -> Relation[Invoke]:
    """`runFinalizersOnExit` is called, which is unsafe."""
    return t.invoke.where(
        lambda i: (
            i.name == "runFinalizersOnExit"
            and i.opcode == INVOKESTATIC
            and i.receiver in ("java/lang/System", "java/lang/Runtime")
            and i.params == ("Z",)
            and i.ret == "V"
        )
    )


def dp_do_inside_do_privileged(t: Tables) -> Relation[Invoke]:
    """`setAccessible` is called in a class that is no privileged action."""
    privileged = t.class_decl.where(
        lambda c: PRIVILEGED[0] in c.interfaces or PRIVILEGED[1] in c.interfaces
    )
    return t.invoke.where(
        lambda i: (
            i.name == "setAccessible"
            and i.opcode == INVOKEVIRTUAL
            and i.receiver in ("java/lang/reflect/Field", "java/lang/reflect/Method")
        )
    ).anti_join(privileged, left_key=of_class, right_key=of_name)


def sw_swing_methods_invoked_in_swing_thread(t: Tables) -> Relation[Invoke]:
    """A window is shown or packed by a main method or a benchmark, not by Swing's own thread."""
    shown = t.invoke.where(
        lambda i: (
            i.name in ("show", "pack", "setVisible")
            and i.opcode == INVOKEVIRTUAL
            and i.receiver is not None
            and i.receiver.startswith("javax/swing/")
            and i.params == (("Z",) if i.name == "setVisible" else ())
            and i.ret == "V"
        )
    )
    main = t.method_decl.where(
        lambda m: m.name == "main" and m.access & PUBLIC != 0 and m.access & STATIC != 0
    )
    in_main = shown.semi_join(main, left_key=of_method, right_key=of_method)
    return in_main | shown.where(lambda i: "benchmark" in i.cls.lower())
