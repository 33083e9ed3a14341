"""Languages in which queries are written as text.

Lives here:  SQL and Datalog.
Comes in:    texts.
Goes out:    plans; changes of tables.
May import:  `optimizer`, `engine`, `api`.
"""
