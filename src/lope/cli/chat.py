"""`lope chat`: a conversation; the cache is kept between turns."""

import sys
from typing import Annotated, Any

import typer
from rich.markup import escape

from lope.cli import options as opt
from lope.cli.output import complaints, console, fail, print_json
from lope.core.errors import LopeError

app = typer.Typer(add_completion=False)


@app.command()
def chat(
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
    seed: opt.Seed = None,
    max_new_tokens: opt.MaxNewTokens = 512,
    system: opt.System = None,
    show_drafted: Annotated[bool, typer.Option(help="colour the tokens that were drafted and accepted")] = False,
    dtype: opt.Dtype = "auto",
    device: opt.Device = "cpu",
    threads: opt.Threads = None,
    exact: opt.Exact = None,
    on_draft_error: opt.OnDraftError = "fail",
    json: opt.AsJson = False,
) -> None:
    """Talk with the model, one line a turn; an empty line or Ctrl-D ends it. With --json: all turns in one document."""
    from lope.cli.answers import describe, show
    from lope.engine.conversation import Conversation
    from lope.engine.opening import load

    engine = load(
        model,
        drafter=drafter,
        shape=shape,
        verifier=verifier,
        policy=policy,
        draft_stop=draft_stop,
        dtype=dtype,
        device=device,
        threads=threads,
        exact=exact,
        on_draft_error=on_draft_error,
        progress=not json,
    )
    settings = opt.given(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop_strings=tuple(stop_string or ()),
        seed=seed,
        max_new_tokens=max_new_tokens,
    )
    conversation = Conversation(engine, system, **settings)
    turns: list[dict[str, Any]] = []
    while text := _ask(silent=json):
        try:
            stream = conversation.say(text)
            show(stream, engine, silent=json, coloured=show_drafted)
        except KeyboardInterrupt:
            complaints.print("[dim](broken off; the conversation goes on)[/dim]")
        except LopeError as error:
            if json:
                fail(str(error), exit_code=error.exit_code, as_json=True, document={"turns": turns})
            complaints.print(f"[red]lope:[/red] {escape(str(error))}")
            continue
        turns.append({"user": text, "reused_tokens": conversation.reused, **describe(engine, stream.answer)})
    if json:
        print_json({"turns": turns})


def _ask(*, silent: bool) -> str:
    """The next line that says something; "" at the end of the input, at an empty line and at Ctrl-C."""
    text = " "
    while text and not text.strip():
        text = _read_line(silent=silent)
    return text.strip()


def _read_line(*, silent: bool) -> str:
    try:
        if sys.stdin.isatty() and not silent:
            return console.input("[bold]> [/bold]")
        return sys.stdin.readline().rstrip("\r\n")
    except (EOFError, KeyboardInterrupt):
        return ""
    except UnicodeDecodeError:
        fail("stdin is not valid UTF-8", exit_code=2, as_json=silent)
