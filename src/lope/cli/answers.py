"""How answers look: a live stream on a terminal, plain text into a pipe, a document for --json."""

import time
from typing import Any

import torch
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from lope.cli.output import complaints, console
from lope.engine.answer import Answer, Piece
from lope.engine.engine import Engine, Stream
from lope.version import __version__


def show(stream: Stream, engine: Engine, *, silent: bool, coloured: bool) -> None:
    """Write an answer while it comes, then what it gained. Ctrl-C ends it between two passes."""
    try:
        if silent:
            for _ in stream:
                pass
        elif console.is_terminal:
            _on_terminal(stream, engine, coloured)
        else:
            for piece in stream:
                console.file.write(piece.text)
                console.file.flush()
            console.file.write("\n")
    finally:
        if not silent:
            complaints.print(Text(summary(stream.answer), style="dim"), soft_wrap=True)
            if stream.answer.draft_error:
                complaints.print(f"[yellow]lope:[/yellow] {stream.answer.draft_error}; the answer went on without it")


def summary(answer: Answer) -> str:
    """One line: how much, how fast, how many tokens a pass; and the seed, where there was chance."""
    stats = answer.stats
    parts = [f"{stats.num_tokens} tokens in {stats.seconds:.1f} s"]
    if stats.passes:
        parts[0] += f" ({stats.decode_tokens_per_second:.1f} tokens/s after the prompt)"
        parts.append(f"{stats.tokens_per_pass:.2f} tokens per pass of the model (1 without speculation)")
    else:
        parts.append("all from the prompt's own pass")
    if stats.drafted:
        parts.append(f"{stats.accepted} of {stats.drafted} drafted tokens accepted")
    if answer.verifier != "greedy":
        parts.append(f"{answer.verifier} verification, seed {answer.seed}")
    return ", ".join(parts)


def describe(engine: Engine, answer: Answer) -> dict[str, Any]:
    """What `lope run --json` prints of an answer."""
    stats = answer.stats
    optional = {"logprobs": answer.logprobs, "draft_error": answer.draft_error}
    return {
        "text": answer.text,
        "tokens": list(answer.tokens),
        "num_tokens": stats.num_tokens,
        "passes": stats.passes,
        "tokens_per_pass": stats.tokens_per_pass,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "acceptance": list(stats.acceptance),
        "prompt_tokens": stats.prompt_tokens,
        "seconds": stats.seconds,
        "tokens_per_second": stats.tokens_per_second,
        "decode_tokens_per_second": stats.decode_tokens_per_second,
        "time_to_first_token": stats.time_to_first_token,
        "finish_reason": str(answer.finish_reason),
        "model": engine.model.name,
        "drafter": engine.parts.drafter,
        "shape": engine.parts.shape,
        "verifier": answer.verifier,
        "policy": engine.parts.policy,
        "draft_stop": engine.parts.draft_stop,
        "seed": answer.seed,
        "dtype": engine.model.backend.dtype,
        "kernels": engine.model.backend.kernels,
        "threads": torch.get_num_threads(),
        "exact": engine.exact,
        "lope_version": __version__,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _on_terminal(stream: Stream, engine: Engine, coloured: bool) -> None:
    """Finished rows scroll up; the row in the making and a status line stay below them."""
    began = time.perf_counter()
    row, tokens, passes = Text(), 0, 0
    with Live(console=console, refresh_per_second=12, transient=True) as live:
        for piece in stream:
            row.append_text(_styled(piece, engine) if coloured else Text(piece.text))
            row = _scroll(row, live.console)
            tokens += len(piece.tokens)
            passes += 1
            rate = tokens / (time.perf_counter() - began)
            status = f"{tokens} tokens · {rate:.1f} tokens/s · {tokens / passes:.2f} tokens per pass"
            live.update(Group(row, Text(status, style="dim")))
    console.print(row)


def _scroll(row: Text, console: Console) -> Text:
    """Print every finished row of the text; return the unfinished one."""
    *done, row = row.split("\n", allow_blank=True)
    for line in done:
        console.print(line)
    while row.cell_len > console.width:
        space = row.plain.rfind(" ", 0, console.width)
        cut = space + 1 if space > 0 else console.width
        console.print(row[:cut], end="\n", no_wrap=True, crop=False)
        row = row[cut:]
    return row


def _styled(piece: Piece, engine: Engine) -> Text:
    """A piece, green where its tokens were drafted. Only whole pieces are coloured: characters can span tokens."""
    drafted = sum(piece.drafted)
    if not drafted:
        return Text(piece.text)
    guessed = engine.model.tokenizer.decode(piece.tokens[:drafted])
    at = len(guessed) if piece.text.startswith(guessed) else len(piece.text)
    return Text.assemble((piece.text[:at], "green"), piece.text[at:])
