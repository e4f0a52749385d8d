"""The cache of compiled objects: whole entries or none, private, bounded, never in the way."""
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from types import SimpleNamespace

import pytest

from tilewright.records import private
from tilewright.records.objects import ObjectCache, default_folder, object_cache
from tilewright.support.errors import ArgumentError

MIB = 1 << 20


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "objects", MIB)


def key(i):
    return f"{i:064x}"


def test_entries_come_back_also_in_another_process(cache, tmp_path):
    assert cache.get(key(1)) is None
    cache.put(key(1), b"code")
    assert cache.get(key(1)) == b"code" and ObjectCache(tmp_path / "objects", MIB).get(key(1)) == b"code"
    cache.put(key(1), b"")
    assert cache.get(key(1)) == b""
    assert cache.get_or_make(key(2), lambda: b"made") == b"made"
    assert cache.get_or_make(key(2), lambda: pytest.fail("made twice")) == b"made"
    cache.clear()
    assert cache.size() == 0


def test_the_folder_is_private(cache):
    cache.put(key(1), b"code")
    for path in [cache.folder, *cache.folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def entry(cache, number):
    """The file of an entry."""
    [path] = cache.folder.rglob(key(number))
    return path


@pytest.fixture
def own_group(monkeypatch):
    """Lets the group of new files be the user's own: no name of this machine's decides."""
    private._is_own_group.cache_clear()
    monkeypatch.setattr(private.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="me", pw_gid=os.getgid()))
    group = SimpleNamespace(gr_name="me", gr_mem=["me"])
    monkeypatch.setattr(private.grp, "getgrgid", lambda gid: group)
    yield group
    private._is_own_group.cache_clear()


def test_the_group_of_the_user_alone_is_nobody_else(tmp_path, own_group):
    folder = tmp_path / "mine"
    ObjectCache(folder, MIB)
    folder.chmod(0o770)
    os.chown(folder, -1, os.getgid())
    cache = ObjectCache(folder, MIB)
    cache.put(key(1), b"code")
    assert cache.get(key(1)) == b"code"
    own_group.gr_mem.append("another")
    private._is_own_group.cache_clear()
    with pytest.warns(RuntimeWarning, match="others may write to"):
        assert not ObjectCache(folder, MIB).usable


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lists are told by the mode there alone")
def test_an_access_list_is_somebody_else(tmp_path, own_group, monkeypatch):
    folder = tmp_path / "mine"
    ObjectCache(folder, MIB)
    folder.chmod(0o770)
    os.chown(folder, -1, os.getgid())
    monkeypatch.setattr(os, "getxattr", lambda path, name, follow_symlinks: b"somebody")
    with pytest.warns(RuntimeWarning, match="others may write to"):
        assert not ObjectCache(folder, MIB).usable


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_to_is_refused_and_left_as_it_is(tmp_path, mode, own_group):
    own_group.gr_name = "staff"
    folder = tmp_path / "loose"
    ObjectCache(folder, MIB).put(key(1), b"code")
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"(?s)loose is not used: others may write to .*hint: ") as warned:
        cache = ObjectCache(folder, MIB)
        cache.put(key(2), b"code")
        assert not cache.usable and cache.get(key(1)) is None and cache.get(key(2)) is None
    assert len(warned) == 1 and stat.S_IMODE(folder.stat().st_mode) == mode


def test_folders_above_may_be_root_s_or_sticky_and_nothing_else(tmp_path):
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o1777)
    assert ObjectCache(above / "sticky" / "objects", MIB).usable
    above.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"others may write to .*above, above it \(drwxrwxrwx\)"):
        assert not ObjectCache(above / "sticky" / "objects", MIB).usable
    assert stat.S_IMODE(above.stat().st_mode) == 0o777


