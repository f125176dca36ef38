"""Is the answer with speculation the plain one? `python benchmarks/exactness.py --json`, on Spec-Bench prompts.

For each way of drafting: on how many prompts the greedy token list equals plain decoding, exact passes or not.
"""

import argparse
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

import lope
from lope.engine.engine import Engine
from lope.engine.parts import Parts
from lope.models.loading import load
from lope.policies.fixed import FixedPolicy

SUITE = Path(os.environ.get("LOPE_DATA", "../shared/data")) / "spec_bench.jsonl.gz"
WAYS = (
    ("ngram", "chain"),
    ("truncated:layers=15", "chain:depth=4"),
    ("truncated:layers=15", "rsd_c:branching=3-2-1"),
    ("truncated:layers=15", "rsd_s:width=4,depth=4"),
)


def prompts(suite: Path, count: int) -> list[str]:
    """First turns, spread evenly over the suite, none longer than 4,000 characters."""
    with gzip.open(suite, "rt") as lines:
        turns = [json.loads(line)["turns"][0] for line in lines]
    short = [turn for turn in turns if len(turn) <= 4000]
    return [short[number * len(short) // count] for number in range(count)]


def compared(
    model: Any, asks: list[str], tokens: int, batch: int, *, exact: bool, ways: tuple[tuple[str, str], ...]
) -> list[Any]:
    """One row for each way of drafting."""

    def engine(drafter: str, shape: str) -> Engine:
        return Engine(model, Parts(drafter=drafter, shape=shape), exact=exact, policy=FixedPolicy())

    plain = engine("none", "chain")
    expected = [answer.tokens for answer in _answered(plain, asks, tokens, batch)]
    rows = []
    for drafter, shape in ways:
        answers = _answered(engine(drafter, shape), asks, tokens, batch)
        equal = sum(answer.tokens == tokens_ for answer, tokens_ in zip(answers, expected, strict=True))
        passes = sum(answer.stats.passes for answer in answers)
        emitted = sum(answer.stats.num_tokens - answer.stats.prompt_emitted for answer in answers)
        rows.append(
            {
                "dtype": model.backend.dtype,
                "exact": exact,
                "drafter": drafter,
                "shape": shape,
                "prompts": len(asks),
                "equal": equal,
                "differing": 1 - equal / len(asks),
                "tokens_per_pass": emitted / passes,
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def _answered(engine: Engine, asks: list[str], tokens: int, batch: int) -> list[Any]:
    """All answers, `batch` prompts at a time (a batch says what its prompts say alone)."""
    groups = [asks[start : start + batch] for start in range(0, len(asks), batch)]
    return [answer for group in groups for answer in engine.generate_batch(group, max_new_tokens=tokens)]


def main() -> None:
    """Run all of it; bfloat16 runs n-gram only, whose passes are the widest this machine can afford in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.add_argument("--suite", type=Path, default=SUITE)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=1, help="prompts at a time")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    asks = prompts(options.suite, options.prompts)
    rows = []
    for dtype in options.dtypes.split(","):
        model = load("smollm2", dtype=dtype, progress=False)
        ways = WAYS if dtype == "float32" else WAYS[:1]
        for exact in (True, False) if model.backend.can_be_exact else (False,):
            rows += compared(model, asks, options.tokens, options.batch, exact=exact, ways=ways)
    document = {"tokens": options.tokens, "threads": options.threads, "lope_version": lope.__version__, "rows": rows}
    print(json.dumps(document) if options.json else json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
