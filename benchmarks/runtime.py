"""What the lean runtime costs, beside transformers: `python benchmarks/runtime.py [--json]`.

Interleaved rounds, medians. Context 256, sampler and engine included. Needs the `hf` extra for the comparison.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import lope
from lope.core.budget import UNLIMITED, Budget
from lope.core.chance import KeyedChance
from lope.core.draft import EMPTY, Draft
from lope.core.prompt import Prompt
from lope.core.protocols import Ask, Job
from lope.core.sampling import Sampling
from lope.core.scores import Needs
from lope.core.verdict import Verdict
from lope.engine.engine import Engine

CONTEXT = 256
TEXT = """
The harbour at Orrin lies between two low headlands, and on clear evenings the fishing boats come home in a single
line, their lamps lit before the sun is quite gone. Old Marta, who mended nets for fifty years, used to say that you
could tell a captain's temper from the way he crossed the bar: the patient ones waited for the seventh wave, the
others trusted their engines and got wet. In winter the road over the moor closes, sometimes for weeks, and then
everything arrives by water: flour, letters, schoolbooks, once a grand piano for the doctor's daughter, which stood
three days on the quay under a sail while the whole town argued about how to carry it uphill. They took it apart in
the end. A clockmaker numbered every screw and hammer, eleven men bore the frame, and a child was given each key,
eighty-eight of them walking in order behind, white and black, so that none should be lost. When it had been put
together again one note was missing. Nobody would say whose. The doctor's daughter played around it so well that
visitors never noticed, and years later, when she came back from the conservatory to give a concert, she found a
small parcel on the music stand, wrapped in newspaper from that same winter. Inside lay the key, polished, with a
name written beneath in a hand that she almost knew. She fitted it herself before the audience came in. That night
the people of Orrin heard the waltz whole for the first time, and at the very end, where the melody climbs to the
note they had done without, somebody at the back of the hall began to laugh, and then to weep, and the patient
captains and the impatient ones stood up together and clapped until the lamps along the pier had burned down.
"""


def interleaved(rounds: int, **runs: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of each run, taken in turns, the order reversed every other round; one round of each is thrown away."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in list(runs)[:: 1 if number % 2 == 0 else -1]:
            seconds[name].append(runs[name]())
    return seconds


def ratio(seconds: dict[str, list[float]], over: str, under: str) -> float:
    """Median over rounds of one run's seconds by another's."""
    return statistics.median(a / b for a, b in zip(seconds[over], seconds[under], strict=True))


def timed(act: Callable[[], Any]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def tree(engine: Engine, prompt: Prompt) -> Draft:
    """An rsd_s draft of 4 x 4 nodes after the prompt, drawn from the target's own first layers."""
    drafting = lope.load(drafter="truncated:layers=4", shape="rsd_s:width=4,depth=4", progress=False).drafter
    sampling = Sampling(temperature=1.0)
    ask = Ask(
        drafting.open(prompt, engine.target.open(prompt)),
        Budget(UNLIMITED, UNLIMITED),
        sampling.begin(prompt),
        KeyedChance(0, 1, len(prompt.ids)),
    )
    draft = drafting.propose([ask])[0]
    assert len(draft) == 16
    return draft


def passes(engine: Engine, prompt: Prompt, rounds: int) -> dict[str, Any]:
    """Passes of one and of seventeen rows, exact and not; and the linear layers alone."""
    draft = tree(engine, prompt)
    backend: Any = engine.model.backend
    runs: dict[str, Callable[[], float]] = {}
    for name in ("exact", "fast") if backend.can_be_exact else ("fast",):
        target = backend.target(name == "exact")
        session = target.open(prompt)
        target.score([Job(session, EMPTY, Needs(logits=1))])
        session.commit(EMPTY, Verdict((), prompt.ids[:1]))
        for rows, tried in ((1, EMPTY), (17, draft)):
            job = [Job(session, tried, Needs(logits=1))]
            runs[f"{name}_{rows}"] = lambda target=target, job=job: timed(lambda: target.score(job))
    weights = backend._weights
    for rows in (1, 17):
        narrow = torch.randn(rows, weights.config.hidden_size)
        wide = torch.randn(rows, weights.config.intermediate_size)

        def linears(narrow: torch.Tensor = narrow, wide: torch.Tensor = wide) -> None:
            with torch.inference_mode():
                for layer in weights.layers:
                    layer.qkv(narrow)
                    layer.output(narrow, narrow)
                    layer.gate_up(narrow)
                    layer.down(wide, narrow)
                weights.head(narrow)

        runs[f"linears_{rows}"] = lambda linears=linears: timed(linears)
    seconds = interleaved(rounds, **runs)
    kind = "exact" if engine.exact else "fast"
    outside = [(a - b) / a for a, b in zip(seconds[f"{kind}_1"], seconds["linears_1"], strict=True)]
    document: dict[str, Any] = {
        "verify16_vs_1": ratio(seconds, f"{kind}_17", f"{kind}_1"),
        "verify16_vs_1_linears": ratio(seconds, "linears_17", "linears_1"),
        "outside_linears": statistics.median(outside),
        "milliseconds": {name: 1e3 * statistics.median(values) for name, values in seconds.items()},
    }
    if engine.exact:
        document["exact_vs_fast_1"] = ratio(seconds, "exact_1", "fast_1")
        document["exact_vs_fast_17"] = ratio(seconds, "exact_17", "fast_17")
    return document


