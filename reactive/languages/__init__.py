"""Languages of textual queries.

Lives here:  SQL and Datalog.
Comes in:    texts.
Goes out:    plans; changes of tables.
May import:  `optimizer`, `engine`, `api`.
"""
