"""How the shipped weights were trained: `train_recipe` repeats it, from any checkpoint, on one core.

Graphs for training are never those of a table: the published training sets of JSSP and TPC-H, layered graphs of seed 1.
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from lope.core.errors import SettingError
from lope.graphs.generators.layered import LayeredGraphs
from lope.graphs.learned.features import NUM_SCALARS
from lope.graphs.learned.memory_features import NUM_MEMORY_FEATURES
from lope.graphs.learned.memory_problem import MemoryProblem
from lope.graphs.learned.network import NetworkShape, PriorityNetwork
from lope.graphs.learned.problem import Problem
from lope.graphs.learned.reinforce import Reinforce
from lope.graphs.learned.schedule_problem import ScheduleProblem
from lope.graphs.learned.trainer import Trainer, TrainingPlan
from lope.graphs.tables import read_set


@dataclass(frozen=True)
class Recipe:
    """One setting: sets to train on (as in `lope plan bench`; layered: `nodes:count`), network, estimator, plan."""

    problem: str
    family: str
    sets: tuple[str, ...]
    shape: NetworkShape
    estimator: Reinforce = field(default_factory=Reinforce)
    plan: TrainingPlan = field(default_factory=TrainingPlan)
    decoder: str = "list"

    def problems(self, data: str | None = None) -> list[Problem]:
        """The graphs to train on, as the network reads them."""
        if self.family == "layered":
            sizes = [tuple(map(int, item.split(":"))) for item in self.sets]
            graphs = [graph for nodes, count in sizes for graph in LayeredGraphs(nodes, count, seed=1).graphs()]
            return [MemoryProblem.read(graph) for graph in graphs]
        found: list[Problem] = []
        for name in self.sets:
            graphs, machines = read_set(self.family, name, data)
            assert machines is not None
            types = self.shape.num_types
            found += [ScheduleProblem.read(graph, machines, types, decoder=self.decoder) for graph in graphs]
        return found

    def card(self) -> dict[str, Any]:
        """What the card of the weights says about their training."""
        parts = {"estimator": dataclasses.asdict(self.estimator), "plan": dataclasses.asdict(self.plan)}
        return {"problem": self.problem, "recipe": {"family": self.family, "sets": list(self.sets), **parts}}


RECIPES = {
    "tpch": Recipe(
        "schedule",
        "tpch",
        ("tpch-50-train",),
        NetworkShape(NUM_SCALARS),
        Reinforce(num_samples=1000),
        TrainingPlan(num_steps=1750, graphs_per_step=1, learning_rate=5e-4),
    ),
    "jssp": Recipe(
        "schedule",
        "jssp",
        ("25x20-train",),
        NetworkShape(NUM_SCALARS + 30, 30),
        Reinforce(num_samples=1000),
        TrainingPlan(num_steps=1250, graphs_per_step=1, learning_rate=5e-4),
    ),
    "layered": Recipe(
        "memory",
        "layered",
        ("100:60", "250:90", "500:50"),
        NetworkShape(NUM_MEMORY_FEATURES, num_layers=2, scale=20.0),
        Reinforce(num_samples=256),
        TrainingPlan(num_steps=1250, graphs_per_step=4, learning_rate=8e-4),
    ),
}


def train_recipe(name: str, folder: Path, *, data: str | None = None) -> Trainer:
    """Train to the end, from the checkpoint in `folder` if there is one; the trainer holds the network.

    Raises SettingError on an unknown name.
    """
    if name not in RECIPES:
        raise SettingError(f"recipes are {', '.join(RECIPES)}, not {name!r}")
    recipe = RECIPES[name]
    torch.manual_seed(recipe.plan.seed)
    network = PriorityNetwork(recipe.shape)
    trainer = Trainer(network, recipe.problems(data), recipe.estimator, recipe.plan, folder)
    trainer.run()
    return trainer