def test_folders_that_are_made_on_the_way_are_private_whatever_the_mask(tmp_path):
    before = os.umask(0)
    try:
        assert ObjectCache(tmp_path / "a" / "b" / "objects", MIB).usable
    finally:
        os.umask(before)
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o700 for p in (tmp_path / "a", tmp_path / "a" / "b"))


def test_a_link_above_leads_to_a_folder_that_is_looked_at(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    cache = ObjectCache(tmp_path / "link" / "objects", MIB)
    assert cache.usable and cache.folder == tmp_path / "real" / "objects"
    (tmp_path / "real").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="real, above it"):
        assert not ObjectCache(tmp_path / "link" / "objects", MIB).usable


def test_a_folder_of_someone_else_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.warns(RuntimeWarning, match="belongs to user"):
        cache = ObjectCache(tmp_path / "theirs", MIB)
    cache.put(key(1), b"code")
    assert not cache.usable and cache.get(key(1)) is None and not os.listdir(tmp_path / "theirs")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.warns(RuntimeWarning, match="is a link"):
        assert not ObjectCache(tmp_path / "link", MIB).usable


def replaced_by(make):
    """Puts something else in the place of an entry: make(its path, a copy of it elsewhere)."""
    def plant(path, aside):
        path.rename(aside)
        make(path, aside)
    return plant


@pytest.mark.parametrize("plant, message", [
    (lambda path, aside: path.chmod(0o666), "others may write to"),
    (lambda path, aside: path.parent.chmod(0o777), "others may write to"),
    (replaced_by(lambda path, aside: path.symlink_to(aside)), "is a link"),
    (replaced_by(lambda path, aside: os.link(aside, path)), "has 2 names"),
    (replaced_by(lambda path, aside: os.mkfifo(path)), "is not a plain file"),
    (replaced_by(lambda path, aside: path.mkdir()), "is not a plain file"),
], ids=["writable", "folder", "link", "hard link", "fifo", "directory"])
def test_an_entry_that_others_could_have_written_is_refused(cache, tmp_path, plant, message):
    cache.put(key(1), b"code")
    plant(entry(cache, 1), tmp_path / "aside")
    with pytest.warns(RuntimeWarning, match=message) as warned:
        assert cache.get(key(1)) is None and cache.get(key(1)) is None
    assert len(warned) == 1


def test_an_entry_of_someone_else_is_refused_though_its_checksum_is_right(cache, monkeypatch):
    cache.put(key(1), b"code")
    mine = os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: os.stat_result([*mine(fd)[:4], 65534, *mine(fd)[5:]]))
    with pytest.warns(RuntimeWarning, match="belongs to user 65534"):
        assert cache.get(key(1)) is None
    monkeypatch.undo()
    assert cache.get(key(1)) == b"code"


def test_files_of_others_are_neither_counted_nor_removed(cache, tmp_path):
    cache.put(key(1), b"code")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / f"{1:062x}pr").write_text("kept")
    (cache.folder / "pr").symlink_to(tmp_path / "precious")
    stranger = entry(cache, 1).parent / "notes.txt"
    stranger.write_text("kept")
    cache.clear()
    assert cache.size() == 0 and stranger.exists() and len(list((tmp_path / "precious").iterdir())) == 1


