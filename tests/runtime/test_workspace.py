"""Workspace memory of kernels: aligned, disjoint, used again."""
import ctypes
import threading

from tilewright.runtime.loader import support_address

alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(support_address("tw_alloc"))
free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(support_address("tw_free"))


def test_workspace_is_aligned_disjoint_and_writable():
    sizes = [0, 1, 63, 64, 65, 1000, 4096, 5000, 1 << 20, 3_000_001]
    blocks = [alloc(n) for n in sizes]
    spans = sorted((b, b + n) for b, n in zip(blocks, sizes, strict=True))
    assert all(b % 64 == 0 for b in blocks)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:]))
    for i, (b, n) in enumerate(zip(blocks, sizes, strict=True)):
        ctypes.memset(b, i + 1, n)
    for i, (b, n) in enumerate(zip(blocks, sizes, strict=True)):
        assert ctypes.string_at(b, n) == bytes([i + 1]) * n
        free(b)
    free(None)


def test_a_freed_block_is_used_again():
    first = alloc(100_000)
    free(first)
    assert alloc(100_000) == first
    free(first)
    huge = alloc(3 << 30)                                  # never waits, only reserved
    free(huge)


def test_threads_never_share_a_block():
    bad = []

    def work(mark):
        for i in range(300):
            n = 64 << i % 5
            b = alloc(n)
            ctypes.memset(b, mark, n)
            if ctypes.string_at(b, n) != bytes([mark]) * n:
                bad.append(mark)
            free(b)

    workers = [threading.Thread(target=work, args=(m,)) for m in range(1, 7)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not bad
