"""No legality check is missing in 30 random programs; `python -m tests.fuzz.legality` looks at thousands."""
from __future__ import annotations

from .legality import CHANGED, SAME, run_programs


def test_no_wrong_rewrite_is_accepted():
    found = run_programs(range(30), jobs=2)
    assert not found.wrong, "\n".join(found.wrong)
    counts = found.counts
    refused = sum(n for (_, outcome, accepted), n in counts.items() if outcome == CHANGED and not accepted)
    harmless = sum(n for (_, outcome, _), n in counts.items() if outcome == SAME)
    assert refused >= 5 and harmless >= 100
