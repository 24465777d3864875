from __future__ import annotations

import random

import pytest

from onceover.errors import UsageError
from onceover.model.digest import EMPTY, Digest, sum_digests

SOME = [Digest(1, *(random.Random(n).randrange(1 << 32) for _ in range(4))) for n in range(50)]


def test_digest_of_a_union_is_the_sum_in_any_order() -> None:
    shuffled = SOME[:]
    random.Random(7).shuffle(shuffled)
    assert sum_digests(shuffled) == sum_digests(SOME) == sum_digests(SOME[:20]) + sum_digests(SOME[20:])
    assert sum_digests([]) == EMPTY


def test_doubled_record_shows_even_where_another_one_is_lost() -> None:
    one_lost_one_doubled = [*SOME[1:], SOME[1]]
    assert sum_digests(one_lost_one_doubled).records == sum_digests(SOME).records
    assert sum_digests(one_lost_one_doubled) != sum_digests(SOME)


@pytest.mark.parametrize("part", [-1, 1 << 63])
def test_digest_part_beyond_any_sum_is_refused(part: int) -> None:
    with pytest.raises(UsageError):
        Digest(1, part)
