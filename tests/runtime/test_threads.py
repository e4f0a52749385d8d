"""The thread pool: every iteration once, nested and concurrent regions, fork, affinity, Ctrl-C."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import runtime_kernels as kernels

import tilewright as tw
from tilewright import te
from tilewright.runtime import get_num_threads, set_num_threads
from tilewright.runtime.machine import available_cpus, group_cpus
from tilewright.support import config
from tilewright.support.errors import ArgumentError, CallError
from tilewright.support.locks import ForkSafeLock

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def default_threads():
    yield
    set_num_threads(0)


@pytest.fixture(scope="module")
def cover():
    return kernels.cover()["cover"]


@pytest.fixture(scope="module")
def who():
    return kernels.who()["who"]


def python(code, env=None, timeout=60):
    """Run code in a fresh interpreter that can import the kernels; result: its output."""
    full = f"import sys; sys.path.insert(0, {str(HERE)!r})\n" + textwrap.dedent(code)
    inherited = {k: v for k, v in os.environ.items() if k != "TILEWRIGHT_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", full], capture_output=True, text=True, timeout=timeout,
                          env={**inherited, **(env or {})}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_iteration_runs_once_nested_regions_too(cover, threads):
    set_num_threads(threads)
    assert get_num_threads() == threads
    rng = np.random.default_rng(threads)
    for _ in range(40):
        hits = np.zeros(rng.integers(0, 40, 2), "int32")
        cover(hits)
        assert (hits == 1).all()


def test_several_threads_take_part(who):
    set_num_threads(3)
    seen = np.zeros(300, "int64")
    for _ in range(100):                                   # a busy machine may need more than one try
        who(seen, 200000)
        if len(set(seen)) > 1:
            break
    assert 2 <= len(set(seen)) <= 3 and (seen != 0).all()
    set_num_threads(1)
    who(seen, 10)
    assert set(seen) == {threading.get_ident()}


def test_workers_sleep_and_wake(cover, who):
    set_num_threads(2)
    for pause in (0, 0.001, 0.02, 0.05):
        hits = np.zeros((16, 3), "int32")
        time.sleep(pause)
        cover(hits)
        assert (hits == 1).all()
    who(np.zeros(64, "int64"), 1000)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.5              # a worker that spins takes 1 s


def test_many_python_threads_call_at_once(cover):
    set_num_threads(2)
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(100):
            hits = np.zeros(rng.integers(1, 30, 2), "int32")
            cover(hits)
            if not (hits == 1).all():
                failures.append(hits)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(timeout=60)
    assert not failures and not any(w.is_alive() for w in workers)


def test_changing_the_number_of_threads_while_others_call(cover):
    stop = threading.Event()
    bad = []

    def work():
        while not stop.is_set():
            hits = np.zeros((20, 5), "int32")
            cover(hits)
            if not (hits == 1).all():
                bad.append(hits)

    w = threading.Thread(target=work)
    w.start()
    for i in range(200):
        set_num_threads(1 + i % 5)
    stop.set()
    w.join(timeout=30)
    assert not bad and not w.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_its_own_pool():
    out = python("""
        import os, sys, threading, warnings
        import numpy as np, runtime_kernels as kernels
        from tilewright.runtime import set_num_threads, get_num_threads
        warnings.simplefilter("ignore")
        cover, who = kernels.cover()["cover"], kernels.who()["who"]
        set_num_threads(2)
        stop = False
        def work():
            while not stop:
                cover(np.zeros((50, 4), "int32"))
        background = threading.Thread(target=work)
        background.start()
        for generation in range(8):
            child = os.fork()
            if child == 0:
                hits = np.zeros((50, 4), "int32")
                cover(hits)
                grandchild = os.fork()
                if grandchild == 0:
                    cover(hits)
                    os._exit(0 if (hits == 2).all() and get_num_threads() == 2 else 1)
                status = os.waitpid(grandchild, 0)[1]
                seen = np.zeros(100, "int64")
                for _ in range(200):
                    who(seen, 200000)
                    if len(set(seen)) == 2:
                        break
                os._exit(0 if (hits == 1).all() and status == 0 and len(set(seen)) == 2 else 1)
            assert os.waitpid(child, 0)[1] == 0, generation
        stop = True
        background.join()
        hits = np.zeros((50, 4), "int32")
        cover(hits)
        print("fine", (hits == 1).all())
    """)
    assert out == "fine True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_builds_can_build():
    out = python("""
        import os, signal, threading, time, warnings
        import numpy as np
        import tilewright as tw
        from tilewright import te
        warnings.simplefilter("ignore")
        def build(n):
            A = te.placeholder((n,), name="A")
            B = te.compute((n,), lambda i: A[i] + n, name="B")
            out = np.zeros(n, "float32")
            tw.build(te.create_prim_func([A, B]))(np.ones(n, "float32"), out)
            return (out == n + 1).all()
        stop, built = False, [build(999)]                  # what is imported at first use has been then
        def work():
            while not stop:
                built.append(build(1000 + len(built)))
        background = threading.Thread(target=work, daemon=True)
        background.start()
        for k in range(6):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(0 if build(10 + k) else 1)
            assert os.waitpid(child, 0)[1] == 0, k
        stop = True
        background.join()
        print("fine", all(built))
    """, {"TILEWRIGHT_CACHE": "0"})
    assert out == "fine True\n"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs the threads of a process as files")
def test_threads_that_leave_the_caller_s_processor_may_come_back(cover):
    """Whom the kernel wakes on the caller's processor moves away; where it may run stays as it was."""
    allowed = os.sched_getaffinity(0)
    for one in (None, min(allowed)):
        if one is not None:                              # there is no other processor
            os.sched_setaffinity(0, {one})
        try:
            set_num_threads(3)
            for _ in range(6):
                time.sleep(0.02)                         # for workers to fall asleep
                hits = np.zeros((40, 8), "int32")
                cover(hits)
                assert (hits == 1).all()
        finally:
            os.sched_setaffinity(0, allowed)
    wanted, end = (allowed, {min(allowed)}), time.monotonic() + 20
    while not all(m in wanted for m in affinities()) and time.monotonic() < end:
        time.sleep(0.01)                                 # one that woke late is on its way
    assert all(m in wanted for m in affinities())


