"""REINFORCE points where the expected cost falls, and a run that was stopped ends as one that was not."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lope.core.errors import LopeError, UsageError
from lope.graphs.graph import Floats, Graph, Ints
from lope.graphs.learned.features import NUM_SCALARS
from lope.graphs.learned.memory_features import NUM_MEMORY_FEATURES
from lope.graphs.learned.memory_problem import MemoryProblem
from lope.graphs.learned.network import NetworkShape, PriorityNetwork
from lope.graphs.learned.plackett_luce import log_probabilities
from lope.graphs.learned.reinforce import Reinforce
from lope.graphs.learned.schedule_problem import ScheduleProblem
from lope.graphs.learned.trainer import Trainer, TrainingPlan
from lope.graphs.schedules.machines import Machines

LOGITS = np.array([0.5, -0.3, 0.1, 0.8])


class TableProblem:
    """Four nodes; the cost of an order is a number from a table, so that the expected cost is a sum of 24 terms."""

    def __init__(self) -> None:
        self.orders = np.array(list(itertools.permutations(range(4))))
        self.table = dict(zip(map(tuple, self.orders.tolist()), np.random.default_rng(3).random(24) * 9, strict=True))
        graph = Graph.build([], num_nodes=4, durations=[1, 1, 1, 1])
        self.drawn = ScheduleProblem.read(graph, Machines((1,)), 0)
        self.inputs, self.known_order = self.drawn.inputs, self.drawn.known_order
        self.sample, self.greedy, self.score = self.drawn.sample, self.drawn.greedy, self.drawn.score

    def costs(self, orders: Ints) -> Floats:
        return np.array([self.table[tuple(order)] for order in orders.tolist()])

    def expected_cost(self, logits: Floats) -> float:
        return float(np.exp(log_probabilities(logits, self.orders)) @ self.costs(self.orders))


@pytest.mark.parametrize("baseline", ["standardised", "greedy_rollout"])
def test_the_gradient_is_that_of_the_expected_cost_over_its_deviation(baseline: str) -> None:
    problem = TableProblem()
    exact = np.zeros(4)
    for node in range(4):
        step = np.zeros(4)
        step[node] = 1e-5
        exact[node] = (problem.expected_cost(LOGITS + step) - problem.expected_cost(LOGITS - step)) / 2e-5
    chances = np.exp(log_probabilities(LOGITS, problem.orders))
    costs = problem.costs(problem.orders)
    deviation = np.sqrt(chances @ (costs - chances @ costs) ** 2)
    estimator = Reinforce(200_000, baseline, penalty=0.0)
    found = estimator.rollout(problem, LOGITS, np.random.default_rng(0), greedy_cost=4.0).gradient
    assert found == pytest.approx(exact / deviation, abs=0.02)
    assert np.abs(exact / deviation).max() > 0.1


def test_standardised_costs_have_mean_zero_and_deviation_one_unless_all_are_equal() -> None:
    found = Reinforce().advantages(np.array([3.0, 5.0, 10.0]))
    assert (found.mean(), found.std()) == pytest.approx((0, 1))
    assert Reinforce().advantages(np.array([1.0, 1.1])).tolist() == pytest.approx([-0.5, 0.5])
    assert Reinforce().advantages(np.array([7.0, 7.0])).tolist() == [0, 0]


def test_the_penalty_pulls_logits_to_zero() -> None:
    problem = TableProblem()
    gradients = [
        Reinforce(50, penalty=penalty).rollout(problem, LOGITS, np.random.default_rng(0)).gradient
        for penalty in (0.0, 0.001)
    ]
    # c · d/dlogit of (1/n) Σ logit² = 2 c logit / n.
    assert gradients[1] - gradients[0] == pytest.approx(0.001 * 2 * LOGITS / 4)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="standardised or greedy_rollout"):
        Reinforce(baseline="none")
    with pytest.raises(UsageError, match="num_samples"):
        Reinforce(1)
    with pytest.raises(UsageError, match="greedy order"):
        Reinforce(baseline="greedy_rollout").advantages(np.ones(3))
    with pytest.raises(UsageError, match="learning_rate"):
        TrainingPlan(learning_rate=0)


def small_network(size: int, scale: float = 6.0) -> PriorityNetwork:
    torch.manual_seed(0)
    return PriorityNetwork(NetworkShape(size, width=16, num_layers=1, head_width=4, scale=scale))


def two_schedules() -> list[ScheduleProblem]:
    found = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        edges = [(i, j) for i in range(12) for j in range(i + 1, 12) if rng.random() < 0.15]
        graph = Graph.build(edges, num_nodes=12, durations=rng.integers(1, 9, 12), resources=rng.integers(1, 4, 12))
        found.append(ScheduleProblem.read(graph, Machines((4,)), 0))
    return found


@pytest.mark.parametrize("baseline", ["standardised", "greedy_rollout"])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path: Path, baseline: str) -> None:
    problems, estimator = two_schedules(), Reinforce(16, baseline)
    plan = TrainingPlan(num_steps=6, graphs_per_step=2, checkpoint_every=3)
    straight = Trainer(small_network(NUM_SCALARS), problems, estimator, plan, tmp_path / "straight")
    straight.run()
    stopped = Trainer(small_network(NUM_SCALARS), problems, estimator, plan, tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        stop_after(stopped, 4)
    resumed = Trainer(small_network(NUM_SCALARS), problems, estimator, plan, tmp_path / "stopped")
    assert resumed.step == 3
    resumed.run()
    for name, tensor in straight.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[name])
    lines = [json.loads(line) for line in (tmp_path / "straight" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert all(line["least"] <= line["mean"] for line in lines)


def stop_after(trainer: Trainer, steps: int) -> None:
    """Run, and interrupt in the step after `steps`."""
    one_step = trainer._one_step

    def counted() -> dict[str, float]:
        if trainer.step == steps:
            raise KeyboardInterrupt
        return one_step()

    trainer._one_step = counted
    trainer.run()


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    problems, plan = two_schedules(), TrainingPlan(num_steps=1, checkpoint_every=1)
    Trainer(small_network(NUM_SCALARS), problems, Reinforce(4), plan, tmp_path).run()
    torch.manual_seed(0)
    other = PriorityNetwork(NetworkShape(NUM_SCALARS, width=32, num_layers=1))
    with pytest.raises(LopeError, match="another network"):
        Trainer(other, problems, Reinforce(4), plan, tmp_path)


def test_training_unlearns_a_wrong_warm_start(tmp_path: Path) -> None:
    # One long chain and many short nodes on one machine of two: the start (scale -6) puts the chain last.
    graph = Graph.build([(0, 1), (1, 2)], num_nodes=9, durations=[4, 4, 4, *[2] * 6])
    problem = ScheduleProblem.read(graph, Machines((2,)), 0)
    plan = TrainingPlan(num_steps=40, graphs_per_step=1, learning_rate=0.02, checkpoint_every=40)
    trainer = Trainer(small_network(NUM_SCALARS, -6.0), [problem], Reinforce(64), plan, tmp_path)
    trainer.run()
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["mean"] < 1.05 < 1.3 < lines[0]["mean"]


def test_training_for_memory_runs_the_same_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.build([(0, v) for v in range(1, 9)], num_nodes=9, output_bytes=rng.integers(1, 9, 9))
    plan = TrainingPlan(num_steps=2, graphs_per_step=1, checkpoint_every=2)
    trainer = Trainer(small_network(NUM_MEMORY_FEATURES), [MemoryProblem.read(graph)], Reinforce(8), plan, tmp_path)
    trainer.run()
    assert trainer.step == 2
