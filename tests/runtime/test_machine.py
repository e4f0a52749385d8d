"""Sizes of caches and memory, as Linux writes them."""
from tilewright.runtime.machine import available_memory, cache_sizes, last_level_bytes


def test_caches(tmp_path):
    """Four processors, of which two share a last-level cache each."""
    for cpu in range(4):
        rows = [("1", "Data", "48K", cpu), ("1", "Instruction", "32K", cpu), ("2", "Unified", "2048K", cpu),
                ("3", "Unified", "1G", "0-1" if cpu < 2 else "2-3"), ("4", "Unified", "much", cpu)]
        for n, row in enumerate(rows):
            index = tmp_path / f"cpu{cpu}" / "cache" / f"index{n}"
            index.mkdir(parents=True)
            for name, text in zip(("level", "type", "size", "shared_cpu_list"), row):
                (index / name).write_text(f"{text}\n")
    (tmp_path / "cpu0" / "cache" / "index9").mkdir()
    (tmp_path / "cpufreq").mkdir()
    assert cache_sizes(tmp_path) == [("L1d", 48 << 10), ("L2", 2 << 20), ("L3", 1 << 30)]
    assert last_level_bytes(tmp_path) == 2 << 30
    assert cache_sizes(tmp_path / "none") == [] and last_level_bytes(tmp_path / "none") == 0
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
