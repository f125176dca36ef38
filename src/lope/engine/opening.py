"""`lope.load`: one call from a model's name to an engine."""

import os

import torch

from lope.core import checks
from lope.engine.default_drafter import DefaultDrafter
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loading import load as load_model

# more threads than cores wait for each other: thousands of them hold up the whole machine
_MOST_THREADS = 4
# two tokens deep: where a row of a pass has its price, deeper drafts lose more than they gain until costs are known
UNCALIBRATED = "fixed:depth=2"


def load(
    model: str = "smollm2",
    *,
    drafter: str | None = None,
    shape: str | None = None,
    verifier: str = "auto",
    policy: str | None = None,
    draft_stop: str = "never",
    dtype: str = "auto",
    device: str = "cpu",
    threads: int | None = None,
    exact: bool | None = None,
    on_draft_error: str = "fail",
    cache_dequantised: bool = False,
    progress: bool = True,
) -> Engine:
    """Load a model with a drafter beside it.

    model:      `smollm2`, a Hugging Face folder, a GGUF file or a hub name; `hf:` before it: run by transformers.
    drafter, shape, verifier, policy, draft_stop: parts by name with settings; `lope list` shows them all.
    drafter:    None: `ngram`, and where the text does not repeat itself the fastest of the drafters that are shipped
                for the model, if this machine has been calibrated with one and it pays (`hybrid`).
    policy:     None: `calibrated` where this machine has been calibrated for the model (`lope calibrate`) with the
                drafter, else the whole `shape` where one is named, else a short fixed budget; `fixed` where `hybrid`
                was chosen. Loading itself never measures.
    exact:      a token's logits have the same bits in any pass, so that the answer with speculation is the plain one,
                bit for bit. None: wherever the backend can (docs/architecture.md says what it costs).
    threads:    of torch, for the whole process; None leaves them.
    Raises LopeError, one clear line, for anything that cannot be done.
    """
    if threads is not None:
        set_threads(threads)
    loaded = load_model(model, dtype=dtype, device=device, cache_dequantised=cache_dequantised, progress=progress)
    if exact is None:
        exact = loaded.backend.can_be_exact
    chosen = DefaultDrafter.of(loaded, exact) if drafter is None else DefaultDrafter(drafter)
    unknown = UNCALIBRATED if shape is None else "fixed"  # who names a shape wants all of it
    policy = policy or chosen.policy
    parts = Parts(chosen.drafter, shape or chosen.shape, verifier, policy or unknown, draft_stop)
    engine = Engine(loaded, parts, exact=exact, on_draft_error=on_draft_error)
    if policy is None and engine.calibration is not None:
        return engine.calibrated()
    return engine


def set_threads(threads: int) -> None:
    """Set torch's threads, for the whole process. Raises SettingError for less than one and for thousands."""
    checks.between("threads", threads, 1, _MOST_THREADS * (os.cpu_count() or 1))
    torch.set_num_threads(threads)
