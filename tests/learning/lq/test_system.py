"""What a linear system must be, its optimal controller, and the published optimum."""

import json

import numpy as np
import pytest

from lope.core.errors import LopeError
from lope.learning import LQ_SYSTEMS
from lope.learning.lq.system import LinearSystem, controller_of, optimal_cost
from lope.learning.lq.system_file import SystemFile

EYE = np.eye(2)


def test_the_public_setting_has_the_published_optimum() -> None:
    # Our notes, computed from yeoneung/tsld: J* = 7.99194, rho(A) = 0.716, |A - BK| = 0.732.
    system = LQ_SYSTEMS.make("public").build()
    closed = system.state_map - system.input_map @ controller_of(system).gain
    assert optimal_cost(system) == pytest.approx(7.99194, abs=1e-5)
    assert abs(np.linalg.eigvals(system.state_map)).max() == pytest.approx(0.716, abs=5e-4)
    assert np.linalg.norm(closed, 2) == pytest.approx(0.732, abs=5e-4)


def test_the_unstable_systems_are_unstable() -> None:
    # Dean et al. 2018: 1.01 on the diagonal, 0.01 beside it; eigenvalues 1.01 + 0.01 * sqrt(2) * {1, 0, -1}.
    laplacian, unstable = (LQ_SYSTEMS.make(name).build().state_map for name in ("laplacian", "unstable"))
    assert abs(np.linalg.eigvals(laplacian)).max() == pytest.approx(1.01 + 0.01 * np.sqrt(2))
    assert laplacian.tolist() == [[1.01, 0.01, 0], [0.01, 1.01, 0.01], [0, 0.01, 1.01]]
    assert unstable.tolist() == [[2, 0, 0], [4, 2, 0], [0, 4, 2]]


def value_iteration(system: LinearSystem) -> tuple[np.ndarray, np.ndarray]:
    """Gain and value matrix of the finite horizon, run until nothing changes."""
    a, b, value = system.state_map, system.input_map, np.zeros_like(system.state_map)
    for _ in range(3000):
        gain = np.linalg.solve(system.input_cost + b.T @ value @ b, b.T @ value @ a)
        closed = a - b @ gain
        value = system.state_cost + gain.T @ system.input_cost @ gain + closed.T @ value @ closed
    return gain, value


@pytest.mark.parametrize("name", ["public", "laplacian", "unstable"])
def test_the_controller_is_that_of_the_long_horizon(name: str) -> None:
    system = LQ_SYSTEMS.make(name).build()
    gain, value = value_iteration(system)
    found = controller_of(system)
    assert found.gain == pytest.approx(gain, abs=1e-9)
    assert found.riccati == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_noise_scales_the_optimum() -> None:
    system = LQ_SYSTEMS.make("public").build()
    louder = LinearSystem(system.state_map, system.input_map, system.state_cost, system.input_cost, noise=3.0)
    assert optimal_cost(louder) == pytest.approx(9 * optimal_cost(system))


@pytest.mark.parametrize(
    ("a", "b", "q", "r", "message"),
    [
        ([[1.1, 0], [0, 0.5]], [[0.0], [1.0]], EYE, [[1.0]], "cannot be stabilised"),
        ([[1.0, 0], [0, 0.5]], [[0.0], [1.0]], EYE, [[1.0]], "cannot be stabilised"),
        ([[1.1, 0], [0, 0.5]], EYE, [[0, 0], [0, 1.0]], EYE, "no cost"),
        (EYE, np.ones((3, 2)), EYE, EYE, "input_map must have shape"),
        (np.ones((2, 3)), EYE, EYE, EYE, "state_map must have shape"),
        (EYE, EYE, np.eye(3), EYE, "state_cost must have shape"),
        (EYE, EYE, EYE, [[1.0, 0.5], [0.0, 1.0]], "input_cost must be symmetric"),
        (EYE, EYE, EYE, [[1.0, 0], [0, 0]], "input_cost must be positive definite"),
        (EYE, EYE, -EYE, EYE, "state_cost must be positive semidefinite"),
        ([[np.nan, 0], [0, 1]], EYE, EYE, EYE, "NaN"),
        ([[1.0], [2.0, 3.0]], EYE, EYE, EYE, "rectangular"),
        (1.0, EYE, EYE, EYE, "must be a matrix"),
        (EYE, EYE, EYE, np.ones((2, 3)), "input_cost must be symmetric"),
    ],
)
def test_bad_systems_are_named(a, b, q, r, message: str) -> None:
    with pytest.raises(LopeError, match=message):
        LinearSystem(a, b, q, r)


def test_a_mode_that_decays_by_itself_need_not_be_reached() -> None:
    system = LinearSystem([[0.9, 0], [0, 0.5]], [[0.0], [1.0]], EYE, [[1.0]])
    gain, _ = value_iteration(system)
    assert controller_of(system).gain == pytest.approx(gain, abs=1e-9)


def test_a_system_from_a_file(tmp_path) -> None:
    path = tmp_path / "system.json"
    path.write_text(json.dumps({"A": [[0.5]], "B": [[1]], "Q": [[1]], "R": [[1]], "noise": 2}))
    system = SystemFile(str(path)).build()
    assert (system.state_map.item(), system.noise) == (0.5, 2.0)
    for text in ("", "{}", '{"A": [[1]]}', '{"A": [[1]], "B": [[1]], "Q": [[1]], "R": [[1]], "noise": "loud"}'):
        path.write_text(text)
        with pytest.raises(LopeError, match=r"system\.json"):
            SystemFile(str(path)).build()
    with pytest.raises(LopeError, match="there is no file"):
        SystemFile(str(tmp_path / "none")).build()
