"""The options that verbs share, each written once: which model, which parts, how tokens are chosen."""

from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[str, typer.Option(help="smollm2, a folder, a GGUF file, a hub name; hf:NAME: by transformers")]
DrafterOption = Annotated[
    str, typer.Option("--drafter", help="who runs ahead: none, ngram, eagle, standalone, hybrid, model:path=DIR")
]
DefaultDrafterOption = Annotated[
    str | None,
    typer.Option(
        "--drafter",
        help="who runs ahead: none, ngram, eagle, standalone, hybrid, model:path=DIR; default: the fastest known",
    ),
]
DefaultShapeOption = Annotated[
    str | None, typer.Option("--shape", help="how a drafter spends nodes: chain (default), rsd_c, rsd_s, independent")
]
ShapeOption = Annotated[
    str, typer.Option("--shape", help="how a drafter spends nodes: chain, rsd_c, rsd_s, independent")
]
VerifierOption = Annotated[str, typer.Option("--verifier", help="auto, or a name (lope list verifiers)")]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="how much to draft: fixed:depth=2, calibrated (after lope calibrate, unless a shipped one pays)",
    ),
]
DraftStop = Annotated[str, typer.Option("--draft-stop", help="when to end a draft early: never, max_confidence, svip")]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16, float16")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")]
Threads = Annotated[int | None, typer.Option(help="threads of torch; default: torch's own choice")]
Exact = Annotated[
    bool | None,
    typer.Option("--exact/--no-exact", help="the same bits for a token in any pass; default: wherever it can be had"),
]
OnDraftError = Annotated[str, typer.Option(help="fail, or fall-back: go on without the drafter")]
CacheDequantised = Annotated[bool, typer.Option(help="keep a GGUF's weights as they are run, for faster starts")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]
Temperature = Annotated[float, typer.Option(help="0 is greedy")]
TopK = Annotated[int | None, typer.Option(help="keep the k best tokens")]
TopP = Annotated[float | None, typer.Option(help="keep the smallest set of tokens with this probability")]
MinP = Annotated[float | None, typer.Option(help="keep tokens at least this many times as probable as the best")]
RepetitionPenalty = Annotated[float, typer.Option(help="1.0 is none")]
StopString = Annotated[list[str] | None, typer.Option(help="end before this text; repeatable")]
Seed = Annotated[int | None, typer.Option(help="default: drawn, and printed")]
MaxNewTokens = Annotated[int, typer.Option(help="at most this many tokens")]
Suite = Annotated[Path | None, typer.Option(help="JSON lines: id, category, turns; default: the built-in")]
PerCategory = Annotated[int | None, typer.Option(help="only the first so many prompts of each category")]
Resume = Annotated[bool, typer.Option("--resume/--no-resume", help="go on with the results in --out")]
System = Annotated[str | None, typer.Option(help="the system prompt")]


def given(**settings: Any) -> dict[str, Any]:
    """Settings without those that were left at None."""
    return {name: value for name, value in settings.items() if value is not None}
