"""The checksum that the POSIX program `cksum` prints, computed piece by piece.

It is the CRC of zlib with the bits of every byte in the other order, followed by the length.
"""

import zlib

from turngate._frozen import frozen

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@frozen
class Checksum:
    """The checksum of the bytes so far."""

    size: int = 0
    crc: int = 0xFFFFFFFF

    def after(self, data: bytes) -> "Checksum":
        return Checksum(self.size + len(data), self._crc(data))

    def __str__(self) -> str:
        """Return what `cksum` prints for its stdin: `CRC SIZE`."""
        length = self.size.to_bytes((self.size.bit_length() + 7) // 8, "little")
        return f"{int(f'{self._crc(length):032b}'[::-1], 2)} {self.size}"

    def _crc(self, data: bytes) -> int:
        return zlib.crc32(data.translate(_REVERSED), self.crc)
