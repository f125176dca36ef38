"""What the laws over the whole engine share: every drafter with every shape, prompts, settings, engines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.models import fitted_drafter

from lope.core.prompt import Prompt
from lope.drafters import DRAFTERS
from lope.engine.answer import Answer
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.engine.settings import RequestSettings
from lope.models.loaded import LoadedModel
from lope.models.loading import load
from lope.shapes import SHAPES

TEXTS = (
    "the cat sat on the mat and the cat sat on the",
    "the dog ran after the dog ran after the dog",
    "mat",
    "Über 5 cats, naïve — ran",
    "on and on and on and on and on and on and on and on and on and on and on and on and on, the end of the mat",
)
# what a drafter is made from that looks at shapes; {other}, {same}: folders of a random model and of the target;
# {standalone}, {eagle}: folders of drafters that know something of the target
_NEEDED = {
    "model": ("model:path={other}", "model:path={same}"),
    "standalone": ("standalone:path={standalone}",),
    "eagle": ("eagle:path={eagle}",),
    "hybrid": ("hybrid:drafter=truncated:layers=2", "hybrid:drafter=eagle:path={eagle}", "hybrid:drafter=ngram"),
    "truncated": ("truncated:layers=2",),
}
# wishes under which trees branch on more than one level
_SHAPES = {"rsd_c": "rsd_c:branching=3-2-1-1", "independent": "independent:chains=3,depth=3"}


def pairs() -> list[tuple[str, str]]:
    """Every registered drafter, with every registered shape where it looks at one."""
    found = []
    for drafter in (text for name in DRAFTERS for text in _NEEDED.get(name, (name,))):
        shapes = [_SHAPES.get(shape, shape) for shape in SHAPES]
        found += [(drafter, shape) for shape in (shapes if drafter.partition(":")[0] in _NEEDED else shapes[:1])]
    return found


def named(drafter: str, family: str, folder: Callable[..., Path]) -> str:
    """The drafter's text with its folders filled in."""
    taught = {kind: _taught(kind, folder(family, 0)) for kind in ("standalone", "eagle") if f"{{{kind}}}" in drafter}
    return drafter.format(other=folder(family, 1), same=folder(family, 0), **taught)


def _taught(kind: str, target: Path) -> Path:
    """A drafter that was shown the plain answers to most of the texts, written once beside the target."""
    place = target.parent / kind
    if not place.exists():
        model = load(str(target), dtype="float32")
        fitted_drafter.write(place, kind, model, [prompt(model, text).ids for text in TEXTS[:4]], count=12)
    return place


def engine(
    model: LoadedModel, drafter: str = "none", shape: str = "chain", verifier: str = "auto", *, exact: bool = True
) -> Engine:
    return Engine(model, Parts(drafter, shape, verifier), exact=exact)


def other_verifier(engine: Engine, verifier: str, *, exact: bool) -> Engine:
    """The same drafter, not loaded again."""
    parts = replace(engine.parts, verifier=verifier)
    return Engine(engine.model, parts, exact=exact, drafter=engine.drafter)


def prompt(model: LoadedModel, text: str) -> Prompt:
    return Prompt(model.tokenizer.encode(text))


def answers(engine: Engine, texts: Sequence[str], **settings: Any) -> list[Answer]:
    """One packed run."""
    return engine.generate_batch([prompt(engine.model, text) for text in texts], **settings)


def tokens(engine: Engine, texts: Sequence[str], **settings: Any) -> list[tuple[int, ...]]:
    return [answer.tokens for answer in answers(engine, texts, **settings)]


def opened(engine: Engine, texts: Sequence[str], settings: RequestSettings) -> list[tuple[int, ...]]:
    """The same, for settings that have no names: planted faults."""
    requests = [engine.open(prompt(engine.model, text), settings) for text in texts]
    for _ in engine.loop.run(requests):
        pass
    return [request.answer().tokens for request in requests]
