"""(context, budget) -> Draft: who runs ahead of the target."""

from lope.core.registry import Room

DRAFTERS = Room(
    "drafter",
    {
        "none": "lope.drafters.none:NoneDrafter",
        "ngram": "lope.drafters.ngram:NgramDrafter",
        "model": "lope.drafters.model:ModelDrafter",
        "standalone": "lope.drafters.standalone:StandaloneDrafter",
        "eagle": "lope.drafters.eagle:EagleDrafter",
        "hybrid": "lope.drafters.hybrid:HybridDrafter",
        "truncated": "lope.drafters.truncated:TruncatedDrafter",
    },
)
