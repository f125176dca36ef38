"""(context, budget) -> Draft: who runs ahead of the target."""

from lope.core.registry import Room

DRAFTERS = Room(
    "drafter",
    {
        "none": "lope.drafters.none:NoneDrafter",
        "ngram": "lope.drafters.ngram:NgramDrafter",
        "model": "lope.drafters.model:ModelDrafter",
        "truncated": "lope.drafters.truncated:TruncatedDrafter",
    },
)
