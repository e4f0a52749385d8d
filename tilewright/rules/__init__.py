"""Built-in schedules: a rule a file, which `table.py` collects and `apply.py` applies.

A rule says what it matches, for which targets and with what priority, and applies public primitives. Every module of
this folder is imported, so that a rule is in the table when its file is here.
"""
from tilewright.rules.apply import Decision, Scheduling, apply_rules
from tilewright.rules.facts import CONSTANT
from tilewright.rules.table import CPU, RULES, Match, Rule, Work, every, matches, remove, rule
from tilewright.support.registry import load_folder

__all__ = ["CONSTANT", "CPU", "RULES", "Decision", "Match", "Rule", "Scheduling", "Work", "apply_rules", "are_built_in",
           "every", "matches", "remove", "rule"]

load_folder(__name__)
_BUILT_IN = [*RULES.values()]


def are_built_in() -> bool:
    """True while the table is as it came: what rules of one's own make is not kept in the cache."""
    return [*RULES.values()] == _BUILT_IN
