"""What a study writes down: the curves, every repeat, and all that is needed to run it again."""

import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lope.learning.study import Study
from lope.learning.trials import Trials
from lope.version import __version__

DIGITS = 6  # of a regret in the file: a thousandth of the smallest standard error we quote


def curves(study: Study, trials: Mapping[str, Trials]) -> dict[str, Any]:
    """{"j_star", "regret": {method: {"mean", "stderr"}}, "at"}; j_star is the mean over seeds where problems differ."""
    first = next(iter(trials.values()))
    return {
        "j_star": float(first.optimum.mean()),
        "regret": {
            method: {"mean": _numbers(trial.mean), "stderr": _numbers(trial.stderr)} for method, trial in trials.items()
        },
        "at": study.at.tolist(),
    }


def document(study: Study, trials: Mapping[str, Trials], seconds: float, command: str) -> dict[str, Any]:
    """`curves`, the final regret of every seed, and where it comes from."""
    return {
        **curves(study, trials),
        "repeats": {
            method: {"final_regret": _numbers(trial.regret[:, -1]), "episodes": trial.episodes.tolist()}
            for method, trial in trials.items()
        },
        "j_star_by_seed": _numbers(next(iter(trials.values())).optimum),
        "settings": {"experiment": type(study.experiment).__name__, **asdict(study)},
        "command": command,
        "seconds": round(seconds, 1),
        "lope_version": __version__,
        "commit": _commit(),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "machine": {"platform": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def _numbers(values: Iterable[float]) -> list[float | None]:
    """Rounded; what is not finite (a lost run, the spread of one run) has no number in JSON."""
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values]


def _commit() -> str | None:
    """The commit of the source tree, or None outside one (an installed wheel)."""
    here = Path(__file__).resolve().parent
    asked = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or None
