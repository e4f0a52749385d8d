"""Object files in a tar archive: what `export_library("f.tar")` writes and `load_module` reads."""
from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from tilewright.support.errors import LoadError

MEMBER = "lib0.o"


def packed(files: Mapping[str, bytes]) -> bytes:
    """A tar archive of files by name. Equal contents give equal bytes."""
    import tarfile  # loaded at first use: few programs write or read archives

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def object_in(data: bytes, path: Path, method: str) -> bytes:
    """The object file in an archive. Raises LoadError, with the method's name, unless that is its only content: nothing
    is written to disk."""
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = archive.getmembers()
            if len(members) != 1 or not members[0].isfile() or not members[0].name.endswith(".o"):
                names = ", ".join(m.name for m in members[:4]) or "nothing"
                raise LoadError(f"{method}: {path} holds {names}, expected one object file",
                                'write it with export_library("f.tar")')
            start, size = members[0].offset_data, members[0].size
            if members[0].issparse() or not 0 <= size <= len(data) - start:
                raise LoadError(f"{method}: {path} is damaged: {members[0].name} is sparse, or larger than the "
                                "archive that holds it")
            return data[start:start + size]
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise LoadError(f"{method}: {path} is no tar archive: {error}") from None
