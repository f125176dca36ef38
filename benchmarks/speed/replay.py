"""Tokens per pass of n-gram lookup, replayed from the texts of a results file by a plain scan of all that was said.

usage: python benchmarks/speed/replay.py RESULTS.json [--suite FILE] [--system NAME]

Nothing of lope's drafter, policy or loop takes part, only its tokenizer and chat template: for every pass the longest
of the last four to one tokens that occurred before is looked for, latest occurrence first; what followed it, up to ten
tokens, is compared with what was said. A fixed budget should measure within 5 % of this; a policy that drafts less when
it does not pay makes fewer tokens a pass, and is shown for comparison only.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import lope
from lope.bench.record import Row
from lope.bench.results_file import read_document
from lope.bench.suite import Item, Suite

LONGEST, DRAFTED = 4, 10


def followed(words: list[int]) -> list[int]:
    """What followed the longest match of the end, at its latest earlier place; copied on into itself at the end."""
    for size in range(min(LONGEST, len(words) - 1), 0, -1):
        end = words[-size:]
        for at in range(len(words) - size - 1, -1, -1):
            if words[at : at + size] == end:
                copied, source = [], list(words)
                while len(copied) < DRAFTED:
                    copied.append(source[at + size + len(copied)])
                    source.append(copied[-1])
                return copied
    return []


def passes(prompt: list[int], said: list[int], emitted: int) -> int:
    """Passes after the prompt's own, which emitted the first `emitted` tokens."""
    done, count = emitted, 0
    while done < len(said):
        guess = followed(prompt + said[:done])
        right = 0
        # the last token of an answer is never drafted: a path and one more token must fit
        while right < min(len(guess), len(said) - done - 1) and guess[right] == said[done + right]:
            right += 1
        done += right + 1
        count += 1
    return count


def replay(engine: lope.Engine, item: Item, row: Row) -> tuple[int, int]:
    """(tokens, passes) after the prompts' own passes."""
    template, tokenizer = engine.model.template, engine.model.tokenizer
    assert template is not None, "a suite is a conversation: the model needs a chat template"
    messages: list[dict[str, str]] = []
    context: tuple[int, ...] = ()
    tokens = total = 0
    for text, turn in zip(item.turns, row.turns, strict=True):
        messages.append({"role": "user", "content": text})
        prompt = template.ids(tokenizer, messages, earlier=context)
        assert len(prompt) == turn.prompt_tokens, "the suite or the model is another one"
        emitted = turn.steps[0][0]
        tokens += len(turn.tokens) - emitted
        total += passes(list(prompt), list(turn.tokens), emitted)
        context = (*prompt, *turn.tokens)
        said = [token for token in turn.tokens if token not in engine.model.stop_tokens]
        messages.append({"role": "assistant", "content": tokenizer.decode(said)})
    return tokens, total


def main() -> None:
    """Print measured and replayed tokens per pass, group by group."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--system", default="ngram")
    given = parser.parse_args()
    document = read_document(given.results)
    items = {item.id: item for item in (Suite.read(given.suite) if given.suite else Suite.mini()).items}
    engine = lope.load(document["settings"]["model"], drafter="none", dtype=document["settings"]["dtype"])
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in map(Row.from_json, document["rows"]):
        if row.system == given.system:
            found = (row.decode_tokens, row.passes or 0, *replay(engine, items[row.id], row))
            for group in (row.group, "all"):
                counts[group] = [before + new for before, new in zip(counts[group], found, strict=True)]
    print(f"{'group':<16}{'measured':>10}{'replayed':>10}{'ratio':>8}")
    for group, (tokens, measured, again, replayed) in counts.items():
        own, other = tokens / max(measured, 1), again / max(replayed, 1)
        print(f"{group:<16}{own:>10.3f}{other:>10.3f}{own / other:>8.3f}")


if __name__ == "__main__":
    main()
