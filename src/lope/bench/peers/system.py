"""A peer as a system: the same prompt tokens as ours, its answers recorded in the same way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lope.bench.memory import PeakMemory
from lope.bench.peers.kind import PeerKind, Variant
from lope.bench.peers.process import PeerProcess
from lope.bench.record import Turn
from lope.bench.suite import Item
from lope.core.errors import LopeError
from lope.core.prompt import Path as Tokens
from lope.engine.prompting import Message, prompt_ids
from lope.models.loaded import LoadedModel

_OPENING = 900.0


@dataclass(frozen=True)
class PeerPlace:
    """What peers are told about a run: model files of each kind (None: there is none), threads, dtype, context."""

    files: Mapping[str, Path | None]
    threads: int
    dtype: str
    context: int
    assistant: Path | None
    scratch: Path
    logs: Path
    timeout: float


class PeerSystem:
    """One variant of one peer in a process of its own."""

    def __init__(self, name: str, process: PeerProcess, model: LoadedModel) -> None:
        self.name = name
        self._process = process
        self._model = model
        self._memory = PeakMemory(process.group)

    def answer(self, item: Item, max_new_tokens: int) -> tuple[Turn, ...]:
        """Answer every turn of the conversation; what was said before is its own."""
        self._memory.reset()
        messages: list[Message] = []
        context: Tokens = ()
        turns: list[Turn] = []
        for text in item.turns:
            messages.append({"role": "user", "content": text})
            ids = self._ids(messages, context)
            turn = self._ask(ids, max_new_tokens, fresh=not turns)
            turns.append(turn)
            context = (*ids, *turn.tokens)
            messages.append({"role": "assistant", "content": self._text(turn.tokens)})
        return tuple(turns)

    def peak_memory(self) -> int | None:
        """Bytes of its processes at most during the last answer."""
        return self._memory.read()

    def close(self) -> None:
        """End its processes."""
        self._process.close()

    def _ask(self, ids: Tokens, max_new_tokens: int, *, fresh: bool) -> Turn:
        stop = sorted(self._model.stop_tokens)
        asked = {"ids": list(ids), "max_new_tokens": max_new_tokens, "stop": stop, "fresh": fresh}
        reply = self._process.ask(asked)
        return Turn(
            prompt_tokens=len(ids),
            tokens=tuple(reply["tokens"]),
            steps=tuple((int(count), float(seconds)) for count, seconds in reply["steps"]),
            passes=reply.get("passes"),
            drafted=reply.get("drafted"),
            accepted=reply.get("accepted"),
        )

    def _ids(self, messages: Sequence[Message], context: Tokens) -> Tokens:
        template, tokenizer = self._model.template, self._model.tokenizer
        if template is None:
            return (*context, *prompt_ids(self._model, messages[-1]["content"], system=None, raw=True))
        return template.ids(tokenizer, list(messages), earlier=context)

    def _text(self, tokens: Tokens) -> str:
        said = tokens[:-1] if tokens and tokens[-1] in self._model.stop_tokens else tokens
        return self._model.tokenizer.decode(said)


def open_peer(
    kind: PeerKind, place: PeerPlace, model: LoadedModel, say: Callable[[str], None], done: Mapping[str, object]
) -> list[tuple[PeerSystem, dict[str, Any]]]:
    """Every variant that runs here, with its versions; one line about each of the others. done: variants not needed."""
    python, file = kind.python, place.files[kind.reads]
    if python is None:
        say(kind.missing)
        return []
    if file is None:
        say(f"{kind.name} is skipped: it reads a GGUF file, and {model.name} is none")
        return []
    found = []
    for variant in kind.variants:
        if variant.settings.get("assistant") and place.assistant is None:
            say(f"{variant.name} is skipped: name a smaller model of the same tokens with --assistant FOLDER")
        elif variant.name not in done:
            try:
                found.append(_start(kind, variant, python, file, place, model))
            except LopeError as error:
                say(f"{variant.name} is skipped: {error}")
    return found


def _start(
    kind: PeerKind, variant: Variant, python: Path, file: Path, place: PeerPlace, model: LoadedModel
) -> tuple[PeerSystem, dict[str, Any]]:
    environment = {**kind.environment, "OMP_NUM_THREADS": str(place.threads)}
    log = place.logs / f"{variant.name.replace(' ', '-')}.log"
    process = PeerProcess(python, kind.file, log=log, environment=environment, timeout=place.timeout)
    try:
        request = {
            "dtype": place.dtype,
            **variant.settings,
            "model": str(file),
            "assistant": str(place.assistant) if variant.settings.get("assistant") else None,
            "threads": place.threads,
            "context": place.context,
            "scratch": str(place.scratch),
        }
        versions = process.ask(request, timeout=_OPENING)["versions"]
    except BaseException:
        process.close()
        raise
    return PeerSystem(variant.name, process, model), versions
