"""A view of a busy shop that outgrows the process, moves to Spark, and loses its JVM there.

orders stream --feeder--> tables --queries--> views --reader--> screen
                                      |
                                      +--> Spark, once their state is too large
"""
