"""Nothing goes in; uniform 32-bit words of the operating system's randomness come out."""

import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_WORD_BYTES = 4
_CHUNK_WORDS = 1 << 18  # 1 MiB a system call: bounds the copy held beside the result


class Randomness(Protocol):
    """A source of independent, uniform 32-bit words. Only tests pass one other than the system's."""

    def integers(self, count: int) -> NDArray[np.uint32]: ...


@dataclass(frozen=True)
class SystemRandomness:
    """The operating system's generator. It keeps no state here, so nothing can be seeded, forked or
    replayed.
    """

    def integers(self, count: int) -> NDArray[np.uint32]:
        words = np.empty(count, dtype=np.uint32)
        for start in range(0, count, _CHUNK_WORDS):
            stop = min(start + _CHUNK_WORDS, count)
            words[start:stop] = np.frombuffer(os.urandom((stop - start) * _WORD_BYTES), dtype=np.uint32)
        return words
