"""Dirichlet draws that stay right for tiny concentrations, where plain gamma draws underflow to 0 / 0."""

import numpy as np
from numpy.typing import NDArray


def sample_dirichlet(concentration: NDArray[np.float64], stream: np.random.Generator) -> NDArray[np.float64]:
    """One draw along the last axis of `concentration` [..., S], all above 0.

    In logarithms: Gamma(a) = Gamma(a + 1) * U^(1 / a) in law (Marsaglia and Tsang 2000, section 6).
    """
    log_gamma = np.log(stream.standard_gamma(concentration + 1))
    log_gamma -= stream.standard_exponential(concentration.shape) / concentration
    log_gamma -= log_gamma.max(axis=-1, keepdims=True)
    weights: NDArray[np.float64] = np.exp(log_gamma)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