def affinities():
    """The processors on which each thread of this process may run."""
    masks = []
    for task in Path("/proc/self/task").iterdir():
        try:
            masks.append(os.sched_getaffinity(int(task.name)))
        except ProcessLookupError:
            continue
    return masks


def test_a_thread_takes_a_lock_that_it_holds():
    lock, passed = ForkSafeLock(), []

    def work():                                            # as a signal handler does that comes in between
        with lock, lock:
            passed.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout=10)
    assert passed == [True]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_frees_the_locks_of_other_threads_alone():
    own, foreign, held, over = ForkSafeLock(), ForkSafeLock(), threading.Event(), threading.Event()

    def hold():
        with foreign:
            held.set()
            over.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    with own:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            try:
                with foreign:
                    own.__exit__()                         # raises where it is not held
                os._exit(0)
            except RuntimeError:
                os._exit(1)
    over.set()
    other.join()
    assert os.waitpid(child, 0)[1] == 0


def test_the_environment_sets_the_number_of_threads():
    code = "from tilewright.runtime import get_num_threads\nprint(get_num_threads())"
    assert python(code, {"TILEWRIGHT_NUM_THREADS": "5"}) == "5\n"
    assert python(code, {"TILEWRIGHT_NUM_THREADS": "0"}) == f"{available_cpus()}\n"
    with pytest.raises(AssertionError, match="TILEWRIGHT_NUM_THREADS='many' is not an integer"):
        python(code, {"TILEWRIGHT_NUM_THREADS": "many"})


@pytest.mark.parametrize("setting, value, allowed", [
    ("NUM_THREADS", "abc", "an integer from 0 to 1024"), ("NUM_THREADS", "-3", "an integer from 0 to 1024"),
    ("NUM_THREADS", "", "an integer from 0 to 1024"), ("NUM_THREADS", "9" * 5000, "an integer from 0 to 1024"),
    ("CACHE_SIZE_MB", "1.5", "an integer from 0 to"), ("PERF", "perhaps", "write 1 or 0"),
    ("CHECKED", "2", "write 1 or 0"), ("VERIFY", "-1", "write 1 or 0"), ("CACHE", "none", "write 1 or 0"),
])
def test_a_setting_is_checked_also_where_it_is_not_read(monkeypatch, setting, value, allowed):
    monkeypatch.setenv(f"TILEWRIGHT_{setting}", value)
    with pytest.raises(ArgumentError, match=f"TILEWRIGHT_{setting}='{value}'(.|\n)*{allowed}"):
        config.get("STRICT_MATH")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processor affinity")
