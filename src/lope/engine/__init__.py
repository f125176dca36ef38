"""The loop over the requests of a round, what it counts, and what it measures of the machine."""
