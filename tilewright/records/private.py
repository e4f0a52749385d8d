"""Folders and files that only this user can have written: machine code is loaded from no others.

What could be put there by somebody else is refused, not repaired: to take the right to write away says nothing about
what was left behind. The group that has the user's name and no other member, which some systems give to each user, is
nobody else.
"""
from __future__ import annotations

import functools
import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC     # neither follows a link nor waits for a writer


class Untrusted(Exception):
    """Somebody else could have written what stands at a path; the message says which and why."""


def make_folder(folder: Path) -> Path:
    """The folder, made for this user only if it is not there, with every link in its path resolved.

    Raises OSError where it cannot be made, and Untrusted where it, or a folder above it, is open to others: those
    above may belong to root too, and may be writable where only owners can rename (the sticky bit, as /tmp has it).
    """
    if folder.is_symlink():
        raise Untrusted(f"{folder} is a link")
    resolved = Path(os.path.realpath(folder))
    for parent in reversed(resolved.parents):
        _make(parent)
        _check_parent(parent)
    _make(resolved)
    check_folder(resolved)
    return resolved


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError:
        if not folder.is_dir():                  # a read-only file system says so first, of a folder that is there too
            raise


def _check_parent(folder: Path) -> None:
    info = folder.lstat()
    if info.st_uid not in (0, os.getuid()):
        raise Untrusted(f"{folder}, above it, belongs to {_user(info)}")
    if _others_may_write(folder, info) and not info.st_mode & stat.S_ISVTX:
        raise Untrusted(f"others may write to {folder}, above it ({stat.filemode(info.st_mode)})")


def check_folder(folder: Path) -> None:
    """Raises Untrusted unless this user alone can write to the folder, OSError where there is none."""
    _check(folder, folder.lstat(), stat.S_ISDIR, "a folder")


def read_file(path: Path, limit: int) -> tuple[bytes, float]:
    """(content, time of the last change) of a file of at most `limit` bytes in a folder that has been checked.

    Raises OSError where there is none, and Untrusted unless it is a plain file that this user alone can write, under
    this one name. What is looked at is what was opened.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        if path.is_symlink():
            raise Untrusted(f"{path} is a link") from None
        raise
    try:
        info = os.fstat(descriptor)
        _check(path, info, stat.S_ISREG, "a plain file")
        if info.st_nlink > 1:
            raise Untrusted(f"{path} has {info.st_nlink} names")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(limit + 1), info.st_mtime
    finally:
        os.close(descriptor)


def _check(path: Path, info: os.stat_result, is_kind: Callable[[int], bool], kind: str) -> None:
    if not is_kind(info.st_mode):
        raise Untrusted(f"{path} is not {kind} ({stat.filemode(info.st_mode)})")
    if info.st_uid != os.getuid():
        raise Untrusted(f"{path} belongs to {_user(info)}")
    if _others_may_write(path, info):
        raise Untrusted(f"others may write to {path} ({stat.filemode(info.st_mode)})")


def _others_may_write(path: Path, info: os.stat_result) -> bool:
    if info.st_mode & stat.S_IWOTH:
        return True
    return bool(info.st_mode & stat.S_IWGRP) and (not _is_own_group(info.st_gid) or _has_access_list(path))


@functools.lru_cache(64)
def _is_own_group(gid: int) -> bool:
    """True for the primary group of this user if it has the user's name and no other member."""
    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _has_access_list(path: Path) -> bool:
    """True where a list grants more than the mode says: what it grants at most shows in the bits of the group."""
    if not hasattr(os, "getxattr"):              # on macOS
        return False
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError:                              # there is none, or the file system has none
        return False


def _user(info: os.stat_result) -> str:
    return f"user {info.st_uid}; this is user {os.getuid()}"
