"""Sizes of caches and memory, as Linux writes them."""
from tilewright.runtime.machine import available_memory, cache_sizes


def test_caches(tmp_path):
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "1G"),
            ("4", "Unified", "much")]
    for n, row in enumerate(rows):
        (tmp_path / f"index{n}").mkdir()
        for name, text in zip(("level", "type", "size"), row):
            (tmp_path / f"index{n}" / name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()
    assert cache_sizes(tmp_path) == [("L1d", 48 << 10), ("L2", 2 << 20), ("L3", 1 << 30)]
    assert cache_sizes(tmp_path / "none") == []
    assert all(size > 0 for _, size in cache_sizes())


def test_memory(tmp_path):
    info = tmp_path / "meminfo"
    info.write_text("MemTotal:  100 kB\nMemAvailable:   64 kB\n")
    assert available_memory(info, tmp_path) == 64 << 10
    (tmp_path / "memory.max").write_text("50000\n")
    (tmp_path / "memory.current").write_text("20000\n")
    assert available_memory(info, tmp_path) == 30000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(info, tmp_path) == 64 << 10
    assert available_memory(tmp_path / "none", tmp_path) > 1 << 20 and available_memory() > 0
