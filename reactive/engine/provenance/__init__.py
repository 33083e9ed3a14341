"""Why a row is in a query: how each node makes it, and the lowest proof of it from table rows."""
