"""How an autoregressive drafter spends its node budget: each part draws the children of one level after another."""

from lope.core.registry import Room

SHAPES = Room(
    "shape",
    {
        "chain": "lope.shapes.chain:ChainShape",
        "rsd_c": "lope.shapes.rsd_c:RsdCShape",
        "rsd_s": "lope.shapes.rsd_s:RsdSShape",
        "independent": "lope.shapes.independent:IndependentShape",
    },
)
