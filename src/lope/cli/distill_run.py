"""A run on a distilled set as the command line shows it: when it is enough, how far it is, what came of it."""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from lope.cli.long_run import LongRun, time_left
from lope.training.distilled_set import DistilledSet
from lope.training.distiller import Distiller
from lope.training.distiller import Progress as Sofar
from lope.training.replay import Replay


@dataclass(eq=False)
class DistillRun:
    """limit: answer tokens that the set is to have; minutes: of this run. None: no such end."""

    place: DistilledSet
    runner: Distiller | Replay
    limit: int | None
    minutes: float | None
    last: Sofar | None = None

    def __post_init__(self) -> None:
        self._before = self.place.sizes()[2]

    def follow(self, say: Callable[[str], None], *, silent: bool) -> bool:
        """Run it under a progress bar, and `say` what was chosen; whether Ctrl-C ended it."""
        open_k = self.place.manifest.top_k == 0
        try:
            with LongRun(silent=silent) as shown, closing(self._steps()) as steps:
                for progress in steps:
                    self.last = progress
                    shown.show("distilling", self.done(progress), self.words(progress))
        except KeyboardInterrupt:
            return True
        finally:
            about = self.place.manifest
            if open_k and about.top_k and about.outside is not None:
                say(
                    f"the {about.top_k} most probable tokens of each place are kept: {about.outside:.1%} of the "
                    f"probability lies outside, over {about.outside_tokens:,} answer tokens"
                )
        return False

    def done(self, progress: Sofar) -> float:
        """From 0 to 1."""
        shares = [0.0]
        if self.limit is not None:
            shares.append((self._before + progress.tokens) / self.limit)
        if self.minutes is not None:
            shares.append(progress.seconds / (60.0 * self.minutes))
        return min(1.0, max(shares))

    def left(self, progress: Sofar) -> float | None:
        """Seconds; None where they cannot be told yet."""
        each = []
        if self.minutes is not None:
            each.append(60.0 * self.minutes - progress.seconds)
        if self.limit is not None and progress.pace > 0.0:
            each.append((self.limit - self._before - progress.tokens) / progress.pace)
        return max(0.0, min(each)) if each else None

    def words(self, progress: Sofar) -> str:
        """What stands beside the bar."""
        left = self.left(progress)
        clock = "" if left is None else f" · {time_left(left)}"
        unfinished = f" (and {progress.live:,} unfinished)" if progress.live else ""
        return f"{self._before + progress.tokens:,} answer tokens{unfinished} · {progress.pace:.0f} tokens/s{clock}"

    def summary(self) -> dict[str, Any]:
        """The set as it is now, and what this run did. top_k, outside: None where nothing has told them yet."""
        about, last = self.place.manifest, self.last or Sofar()
        sequences, tokens, answers = self.place.sizes()
        measured = last.outside if last.tokens else None
        return {
            "target": about.target,
            "prompts": about.prompts,
            "sequences": sequences,
            "tokens": tokens,
            "answer_tokens": answers,
            "shards": len(self.place.shards),
            "layers": list(about.layers),
            "top_k": about.top_k or None,
            "outside": measured if about.outside is None else about.outside,
            "new_sequences": last.sequences,
            "new_answer_tokens": last.tokens,
            "seconds": last.seconds,
            "tokens_per_second": last.pace,
            "too_long": last.too_long,
            "mended": list(self.place.mended),
            "temperatures": list(about.temperatures),
            "seed": about.seed,
            "dtype": about.dtype,
        }

    def _steps(self) -> Generator[Sofar, None, None]:
        return self.runner.run(self._enough)

    def _enough(self, progress: Sofar) -> bool:
        if self.limit is not None and self._before + progress.tokens >= self.limit:
            return True
        return self.minutes is not None and progress.seconds >= 60.0 * self.minutes
