"""A linear system with quadratic costs, checked when it is made, and its optimal controller."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lope.core.checks import above
from lope.core.errors import UsageError

try:
    import scipy.linalg
except ModuleNotFoundError as error:
    raise UsageError(f"control needs {error.name}, which is not installed here: pip install 'lope[learn]'") from None

Matrix = NDArray[np.float64]
SYMMETRY = 1e-9  # a matrix written with ten decimals still passes
RANK_TOLERANCE = 1e-9  # singular values below this are zero: the mode cannot be moved within float64 and a horizon


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """x' = A x + B u + w, w ~ N(0, noise^2 I); cost x.Qx + u.Ru (Ouyang, Gagrani, Jain 2017, arXiv:1709.04047).

    state_map: A, [n, n]. input_map: B, [n, m]. state_cost: Q, [n, n], symmetric, at least 0. input_cost: R, [m, m],
    symmetric, above 0. Raises UsageError for wrong shapes or costs, and where (A, B) cannot be stabilised or a mode
    that does not decay is free of cost: no average cost is then optimal. An uncontrollable mode that decays is fine.
    """

    state_map: Matrix
    input_map: Matrix
    state_cost: Matrix
    input_cost: Matrix
    noise: float = 1.0

    def __post_init__(self) -> None:
        for name in ("state_map", "input_map", "state_cost", "input_cost"):
            object.__setattr__(self, name, _matrix(name, getattr(self, name)))
        above("noise", self.noise, 0.0)
        size, inputs = self.num_states, self.num_inputs
        for name, shape in (("state_map", (size, size)), ("input_map", (size, inputs)), ("state_cost", (size, size))):
            if getattr(self, name).shape != shape:
                raise UsageError(f"{name} must have shape {list(shape)}, not {list(getattr(self, name).shape)}")
        for name, low in (("state_cost", -SYMMETRY), ("input_cost", SYMMETRY)):
            cost = getattr(self, name)
            if cost.shape[0] != cost.shape[1] or abs(cost - cost.T).max() > SYMMETRY:
                raise UsageError(f"{name} must be symmetric")
            if np.linalg.eigvalsh(cost).min() < low:
                raise UsageError(f"{name} must be positive {'semi' if low < 0 else ''}definite")
        if not _reaches_every_lasting_mode(self.state_map, self.input_map):
            raise UsageError("(A, B) cannot be stabilised: the input does not reach a mode that does not decay")
        if not _reaches_every_lasting_mode(self.state_map.T, self.state_cost):
            raise UsageError("a mode that does not decay has no cost (A, Q is not detectable)")

    @property
    def num_states(self) -> int:
        """n."""
        return len(self.state_map)

    @property
    def num_inputs(self) -> int:
        """m."""
        return len(self.input_cost)


@dataclass(frozen=True, eq=False)
class Controller:
    """u = -gain x. gain: K, [m, n]. riccati: S, [n, n]; the average cost under noise sigma is sigma^2 tr S."""

    gain: Matrix
    riccati: Matrix


def optimal_controller(state_map: Matrix, input_map: Matrix, state_cost: Matrix, input_cost: Matrix) -> Controller:
    """K = (R + B'SB)^-1 B'SA with S from the discrete algebraic Riccati equation.

    Raises numpy's LinAlgError where there is no stabilising solution within float64.
    """
    riccati = scipy.linalg.solve_discrete_are(state_map, input_map, state_cost, input_cost)
    weight = input_cost + input_map.T @ riccati @ input_map
    gain = np.linalg.solve(weight, input_map.T @ riccati @ state_map)
    return Controller(np.asarray(gain, dtype=np.float64), np.asarray(riccati, dtype=np.float64))


def controller_of(system: LinearSystem) -> Controller:
    """The optimal controller of a known system."""
    return optimal_controller(system.state_map, system.input_map, system.state_cost, system.input_cost)


def optimal_cost(system: LinearSystem) -> float:
    """J* = noise^2 tr S, the least average cost per step."""
    return float(system.noise**2 * np.trace(controller_of(system).riccati))


def _matrix(name: str, values: ArrayLike) -> Matrix:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a rectangular table of numbers") from None
    if matrix.ndim != 2 or matrix.size == 0:
        raise UsageError(f"{name} must be a matrix, not of shape {list(matrix.shape)}")
    if not np.isfinite(matrix).all():
        raise UsageError(f"{name} must be finite numbers; there is a NaN or an infinity in it")
    matrix.setflags(write=False)
    return matrix


def _reaches_every_lasting_mode(state_map: Matrix, input_map: Matrix) -> bool:
    """Popov-Belevitch-Hautus: [lambda I - A, B] has full rank at every eigenvalue of size at least 1."""
    size = len(state_map)
    lasting = [value for value in np.linalg.eigvals(state_map) if abs(value) >= 1]
    tests = [np.hstack([value * np.eye(size) - state_map, input_map]) for value in lasting]
    return all(np.linalg.svd(test, compute_uv=False)[size - 1] > RANK_TOLERANCE for test in tests)
