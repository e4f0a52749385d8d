"""Built-in schedules: a rule a file, which `table.py` collects and `apply.py` applies.

A rule says what it matches, for which targets and with what priority, and applies public primitives. Every module of
this folder is imported, so that a rule is in the table when its file is here.
"""
import importlib
import pkgutil

from tilewright.rules.apply import Decision, Scheduling, apply_rules
from tilewright.rules.table import CPU, RULES, Match, Rule, Work, every, matches, remove, rule

__all__ = ["CPU", "RULES", "Decision", "Match", "Rule", "Scheduling", "Work", "apply_rules", "are_built_in", "every",
           "matches", "remove", "rule"]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
_BUILT_IN = [*RULES.values()]


def are_built_in() -> bool:
    """True while the table is as it came: what rules of one's own make is not kept in the cache."""
    return [*RULES.values()] == _BUILT_IN
