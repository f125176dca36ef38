"""`lope bench speed` without its command line: open the systems, run what the results lack, summarise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from lope.bench import machine
from lope.bench.configuration import Configuration, Lineup
from lope.bench.costs import costs_of
from lope.bench.ours import OurSystem
from lope.bench.peers import PEERS
from lope.bench.peers.files import model_files
from lope.bench.peers.system import PeerPlace, open_peer
from lope.bench.record import Row
from lope.bench.report.page import Page
from lope.bench.results_file import NAME, ResultsFile
from lope.bench.runner import Runner
from lope.bench.suite import Item, Suite
from lope.bench.summary import Summary
from lope.bench.system import System
from lope.core import checks
from lope.core.claimed_folder import ClaimedFolder
from lope.core.errors import UnknownPartError, UsageError
from lope.core.sampling import Sampling
from lope.core.whole_file import write_whole
from lope.engine.engine import Engine
from lope.engine.opening import load
from lope.models.cache_folder import CacheFolder


@dataclass(frozen=True)
class SpeedSettings:
    """One run. The names are those of the command line.

    suite:   a JSON-lines file, None for the built-in one. per_category: its first so many prompts of each category.
    configs: our systems as text, the first is the reference; none: plain and ngram. against: peers by name.
    temperature: of every answer, 0 is greedy; above it systems say different things, so agreement tells nothing.
    seed:    of the order of the prompts, and of what is drawn.
    assistant: a smaller model's folder, for the peers that can use one. peer_timeout: seconds one answer may take.
    resume:  go on with the results in `out`; False begins anew.
    """

    out: Path
    suite: Path | None = None
    per_category: int | None = None
    max_new_tokens: int = 64
    configs: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    model: str = "smollm2"
    dtype: str = "auto"
    device: str = "cpu"
    threads: int | None = None
    exact: bool | None = None
    temperature: float = 0.0
    seed: int = 0
    assistant: Path | None = None
    peer_timeout: float = 300.0
    resume: bool = True
    progress: bool = True

    def __post_init__(self) -> None:
        checks.at_least("max_new_tokens", self.max_new_tokens, 1)
        checks.at_least("seed", self.seed, 0)
        Sampling(temperature=self.temperature)
        checks.above("peer_timeout", self.peer_timeout, 0)
        for name in self.against:
            if name not in PEERS:
                raise UnknownPartError(f"no peer {name!r} (there are: {', '.join(PEERS)})")
        if self.against and self.device != "cpu":
            raise UsageError(f"peers are run on the CPU: leave out --against, or --device {self.device}")
        if self.against and self.temperature:
            raise UsageError(f"peers are run greedily: leave out --against, or --temperature {self.temperature:g}")

    def read_suite(self) -> Suite:
        """The prompts of the run. Raises UsageError for a suite that is none."""
        suite = Suite.mini() if self.suite is None else Suite.read(self.suite)
        return suite if self.per_category is None else suite.first_of_each(self.per_category)


class SpeedRun:
    """A run that is ready: iterate `rows`, then `finish`. Close it whatever happens. engines: ours, by name."""

    def __init__(self, settings: SpeedSettings, say: Callable[[str], None]) -> None:
        """Load the model and open all systems. say: told one line about everything that is left out.

        Raises LopeError for whatever cannot be done, before anything is measured.
        """
        self.settings = settings
        self._say = say
        self.systems: list[System] = []
        self.engines: dict[str, Engine] = {}
        lineup = Lineup.of(list(settings.configs))
        engines = open_engines(lineup, settings)
        suite, left_out = _fitting(settings.read_suite(), engines[0], settings.max_new_tokens)
        head = _head(settings, suite, lineup, engines[0], left_out)
        self._folder = ClaimedFolder(settings.out)
        self.results = ResultsFile(settings.out / NAME, head)
        self._suite = suite
        for configuration, engine in zip(lineup.configurations, engines, strict=True):
            self.systems.append(OurSystem(configuration.name, engine, settings.temperature, settings.seed))
            self.engines[configuration.name] = engine
        try:
            if settings.resume:
                self.results.take_over()
            self.results.sessions.append(machine.session())
            for words in left_out:
                self._note(words)
            self._open_peers(engines[0])
            self.results.save()
        except BaseException:
            self.close()
            raise
        needed = frozenset({lineup.reference, lineup.plain, lineup.again})
        self._runner = Runner(self.systems, suite, settings.max_new_tokens, settings.seed, needed, self._note)

    @property
    def finished(self) -> int:
        """Rows that are there."""
        return len(self.results.rows)

    @property
    def total(self) -> int:
        """Rows that there are to be."""
        planned = {(item.id, system.name) for item, _, system in self._runner.schedule()}
        return len(planned | {row.key for row in self.results.rows})

    def rows(self) -> Iterator[Row | None]:
        """Run what is lacking; each row is safe on the disk when it comes. None where one was left out."""
        return self._runner.run(self.results)

    def finish(self) -> Summary:
        """Write the report of all rows there are; what they say. Raises RunError where the disk is full."""
        costs = [costs_of(name, engine) for name, engine in self.engines.items() if engine.parts.drafter != "none"]
        self.results.head["calibration"] = [found for found in costs if found is not None]
        self.results.save()
        document = self.results.document()
        write_whole(self.report, Page(document).show())
        return Summary.of_document(document)

    @property
    def report(self) -> Path:
        """The report's file."""
        return self.settings.out / "report.html"

    def close(self) -> None:
        """End all processes, and let other runs have the folder."""
        for system in self.systems:
            system.close()
        self._folder.release()

    def _open_peers(self, engine: Engine) -> None:
        if not self.settings.against:
            return
        settings = self.settings
        longest = max(needed_context(item, engine, settings.max_new_tokens) for item in self._suite.items)
        place = PeerPlace(
            files=model_files(settings.model, engine.model.backend.dtype),
            threads=torch.get_num_threads(),
            dtype=engine.model.backend.dtype,
            context=min(engine.model.backend.context, -(-longest // 256) * 256 + 256),
            assistant=settings.assistant,
            scratch=CacheFolder.default().root / "peers" / "models",
            logs=settings.out / "peers",
            timeout=settings.peer_timeout,
        )
        for name in settings.against:
            variants = [variant.name for variant in PEERS[name].variants]
            done = {v: None for v in variants if all(self.results.has(item.id, v) for item in self._suite.items)}
            for system, versions in open_peer(PEERS[name], place, engine.model, self._note, done):
                self.systems.append(system)
                self.results.join({"name": system.name, "kind": "peer", "how": name, "versions": versions})

    def _note(self, words: str) -> None:
        self.results.sessions[-1]["notes"].append(words)
        self._say(words)


def open_engines(lineup: Lineup, settings: SpeedSettings) -> list[Engine]:
    """One engine a configuration, all over the weights of the first."""
    first, *others = lineup.configurations
    engine = load(
        settings.model,
        drafter=first.parts.drafter,
        shape=first.parts.shape,
        verifier=first.parts.verifier,
        policy=first.parts.policy,
        draft_stop=first.parts.draft_stop,
        dtype=settings.dtype,
        device=settings.device,
        threads=settings.threads,
        exact=settings.exact,
        progress=settings.progress,
    )
    return [engine, *(Engine(engine.model, other.parts, exact=engine.exact) for other in others)]


def needed_context(item: Item, engine: Engine, max_new_tokens: int) -> int:
    """Tokens that a conversation may grow to."""
    raw = engine.model.template is None
    return sum(len(engine.ids(turn, raw=raw)) + max_new_tokens for turn in item.turns)


def _fitting(suite: Suite, engine: Engine, max_new_tokens: int) -> tuple[Suite, list[str]]:
    """The items that leave room for all their answers in the model's context, and a line about the others.

    Raises UsageError where none does.
    """
    context = engine.model.backend.context
    fit, long = [], []
    for item in suite.items:
        needed = needed_context(item, engine, max_new_tokens)
        if needed <= context:
            fit.append(item)
        else:
            long.append(f"{item.id} ({needed})")
    if not fit:
        raise UsageError(f"no prompt of {suite.name} fits the model's context of {context} tokens with its answers")
    words = f"left out, for they do not fit the model's context of {context} tokens: {', '.join(long)}"
    return Suite(suite.name, tuple(fit)), [f"{len(long)} of {len(suite.items)} prompts are {words}"] if long else []


def _head(settings: SpeedSettings, suite: Suite, lineup: Lineup, engine: Engine, left_out: list[str]) -> dict[str, Any]:
    return {
        "settings": {
            "suite": suite.name,
            "suite_sha256": suite.sha256,
            "prompts": len(suite.items),
            "per_category": settings.per_category,
            "max_new_tokens": settings.max_new_tokens,
            "systems": [_spell(configuration) for configuration in lineup.configurations],
            "against": list(settings.against),
            "model": settings.model,
            "dtype": engine.model.backend.dtype,
            "kernels": engine.model.backend.kernels,
            "device": engine.model.backend.device,
            "threads": torch.get_num_threads(),
            "exact": engine.exact,
            "seed": settings.seed,
            "assistant": str(settings.assistant) if settings.assistant else None,
            **({"temperature": settings.temperature} if settings.temperature else {}),
            "lope_version": machine.versions()["lope"],
            "torch_version": machine.versions()["torch"],
            **machine.machine(),
        },
        "reference": lineup.reference,
        "plain": [lineup.plain, lineup.again],
        "systems": [
            {"name": configuration.name, "kind": "ours", "how": _spell(configuration)}
            for configuration in lineup.configurations
        ],
        "items": [{"id": item.id, "category": item.category, "group": item.group} for item in suite.items],
        "left_out": left_out,
        "calibration": None,
    }


def _spell(configuration: Configuration) -> str:
    parts = configuration.parts
    return (
        f"{configuration.name}: drafter={parts.drafter} shape={parts.shape} verifier={parts.verifier} "
        f"policy={parts.policy} draft_stop={parts.draft_stop}"
    )
