"""What is accepted and what is emitted."""

from dataclasses import dataclass

from lope.core.prompt import Path


@dataclass(frozen=True)
class Verdict:
    """The accepted path and the emitted tokens: those of the path and one more (the correction, or the bonus).

    path:   node numbers from the root's child downwards.
    tokens: len(path) + 1 ids. A session accepts more (text that was never drafted); ((), ()) commits nothing,
            and closes a pass that only ran a slice of a long prompt.
    """

    path: Path
    tokens: Path

    def cut(self, count: int) -> "Verdict":
        """The verdict with only its first `count` >= 1 tokens: the last one is committed as text, not as a node."""
        assert count >= 1, "a verdict keeps at least one token"
        return self if count >= len(self.tokens) else Verdict(self.path[: count - 1], self.tokens[:count])


NOTHING = Verdict((), ())
