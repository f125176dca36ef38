"""Tasks with answers, from JSON lines."""

from pathlib import Path

from lope.bench.json_lines import rows_of
from lope.bench.quality.answers import Question, check_match
from lope.core.errors import UsageError

_FORM = '{"prompt": "...", "answer": "..." or ["...", ...], "match": "exact", "contains" or "number"}'


def read_tasks(path: Path) -> list[Question]:
    """The questions of a file; `match` may be left out. Raises UsageError with file and line."""
    questions = []
    for where, row in rows_of(path, _FORM):
        prompt, answers = row.get("prompt"), row.get("answer")
        if not isinstance(prompt, str) or not prompt.strip():
            raise UsageError(f"{where}: has no prompt (a row is {_FORM})")
        listed = [answers] if isinstance(answers, str) else answers
        if not isinstance(listed, list) or not listed or not all(isinstance(each, str) and each for each in listed):
            raise UsageError(f"{where}: has no answer (a row is {_FORM})")
        questions.append(Question(prompt, tuple(listed), check_match(row.get("match", "exact"), where)))
    return questions
