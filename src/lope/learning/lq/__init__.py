"""Linear-quadratic control with unknown dynamics: systems, learners, regret."""
