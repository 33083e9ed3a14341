"""Tables that follow a Postgres server, which is killed: compared with `select *`."""
