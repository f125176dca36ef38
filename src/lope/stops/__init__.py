"""When to end a draft early: rules that look at the draft's laws, never at the tokens that were drawn from them."""

from lope.core.registry import Room

STOPS = Room(
    "stop",
    {
        "never": "lope.stops.never:NeverStop",
        "max_confidence": "lope.stops.max_confidence:MaxConfidenceStop",
        "svip": "lope.stops.svip:SvipStop",
    },
)
