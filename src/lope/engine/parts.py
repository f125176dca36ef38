"""Which parts an engine is made of, by name; and the engine's parts made from the names."""

from dataclasses import dataclass
from typing import Any

from lope.core.errors import SettingError
from lope.core.protocols import Drafter, Verifier
from lope.drafters import DRAFTERS
from lope.drafters.workshop import Workshop
from lope.models.loaded import LoadedModel
from lope.models.loading import load
from lope.policies import POLICIES
from lope.policies.settings import PolicySettings
from lope.shapes import SHAPES
from lope.stops import STOPS
from lope.verifiers import VERIFIERS
from lope.verifiers.auto import check_pair, choose


@dataclass(frozen=True)
class Parts:
    """Names with settings, as on the command line: `name:setting=value,...`."""

    drafter: str = "ngram"
    shape: str = "chain"
    verifier: str = "auto"
    policy: str = "fixed"
    draft_stop: str = "never"

    def make_drafter(self, target: LoadedModel) -> Drafter[Any, Any]:
        """The drafter, fitted to the target. Raises UsageError where it does not fit."""
        backend = target.backend

        def load_beside(name: str) -> LoadedModel:
            return load(name, dtype=backend.dtype, device=backend.device)

        workshop = Workshop(target, SHAPES.make(self.shape), STOPS.make(self.draft_stop), load_beside)
        drafter: Drafter[Any, Any] = DRAFTERS.make(self.drafter).attach(workshop)
        return drafter

    def make_policy(self) -> PolicySettings:
        """The policy's settings; attached to a calibration they become the policy of one engine."""
        settings: PolicySettings = POLICIES.make(self.policy)
        return settings

    def make_verifier(self, drafter: Drafter[Any, Any], greedy: bool) -> Verifier:
        """What `auto` takes for this drafter, or the named verifier. Raises UsageError if it cannot be lossless."""
        draws = drafter.draws(greedy)
        if self.verifier == "auto":
            return choose(greedy, draws)
        if self.verifier.startswith("auto:"):
            raise SettingError("auto takes no settings")
        verifier: Verifier = VERIFIERS.make(self.verifier)
        check_pair(verifier, draws, greedy)
        return verifier
