"""How far a draft's law is from the target's: what a drafter is trained to make small."""

from lope.core.registry import Room

LOSSES = Room(
    "loss",
    {
        "kld": "lope.training.losses.kld:Kld",
        "reverse_kld": "lope.training.losses.reverse_kld:ReverseKld",
        "jsd": "lope.training.losses.jsd:Jsd",
        "tvd": "lope.training.losses.tvd:Tvd",
        "tvd++": "lope.training.losses.tvd_plus_plus:TvdPlusPlus",
        "lk": "lope.training.losses.lk:Lk",
    },
)