def decoding(engine: Engine, prompt: Prompt, rounds: int, tokens: int) -> dict[str, Any]:
    """Plain decoding of lope and of transformers: seconds after the prompt's pass."""
    from transformers import AutoModelForCausalLM

    from lope.models.cache_folder import CacheFolder

    folder = next(path for path in sorted(CacheFolder.default().models.iterdir()) if (path / "config.json").is_file())
    plain = engine.plain()

    def ours() -> float:
        answer = plain.generate(prompt, max_new_tokens=tokens + 1, ignore_stop=True)
        return answer.stats.seconds - answer.stats.time_to_first_token

    runs: dict[str, Callable[[], float]] = {"lope": ours}
    ids = torch.tensor([prompt.ids])
    for dtype in (torch.bfloat16, torch.float32):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
        model.generation_config.eos_token_id = None
        name = str(dtype).replace("torch.", "transformers_")
        runs[name] = lambda model=model: _transformers(model, ids, tokens)
    seconds = interleaved(rounds, **runs)
    return {
        "plain_vs_transformers": ratio(seconds, "transformers_bfloat16", "lope"),
        "plain_vs_transformers_float32": ratio(seconds, "transformers_float32", "lope"),
        "tokens_per_second": {name: tokens / statistics.median(values) for name, values in seconds.items()},
    }


class _Clock:
    """A streamer that notes when tokens come; the first call brings the prompt."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass


def _transformers(model: Any, ids: torch.Tensor, tokens: int) -> float:
    clock = _Clock()
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=tokens + 1,
        min_new_tokens=tokens + 1,
        do_sample=False,
        streamer=clock,
        pad_token_id=0,
    )
    return clock.times[-1] - clock.times[1]


def batching(engine: Engine, rounds: int, tokens: int) -> dict[str, Any]:
    """Eight prompts together and one by one: tokens a second, with and without speculation."""
    ids = engine.model.tokenizer.encode(TEXT)
    prompts = [Prompt(ids[17 * i : 17 * i + CONTEXT]) for i in range(8)]
    found = {}
    for name, made in (("batch8_vs_single", engine.plain()), ("batch8_vs_single_speculative", engine)):
        settings: dict[str, Any] = {"max_new_tokens": tokens, "ignore_stop": True}

        def together(made: Engine = made, settings: dict[str, Any] = settings) -> float:
            return _decoding_seconds(made.generate_batch(prompts, **settings)) / 8

        def alone(made: Engine = made, settings: dict[str, Any] = settings) -> float:
            return _decoding_seconds([made.generate(prompts[0], **settings)])

        seconds = interleaved(rounds, together=together, alone=alone)
        found[name] = ratio(seconds, "alone", "together")
    return found


def _decoding_seconds(answers: list[Any]) -> float:
    return max(a.stats.seconds for a in answers) - max(a.stats.time_to_first_token for a in answers)


def second_start(repeats: int) -> float:
    """Seconds from the command to the first byte of the answer, median; the file cache is warm."""
    command = [sys.executable, "-m", "lope", "run", "Hi", "--max-new-tokens", "4"]
    found = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            found.append(time.perf_counter() - began)
            process.stdout.read()
    return statistics.median(found[1:])


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    engine = lope.load("smollm2", threads=options.threads, progress=False)
    prompt = Prompt(engine.model.tokenizer.encode(TEXT)[:CONTEXT])
    document = {
        "model": "smollm2",
        "dtype": engine.model.backend.dtype,
        "exact": engine.exact,
        "threads": options.threads,
        "context": CONTEXT,
        "lope_version": lope.__version__,
        "torch": torch.__version__,
        "cpu": _cpu(),
        **passes(engine, prompt, 2 * options.rounds),
        **decoding(engine, prompt, options.rounds, options.tokens),
        **batching(engine, max(3, options.rounds // 3), options.tokens),
        "second_start_seconds": second_start(5),
    }
    print(json.dumps(document) if options.json else json.dumps(document, indent=2))


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} x {len(names)}" if names else "unknown"


if __name__ == "__main__":
    main()
