"""Training of a priority network: some graphs a step, Adam, a JSONL log, checkpoints from which it goes on exactly."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lope.core import json_reader
from lope.core.checks import above, at_least
from lope.core.errors import ModelError
from lope.graphs.learned.network import PriorityNetwork
from lope.graphs.learned.problem import Problem
from lope.graphs.learned.reinforce import Reinforce


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast: steps, graphs a step, Adam's rate (cosine, down to a fiftieth of it), gradient clip."""

    num_steps: int = 2000
    graphs_per_step: int = 5
    learning_rate: float = 5e-4
    clip: float = 1.0
    checkpoint_every: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        at_least("num_steps", self.num_steps, 1)
        at_least("graphs_per_step", self.graphs_per_step, 1)
        above("learning_rate", self.learning_rate, 0)
        at_least("checkpoint_every", self.checkpoint_every, 1)

    def rate(self, step: int) -> float:
        """The learning rate of one step."""
        done = min(1.0, step / self.num_steps)
        return self.learning_rate * (0.02 + 0.49 * (1 + float(np.cos(np.pi * done))))


class Trainer:
    """Trains `network` on `problems`; everything it needs to go on lies in `folder`.

    All chance of step k comes from (seed, k), so a run that is stopped and resumed ends as one that was not.
    """

    def __init__(
        self,
        network: PriorityNetwork,
        problems: Sequence[Problem],
        estimator: Reinforce,
        plan: TrainingPlan,
        folder: Path,
    ) -> None:
        self.network, self.problems, self.estimator, self.plan = network, problems, estimator, plan
        self.folder = folder
        self.step = 0
        self.seconds = 0.0
        self.optimizer = torch.optim.Adam(network.parameters(), lr=plan.learning_rate)
        self.best_greedy = [float("nan")] * len(problems)
        self.known_costs = [float(problem.costs(problem.known_order[None])[0]) for problem in problems]
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "state.safetensors").exists():
            self._resume()

    def run(self) -> None:
        """Train to the last step, with a line of log a step and a checkpoint every so often."""
        if self.estimator.baseline == "greedy_rollout" and self.step == 0:
            self.best_greedy = self._greedy_costs()
        with (self.folder / "log.jsonl").open("a") as log:
            while self.step < self.plan.num_steps:
                start = time.perf_counter()
                line = self._one_step()
                self.step += 1
                self.seconds += time.perf_counter() - start
                log.write(json.dumps({**line, "step": self.step, "seconds": round(self.seconds, 2)}) + "\n")
                if self.step % self.plan.checkpoint_every == 0 or self.step == self.plan.num_steps:
                    log.flush()
                    self._compare()
                    self._save()

    def _one_step(self) -> dict[str, float]:
        """Add up the gradients of the graphs of a step, then move; returns what the log keeps, averaged over them."""
        self.optimizer.zero_grad()
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.rate(self.step)
        lines = [self._one_graph(place) for place in range(self.plan.graphs_per_step)]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.plan.clip)
        self.optimizer.step()
        averages = {name: round(float(np.mean([line[name] for line in lines])), 5) for name in lines[0]}
        return {**averages, "norm": round(float(norm), 4)}

    def _one_graph(self, place: int) -> dict[str, float]:
        """Backpropagate one graph of this step; costs are logged over the cost of the graph's known order."""
        number = self.step * self.plan.graphs_per_step + place
        epoch, within = divmod(number, len(self.problems))
        index = int(np.random.default_rng([self.plan.seed, 1, epoch]).permutation(len(self.problems))[within])
        problem = self.problems[index]
        stream = np.random.default_rng([self.plan.seed, 2, number])
        logits = self.network(*problem.inputs.tensors())
        baseline = self.best_greedy[index] if self.estimator.baseline == "greedy_rollout" else None
        rollout = self.estimator.rollout(problem, logits.detach().double().numpy(), stream, baseline)
        logits.backward(torch.from_numpy(rollout.gradient / self.plan.graphs_per_step).to(logits.dtype))
        return {
            "mean": rollout.mean_cost / self.known_costs[index],
            "least": rollout.least_cost / self.known_costs[index],
            "spread": float(logits.detach().std()),
        }

    def _compare(self) -> None:
        """Keep the network as the baseline of `greedy_rollout` where its greedy orders cost less on average."""
        if self.estimator.baseline != "greedy_rollout":
            return
        costs = self._greedy_costs()
        if float(np.mean(costs)) < float(np.mean(self.best_greedy)):
            self.best_greedy = costs

    @torch.no_grad()
    def _greedy_costs(self) -> list[float]:
        found = []
        for problem in self.problems:
            logits = self.network(*problem.inputs.tensors()).double().numpy()
            found.append(float(problem.costs(problem.greedy(logits)[None])[0]))
        return found

    def _save(self) -> None:
        """Network, Adam's moments and counters, written whole or not at all."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors.update({f"adam.{number}.{name}": tensor for name, tensor in state.items()})
        about = {"step": self.step, "seconds": self.seconds, "best_greedy": self.best_greedy}
        partial = self.folder / "state.partial"
        save_file(tensors, partial, metadata={"about": json.dumps(about)})
        partial.replace(self.folder / "state.safetensors")

    def _resume(self) -> None:
        """Go on from the checkpoint. Raises ModelError where it belongs to another network."""
        with safe_open(self.folder / "state.safetensors", "pt") as file:
            about = json_reader.parsed(file.metadata()["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        weights = {name[8:]: tensor for name, tensor in tensors.items() if name.startswith("network.")}
        shapes = {name: tensor.shape for name, tensor in self.network.state_dict().items()}
        if {name: tensor.shape for name, tensor in weights.items()} != shapes:
            raise ModelError(f"{self.folder} holds a checkpoint of another network; train in a new folder")
        self.network.load_state_dict(weights)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam."):
                _, number, moment = name.split(".")
                state.setdefault(int(number), {})[moment] = tensor
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.step, self.seconds, self.best_greedy = about["step"], about["seconds"], about["best_greedy"]
