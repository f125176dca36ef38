"""From a distilled set to a drafter folder: vocabulary, net, stages, and the best drafter written as it gets better."""

import hashlib
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Seq
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lope.core.errors import UsageError
from lope.core.noise import key
from lope.models.drafter_folder import DrafterAbout, DrafterFolder, DrafterTarget, drafter_decoder
from lope.models.loaded import LoadedModel
from lope.training.another_head import with_head_of
from lope.training.batches import Batches
from lope.training.checkpoint_folder import CheckpointFolder
from lope.training.distilled_set import DistilledSet, Sequence
from lope.training.eagle_net import FEATURES, EagleNet, EaglePupil
from lope.training.lessons import HEAD, Lessons
from lope.training.losses import LOSSES
from lope.training.losses.kld import Kld
from lope.training.losses.law import Loss
from lope.training.manifest import changed
from lope.training.model_card import write_card
from lope.training.pupil import Pupil
from lope.training.standalone_net import StandaloneNet, StandalonePupil
from lope.training.team import ALONE, Team
from lope.training.text_lessons import as_text, text_sequences
from lope.training.trainer import Report, Stage, State, Trainer, TrainerSettings
from lope.training.vocabulary import always_kept, count_answers, coverage, kept_tokens

_HELD_OUT = 20  # one sequence in so many is never learned from
_MOST_HELD_OUT = 96


