"""A sampler for checks on tables: the same few rows are asked for again and again."""

from collections.abc import Sequence

from lope.core.prompt import Path
from lope.core.protocols import Sampler
from lope.core.rows import Rows, stack


class RememberingSampler:
    """The pipeline, each of its few answers computed once: asked 10,000 times of 100 rows, it is most of the work.

    A row is known by its own values and by the tokens before it, so that a loop that mixes rows up is found out.
    """

    def __init__(self, inner: Sampler, words: Path, known: dict[tuple[Path, bytes], Rows]) -> None:
        self._inner = inner
        self._words = words
        self._known = known
        self.greedy = inner.greedy
        self.needs = inner.needs

    @property
    def length(self) -> int:
        """How many items have been committed."""
        return self._inner.length

    def processed(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """As the pipeline does it."""
        return self._inner.processed(logits, paths)

    def filtered(self, logits: Rows, paths: Sequence[Path]) -> Rows:
        """As the pipeline does it, the first time."""
        rows = [self._row(logits.select([row]), path) for row, path in enumerate(paths)]
        return rows[0] if len(rows) == 1 else stack(rows)

    def commit(self, tokens: Path) -> None:
        """Move the root."""
        self._inner.commit(tokens)
        self._words += tokens

    def fork(self) -> "RememberingSampler":
        """A copy at the same root."""
        return RememberingSampler(self._inner.fork(), self._words, self._known)

    def _row(self, logits: Rows, path: Path) -> Rows:
        name = self._words + path, logits.values.numpy().tobytes()
        if name not in self._known:
            filtered = self._inner.filtered(logits, [path])
            self._known[name] = Rows(filtered.dense(0)[None], None, filtered.size, 0.0)
        return self._known[name]
