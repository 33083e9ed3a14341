"""Tables that survive the process: by default, a store has each commit before anybody sees it.

Lives here:  the protocol of stores and its implementations; the journal that writes commits;
             rows as plain values, and the schemas that decode them.
Comes in:    the net changes of each commit, between its two phases.
Goes out:    the stored rows, when tables are created again; the history of commits.
May import:  `storage`, `codegen`, `collections`, `runtime`.
"""
