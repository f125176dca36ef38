"""`lope learn`: the learning algorithms on their own benchmarks, all methods together, over many seeds."""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.progress import Progress
from rich.table import Table

from lope.cli.output import complaints, console, print_json
from lope.core.errors import UsageError
from lope.learning import LQ_SYSTEMS
from lope.learning.bandits.experiment import BernoulliExperiment
from lope.learning.lq.experiment import LqExperiment
from lope.learning.mdp.experiment import MdpExperiment
from lope.learning.mdp.mdp_file import MdpFile
from lope.learning.mdp.random_mdp import RandomMDP
from lope.learning.mdp.riverswim import RiverSwim
from lope.learning.result_file import curves, document
from lope.learning.study import Experiment, Study
from lope.learning.trials import CHECKPOINTS, Trials

WIDE = 100_000  # regret from here on is shown with two digits, to keep the table narrow
MDP_METHODS = ("tsde", "lazy", "linear", "ucrl2")
LQ_METHODS = ("psrl_lq", "psrl_lq:growth=false", "psrl_lq:halving=false", "certainty_equivalence", "optimal")
BANDIT_METHODS = ("ucb1", "ucb_tuned", "thompson", "gaussian_thompson", "exp3", "epsilon_greedy")
COLUMNS = 2  # checkpoints shown in the table

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Run the learning algorithms on their own benchmarks and show regret.",
)

