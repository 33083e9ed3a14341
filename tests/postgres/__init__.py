"""Tables that follow a Postgres server, which is killed: against what `select *` gives."""
