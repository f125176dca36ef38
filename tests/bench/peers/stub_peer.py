"""A peer that needs no environment: it answers its prompt's length, and dies, hangs, fails or chatters when told to."""

import os
import signal
import sys
import time


class StubPeer:
    versions = {"stub": "1"}

    def answer(self, ids, max_new_tokens, stop, fresh):  # type: ignore[no-untyped-def]
        sys.stdout.write("chatter on stdout\n")
        sys.stdout.flush()
        if ids[0] == 101:
            sys.stderr.write("out of words\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if ids[0] == 102:
            time.sleep(600)
        if ids[0] == 103:
            raise ValueError("no such\ntoken")
        return {"tokens": [len(ids)] * max_new_tokens, "steps": [[1, 0.5], [max_new_tokens - 1, 0.1]], "passes": 1}


def open_peer(settings):  # type: ignore[no-untyped-def]
    if settings["model"] == "broken":
        raise RuntimeError("the model is broken")
    return StubPeer()
