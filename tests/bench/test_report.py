"""Every number of the report is computed again from results.json; none stands there that cannot be."""

import copy
import re
from collections import defaultdict
from html.parser import HTMLParser
from statistics import median
from typing import Any

import numpy as np
import pytest
from tests.bench.documents import made_document

from lope.bench.report.number import Number
from lope.bench.report.page import Page

_VOID = {"meta", "line", "polyline", "br", "wbr", "img", "link", "input", "hr"}


class Marked(HTMLParser):
    """Collects marked numbers with what is shown, places of marks with the scale of their chart, and all other text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.numbers: list[tuple[dict[str, Any], str]] = []
        self.other = ""
        self.tags: set[str] = set()
        self.links: list[str] = []
        self._stack: list[dict[str, Any]] = []
        self.feed(page)
        assert not self._stack, "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found: dict[str, Any] = dict(attrs)
        self.tags.add(tag)
        self.links += [str(found[name]) for name in ("src", "href") if name in found]
        scale = next((s for s in reversed(self._stack) if "data-low" in s), {})
        if "data-figure" in found:
            self.numbers.append(({**found, "scale": scale}, ""))
        if tag not in _VOID:
            self._stack.append({**found, "tag": tag, "number": len(self.numbers) - 1})

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._stack.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        inside = self._stack[-1] if self._stack else {}
        if "data-figure" in inside:
            known, text = self.numbers[inside["number"]]
            self.numbers[inside["number"]] = (known, text + data)
        elif not any("data-setting" in s or "data-tick" in s or s["tag"] in ("style", "title") for s in self._stack):
            self.other += data + " "


class Recomputed:
    """Every figure from the rows of a document, with numpy and by no code of the bench."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.known: dict[tuple[str, str, str], float | None] = {}
        self.rows: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for row in document["rows"]:
            self.rows[row["system"]][row["id"]] = row

    def __call__(self, figure: str, system: str, group: str) -> float | None:
        if (figure, system, group) not in self.known:
            self.known[figure, system, group] = self.figure(figure, system, group)
        return self.known[figure, system, group]

    def figure(self, figure: str, system: str, group: str) -> float | None:
        name, _, place = figure.partition("@")
        if name == "pass_seconds":
            return self._pass_seconds(int(place), int(group))
        if name == "rows":
            return self._fastest(int(group))
        rows = [row for row in self.rows[system].values() if group in ("all", row["group"])]
        if name.startswith(("speedup", "noise")):
            return self._ratio(name, rows, system)
        if name == "acceptance":
            turns = [turn for row in rows for turn in row["turns"]]
            index = int(place) - 1
            return sum(t["accepted_at"][index] for t in turns) / sum(t["offered_at"][index] for t in turns)
        return self._plainly(name, rows)

    def _plainly(self, name: str, rows: list[dict[str, Any]]) -> float | None:
        steps = [[step for turn in row["turns"] for step in turn["steps"][1:]] for row in rows]
        whole = [[step for turn in row["turns"] for step in turn["steps"]] for row in rows]
        turns = [turn for row in rows for turn in row["turns"]]
        told = all(turn["passes"] is not None for turn in turns)
        base = self.rows[self.document["reference"]]
        if name == "prompts":
            return len(rows)
        if name == "agreement":
            equal = [[t["tokens"] for t in r["turns"]] == [t["tokens"] for t in base[r["id"]]["turns"]] for r in rows]
            return float(np.mean(equal))
        if name in ("drafted", "accepted"):
            return sum(turn[name] for turn in turns) if told else None
        if name == "drafted_per_accepted":
            accepted = sum(turn["accepted"] for turn in turns) if told else 0
            return sum(turn["drafted"] for turn in turns) / accepted if accepted else None
        if name == "tokens_per_pass":
            emitted = sum(count for row in steps for count, _ in row)
            return emitted / sum(turn["passes"] for turn in turns) if told else None
        if name == "rate":
            return median(sum(c for c, _ in row) / sum(s for _, s in row) for row in steps)
        if name == "rate_with_prompt":
            return median(sum(c for c, _ in row) / sum(s for _, s in row) for row in whole)
        if name == "time_to_first_token":
            return median(row["turns"][0]["steps"][0][1] for row in rows)
        if name.startswith("time_per_token_p"):
            each = [np.repeat([s / c for c, s in row], [c for c, _ in row]) for row in steps]
            return median(float(np.percentile(times, int(name[-2:]))) for times in each)
        assert name == "peak_memory_bytes", name
        return max(row["peak_memory_bytes"] for row in rows)

    def _ratio(self, name: str, rows: list[dict[str, Any]], system: str) -> float:
        base = self.rows[self.document["plain"][0] if name.startswith("noise") else self.document["reference"]]
        skip = 0 if "with_prompt" in name else 1

        def rate(row: dict[str, Any]) -> float:
            steps = [step for turn in row["turns"] for step in turn["steps"][skip:]]
            return sum(c for c, _ in steps) / sum(s for _, s in steps)

        ratios = np.array([rate(row) / rate(base[row["id"]]) for row in rows if row["id"] in base])
        if not name.endswith(("low", "high")):
            return float(np.median(ratios))
        drawn = np.random.default_rng(0).integers(0, len(ratios), (5000, len(ratios)))
        return float(np.percentile(np.median(ratios[drawn], axis=1), 2.5 if name.endswith("low") else 97.5))

    def _pass_seconds(self, rows: int, context: int) -> float:
        costs = self.document["calibration"][0]
        curve = costs["passes"][costs["contexts"].index(context)]
        return float(np.interp(rows, curve["sizes"], curve["seconds"]))

    def _fastest(self, context: int) -> int:
        costs = self.document["calibration"][0]
        best, chosen = 0.0, 0
        chances = [self(f"acceptance@{place}", costs["system"], "all") or 0.0 for place in range(1, 5)]
        for depth, nodes in enumerate(costs["nodes"]):
            tokens = 1.0 + sum(np.prod(chances[:place]) for place in range(1, min(depth, 4) + 1))
            drafting = (
                float(np.interp(depth, costs["drafting"]["sizes"], costs["drafting"]["seconds"])) if depth else 0.0
            )
            if depth > costs["drafting"]["sizes"][-1]:
                sizes, seconds = costs["drafting"]["sizes"], costs["drafting"]["seconds"]
                drafting = seconds[-1] + (depth - sizes[-1]) * (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
            speed = tokens / (self._pass_seconds(1 + nodes, context) + costs["overhead"] + drafting)
            if speed > best:
                best, chosen = speed, nodes
        return 1 + chosen


def wrong_numbers(page: str, document: dict[str, Any]) -> list[str]:
    """Numbers of the page that do not follow from the document, and marks that do not stand where they should."""
    recomputed, wrong = Recomputed(document), []
    for known, text in Marked(page).numbers:
        figure, system, group = (known[f"data-{name}"] for name in ("figure", "system", "group"))
        value = recomputed(figure, system, group)
        where = f"{figure} of {system} in {group}"
        shown = known.get("data-value")
        if (value is None) != (shown is None) or (value is not None and float(shown) != pytest.approx(value, rel=1e-9)):
            wrong.append(f"{where}: {shown} is {value}")
        elif text and text != Number(figure, system, group, value).text:
            wrong.append(f"{where}: {text} is shown for {value}")
        elif known.get("class") in ("dot", "bar", "point", "point marked"):
            wrong += _misplaced(known, where)
    return wrong


def _misplaced(known: dict[str, Any], where: str) -> list[str]:
    low, high = float(known["scale"]["data-low"]), float(known["scale"]["data-high"])
    value = float(known["data-value"]) * float(known["scale"].get("data-scale", 1.0))
    should = 100.0 * (value - low) / (high - low)
    places = {name: float(at) for name, at in re.findall(r"(left|width|bottom):(-?[\d.]+)%", known["style"])}
    at = places.get("bottom", places["left"] + places.get("width", 0.0))
    return [] if at == pytest.approx(should, abs=0.01) else [f"{where} stands at {at}, not {should}"]


DOCUMENTS = {
    "ours": made_document(),
    "peers": made_document(peers=("peer", "peer prompt lookup"), seed=1),
    "a peer that died": made_document(
        peers=("peer",), lacking=tuple((f"mini-rag-{n}", "peer") for n in range(1, 5)), calibration=False
    ),
    "another reference": {**made_document(("drafter=ngram", "plain", "plain again")), "reference": "drafter=ngram"},
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_number_follows_from_the_results(name: str) -> None:
    page = Page(DOCUMENTS[name]).show()
    assert wrong_numbers(page, DOCUMENTS[name]) == []
    assert len(Marked(page).numbers) > 300


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_number_stands_outside_of_what_is_checked(name: str) -> None:
    document = DOCUMENTS[name]
    text = Marked(Page(document).show()).other.replace("95 %", "")
    for context in document["calibration"][0]["contexts"] if document["calibration"] else []:
        text = text.replace(f"{context} tokens of context", "")
    assert re.findall(r"\d+", text) == []


def test_a_number_that_is_off_by_one_is_found() -> None:
    page = Page(DOCUMENTS["ours"]).show()
    for figure in ("speedup", "tokens_per_pass", "accepted", "acceptance@2", "pass_seconds@16", "noise_high"):
        value = re.search(rf'data-figure="{figure}" data-system="[^"]*" data-group="[^"]*" data-value="([^"]*)"', page)
        assert value is not None, figure
        changed = page[: value.start(1)] + repr(float(value[1]) + 1) + page[value.end(1) :]
        assert len(wrong_numbers(changed, DOCUMENTS["ours"])) == 1
    moved = re.sub(r'(class="dot" style="left:)([\d.]+)', lambda m: f"{m[1]}{float(m[2]) + 1}", page, count=1)
    assert len(wrong_numbers(moved, DOCUMENTS["ours"])) == 1


def test_a_changed_row_changes_the_page() -> None:
    document = copy.deepcopy(DOCUMENTS["ours"])
    page = Page(document).show()
    document["rows"][0]["turns"][0]["steps"][3][1] += 1.0
    assert wrong_numbers(page, document)


def test_the_page_needs_nothing_but_itself() -> None:
    page = Page(DOCUMENTS["peers"]).show()
    found = Marked(page)
    assert found.links == []
    assert not found.tags & {"script", "link", "iframe", "img", "object"}
    assert not re.search(r"https?:|url\(|@import", page)
    assert "prefers-color-scheme" in page
    assert "made &lt;up&gt;" in page


def test_every_section_is_there_and_the_cost_only_with_a_calibration() -> None:
    page = Page(DOCUMENTS["ours"]).show()
    titles = [
        "Speed-up by category",
        "Tokens per pass by category",
        "Acceptance by position",
        "Cost of a pass",
        "Waste",
    ]
    assert [title for title in titles if f"<h2>{title}</h2>" in page] == titles
    assert "Everything" in page
    assert "Settings" in page
    assert "Cost of a pass" not in Page(DOCUMENTS["a peer that died"]).show()


def test_drawn_answers_are_said_to_be_drawn() -> None:
    document = made_document()
    assert "greedily" in Page(document).show()
    document["settings"]["temperature"] = 0.7
    page = Page(document).show()
    assert "greedily" not in page
    assert "drawn at temperature" in page
    assert '<span data-setting="temperature">0.7</span>' in page