def test_a_full_disk_keeps_nothing_and_breaks_nothing(tmp_path):
    code = f"""
        import resource
        from pathlib import Path
        from tilewright.records.objects import ObjectCache
        cache = ObjectCache(Path({str(tmp_path / "objects")!r}), 1 << 30)
        cache.put("{key(1)}", b"small")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        cache.put("{key(1)}", bytes(5000))
        cache.put("{key(2)}", bytes(5000))
        print(cache.get("{key(1)}"), cache.get("{key(2)}"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "b'small' None\n", done.stderr
    assert not list((tmp_path / "objects").rglob("*.partial"))


@pytest.mark.parametrize("spoil", [
    lambda data: b"", lambda data: data[:-1], lambda data: data + b"x", lambda data: b"OTHER!!" + data[7:],
    lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: data[:10],
])
def test_a_damaged_entry_is_absent_and_removed(cache, spoil):
    cache.put(key(1), b"machine code")
    [path] = [p for p in cache.folder.rglob("*") if p.is_file()]
    path.write_bytes(spoil(path.read_bytes()))
    assert cache.get(key(1)) is None and not path.exists()
    cache.put(key(1), b"again")
    assert cache.get(key(1)) == b"again"


def test_the_size_is_bounded_and_the_least_recently_used_go_first(tmp_path):
    cache = ObjectCache(tmp_path / "objects", 100_000)
    for i in range(8):
        cache.put(key(i), bytes(10_000))
    now = time.time()
    for i in range(8):
        [path] = cache.folder.rglob(key(i))
        os.utime(path, (now - 10_000 + i, now - 10_000 + i))
    assert cache.get(key(0)) is not None                   # used: the youngest now
    for i in range(8, 12):
        cache.put(key(i), bytes(10_000))
    cache.trim()
    assert cache.size() <= 90_000
    left = {i for i in range(12) if cache.get(key(i)) is not None}
    assert {0, 8, 9, 10, 11} <= left and 1 not in left
    cache.put(key(99), bytes(200_000))
    assert cache.get(key(99)) is None
    many = ObjectCache(tmp_path / "many", 50_000)
    for i in range(300):
        many.put(key(i), bytes(1000))
    assert many.size() < 50_000 + 64 * 1100


def test_an_unusable_place_is_an_empty_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "below", MIB)
    cache.put(key(1), b"code")
    assert not cache.usable and cache.get(key(1)) is None and cache.size() == 0
    cache.trim()
    fine = ObjectCache(tmp_path / "objects", MIB)

    def fail(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", fail)
    fine.put(key(1), b"code")
    assert fine.get(key(1)) is None


def test_keys_cannot_leave_the_folder(cache):
    for bad in ("../../etc/passwd", "a/b" * 10, "", "short", "x" * 200):
        with pytest.raises(ArgumentError, match="no key"):
            cache.get(bad)


def test_a_killed_writer_leaves_no_broken_entry(tmp_path):
    code = f"""
        from pathlib import Path
        from tilewright.records.objects import ObjectCache
        cache = ObjectCache(Path({str(tmp_path / "objects")!r}), 1 << 30)
        print("ready", flush=True)
        while True:
            for i in range(8):
                cache.put(f"{{i:064x}}", bytes([i]) * 500_000)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    cache = ObjectCache(tmp_path / "objects", 1 << 30)
    for i in range(8):
        assert cache.get(key(i)) in (None, bytes([i]) * 500_000)
    for path in cache.folder.rglob("*.partial"):
        os.utime(path, (0, 0))
    cache.trim()
    assert not list(cache.folder.rglob("*.partial"))


def test_writers_at_the_same_time(tmp_path):
    code = f"""
        import sys
        from pathlib import Path
        from tilewright.records.objects import ObjectCache
        cache = ObjectCache(Path({str(tmp_path / "objects")!r}), 300_000)
        for i in range(200):
            key = f"{{i % 20:064x}}"
            cache.put(key, bytes([i % 20]) * 20_000)
            assert cache.get(key) in (None, bytes([i % 20]) * 20_000)
    """
    processes = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)]) for _ in range(3)]
    assert [p.wait(timeout=60) for p in processes] == [0, 0, 0]


def test_the_environment_chooses_the_place(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_SIZE_MB", "3")
    cache = object_cache()
    assert cache.folder == tmp_path / "mine" / "objects" and cache.limit == 3 * MIB and object_cache() is cache
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert sys.platform == "darwin" or default_folder() == tmp_path / "xdg" / "tilewright" / "objects"


def test_no_warning_in_the_normal_case(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectCache(tmp_path / "a" / "b" / "objects", MIB).put(key(1), b"x")
