"""Tables that survive the process: a store has each commit before anybody hears of it.

Lives here:  the protocol of stores and the one of SQLite; the journal that commits are written by;
             rows as plain values, and the schemas by which they come back.
Comes in:    the net changes of each commit, between its two phases.
Goes out:    the rows of tables, when they are made again; what commits there were.
May import:  `storage`, `codegen`, `collections`, `runtime`.
"""
