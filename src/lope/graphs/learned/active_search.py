"""Active search: go on learning on the one graph that is to be solved (Bello et al. 2017, arXiv 1611.09940).

The policy here is one logit a node, so the logits themselves are moved, from where the network put them; the network
runs once. Each step is one REINFORCE step of Adam, and the best order ever sampled is kept.
"""

import numpy as np
import torch

from lope.graphs.graph import Floats, Ints
from lope.graphs.learned.problem import Problem
from lope.graphs.learned.reinforce import Reinforce


def active_search(
    problem: Problem, logits: Floats, *, steps: int, rate: float, samples: int, seed: int
) -> tuple[Ints, Floats]:
    """The best order [n] of `steps` rounds of `samples` orders, and the logits [n] at the end."""
    estimator = Reinforce(samples, penalty=0.0)
    moved = torch.nn.Parameter(torch.from_numpy(logits.copy()))
    optimizer = torch.optim.Adam([moved], lr=rate, betas=(0.9, 0.99))
    best, least = problem.greedy(logits), np.inf
    for step in range(steps):
        values: Floats = moved.detach().numpy().copy()
        rollout = estimator.rollout(problem, values, np.random.default_rng([seed, step]))
        if rollout.least_cost < least:
            best, least = rollout.best_order, rollout.least_cost
        moved.grad = torch.from_numpy(rollout.gradient)
        optimizer.step()
    return best, moved.detach().numpy().copy()
