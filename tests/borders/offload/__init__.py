"""Parts of queries that run elsewhere, here in memory: the engine without Spark."""
