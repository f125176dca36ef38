"""Markov decision processes with unknown transitions: environments, learners, the average-cost solve, regret."""
