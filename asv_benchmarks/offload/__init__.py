"""Views whose state is on Spark: flushes, hand-overs, and Spark without the engine."""
