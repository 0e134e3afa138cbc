"""A store as a single small file, for sending to another machine."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from inbounds.datasets.store import Store
from inbounds.datasets.verify import verify
from inbounds.errors import BadInput
from inbounds.writing import aside, file_aside

PIECE = 2**22
Track = Callable[[Sequence[int]], Iterable[int]]


def pack(store: Store, file: Path, track: Track = iter) -> None:
    """Write a store, annotations and facts included, as a tar of `.xz` files. The same store gives the same bytes.

    Pixels are predicted from the pixel above them and compressed with contexts that suit images.
    """
    if file.exists():
        raise BadInput(f"{file}: already exists; remove it or choose another name")
    files = [f for f in sorted(store.path.rglob("*")) if f.is_file() and not _hidden(f.relative_to(store.path))]
    pieces = [(number, start) for number, f in enumerate(files) for start in range(0, max(f.stat().st_size, 1), PIECE)]
    with file_aside(file) as part, tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
        packer: lzma.LZMACompressor | None = None
        packed = bytearray()
        for at in track(range(len(pieces))):
            number, start = pieces[at]
            source = files[number]
            packer = packer or lzma.LZMACompressor(format=lzma.FORMAT_XZ, filters=_filters(source, store))
            with source.open("rb") as stream:
                stream.seek(start)
                packed += packer.compress(stream.read(PIECE))
            if at + 1 == len(pieces) or pieces[at + 1][0] != number:
                packed += packer.flush()
                member = tarfile.TarInfo(f"{source.relative_to(store.path).as_posix()}.xz")
                member.size, member.mode = len(packed), 0o644
                tar.addfile(member, io.BytesIO(packed))
                packer, packed = None, bytearray()


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _filters(file: Path, store: Store) -> list[dict[str, Any]]:
    squeeze = {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "lp": 0, "pb": 0}
    row = store.shape[1] * store.dtype.itemsize
    if file.name == "images.npy" and row <= 256:
        return [{"id": lzma.FILTER_DELTA, "dist": row}, squeeze]
    return [squeeze]


def unpack(file: Path, path: Path, track: Callable[[Sequence[str]], Iterable[str]] = iter) -> Store:
    """The store in a packed file, checked against its checksums; nothing is left behind if they do not agree."""
    if not file.is_file():
        raise BadInput(f"{file}: there is no such file; check the name")
    try:
        with tarfile.open(file, "r:") as tar, aside(path) as folder:
            members = {member.name: member for member in tar.getmembers()}
            for name in track(list(members)):
                _unpack_member(file, tar, members[name], folder)
            if "dataset.json.xz" not in members:
                raise BadInput(f"{file}: there is no store in it; give a file made by `inbounds pack`")
            wrong = verify(Store(folder)).problems
            if wrong:
                raise BadInput(f"{file}: {wrong[0]}; pack it again")
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise BadInput(f"{file}: not a packed store, or a damaged one ({error}); pack it again") from None
    return Store(path)


def _unpack_member(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    name = PurePosixPath(member.name)
    if not member.isfile() or name.is_absolute() or ".." in name.parts or name.suffix != ".xz" or "\0" in member.name:
        raise BadInput(f"{file}: the member {member.name!r} does not belong into a store; do not trust this file")
    target = folder / name.with_suffix("")
    target.parent.mkdir(parents=True, exist_ok=True)
    packed = tar.extractfile(member)
    with lzma.open(packed) as stream, target.open("wb") as out:  # type: ignore[arg-type]
        for piece in _pieces(stream.read):
            out.write(piece)


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(PIECE):
        yield piece
