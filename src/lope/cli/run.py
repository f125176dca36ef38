"""`lope run`: stream one answer, and say what speculation gained."""

import sys
from typing import Annotated, Any

import typer

from lope.cli import options as opt
from lope.cli.output import fail, print_json
from lope.core.errors import LopeError, UsageError

app = typer.Typer(add_completion=False)


@app.command()
def run(
    prompt: Annotated[str, typer.Argument(help="the question; - reads it from stdin")],
    model: opt.Model = "smollm2",
    drafter: opt.DefaultDrafterOption = None,
    shape: opt.DefaultShapeOption = None,
    verifier: opt.VerifierOption = "auto",
    policy: opt.PolicyOption = None,
    draft_stop: opt.DraftStop = "never",
    temperature: opt.Temperature = 0.0,
    top_k: opt.TopK = None,
    top_p: opt.TopP = None,
    min_p: opt.MinP = None,
    repetition_penalty: opt.RepetitionPenalty = 1.0,
    stop_string: opt.StopString = None,
    logprobs: Annotated[bool, typer.Option(help="also print each token's log-probability (with --json)")] = False,
    seed: opt.Seed = None,
    max_new_tokens: opt.MaxNewTokens = 256,
    system: opt.System = None,
    raw: Annotated[bool, typer.Option(help="go on from the bare text, no chat template")] = False,
    show_drafted: Annotated[bool, typer.Option(help="colour the tokens that were drafted and accepted")] = False,
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    on_draft_error: opt.OnDraftError = "fail",
    cache_dequantised: opt.CacheDequantised = False,
    json: opt.AsJson = False,
) -> None:
    """Stream one answer."""
    parts: dict[str, Any] = {
        "drafter": drafter,
        "shape": shape,
        "verifier": verifier,
        "policy": policy,
        "draft_stop": draft_stop,
    }
    document: dict[str, Any] = {"model": model, **parts}
    try:
        text = _read(prompt)
        if logprobs and not json:
            raise UsageError("--logprobs goes with --json: there is no place for them in streamed text")
        from lope.cli.answers import describe, show
        from lope.engine.opening import load

        engine = load(
            model,
            **parts,
            dtype=dtype,
            device=device,
            threads=threads,
            exact=exact,
            on_draft_error=on_draft_error,
            cache_dequantised=cache_dequantised,
            progress=not json,
        )
        settings = opt.given(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            stop_strings=tuple(stop_string or ()),
            logprobs=logprobs,
            seed=seed,
            max_new_tokens=max_new_tokens,
        )
        stream = engine.stream(text, system=system, raw=raw, **settings)
        interrupted = False
        try:
            show(stream, engine, silent=json, coloured=show_drafted)
        except KeyboardInterrupt:
            interrupted = True
        document |= describe(engine, stream.answer)
        if json:
            print_json(document | ({"interrupted": True} if interrupted else {}))
        if interrupted:
            raise SystemExit(130)
    except LopeError as error:
        fail(str(error), exit_code=error.exit_code, as_json=json, document=document)


def _read(prompt: str) -> str:
    if prompt != "-":
        return prompt
    if sys.stdin is None:
        raise UsageError("stdin is closed: there is no prompt to read")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not valid UTF-8 (byte {error.start})") from None
