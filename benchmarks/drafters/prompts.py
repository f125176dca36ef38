"""Prompts of the kinds that users bring, to distil from: `python benchmarks/drafters/prompts.py OUT.jsonl`.

From the training prompts and the articles of `../shared/data` ($LOPE_DATA), and from the lists below: what to
summarise, to answer from a passage, to answer at once, to translate, to reckon, to write. None is of Spec-Bench.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

DATA = Path(os.environ.get("LOPE_DATA", "../shared/data"))
# prompts of each kind; of plain instructions there are no more
COUNTS = {
    "summary": 350,
    "passage": 350,
    "question": 600,
    "translation": 350,
    "sums": 600,
    "instruction": 273,
    "task": 700,
}

TOPICS = (
    "the water cycle", "black holes", "a healthy breakfast", "electric cars", "the French Revolution",
    "photosynthesis", "learning a language", "remote work", "inflation", "a rainy day in a small town",
    "machine learning", "volcanoes", "the Roman Empire", "sleep", "public libraries", "recycling", "a lost dog",
    "chess", "vaccines", "the stock market", "gravity", "a first job interview", "the Silk Road", "coral reefs",
    "time management", "democracy", "a trip to Japan", "DNA", "online privacy", "gardening", "the human heart",
    "jazz", "renewable energy", "a haunted lighthouse", "budgets", "evolution", "urban planning", "meditation",
    "the Great Depression", "climate change", "a friendship", "antibiotics",
)  # fmt: skip
WRITING = (
    "Write a short story about {}.", "Write a blog post about {}.", "Write a poem of twelve lines about {}.",
    "Explain {} to a child of ten.", "Explain {} in detail and give examples.", "What are the pros and cons of {}?",
    "Write a professional email to a colleague about {}.", "Give me five tips on {}.", "List ten facts about {}.",
    "Compare how people thought about {} a hundred years ago and today.", "Write an outline of a lecture on {}.",
    "Pretend that you are an expert on {}. How would you answer a sceptic?", "Write a dialogue of two friends on {}.",
    "How does {} affect everyday life, and what can we do about it?",
    "Describe the history of {} and why it matters.", "Write a product review that has to do with {}.",
    "Write a speech about {} for a school.",
)  # fmt: skip
CODING = (
    "Write a Python function that {}.", "Write a C++ program that {}.", "Implement in JavaScript a function that {}.",
    "How do I write code that {}? Explain each step.", "Write a Python program that {} and tests for it.",
)  # fmt: skip
PROBLEMS = (
    "reverses a linked list", "finds the longest word of a text file", "checks whether a number is prime",
    "merges two sorted lists", "counts the words of a file", "finds duplicates in an array", "sorts a list of dates",
    "computes Fibonacci numbers with memoization", "validates an email address", "implements a stack with two queues",
    "finds the shortest path in a grid", "parses a CSV file into dictionaries", "rotates a matrix by ninety degrees",
    "downloads a web page and lists its links", "solves the knapsack problem", "evaluates an arithmetic expression",
    "finds the k most frequent elements", "implements binary search", "detects a cycle in a graph", "caches results",
)  # fmt: skip
ASKING = (
    "who is {}?", "What is {}?", "Where is {}?", "When did {} happen?", "what is {} known for", "Who created {}?",
    "Why is {} important?", "how old is {}", "Who played the main part in {}?", "what year did {} come out",
)  # fmt: skip
GERMAN = (
    ("Die Regierung", "Der Präsident", "Ein Sprecher der Polizei", "Die Europäische Union", "Das Gericht",
     "Die Opposition im Parlament", "Ein junger Forscher aus Hamburg", "Die Bürgermeisterin", "Meine Tante"),
    ("kündigte am Montag an", "bestätigte gestern", "sagte vor Journalisten", "hofft seit Jahren", "erklärte in Berlin",
     "schrieb in einem Brief", "behauptet trotz aller Kritik", "teilte nach der Sitzung mit", "fürchtet jedoch"),
    ("dass die Preise im nächsten Jahr weiter steigen", "dass der Vertrag bis zum Sommer unterzeichnet wird",
     "dass niemand bei dem Unfall verletzt wurde", "dass mehr Geld für Schulen und Krankenhäuser nötig ist",
     "dass die Verhandlungen gescheitert sind", "dass die Mannschaft das Finale erreichen kann",
     "dass der Zug wegen des Sturms nicht fährt", "dass das alte Theater wieder geöffnet wird",
     "dass die Grenze in der Nacht geschlossen bleibt", "dass die neue Brücke sicher ist"),
)  # fmt: skip
SHORTER = (
    "Summarize: ",
    "Summarize the following article in three sentences:\n\n",
    "Write a summary of this text.\n\n",
)


def lines(name: str) -> Iterator[dict[str, str]]:
    """Rows of a file of the data."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def articles() -> list[tuple[str, str]]:
    """(title, text) as it is written elsewhere: the corpus stands with blanks around its marks."""
    found = []
    for row in lines("wikitext.jsonl.gz"):
        title, _, text = row["text"].strip().removeprefix("=").partition(" = \n")
        text = re.sub(r" @(.)@ ", r"\1", " ".join(text.split()))
        text = re.sub(r" ([,.;:!?)'])", r"\1", re.sub(r"([(]) ", r"\1", re.sub(r'" ([^"]*) "', r'"\1"', text)))
        found.append((title.strip(), text))
    return [(title, text) for title, text in found if title and len(text) > 300]


def kinds(seed: int) -> dict[str, Callable[[], str]]:
    """What makes one prompt of each kind."""
    chance = random.Random(seed)
    read, given = articles(), list(lines("prompts_train.jsonl.gz"))
    sums = [row["prompt"] for row in given if row["source"].startswith("gsm8k")]
    others = iter([row["prompt"] for row in given if not row["source"].startswith("gsm8k")])

    def passage() -> str:
        (title, text), (_, other) = chance.sample(read, 2)
        both = [text, other[: chance.choice((0, 400, 800))]]
        chance.shuffle(both)
        return "\n".join([*filter(None, both), chance.choice(ASKING).format(title)])

    def task() -> str:
        if chance.random() < 0.2:
            return chance.choice(CODING).format(chance.choice(PROBLEMS))
        return chance.choice(WRITING).format(chance.choice(TOPICS))

    return {
        "summary": lambda: chance.choice(SHORTER) + chance.choice(read)[1],
        "passage": passage,
        "question": lambda: chance.choice(ASKING).format(
            chance.choice((chance.choice(read)[0], chance.choice(TOPICS)))
        ),
        "translation": lambda: "Translate German to English: {} {}, {}.".format(*map(chance.choice, GERMAN)),
        "sums": lambda: chance.choice(sums),
        "instruction": lambda: next(others),
        "task": task,
    }


def prompts(seed: int) -> list[dict[str, str]]:
    """All of them, none twice, and none that a smaller seed gives."""
    found: dict[str, str] = {}
    for earlier in range(seed + 1):
        makers, before = kinds(earlier), set(found)
        for kind, count in COUNTS.items():
            found |= dict.fromkeys(itertools.islice(iter(makers[kind], None), count), kind)
    return [{"source": kind, "prompt": prompt} for prompt, kind in found.items() if prompt not in before]


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows = prompts(asked.seed)
    asked.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} prompts: {asked.out}")


if __name__ == "__main__":
    main()
