"""When to search for holders, and for how long: by the names of the job first, then upwards.

The first one by name does not wait for its time: of short steps it would come many steps later.
What it takes is paid back by doing nothing afterwards, see ``LookPace.owed_ns``.
"""

from __future__ import annotations

from typing import Final

BY_NAME_NS: Final = 20_000_000
"""What a search by the names of the job is expected to take, until one has told; the first one gets
as much at once."""
UPWARDS_NS: Final = 80_000_000
"""What a search through all objects of the process is expected to take."""
_LONGER: Final = 4
"""One by name that did not come to its end gets so many times as long."""


class SearchPlan:
    """Lets searches wait until they are within the share, but for the first one by name.

    One that got too little time begins again.

    Args:
        most_ns: the longest that one may take.
    """

    def __init__(self, most_ns: int) -> None:
        self._most_ns = most_ns
        self.is_wanted = False
        """Whether there is growth to search for."""
        self.is_upwards = False
        """Whether one by name has left something to be found."""
        self._expected_ns = 0
        self._may_borrow = True
        self.forget()

    def forget(self) -> None:
        """What was to be searched for is gone."""
        self.is_wanted = self.is_upwards = False
        self._expected_ns = min(BY_NAME_NS, self._most_ns)

    def limit_ns(self, left_ns: int, *, may_wait: bool) -> int:
        """How long to search now; 0 is not yet.

        Args:
            left_ns: what the share leaves for it.
            may_wait: False where it would be gone by then: memory that falls now and then.
        """
        if may_wait and left_ns < self._expected_ns:
            return self._expected_ns if self._may_borrow else 0
        # One upwards that is stopped early has found nothing, and what it took is lost.
        is_whole = self.is_upwards or not may_wait
        return self._most_ns if is_whole else min(left_ns, self._most_ns)

    def searched(self, took_ns: int, limit_ns: int, *, ran_out: bool, is_left: bool) -> bool:
        """A search has ended; whether it was the last one.

        Args:
            took_ns: what it took.
            limit_ns: what it was allowed.
            ran_out: whether that was too little.
            is_left: whether some of what grows was not found.
        """
        self.is_wanted = True
        self._may_borrow = False
        if ran_out and limit_ns < self._most_ns:
            self._expected_ns = min(self._most_ns, _LONGER * limit_ns)
            return False
        if self.is_upwards or not is_left:
            return True
        self.is_upwards = True
        # It begins as the one before did.
        self._expected_ns = min(self._most_ns, max(UPWARDS_NS, took_ns))
        return False
