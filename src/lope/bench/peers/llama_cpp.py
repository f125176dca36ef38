"""The peer llama.cpp, through llama-cpp-python: plain or with prompt lookup, on the GGUF as it is or made smaller."""

import ctypes
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llama_cpp
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

_KINDS = {"Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0, "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0}


class LlamaCppPeer:
    """A GGUF file run by llama.cpp. kind: quantise the file anew so first (as `llama-quantize --allow-requantize`)."""

    def __init__(self, settings: dict[str, Any]) -> None:
        path = Path(settings["model"])
        if settings.get("kind"):
            path = _requantised(path, settings["kind"], Path(settings["scratch"]), settings["threads"])
        lookup = settings.get("prompt_lookup")
        self._llama = llama_cpp.Llama(
            str(path),
            n_ctx=settings["context"],
            n_threads=settings["threads"],
            n_threads_batch=settings["threads"],
            draft_model=LlamaPromptLookupDecoding(num_pred_tokens=lookup) if lookup else None,
            # a draft model needs the logits of all tokens; 0.3.36 makes room for them only where it is told so, and
            # fails at prompts of more than 512 tokens
            logits_all=bool(lookup),
            verbose=False,
        )
        self._rows: list[int] = []
        self._evaluate = self._llama.eval
        self._llama.eval = self._count
        self.versions = {"llama-cpp-python": llama_cpp.__version__}

    def answer(self, ids: list[int], max_new_tokens: int, stop: list[int], fresh: bool) -> dict[str, Any]:
        """Answer a prompt greedily. Tokens that come from one pass are one step."""
        if fresh:
            self._llama.reset()
        self._rows = []
        tokens: list[int] = []
        steps: list[tuple[int, float]] = []
        before = last = time.perf_counter()
        seen = 0
        for token in self._llama.generate(ids, temp=0.0, top_k=1, repeat_penalty=1.0):
            now = time.perf_counter()
            if len(self._rows) == seen:
                steps[-1] = (steps[-1][0] + 1, steps[-1][1] + now - last)
            else:
                steps.append((1, now - before))
                seen = len(self._rows)
            before = last = now
            tokens.append(int(token))
            if token in stop or len(tokens) == max_new_tokens:
                break
        passes = len(self._rows) - 1
        return {
            "tokens": tokens,
            "steps": steps,
            "passes": passes,
            "drafted": sum(rows - 1 for rows in self._rows[1:]),
            "accepted": len(tokens) - len(self._rows),
        }

    def _count(self, tokens: Sequence[int]) -> None:
        self._rows.append(len(tokens))
        self._evaluate(tokens)


def _requantised(path: Path, kind: str, scratch: Path, threads: int) -> Path:
    final = scratch / f"{path.stem}-{kind}.gguf"
    if not final.exists():
        partial = final.with_name(f".{final.name}.partial")
        scratch.mkdir(parents=True, exist_ok=True)
        wish = llama_cpp.llama_model_quantize_default_params()
        wish.ftype, wish.allow_requantize, wish.nthread = _KINDS[kind], True, threads
        code = llama_cpp.llama_model_quantize(str(path).encode(), str(partial).encode(), ctypes.byref(wish))
        if code:
            raise RuntimeError(f"llama.cpp cannot make {kind} of {path} (code {code})")
        partial.rename(final)
    return final


def open_peer(settings: dict[str, Any]) -> LlamaCppPeer:
    """Load the model."""
    return LlamaCppPeer(settings)
