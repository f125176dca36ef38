"""The README.md of a drafter folder: what it is, how it was made, what was measured of it, what it cannot do.

Everything in it stands in `drafter.json`; what is not there is not said.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.core.whole_file import write_whole
from lope.models.config_json import read_json
from lope.models.drafter_folder import ABOUT
from lope.training.manifest import READ

CARD = "README.md"
_KINDS = {
    "standalone": "a small decoder of its own that reads the target's embedding through a projection "
    "(Goel, Gagrani et al. 2024, arXiv:2403.00858)",
    "eagle": "one layer that reads hidden states of the target (EAGLE-3, Li et al. 2025, arXiv:2503.01840)",
}
_LICENCE = "yours to choose, within the terms of the target and of the texts that it learned from"
_RECIPE = {
    "loss": "loss of the last stage",
    "text": "share of the steps on plain text (where some was given), next token",
    "output": "share of the steps on the target's answers, next token",
    "learning_rate": "highest learning rate",
    "rows": "packed rows in a batch",
    "length": "tokens in a row",
    "trained_tokens": "answer tokens learned from, repeats counted",
    "init": "begun from",
    "seed": "seed",
}
_SET = {
    "prompts": "prompts",
    "prompts_sha256": "SHA-256 of the prompts",
    "temperatures": "temperatures",
    "top_p": "top-p",
    "max_new_tokens": "longest answer, tokens",
    "top_k": "log-probabilities kept",
    "outside": "probability outside of them, mean",
    "dtype": "computed in",
    "seed": "seed",
}
_SET_READ = {
    "max_new_tokens": "tokens read together",
    **{name: _SET[name] for name in ("top_k", "outside", "dtype")},
}
_COUNTED = {"target": "what the target says", "draft": "what the drafter proposes", "text": "plain text"}
_LIMITS = (
    "It proposes and decides nothing: with a lossless verifier the answers are the target's own, whatever it says.",
    "It fits this target and this tokenizer alone.",
    "Tokens that its head does not keep are never proposed; text that is full of them (other languages, rare symbols) "
    "gains little.",
    "It has learned from what the target says, mistakes and biases included.",
    "Acceptance depends on the text, speed on the machine: `lope drafter eval` measures both.",
)


def write_card(folder: Path) -> None:
    """Write the README.md of a drafter folder from its drafter.json. Raises ModelError or RunError, one line."""
    text = ModelCard(folder.resolve().name, read_json(folder / ABOUT)).text()
    write_whole(folder / CARD, text)


@dataclass(frozen=True)
class ModelCard:
    """name: of the drafter. document: its drafter.json."""

    name: str
    document: Mapping[str, Any]

    def text(self) -> str:
        """Markdown."""
        parts = (
            self._head(),
            self._taught(),
            self._data(),
            self._trim(),
            self._figures(),
            *(self._evaluation(found) for found in self._evaluations()),
            self._point(),
            self._limits(),
        )
        return "\n".join("\n".join(part) for part in map(list, parts) if part)

    @property
    def _recipe(self) -> Mapping[str, Any]:
        return dict(self.document.get("recipe") or {})

    @property
    def _measured(self) -> Mapping[str, Any]:
        return dict(self.document.get("figures") or {})

    def _head(self) -> Iterator[str]:
        kind, target = str(self.document.get("kind")), self.document.get("target") or {}
        decoder, trim = self.document.get("decoder") or {}, self._recipe.get("trim") or {}
        yield f"# {self.name}: a drafter for {target.get('name', '?')}\n"
        yield f"It runs ahead of its target in speculative decoding: {_KINDS.get(kind, kind)}.\n"
        yield f"{run_line(target.get('name', '?'), kind)}\n"
        sizes = {name.replace("_", " "): value for name, value in decoder.items()}
        yield from _listed(
            {
                "target": f"{target.get('name')}, {target.get('num_layers')} layers of {target.get('hidden_size')}",
                "tokenizer": target.get("tokenizer"),
                "tokens in the head": _count(trim.get("vocab", self._recipe.get("vocab")), target.get("vocab_size")),
                "parameters": self._measured.get("parameters"),
                **sizes,
                "hidden states that it reads": self.document.get("layers") or None,
                "weights stored as": self.document.get("storage"),
                "licence": self._recipe.get("licence", _LICENCE),
            }
        )

    def _taught(self) -> Iterator[str]:
        recipe, figures = self._recipe, {**(self._measured.get("untrimmed") or {}), **self._measured}
        known = {words: recipe.get(name) for name, words in _RECIPE.items()}
        seconds = figures.get("seconds")
        known["steps"] = figures.get("steps")
        known["training time"] = None if seconds is None else f"{seconds / 60:.1f} minutes"
        known["answer tokens in the sets, held-out ones left out"] = figures.get("answer_tokens")
        if any(value is not None for value in known.values()):
            yield "## Recipe\n"
            yield from _listed(known)

    def _data(self) -> Iterator[str]:
        sets = self._recipe.get("sets") or []
        if sets:
            yield "## Data\n"
        for number, found in enumerate(sets, start=1):
            prompts = str(found.get("prompts"))
            if prompts.startswith(READ):
                yield f"Set {number}: {prompts}, read by the target, with its own probabilities of each token.\n"
                yield from _listed({words: found.get(name) for name, words in _SET_READ.items()})
                continue
            asked = "written by the target" if prompts == "own" else prompts
            yield f"Set {number}: answers of the target itself, with its own probabilities (`lope drafter distill`).\n"
            yield from _listed({words: {**found, "prompts": asked}.get(name) for name, words in _SET.items()})

    def _trim(self) -> Iterator[str]:
        trim = self._recipe.get("trim")
        if trim:
            counted = trim.get("counts")
            yield "## Trimmed\n"
            yield (
                f"The head kept {trim.get('vocab')} of its {trim.get('vocab_before')} tokens, the most frequent in "
                f"{_COUNTED.get(counted, counted)}, and those that end a turn or that the chat template writes "
                "(VocabTrim, Goel et al. 2025, arXiv:2506.22694).\n"
            )
            names = ("counted_in", "coverage", "coverage_before", "held_out_coverage", "held_out_coverage_before")
            yield from _listed({name.replace("_", " "): trim.get(name) for name in names})

    def _figures(self) -> Iterator[str]:
        figures = self._measured
        before = figures.get("untrimmed")
        held_out = {
            "acceptance by position, held-out answers": figures.get("held_out"),
            "held-out answer tokens that the head has": figures.get("held_out_coverage"),
        }
        if any(value is not None for value in held_out.values()):
            yield "## Held-out\n"
            yield from _listed(held_out)
        elif before and before.get("held_out"):
            yield "## Held-out, before it was trimmed\n"
            yield from _listed({"acceptance by position, held-out answers": before["held_out"]})

    def _evaluations(self) -> list[Mapping[str, Any]]:
        return [self._measured[name] for name in ("eval", "eval_sampled") if self._measured.get(name)]

    def _evaluation(self, found: Mapping[str, Any]) -> Iterator[str]:
        drawn = f"at temperature {found['temperature']:g}" if found.get("temperature") else "greedily"
        yield f"## Measured {drawn}\n"
        yield (
            f"{found.get('prompts')} prompts of {found.get('suite')}, up to {found.get('max_new_tokens')} tokens each, "
            f"{found.get('dtype')}, {found.get('threads')} threads of {found.get('processor')}. A speed-up is over "
            "plain decoding in the same run, prompt excluded, the median with its 95 % bootstrap interval; *modelled* "
            "is τ / (v + depth·d) by the calibration of that machine.\n"
        )
        heads = ("", "tokens/pass", "95 %", "accepted by position", "MBSU", "modelled", "speed-up", "95 %", "tokens/s")
        yield f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}"
        for point in found.get("points", []):
            accepted = " ".join(f"{100 * value:.0f}" for value in point.get("acceptance") or ())
            cells = (
                point.get("name"),
                _number(point.get("tokens_per_pass")),
                _range(point, "tokens_per_pass"),
                f"{accepted} %" if accepted else "–",
                _number(point.get("mbsu")),
                _number(point.get("modelled_speedup")),
                _number(point.get("speedup")),
                _range(point, "speedup"),
                _number(point.get("tokens_per_second"), 1),
            )
            yield f"| {' | '.join(map(str, cells))} |"
        yield ""

    def _point(self) -> Iterator[str]:
        point = self.document.get("operating_point")
        if point:
            yield "## Operating point\n"
            yield from _listed({name.replace("_", " "): value for name, value in point.items()})

    def _limits(self) -> Iterator[str]:
        yield "## Limits\n"
        yield "\n".join(f"* {limit}" for limit in _LIMITS) + "\n"


def run_line(target: str, kind: str) -> str:
    """How the drafter is used with lope."""
    return f'    lope run --model {target} --drafter {kind}:path=DIR "Why is the sky blue?"'


def _listed(values: Mapping[str, Any]) -> Iterator[str]:
    """What is known, a line each."""
    for name, value in values.items():
        if value is not None and value != "":
            yield f"* {name}: {_shown(value)}"
    yield ""


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return _shown([f"{name} {_shown(held)}" for name, held in value.items()])
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(_shown, value))
    return str(value).replace("\n", " ")


def _count(kept: Any, vocab_size: Any) -> str | None:
    return None if kept is None else f"{kept} of {vocab_size}"


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _range(point: Mapping[str, Any], name: str) -> str:
    low, high = point.get(f"{name}_low"), point.get(f"{name}_high")
    return "–" if low is None or high is None else f"{low:.2f} to {high:.2f}"
