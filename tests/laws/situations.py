"""What the exactness laws are tried on: forms of trees, and settings of target and draft."""

import random
from dataclasses import dataclass

from tests.laws.drafting import HOT, LEAF, Fork, TableDrafter

from lope.core.draft import Draw
from lope.core.sampling import Sampling
from lope.models.table import TableModel

ONLY, FREE, APART, POINT = Draw.ONLY, Draw.INDEPENDENT, Draw.WITHOUT_REPLACEMENT, Draw.POINT

CHAIN = Fork(ONLY, (Fork(ONLY, (LEAF,)),))
PAIR = Fork(APART, (LEAF, LEAF))
TWINS = Fork(FREE, (LEAF, LEAF))
FORMS = {
    "chain": CHAIN,
    "chain and points": Fork(ONLY, (Fork(ONLY, (LEAF,), (LEAF,)),), (Fork(ONLY, (LEAF,)),)),
    "points": Fork(points=(Fork(points=(LEAF, LEAF)), Fork(points=(LEAF,)), LEAF)),
    "points, then drawn": Fork(points=(Fork(ONLY, (LEAF,)), PAIR)),
    "pair under the first": Fork(APART, (PAIR, LEAF)),
    "pair under the second": Fork(APART, (LEAF, PAIR)),
    "three apart": Fork(APART, (LEAF, LEAF, LEAF)),
    "pair and points": Fork(APART, (LEAF, Fork(points=(LEAF,))), (Fork(ONLY, (LEAF,)), LEAF)),
    "two chains": Fork(FREE, (Fork(FREE, (LEAF,)), Fork(FREE, (LEAF,)))),
    "three free": Fork(FREE, (LEAF, LEAF, LEAF)),
    "twins and points": Fork(FREE, (Fork(ONLY, (LEAF,)), LEAF), (LEAF, LEAF)),
}
VERIFIED = {
    "rejection": ("chain", "chain and points", "points"),
    "recursive": (
        "chain",
        "points, then drawn",
        "pair under the first",
        "pair under the second",
        "three apart",
        "pair and points",
    ),
    "recursive_with_replacement": ("chain", "two chains", "three free", "twins and points"),
    "coupled": ("chain and points", "points", "pair under the first", "two chains"),
}


@dataclass(frozen=True)
class Setting:
    """How the target samples, how the draft does, which tokens the draft knows and how its laws are held."""

    target: Sampling = HOT
    draft: Sampling = HOT
    keep: tuple[int, ...] | None = None
    columns: str = "dense"


SETTINGS = {
    "plain": Setting(),
    "draft temperature": Setting(Sampling(temperature=0.7), Sampling(temperature=1.6), columns="own"),
    "top-k": Setting(Sampling(temperature=1.0, top_k=3), HOT, columns="shared"),
    "top-p": Setting(Sampling(temperature=1.2, top_p=0.8), Sampling(temperature=1.0, top_p=0.9)),
    "penalties": Setting(
        Sampling(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4, frequency_penalty=-0.3),
        Sampling(temperature=1.0, repetition_penalty=1.2),
    ),
    "trimmed": Setting(HOT, HOT, keep=(0, 2, 3), columns="shared"),
    "min-p": Setting(Sampling(temperature=1.0, min_p=0.25), Sampling(temperature=1.0, top_k=3), columns="own"),
    "all": Setting(
        Sampling(temperature=0.9, top_k=3, top_p=0.95, repetition_penalty=1.3, logit_bias={1: 0.5}),
        Sampling(temperature=1.3, repetition_penalty=1.1),
        keep=(3, 1, 2),
        columns="shared",
    ),
}


def law_pair(seed: int, form: Fork, setting: Setting) -> tuple[TableModel, TableDrafter]:
    """A random target and a random draft; how spread out their logits are differs from law to law."""
    spread = 0.5 + 0.5 * (seed % 4)
    draft = TableModel(seed=10_000 + seed, spread=0.5 + 0.5 * (seed // 4 % 3))
    return TableModel(seed=seed, spread=spread), TableDrafter(form, draft, setting.draft, setting.keep, setting.columns)


def random_form(chance: random.Random, draws: tuple[Draw, ...], depth: int) -> Fork:
    """A random tree whose drawn children are of these kinds."""
    if depth == 0:
        return LEAF
    draw = chance.choice(draws)
    drawn = {POINT: 0, ONLY: 1}.get(draw, chance.randint(1, 3))
    points = chance.randint(0, 2)
    below = [random_form(chance, draws, depth - 1) for _ in range(drawn + points)]
    return Fork(draw, tuple(below[:drawn]), tuple(below[drawn:]))
