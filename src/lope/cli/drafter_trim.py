"""`lope drafter trim`: the same drafter with a smaller head, which is most of what it reads a step."""

from pathlib import Path
from typing import Annotated

import typer

from lope.cli import options as opt
from lope.cli.output import console, print_json
from lope.core.errors import UsageError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def trim(
    drafter: Annotated[Path, typer.Argument(help="a drafter folder (lope drafter train)")],
    vocab: Annotated[int, typer.Option(help="tokens that its head keeps")],
    out: Annotated[Path, typer.Option(help="a new folder for the trimmed drafter")],
    counts: Annotated[str, typer.Option(help="keep what is said most by the target, by the draft, or in text")] = (
        "target"
    ),
    distilled: Annotated[list[Path] | None, typer.Option("--set", help="of `lope drafter distill`; repeatable")] = None,
    text: Annotated[Path | None, typer.Option(help="a file of text, or of prompts to draft for")] = None,
    prompts: Annotated[int, typer.Option(help="with --counts draft: how many prompts it drafts for")] = 64,
    max_new_tokens: opt.MaxNewTokens = 64,
    target: opt.Model = "smollm2",
    dtype: opt.Dtype = "auto",
    threads: opt.Threads = None,
    seed: Annotated[int, typer.Option(help="with --counts draft: of what is drawn")] = 0,
    json: opt.AsJson = False,
) -> None:
    """Keep the VOCAB tokens of DRAFTER's head that are said most (VocabTrim), bit for bit as they are stored."""
    sets = tuple(distilled or ())
    _check(counts, sets, text)

    from lope.core import checks
    from lope.drafters.shipped_drafters import differences
    from lope.engine.opening import set_threads
    from lope.models.drafter_folder import DrafterFolder
    from lope.models.loading import load
    from lope.training.token_counts import TokenCounts, prompts_of
    from lope.training.trimming import Trimming
    from lope.training.vocabulary import always_kept

    checks.at_least("prompts", prompts, 1)
    checks.at_least("max_new_tokens", max_new_tokens, 1)
    if threads is not None:
        set_threads(threads)
    folder = DrafterFolder.read(drafter)
    model = load(target, dtype=dtype, progress=not json)
    for difference in differences(folder.about.target, model):
        raise UsageError(f"{drafter}: the drafter was made for {difference}: name its --target")
    if counts == "target":
        counted = TokenCounts.of_target(model, sets)
    elif counts == "text" and text is not None:
        counted = TokenCounts.of_text(model, text)
    else:
        asked = prompts_of(model, sets, text, prompts, max_new_tokens)
        counted = TokenCounts.of_drafts(model, folder, asked, max_new_tokens, seed)
    where = [text.name] if text is not None and not (counts == "draft" and sets) else [path.name for path in sets]
    source = {"counts": counts, "counted_in": where, "from": folder.path.resolve().name}
    found = Trimming(folder, vocab, counted, always_kept(model), source).write(out)
    if json:
        print_json({"out": str(out), "kind": folder.about.kind, **found})
        return
    console.print(f"drafter: {out}, {found['vocab']} of {found['vocab_before']} tokens", markup=False, soft_wrap=True)
    for name, words in (("coverage", "what was counted"), ("held_out_coverage", "texts that were not counted")):
        if found[name] is not None:
            share, before = 100 * found[name], 100 * found[f"{name}_before"]
            console.print(f"covers {share:.2f} % of {words} ({before:.2f} % before)", soft_wrap=True)


def _check(counts: str, sets: tuple[Path, ...], text: Path | None) -> None:
    """Raises UsageError where what is to be counted is not there."""
    if counts not in ("target", "draft", "text"):
        raise UsageError(f"--counts is target, draft or text, not {counts!r}")
    if counts == "target" and not sets:
        raise UsageError(
            "what the target says is counted in distilled sets: name one with --set (lope drafter distill)"
        )
    if counts == "text" and text is None:
        raise UsageError("--counts text needs --text FILE")
    if counts == "draft" and not sets and text is None:
        raise UsageError("--counts draft needs prompts to draft for: --set FOLDER or --text FILE")
