"""A commit of this database and one of a SQL database, made as one.

Lives here:  the transaction that commits both, what commits with it, what an error at COMMIT means,
             and the tables that are to be read again as nobody knows what became of it.
Comes in:    a session or connection of the user's; `reread=` of tables.
Goes out:    both commits, or neither; errors that say which it is, or that nobody knows.
May import:  `engine`. It imports no driver: what is given has been imported by the user.
"""
