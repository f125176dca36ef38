"""How many numbers a drafter folder holds: a step of drafting reads each of them once."""

import math

from lope.models.drafter_about import DrafterAbout, shapes


def num_parameters(about: DrafterAbout) -> int:
    """Projection (of the embedding, or of the features), layers, norms, and the head's K rows.

    The target's embedding is not among them: a row of it is looked up.
    """
    return sum(math.prod(shape) for name, shape in shapes(about).items() if name != "kept")
