"""The shared memory that the threads of a loop fill together."""
from __future__ import annotations

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import replaced
from tilewright.tir.buffer import Buffer
from tilewright.tir.node import statements
from tilewright.tir.shared_work import is_shared, shared_work_of
from tilewright.tir.stmt import THREAD_BINDING, For, Store, is_thread_axis


def filled_together(sch: Schedule, loop: For, thread_tag: str) -> set[Buffer]:
    """The shared buffers that nothing below loop, which is (to be) bound to thread_tag, writes but what its threads do
    together, between barriers."""
    if not is_thread_axis(thread_tag) or not any(
            isinstance(s, Store) and is_shared(s.buffer) for s in statements(loop)):
        return set()
    bound = loop if loop.thread_tag == thread_tag else loop.replace(kind=THREAD_BINDING, thread_tag=thread_tag)
    body = sch.func.body if bound is loop else replaced(sch.index, loop, bound)
    works = shared_work_of(sch.func.with_body(body), lambda *_, **__: None)
    parted = {id(s) for w in works if w.meets and w.divides(bound) for s in statements(w.stmt)}
    alone = {s.buffer for s in statements(bound) if isinstance(s, Store) and id(s) not in parted}
    return {s.buffer for s in statements(bound) if isinstance(s, Store) and is_shared(s.buffer)} - alone
