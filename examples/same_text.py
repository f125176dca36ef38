"""The same seed gives the same text with and without speculation, alone or in a batch."""

import lope

plain = lope.load("smollm2", drafter="none")
fast = lope.load("smollm2", drafter="ngram")
settings = {"max_new_tokens": 32, "temperature": 0.8, "top_p": 0.95, "seed": 7}

question = "Write two lines about the sea."
alone = plain.generate(question, **settings)
drafted = fast.generate(question, **settings)
batched = fast.generate_batch([question, "Say hello."], **settings)[0]

assert alone.tokens == drafted.tokens == batched.tokens
print(alone.text)
