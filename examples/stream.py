"""Stream an answer, then say what speculation gained."""

import lope

engine = lope.load("smollm2", drafter="ngram")
stream = engine.stream("List the planets of the solar system, one per line.", max_new_tokens=64)
for piece in stream:
    print(piece.text, end="", flush=True)
stats = stream.answer.stats
print(f"\n{stats.num_tokens} tokens, {stats.tokens_per_pass:.2f} tokens per pass")