Seeds = Annotated[int, typer.Option(help="Independent runs of each method.")]
Steps = Annotated[int, typer.Option(help="Steps of each run.")]
Methods = Annotated[list[str] | None, typer.Option("--method", help="NAME or NAME:setting=value; repeatable.")]
FirstSeed = Annotated[int, typer.Option(help="Seeds are this one and those that follow.")]
Processes = Annotated[int | None, typer.Option(help="Parallel processes; by default one per core.")]
Points = Annotated[int, typer.Option(help="Checkpoints along a run.")]
Out = Annotated[Path | None, typer.Option(help="Write this JSON file, and a plot beside it (.png).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Realised = Annotated[bool, typer.Option(help="Plain sum of costs minus J*, with the luck of the transitions in it.")]
Noise = Annotated[float, typer.Option(help="Above 0: costs are seen with this Gaussian noise and must be learned.")]


@app.command()
def riverswim(
    states: Annotated[int, typer.Option(help="Length of the river.")] = 6,
    variant: Annotated[str, typer.Option(help="tsde (the authors' form) or ucrl.")] = "tsde",
    cost_noise: Noise = 0.0,
    realised: Realised = False,
    method: Methods = None,
    seeds: Seeds = 40,
    steps: Steps = 50_000,
    first_seed: FirstSeed = 0,
    processes: Processes = None,
    points: Points = CHECKPOINTS,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """RiverSwim: a chain in which only persistence pays."""
    experiment = MdpExperiment(RiverSwim(states, variant, cost_noise), realised)
    study = _study(experiment, method or MDP_METHODS, seeds, steps, first_seed, processes, points)
    _report(study, f"RiverSwim ({variant} form, {states} states)", out, as_json)


@app.command("random-mdp")
def random_mdp(
    states: Annotated[int, typer.Option(help="Number of states.")] = 6,
    actions: Annotated[int, typer.Option(help="Number of actions.")] = 2,
    concentration: Annotated[float, typer.Option(help="Dirichlet concentration of the true rows.")] = 0.1,
    cost_noise: Noise = 0.0,
    realised: Realised = False,
    method: Methods = None,
    seeds: Seeds = 40,
    steps: Steps = 50_000,
    first_seed: FirstSeed = 0,
    processes: Processes = None,
    points: Points = CHECKPOINTS,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Random processes, a new one for every seed."""
    experiment = MdpExperiment(RandomMDP(states, actions, concentration, cost_noise), realised)
    study = _study(experiment, method or MDP_METHODS, seeds, steps, first_seed, processes, points)
    _report(study, f"random MDPs ({states} states, {actions} actions)", out, as_json)


@app.command()
def mdp(
    file: Annotated[str, typer.Argument(help='JSON: {"transitions": [S][A][S], "costs" or "rewards": [S][A]}.')],
    cost_noise: Noise = 0.0,
    realised: Realised = False,
    method: Methods = None,
    seeds: Seeds = 40,
    steps: Steps = 50_000,
    first_seed: FirstSeed = 0,
    processes: Processes = None,
    points: Points = CHECKPOINTS,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """A process of your own, from a file."""
    experiment = MdpExperiment(MdpFile(file, cost_noise), realised)
    study = _study(experiment, method or MDP_METHODS, seeds, steps, first_seed, processes, points)
    _report(study, file, out, as_json)


@app.command()
def lq(
    system: Annotated[str, typer.Option(help="public, laplacian, unstable or file:path=FILE (A, B, Q, R).")] = "public",
    realised: Realised = False,
    method: Methods = None,
    seeds: Seeds = 40,
    steps: Steps = 10_000,
    first_seed: FirstSeed = 0,
    processes: Processes = None,
    points: Points = CHECKPOINTS,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Linear-quadratic control of a system whose A and B are not known."""
    experiment = LqExperiment(LQ_SYSTEMS.make(system), realised)
    study = _study(experiment, method or LQ_METHODS, seeds, steps, first_seed, processes, points)
    _report(study, f"linear-quadratic control, {system} system", out, as_json)


@app.command()
def bandit(
    chances: Annotated[str, typer.Option(help="How often each arm pays, separated by commas.")] = "0.6,0.4",
    switch_at: Annotated[int | None, typer.Option(help="Reverse the arms at this step.")] = None,
    method: Methods = None,
    seeds: Seeds = 40,
    steps: Steps = 10_000,
    first_seed: FirstSeed = 0,
    processes: Processes = None,
    points: Points = CHECKPOINTS,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Bernoulli arms; j_star is then the best arm's chance."""
    experiment = BernoulliExperiment(_numbers(chances), switch_at)
    study = _study(experiment, method or BANDIT_METHODS, seeds, steps, first_seed, processes, points)
    _report(study, f"Bernoulli arms {chances}", out, as_json)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise UsageError(f"--chances takes numbers separated by commas, not {text!r}") from None


def _study(
    experiment: Experiment,
    methods: Sequence[str],
    seeds: int,
    steps: int,
    first_seed: int,
    processes: int | None,
    points: int,
) -> Study:
    cores = os.cpu_count() or 1
    return Study(
        experiment, tuple(methods), seeds, steps, first_seed, cores if processes is None else processes, points
    )


def _report(study: Study, title: str, out: Path | None, as_json: bool) -> None:
    """Run the study under a progress bar, write the files asked for, print the result."""
    write = None if out is None else _writer(out)
    began = time.perf_counter()
    with Progress(console=complaints, transient=True, disable=as_json) as bar:
        task = bar.add_task(title, total=study.seeds * len(study.methods))
        trials = study.run(lambda seeds: bar.advance(task, seeds))
    if write is not None:
        write(study, trials, title, time.perf_counter() - began)
    if as_json:
        print_json(curves(study, trials))
    else:
        console.print(_table(study, trials, title))


def _writer(out: Path) -> Callable[[Study, dict[str, Trials], str, float], None]:
    """What writes the files; whatever stands in its way is said before the run, not after it."""
    from lope.learning.plot import plot_regret

    if out.suffix != ".json" or not out.parent.is_dir():
        raise UsageError(f"--out takes the path of a .json file in a folder that exists, not {out}")

    def write(study: Study, trials: dict[str, Trials], title: str, seconds: float) -> None:
        command = shlex.join(["lope", *sys.argv[1:]])
        out.write_text(json.dumps(document(study, trials, seconds, command)) + "\n", encoding="utf-8")
        plot_regret(curves(study, trials), title, out.with_suffix(".png"))

    return write


def _table(study: Study, trials: dict[str, Trials], title: str) -> Table:
    """Mean regret ± standard error at a few checkpoints and the median at the last, a line per method."""
    at = study.at
    shown = sorted({round((index + 1) * len(at) / COLUMNS) - 1 for index in range(COLUMNS)} - {-1})
    first = next(iter(trials.values()))
    table = Table(title=f"{title}, {study.seeds} seeds, J* = {first.optimum.mean():.6f}", box=SIMPLE_HEAD)
    table.add_column("method", overflow="fold")
    for index in shown:
        table.add_column(f"{at[index]:,}", justify="right", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("plans", justify="right", no_wrap=True)
    for method, trial in trials.items():
        cells = [f"{_short(trial.mean[index])} ± {trial.stderr[index]:.2g}" for index in shown]
        table.add_row(method, *cells, _short(float(np.median(trial.regret[:, -1]))), f"{trial.episodes.mean():.0f}")
    return table


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < WIDE else f"{value:.2g}"
