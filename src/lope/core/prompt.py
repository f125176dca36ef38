"""What a request begins with: one id per context item, and the spans whose items are embeddings, not words."""

from dataclasses import dataclass

from torch import Tensor

Path = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Span:
    """Context items [start, stop) that carry embeddings [stop - start, d] instead of token embeddings (an image)."""

    start: int
    stop: int
    embeddings: Tensor


@dataclass(frozen=True, eq=False)
class Prompt:
    """`ids` holds one id per context item; inside a span the id is a placeholder."""

    ids: Path
    spans: tuple[Span, ...] = ()

    def text(self) -> Path:
        """The ids that are words: spans are left out."""
        inside = {item for span in self.spans for item in range(span.start, span.stop)}
        return tuple(token for item, token in enumerate(self.ids) if item not in inside) if inside else self.ids
