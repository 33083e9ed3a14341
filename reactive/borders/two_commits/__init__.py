"""Joint commits of this database and a SQL database.

Lives here:  the transaction that commits both, its participants, the meaning of errors at COMMIT,
             and the tables that are read again after an unknown outcome.
Comes in:    a session or connection of the user's; `reread=` of tables.
Goes out:    both commits, or neither; errors that say which, or that the outcome is unknown.
May import:  `engine`. It imports no driver: the user has imported the driver of the given object.
"""
