"""How much of one machine type is used when: a step function over time that nodes are fitted into."""

from bisect import bisect_left, bisect_right, insort


class Usage:
    """Use of one machine type with `capacity` units; constant between the times at which it changes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._times = [0.0]
        self._used = [0]

    def earliest(self, ready: float, duration: float, need: int) -> float:
        """The first start >= `ready` from which `need` units stay free for `duration`."""
        start = ready
        place = max(0, bisect_right(self._times, ready) - 1)
        while place < len(self._times):
            if self._times[place] >= start + duration and self._times[place] > start:
                return start
            if self._used[place] + need > self.capacity and not self._ends_before(place, start):
                start = self._times[place + 1]
            place += 1
        return start

    def add(self, start: float, end: float, need: int) -> None:
        """Use `need` units from `start` to `end`."""
        if end <= start:
            return
        first, last = self._cut(start), self._cut(end)
        for place in range(first, last):
            self._used[place] += need

    def _ends_before(self, place: int, start: float) -> bool:
        return place + 1 < len(self._times) and self._times[place + 1] <= start

    def _cut(self, time: float) -> int:
        """The place of the piece that begins at `time`, made if it is not there."""
        place = bisect_left(self._times, time)
        if place == len(self._times) or self._times[place] != time:
            insort(self._times, time)
            self._used.insert(place, self._used[place - 1])
        return place
