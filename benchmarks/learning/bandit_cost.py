"""What a bandit costs in the form that the decoding loop calls: CPU microseconds of choose + learn, a step and an arm.

usage: python benchmarks/learning/bandit_cost.py [STEPS] [--json]
"""

import json
import sys
import time

import numpy as np

from lope.learning import BANDITS

ARMS = (2, 4, 8, 16)
REPEATS = 15


def seconds_of(method: str, num_arms: int, steps: int) -> float:
    """CPU seconds of the quickest of a few runs of `steps` rounds: the least disturbed one, on a shared machine."""
    rewards = np.random.default_rng(0).random(steps).round(2).tolist()
    best = float("inf")
    for seed in range(REPEATS):
        bandit = BANDITS.make(method).open(num_arms, seed)
        began = time.process_time()
        for reward in rewards:
            bandit.learn(bandit.choose(), reward)
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    """Print one line per method."""
    words = [word for word in sys.argv[1:] if word != "--json"]
    steps = int(words[0]) if words else 10_000
    cost = {name: {arms: seconds_of(name, arms, steps) / steps * 1e6 for arms in ARMS} for name in BANDITS}
    if "--json" in sys.argv:
        print(json.dumps({"steps": steps, "microseconds_per_step": cost}))
        return
    print(f"{steps:,} steps, CPU microseconds of choose + learn (per arm)")
    for name, row in cost.items():
        print(f"{name:18s}", "  ".join(f"{arms:2d} arms {row[arms]:6.2f} ({row[arms] / arms:4.2f})" for arms in ARMS))


if __name__ == "__main__":
    main()
