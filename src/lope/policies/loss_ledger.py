"""Never much slower than plain decoding: a round may draft only what the balance could lose."""


class LossLedger:
    """A balance of seconds. Time saved pays in, time lost is drawn; a share of all time is allowed to be lost.

    Since a draft is afforded only if the balance covers its whole loss, the time of any stretch of rounds is at most
    (1 + allowance) times plain decoding's and `reserve` plain passes; from the start on, `credit` passes.

    allowance: share of plain time.
    credit:    plain passes that may be lost at the start.
    reserve:   plain passes that the balance is capped at: what one text gained may not all be lost on the next.
    """

    def __init__(self, allowance: float, credit: float, reserve: float) -> None:
        self._allowance = allowance
        self._credit = credit
        self._reserve = reserve
        self._balance: float | None = None

    def balance(self, plain_pass: float) -> float:
        """Seconds that may be lost now; `plain_pass`: what a round without a draft costs."""
        return self._credit * plain_pass if self._balance is None else self._balance

    def enter(self, spent: float, plain: float, plain_pass: float) -> None:
        """One round: its seconds, and the seconds in which plain decoding makes as many tokens."""
        balance = self.balance(plain_pass) + (1.0 + self._allowance) * plain - spent
        self._balance = min(balance, self._reserve * plain_pass)
