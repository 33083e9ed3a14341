"""Datalog: a program's text as plans.

Lives here:  the parser of a program, its checks, and its translation, stratum after stratum.
Comes in:    the text of a program, in the core of Soufflé's language.
Goes out:    relations by name.
May import:  `optimizer`, `engine`, `api`.
"""
