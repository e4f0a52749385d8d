"""A smaller program that fails in the same way. Each attempt runs in a process of its own: it may crash or not end."""
from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from .common import Case, Wrong

P = TypeVar("P")
LIMIT = 20                                             # seconds for one attempt


def outcome(check: Callable[[], None]) -> str:
    """How check ends: "" where it is right, else the kind of failure without its numbers."""
    try:
        check()
    except Wrong as why:
        return f"wrong: {sorted({line.split(':')[0] for line in str(why).splitlines()})}"
    except Exception as why:
        where = traceback.extract_tb(why.__traceback__)[-1]
        return f"raised {type(why).__name__} at {where.filename.rsplit('/', 1)[-1]}:{where.lineno}"
    return ""


def outcome_apart(check: Callable[[], None]) -> str:
    """outcome(check) of a child process; "died" or "too slow" where it gives none."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.write(write, outcome(check).encode()[:4000] or b"ok")
        finally:
            os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], LIMIT)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return "too slow"
        answer = os.read(read, 4096).decode()
        return "" if answer == "ok" else answer or "died"
    finally:
        os.close(read)
        os.waitpid(child, 0)


def shrink(kind: Any, p: P, target: str, attempts: int = 400) -> tuple[P, str]:
    """(p or a smaller program with the same outcome, that outcome); kind: the module of the program."""
    def tried(q: P) -> str:
        return outcome_apart(lambda: kind.check(q, Case(target)))
    p = getattr(kind, "prepared", lambda q: q)(p)
    goal = tried(p)
    going = bool(goal)
    while going:
        going = False
        for make in kind.smaller(p):
            if attempts <= 0:
                break
            attempts -= 1
            q = make()
            if tried(q) == goal:
                p, going = q, True
                break
    return p, goal
