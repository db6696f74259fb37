"""What a user's requests may take of a CPU."""

from __future__ import annotations

from specmine.daemon.system.cpu_allowances import CpuAllowances


def test_a_user_takes_what_was_saved_up_and_then_a_share() -> None:
    """Two seconds at once, then a twentieth of a CPU, whatever the others do."""
    allowances = CpuAllowances(share=0.05, most_s=2.0)
    now_s = 100.0
    for _ in range(4):
        assert allowances.wait_s(7, now_s) == 0
        allowances.spend(7, 0.5, now_s)
    assert allowances.wait_s(7, now_s) == 0, "all that was saved up is gone, and nothing is owed"
    allowances.spend(7, 0.5, now_s)
    assert allowances.wait_s(7, now_s) == 10
    assert allowances.wait_s(8, now_s) == 0
    now_s += 10
    assert allowances.wait_s(7, now_s) == 0
    taken = 0
    for step in range(1000):
        if not allowances.wait_s(7, now_s + step):
            allowances.spend(7, 0.25, now_s + step)
            taken += 1
    assert 49 <= taken * 0.25 <= 51
    assert allowances.wait_s(7, now_s + 1e6) == 0


def test_nothing_is_kept_of_users_who_owe_nothing() -> None:
    """A host of many users costs no memory for ever."""
    allowances = CpuAllowances()
    for uid in range(1000):
        allowances.spend(uid, 0.01, 10.0 * uid)
    assert len(allowances._full_at_s) == 1
