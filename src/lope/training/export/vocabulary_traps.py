"""The head's tokens: how many, and which token of the target each of them is.

d2t [K] int64 holds OFFSETS: row i of the head is target token i + d2t[i]. t2d [V] bool marks those tokens.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lope.training.export.exported_folder import PLAIN, ExportedFolder
from lope.training.export.trap import LLAMA_CPP, SGLANG, SPECULATORS, VLLM, Trap

_INTEGERS = (torch.int64, torch.int32)


def vocabulary_traps(folder: ExportedFolder) -> Iterator[Trap]:
    """Every trap about `draft_vocab_size`, `lm_head`, `d2t` and `t2d`."""
    yield from _size(folder)
    yield from _head(folder)
    yield from _offsets(folder)
    yield from _marks(folder)


def _size(folder: ExportedFolder) -> Iterator[Trap]:
    declared, total = folder.config.get("draft_vocab_size"), folder.size("vocab_size")
    if "draft_vocab_size" not in folder.config:
        if folder.form == PLAIN:
            ends = "SGLang stops, llama.cpp converts an ordinary Llama"
            loaders: tuple[str, ...] = (SGLANG, LLAMA_CPP)
        else:
            ends, loaders = "speculators takes 32000, llama.cpp converts an ordinary Llama", (SPECULATORS, LLAMA_CPP)
        yield Trap("draft_vocab_size missing", loaders, f"config.json has no draft_vocab_size: {ends}")
    taken = declared if isinstance(declared, int) else total
    if "lm_head.weight" in folder.shapes and taken != folder.kept:
        said = f"draft_vocab_size is {declared}" if isinstance(declared, int) else f"vocab_size is {total}"
        yield Trap(
            "draft_vocab_size mismatch",
            folder.readers,
            f"{said}, but lm_head.weight has {folder.kept} rows: the head is not loaded",
        )


def _head(folder: ExportedFolder) -> Iterator[Trap]:
    declared, own = folder.config.get("draft_vocab_size"), "lm_head.weight" in folder.shapes
    unset = "draft_vocab_size" in folder.config and declared is None
    if own and unset and folder.form == PLAIN:
        says = "draft_vocab_size is null, so the target's head replaces the drafter's own"
        yield Trap("own head unused", (SGLANG,), says)
    if own or unset:
        return
    if folder.kept < folder.size("vocab_size"):
        says = f"there is no lm_head.weight, and the target's head has not the {folder.kept} rows that d2t names"
        yield Trap("lm_head missing", folder.readers, says)
    elif folder.form == PLAIN:
        says = "there is no lm_head.weight; only draft_vocab_size null makes SGLang take the target's"
        yield Trap("lm_head missing", (SGLANG,), says)


def _offsets(folder: ExportedFolder) -> Iterator[Trap]:
    kept, total = folder.kept, folder.size("vocab_size")
    if "d2t" not in folder.shapes:
        if kept < total:
            yield Trap(
                "d2t missing",
                tuple(loader for loader in folder.readers if loader != SPECULATORS),
                f"the head has {kept} of {total} tokens and no d2t: row i is taken for target token i, "
                "and next to nothing is accepted (llama.cpp stops)",
            )
        return
    if kept == total:
        says = f"the head has all {total} tokens, so vLLM has no place for d2t and stops: leave d2t and t2d out"
        yield Trap("d2t without trimming", (VLLM,), says)
    if folder.shapes["d2t"] != (kept,):
        shape = list(folder.shapes["d2t"])
        yield Trap("d2t length", folder.readers, f"d2t has shape {shape}, but the head has {kept} rows")
        return
    offsets = folder.tensors["d2t"]
    if offsets.dtype not in _INTEGERS:
        says = f"d2t is stored as {offsets.dtype}, which may have rounded it, not as int64"
        yield Trap("d2t no whole numbers", folder.readers, says)
    yield from _targets(folder, offsets.long(), total)


def _targets(folder: ExportedFolder, offsets: Tensor, total: int) -> Iterator[Trap]:
    """What is wrong with the tokens i + d2t[i]."""
    if _holds_ids(folder, offsets, total):
        says = "d2t holds token ids; every loader adds i to entry i, so it must hold id - i"
        yield Trap("d2t holds ids", folder.readers, says)
        return
    tokens = offsets + torch.arange(len(offsets))
    beyond = tokens[(tokens < 0) | (tokens >= total)]
    if len(beyond):
        says = f"d2t leads to token {int(beyond[0])} of {total}: llama.cpp refuses it, the others fail when it is drawn"
        yield Trap("d2t out of range", folder.readers, says)
    if len(tokens.unique()) < len(tokens):
        says = "two rows of the head are the same target token: llama.cpp refuses it, vLLM lets either win"
        yield Trap("d2t names a token twice", (VLLM, LLAMA_CPP), says)
    elif bool((tokens[1:] < tokens[:-1]).any()):
        says = "the rows do not rise by target token, but t2d has no other order: speculators pairs them wrongly"
        yield Trap("d2t unsorted", (SPECULATORS,), says)


def _holds_ids(folder: ExportedFolder, offsets: Tensor, total: int) -> bool:
    """Whether d2t is a rising list of ids that only make sense without adding i to them."""
    rising = bool((offsets[1:] > offsets[:-1]).all()) and 0 <= int(offsets[0]) <= int(offsets[-1]) < total
    if not rising:
        return False
    tokens, marks = offsets + torch.arange(len(offsets)), folder.tensors.get("t2d")
    if marks is not None and marks.shape == (total,):
        marked = marks.nonzero().flatten()
        return torch.equal(marked, offsets) and not torch.equal(marked, tokens)
    return int(tokens[-1]) >= total


def _marks(folder: ExportedFolder) -> Iterator[Trap]:
    kept, total = folder.kept, folder.size("vocab_size")
    if "t2d" not in folder.shapes:
        if kept < total:
            says = "there is no t2d: engines pass over it, the speculators library stops"
            yield Trap("t2d missing", (SPECULATORS,), says)
        return
    if folder.shapes["t2d"] != (total,):
        yield Trap("t2d length", (SPECULATORS,), f"t2d has shape {list(folder.shapes['t2d'])}, not [{total}]")
        return
    marks = folder.tensors["t2d"]
    if marks.dtype != torch.bool:
        yield Trap("t2d not bool", (SPECULATORS,), f"t2d is stored as {marks.dtype}, not as bool")
    count = int(marks.bool().sum())
    if count != kept:
        yield Trap("t2d sum", (SPECULATORS,), f"t2d marks {count} tokens, but the head has {kept} rows")
    elif folder.shapes.get("d2t") == (kept,):
        offsets = folder.tensors["d2t"].long()
        tokens = (offsets + torch.arange(kept)).sort().values
        if not torch.equal(marks.nonzero().flatten(), tokens) and not _holds_ids(folder, offsets, total):
            yield Trap("t2d against d2t", (SPECULATORS,), "t2d and d2t name different tokens: one of them is stale")