def test_the_affinity_mask_is_respected():
    out = python("""
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from tilewright.runtime import get_num_threads, set_num_threads
        print(get_num_threads())
        set_num_threads(3); print(get_num_threads())
        set_num_threads(0); print(get_num_threads())
    """)
    assert out == "1\n3\n1\n"


def test_control_group_quotas(tmp_path):
    proc = tmp_path / "cgroup"
    root = tmp_path / "fs"
    (root / "a" / "b").mkdir(parents=True)
    proc.write_text("0::/a/b\n")
    assert group_cpus(proc, root) is None
    (root / "cpu.max").write_text("max 100000\n")
    assert group_cpus(proc, root) is None
    (root / "a" / "cpu.max").write_text("250000 100000\n")
    assert group_cpus(proc, root) == 3
    (root / "a" / "b" / "cpu.max").write_text("50000 100000\n")
    assert group_cpus(proc, root) == 1
    (root / "cpu" / "docker").mkdir(parents=True)
    proc.write_text("4:memory:/x\n3:cpu,cpuacct:/docker\n")
    (root / "cpu" / "docker" / "cpu.cfs_quota_us").write_text("200000\n")
    (root / "cpu" / "docker" / "cpu.cfs_period_us").write_text("100000\n")
    assert group_cpus(proc, root) == 2
    (root / "cpu" / "docker" / "cpu.cfs_quota_us").write_text("-1\n")
    assert group_cpus(proc, root) is None
    assert group_cpus(tmp_path / "absent", root) is None


@pytest.mark.parametrize("count", [-1, 1025, 2.0, True, "2"])
def test_counts_that_are_none_are_refused(count):
    with pytest.raises(ArgumentError, match="set_num_threads"):
        set_num_threads(count)


def test_interrupting_a_program_that_runs_kernels():
    code = f"import sys; sys.path.insert(0, {str(HERE)!r})\n" + textwrap.dedent("""
        import signal
        import numpy as np, runtime_kernels as kernels
        from tilewright.runtime import set_num_threads
        signal.signal(signal.SIGINT, signal.default_int_handler)     # a shell's background jobs ignore it
        who = kernels.who()["who"]
        set_num_threads(3)
        seen = np.zeros(64, "int64")
        who(seen, 10)
        print("ready", flush=True)
        try:
            while True:
                who(seen, 100000)
        except KeyboardInterrupt:
            who(seen, 10)
            print("interrupted")
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        process.kill()
    assert process.returncode == 0


@pytest.mark.parametrize(("target", "parallel"), [("llvm", False), ("llvm", True), ("c", True)])
def test_what_fails_in_a_call_fails_that_call_alone(target, parallel):
    n = 200_000
    T, at = te.placeholder((4,), name="T"), te.placeholder((n,), "int32", name="at")
    C = te.compute((n,), lambda i: T[at[i]], name="C")
    s = te.create_schedule(C.op)
    if parallel:
        s[C].parallel(C.op.axis[0])
    gather = tw.build(s, [T, at, C], target, name="gather")["gather"]
    set_num_threads(2)
    good, bad = np.zeros(n, "int32"), np.zeros(n, "int32")
    bad[-1 if parallel else 0] = 4                        # of the part of another thread
    outcomes, both = {False: set(), True: set()}, threading.Barrier(2)

    def work(indices):
        out = np.empty(n, "float32")
        for _ in range(150):
            both.wait()
            try:
                gather(np.ones(4, "float32"), indices, out)
                outcomes[indices is bad].add("returned")
            except CallError as error:
                outcomes[indices is bad].add(str(error).partition(",")[0])

    workers = [threading.Thread(target=work, args=(x,)) for x in (good, bad)]
    for w in workers:
        w.start()
    for w in workers:
        w.join(timeout=60)
    assert outcomes == {False: {"returned"}, True: {"gather: the index at[i] of T"}}
