"""The cache of compiled objects on disk: content-addressed, private to the user, checksummed, bounded.

One file per entry, written beside its place and renamed into it, so that a reader sees a whole entry or
none, also when the writer is killed. What does not check out is removed and counts as absent; a folder that
cannot be used (read-only home) is an empty cache that keeps nothing. So is one that somebody else could have
written to (`private.py`), with a warning.
"""
from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright.records.private import Untrusted, check_folder, make_folder, read_file
from tilewright.runtime.loader import use_object_cache
from tilewright.support import config
from tilewright.support.errors import ArgumentError, with_hint

_MAGIC = b"TWOBJ2\n"
_HEAD = len(_MAGIC) + 32                         # then the SHA-256 of key and data, then the data
_KEY = re.compile(r"[0-9A-Za-z_-]{8,128}")
_TRIM_EVERY = 64                                 # entries written between two looks at the size of the folder
_STALE_SECONDS = 3600                            # age at which an unfinished file belongs to nobody
_TOUCH_SECONDS = 600                             # an entry's age in use is known to this precision


class ObjectCache:
    """Bytes under keys in a folder of at most `limit` bytes; the least recently used go first.

    No method raises for anything that the file system does.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self._written, self._warned = secrets.randbelow(_TRIM_EVERY), False     # processes that write little trim too
        self._usable = self._prepare()

    def _prepare(self) -> bool:
        """Make the folder. False when it cannot be used."""
        try:
            self.folder = make_folder(self.folder)
        except OSError:
            return False
        except Untrusted as why:
            self._warn(f"the cache folder {self.folder} is not used: {why}")
            return False
        return True

    def _warn(self, message: str) -> None:
        """Say, once, that somebody else could have left machine code in the folder."""
        if not self._warned:
            self._warned = True
            hint = "look at it and remove it, or name a folder of your own: TILEWRIGHT_CACHE_DIR=..."
            warnings.warn(with_hint(message, hint), RuntimeWarning, stacklevel=3)

    @property
    def usable(self) -> bool:
        """False when the folder cannot be used; the cache is then always empty."""
        return self._usable

    def get(self, key: str) -> bytes | None:
        """The data under key, or None."""
        path = self._path(key)
        if not self._usable:
            return None
        try:
            check_folder(path.parent)
            content, changed = read_file(path, self.limit)
        except OSError:
            return None
        except Untrusted as why:
            self._warn(f"an entry of the cache is not used: {why}")
            return None
        data = content[_HEAD:]
        if content[:len(_MAGIC)] != _MAGIC or _digest(key, data) != content[len(_MAGIC):_HEAD]:
            _remove(path)
            return None
        _touch(path, changed)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep data under key, if it fits."""
        path = self._path(key)
        if not self._usable or len(data) + _HEAD > self.limit:
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            check_folder(path.parent)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC + _digest(key, data) + data)
            os.replace(partial, path)
        except OSError:                          # disk full, folder gone: the object is simply not kept
            _remove(partial)
            return
        except Untrusted as why:
            self._warn(f"a folder of the cache is not used: {why}")
            return
        self._written += 1
        if self._written % _TRIM_EVERY == 0:
            self.trim()

    def get_or_make(self, key: str, make: Callable[[], bytes]) -> bytes:
        """The data under key, made and kept when it is not there."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found

    def trim(self) -> None:
        """Remove the least recently used entries down to nine tenths of the limit, and forgotten partial files."""
        now, entries, total = time.time(), [], 0
        for file, info in self._files():
            if file.name.endswith(".partial"):
                if now - info.st_mtime > _STALE_SECONDS:
                    _remove(file)
            else:
                entries.append((info.st_mtime, info.st_size, file))
                total += info.st_size
        if total <= self.limit:
            return
        for _, size, file in sorted(entries, key=lambda e: e[0]):
            if total <= self.limit * 9 // 10:
                break
            _remove(file)
            total -= size

    def clear(self) -> None:
        """Remove every entry."""
        for file, _ in list(self._files()):
            _remove(file)

    def size(self) -> int:
        """Bytes that the entries take."""
        return sum(info.st_size for _, info in self._files())

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ArgumentError(f"{key!r} is no key of a cache entry: 8 to 128 letters, digits, - and _")
        return self.folder / key[-2:] / key

    def _files(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        if not self._usable:
            return
        for folder in _children(self.folder):
            for file in _children(folder) if len(folder.name) == 2 and not folder.is_symlink() else ():
                name = file.name.removeprefix(".").partition(".")[0]
                try:
                    if name.endswith(folder.name) and _KEY.fullmatch(name):      # else it is none of ours
                        yield file, file.stat(follow_symlinks=False)
                except OSError:                  # another process removed it
                    continue


def _digest(key: str, data: bytes) -> bytes:
    """The checksum of an entry, which belongs to its key alone."""
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def _children(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _remove(path: Path | os.DirEntry[str]) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass                                     # gone already, or not ours to remove


def _touch(path: Path, changed: float) -> None:
    """Note that the entry was used."""
    try:
        if time.time() - changed > _TOUCH_SECONDS:
            os.utime(path, follow_symlinks=False)
    except OSError:
        pass                                     # a read-only cache is still good for reading


def default_folder() -> Path:
    """TILEWRIGHT_CACHE_DIR, else `tilewright` in the user's cache folder. Raises ArgumentError for `~nobody`."""
    chosen = config.get("CACHE_DIR")
    if chosen:
        try:
            return Path(str(chosen)).expanduser().absolute() / "objects"
        except (RuntimeError, OSError) as error:
            raise ArgumentError(f"TILEWRIGHT_CACHE_DIR={chosen!r} names no folder: {error}") from None
    if sys.platform == "darwin":
        base = Path("~/Library/Caches")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        base = base.expanduser().absolute()
    except (RuntimeError, OSError):              # a user without a home: keep nothing
        base = Path(os.devnull)
    return base / "tilewright" / "objects"


def object_cache() -> ObjectCache:
    """The cache that the environment asks for (TILEWRIGHT_CACHE_DIR, TILEWRIGHT_CACHE_SIZE_MB)."""
    return _cache_at(default_folder(), int(config.get("CACHE_SIZE_MB") or 0) << 20)


@functools.lru_cache(maxsize=8)
def _cache_at(folder: Path, limit: int) -> ObjectCache:
    return ObjectCache(folder, limit)


def _supply(key: str, make: Callable[[], bytes]) -> bytes:
    """The support code of the runtime, kept with the other objects unless TILEWRIGHT_CACHE is off."""
    return object_cache().get_or_make(key, make) if config.get("CACHE") else make()


use_object_cache(_supply)
