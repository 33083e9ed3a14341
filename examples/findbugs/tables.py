"""The tables of a program: one per kind of fact."""

from __future__ import annotations

from typing import Any

from examples.findbugs import facts
from reactive import Database, Table


class Tables:
    """All tables, by name for queries and by kind of fact for loading.

    Parameters
    ----------
    stored: True if the tables keep their rows. Otherwise rows only flow to the existing views,
        which is all that the analyses need; a view made later is an error.
    """

    def __init__(self, db: Database, *, stored: bool = True) -> None:
        def table(kind: type[Any]) -> Table[Any]:
            return db.table(kind, stored=stored)

        self.class_decl: Table[facts.ClassDecl] = table(facts.ClassDecl)
        self.method_decl: Table[facts.MethodDecl] = table(facts.MethodDecl)
        self.field_decl: Table[facts.FieldDecl] = table(facts.FieldDecl)
        self.code: Table[facts.Code] = table(facts.Code)
        self.handler: Table[facts.Handler] = table(facts.Handler)
        self.inner_class: Table[facts.InnerClass] = table(facts.InnerClass)
        self.enclosing_method: Table[facts.EnclosingMethod] = table(facts.EnclosingMethod)
        self.throws: Table[facts.Throws] = table(facts.Throws)
        self.invoke: Table[facts.Invoke] = table(facts.Invoke)
        self.field_access: Table[facts.FieldAccess] = table(facts.FieldAccess)
        self.type_insn: Table[facts.TypeInsn] = table(facts.TypeInsn)
        self.new_array: Table[facts.NewArray] = table(facts.NewArray)
        self.const_insn: Table[facts.ConstInsn] = table(facts.ConstInsn)
        self.local_load: Table[facts.LocalLoad] = table(facts.LocalLoad)
        self.local_store: Table[facts.LocalStore] = table(facts.LocalStore)
        self.iinc: Table[facts.Iinc] = table(facts.Iinc)
        self.ret: Table[facts.Ret] = table(facts.Ret)
        self.cond_jump: Table[facts.CondJump] = table(facts.CondJump)
        self.goto: Table[facts.Goto] = table(facts.Goto)
        self.jsr: Table[facts.Jsr] = table(facts.Jsr)
        self.table_switch: Table[facts.TableSwitch] = table(facts.TableSwitch)
        self.lookup_switch: Table[facts.LookupSwitch] = table(facts.LookupSwitch)
        self.basic: Table[facts.Basic] = table(facts.Basic)
        self._by_kind: dict[type[facts.Fact], Table[Any]] = {
            made.row_type: made for made in vars(self).values()
        }

    def of(self, kind: type[facts.Fact]) -> Table[Any]:
        """Return the table of a kind of fact."""
        return self._by_kind[kind]