@dataclass(eq=False)
class Teaching:
    """One drafter on its way. `init`: a drafter folder to begin from. team: the processes that teach it together.

    sets: the first one is what the drafter is for: some of it is held out to judge by.
    """

    model: LoadedModel
    sets: Seq[DistilledSet]
    out: Path
    lessons: Lessons
    settings: TrainerSettings
    texts: Seq[str] = ()
    init: Path | None = None
    team: Team = ALONE
    figures: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Iterator[Report]:
        """Train; the best drafter so far is always whole in `out`."""
        with self.team.together():
            trainer = self._trainer()
        self._refuse_unlike(trainer.state)
        yield from trainer.run()

    def _refuse_unlike(self, state: State) -> None:
        """Raise UsageError where processes begin from different things: their steps would be nobody's."""
        mine = (self.figures, state, self.model.backend.dtype)
        first = self.team.first(mine)
        with self.team.together():
            if mine != first:
                raise UsageError(
                    f"process {self.team.rank} finds another set, checkpoint or dtype than process 0: let a "
                    "distillation end first, give all the same folders, and name the --dtype"
                )

    def _trainer(self) -> Trainer:
        """With nothing learned yet, or where it was."""
        _refuse_unfit(self.model, self.sets, features=self.lessons.kind == "eagle")
        torch.manual_seed(self.lessons.seed)
        learned, held_out = _divided(list(self.sets[0].read()))
        learned += [sequence for place in self.sets[1:] for sequence in place.read()]
        begun = None if self.init is None else DrafterFolder.read(self.init)
        if begun is not None:
            self._check(begun)
        kept = self._head(begun, learned)
        about = self._about(len(kept))
        earlier = CheckpointFolder(self.out).about()
        if earlier is not None:
            # not those that a set that has grown since would choose: the weights are of these
            kept = _continued(earlier, about, self.out, self.model.backend.vocab_size)
            if begun is not None and self.lessons.vocab is None and not torch.equal(kept, begun.tensors["kept"]):
                raise UsageError(f"{self.out}: was begun from another drafter than {begun.path}")
        pupil = self._pupil(kept, learned)
        if begun is not None:
            pupil.restore(with_head_of(kept, begun.tensors, self.model.backend.embedding.cpu()))
        pupil.module.to(self.model.backend.embedding.device)
        tested = count_answers(held_out, self.model.backend.vocab_size)
        self.figures = {
            "answer_tokens": sum(len(s.top_ids) for s in learned),
            "held_out_coverage": coverage(tested, kept),
            "parameters": sum(p.numel() for p in pupil.module.parameters()),
        }
        return Trainer(
            pupil,
            self._stages(learned, pupil),
            self._batches(held_out, pupil, joined=0.0),
            self.out,
            self.settings,
            lambda state: self._write(pupil, state),
            {**about, "kept": kept.tolist()},
            self.team,
        )

    def _head(self, begun: DrafterFolder | None, learned: list[Sequence]) -> Tensor:
        """int64 [K]: those of the drafter to begin from, where no number was asked for; else the most said ones."""
        if begun is not None and self.lessons.vocab is None:
            return begun.tensors["kept"]
        counts = count_answers(learned, self.model.backend.vocab_size)
        return kept_tokens(counts, self.lessons.vocab or HEAD, always_kept(self.model))

    def _about(self, vocab: int) -> dict[str, Any]:
        """What must be the same for a training to go on; sets may have grown, and how long and how fast is free."""
        lessons = {**asdict(self.lessons), "vocab": vocab}
        del lessons["storage"]  # only of what is written
        texts = hashlib.sha256("\0".join(self.texts).encode()).hexdigest() if self.texts else ""
        return {
            **lessons,
            "target": [self.model.tokenizer.fingerprint, *self.model.backend.embedding.shape],
            "set": [[place.manifest.prompts, place.manifest.seed, *place.manifest.layers] for place in self.sets],
            "words of text": texts,
            "init": None if self.init is None else self.init.name,
        }

    def _pupil(self, kept: Tensor, learned: list[Sequence]) -> Pupil:
        backend = self.model.backend
        if self.lessons.kind == "eagle":
            return self._eagle(kept, learned)
        sizes = {
            "hidden_size": self.lessons.hidden,
            "intermediate_size": -(-self.lessons.hidden * 11 // 4 // 64) * 64,
            "num_layers": self.lessons.layers,
            "num_heads": self.lessons.hidden // 64,
            "num_kv_heads": self.lessons.hidden // 64,
            "head_dim": 64,
            "norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "context": self.lessons.context,
        }
        config = drafter_decoder("standalone", len(kept), **sizes)
        return StandalonePupil(StandaloneNet(config, backend.embedding.cpu(), kept))

    def _eagle(self, kept: Tensor, learned: list[Sequence]) -> EaglePupil:
        backend = self.model.backend
        net = EagleNet(drafter_decoder("eagle", len(kept), **_sizes_of(backend)), backend.embedding.cpu(), kept)
        rows = [s.features for s in learned[:64] if s.features is not None]
        head, norm = (None if part is None else part.cpu() for part in backend.readout(kept))
        net.begin(torch.cat(rows), head=head, norm=norm)
        return EaglePupil(net)

    def _stages(self, learned: list[Sequence], pupil: Pupil) -> list[Stage]:
        lessons, stages = self.lessons, []
        next_token = Loss(Kld())
        if self.texts and lessons.text and not pupil.needs_features:
            width = learned[0].top_ids.shape[1]
            texts = text_sequences(self.texts, self.model.tokenizer, lessons.length, width)
            stages.append(Stage("text", self._batches(texts, pupil, lessons.joined), next_token, lessons.text))
        if lessons.output:
            said = [as_text(sequence) for sequence in learned]
            stages.append(Stage("output", self._batches(said, pupil, lessons.joined), next_token, lessons.output))
        rest = 1.0 - sum(stage.share for stage in stages)
        loss = Loss(LOSSES.make(lessons.loss))
        return [*stages, Stage("distil", self._batches(learned, pupil, lessons.joined), loss, rest)]

    def _batches(self, sequences: list[Sequence], pupil: Pupil, joined: float) -> Batches:
        lessons = self.lessons
        return Batches(
            sequences,
            length=lessons.length,
            rows=lessons.rows,
            seed=lessons.seed,
            features=pupil.needs_features,
            joined=joined,
        )

    def _write(self, pupil: Pupil, state: State) -> None:
        figures = {**self.figures, "held_out": state.held_out, "steps": state.step, "seconds": round(state.seconds)}
        about = DrafterAbout(
            kind=pupil.kind,
            target=drafter_target(self.model),
            decoder=pupil.config,
            layers=self.sets[0].manifest.layers if pupil.needs_features else (),
            storage=self.lessons.storage,
            recipe={
                **self._lessons(),
                "vocab": pupil.config.vocab_size,
                "learning_rate": self.settings.learning_rate,
                "sets": [asdict(place.manifest) for place in self.sets],
                "trained_tokens": state.tokens,
                "init": None if self.init is None else self.init.name,
            },
            figures=figures,
        )
        DrafterFolder.write(self.out, about, pupil.tensors())
        write_card(self.out)

    def _lessons(self) -> dict[str, Any]:
        """Those that were given: sizes of a stand-alone drafter, and plain text, only where there were such."""
        unused = [] if self.texts else ["text"]
        if self.lessons.kind == "eagle":
            unused += ["hidden", "layers", "context"]
        return {name: value for name, value in asdict(self.lessons).items() if name not in unused}

    def _check(self, begun: DrafterFolder) -> None:
        if begun.about.kind != self.lessons.kind:
            raise UsageError(f"{begun.path}: its kind is {begun.about.kind}, not {self.lessons.kind}")
        if begun.about.target.tokenizer != self.model.tokenizer.fingerprint:
            raise UsageError(f"{begun.path}: was trained for another tokenizer than that of {self.model.name}")
        layers = self.sets[0].manifest.layers if self.lessons.kind == "eagle" else ()
        if begun.about.layers != layers:
            raise UsageError(
                f"{begun.path}: reads layers {_dashed(begun.about.layers)} of the target, "
                f"{self.sets[0].folder} holds {_dashed(layers)}"
            )
        if int(begun.tensors["kept"][-1]) >= self.model.backend.vocab_size:
            raise UsageError(f"{begun.path}: keeps tokens that {self.model.name} does not have")


def drafter_target(model: LoadedModel) -> DrafterTarget:
    """What a drafter folder says of its target."""
    embedding = model.backend.embedding
    return DrafterTarget(
        model.name,
        model.tokenizer.fingerprint,
        model.backend.vocab_size,
        embedding.shape[1],
        model.backend.num_layers,
    )


def _refuse_unfit(model: LoadedModel, sets: Seq[DistilledSet], *, features: bool) -> None:
    """Raise UsageError where a set is another target's, or the sets hold other hidden states than the first."""
    for place in sets:
        about = place.manifest
        about.check(model, place.folder)
        if not features:
            continue
        if about.hidden_size != model.backend.hidden_size:
            raise UsageError(
                f"{place.folder}: holds hidden states of {about.hidden_size} numbers, {model.name} has "
                f"{model.backend.hidden_size}"
            )
        if not about.layers:
            raise UsageError(f"{place.folder}: holds no hidden states: distil it with --layers auto")
        if len(about.layers) != FEATURES or about.layers != sets[0].manifest.layers:
            raise UsageError(
                f"{place.folder}: holds layers {_dashed(about.layers)}: a feature drafter learns from {FEATURES}, "
                "the same ones in each set"
            )


def _continued(earlier: Mapping[str, Any], about: Mapping[str, Any], out: Path, vocab_size: int) -> Tensor:
    """The kept tokens of the training in `out`. Raises UsageError where it was begun with other settings."""
    differing = [changed(name, earlier.get(name), value) for name, value in about.items() if earlier.get(name) != value]
    if differing:
        raise UsageError(
            f"{out}: was begun with another {', '.join(differing)}: go on with the same settings, or write to another "
            "folder"
        )
    kept = earlier.get("kept")
    if isinstance(kept, list) and kept and all(type(token) is int and 0 <= token < vocab_size for token in kept):
        return torch.tensor(kept)
    raise UsageError(f"{out}: its checkpoint does not say which tokens are kept")


def _dashed(layers: Seq[int]) -> str:
    return "-".join(map(str, layers)) or "none"


def _sizes_of(backend: Any) -> dict[str, Any]:
    """A layer like the target's own."""
    names = ("hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "norm_eps", "rope_theta")
    return {**{name: getattr(backend.config, name) for name in names}, "num_layers": 1, "context": backend.context}


def _divided(sequences: list[Sequence]) -> tuple[list[Sequence], list[Sequence]]:
    """(learned from, held out), by the prompt's number: the same in every run over a growing set. At least one is."""
    by_chance = sorted(sequences, key=lambda sequence: key(sequence.number, 7) % (1 << 32))
    chosen = {s.number for s in by_chance[:1]} | {s.number for s in sequences if key(s.number, 7) % _HELD_OUT == 0}
    held = [s for s in sequences if s.number in chosen][:_MOST_HELD_OUT]
    numbers = {s.number for s in held}
    learned = [s for s in sequences if s.number not in numbers]
    if not learned:
        raise UsageError(
            f"{len(sequences)} sequences are too few to learn from and to hold some out: "
            "distil more (lope drafter distill; or give lope drafter train more --minutes)"
        )
    return learned, held
