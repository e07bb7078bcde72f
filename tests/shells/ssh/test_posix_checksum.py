"""The checksum of `cksum`."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.shells.ssh.copies import Checksum


def test_the_checksum_is_that_of_posix() -> None:
    assert (str(Checksum()), str(Checksum().after(b"abc"))) == ("4294967295 0", "1219131554 3")


@pytest.mark.parametrize("size", [1, 255, 256, 65_536, 1_000_000])
def test_cksum_prints_the_same(size: int) -> None:
    data = bytes(number * number % 251 for number in range(size))
    printed = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout
    assert printed.decode().split() == str(Checksum().after(data)).split()


@given(st.lists(st.binary()))
def test_pieces_have_the_checksum_of_the_whole(pieces: list[bytes]) -> None:
    checksum = Checksum()
    for piece in pieces:
        checksum = checksum.after(piece)
    assert checksum == Checksum().after(b"".join(pieces))
