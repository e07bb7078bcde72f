"""Server-sent events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.http.connection import HttpError
from turngate.http.event_stream import MAX_EVENT_BYTES, Event, EventDecoder


def decode(*pieces: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [Event("", "a")]),
        (b"event: x\ndata: a\n\n", [Event("x", "a")]),
        (b"data:a\ndata: b\ndata:  c\n\n", [Event("", "a\nb\n c")]),
        (b": a comment\n\ndata: a\n\n", [Event("", "a")]),
        (b"id: 1\nretry: 5\nunknown: x\ndata\ndata: a\n\n", [Event("", "\na")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", "a")]),
        (b"event: x\n\ndata: a\n\n", [Event("", "a")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Event("", "a"), Event("", "b"), Event("", "c")]),
        (b"data: half", []),
        (b"data: half\n", []),
        (b"", []),
    ],
)
def test_a_stream_is_a_list_of_events(data: bytes, events: list[Event]) -> None:
    assert decode(data) == events


LINES = st.lists(
    st.sampled_from(
        [b"data: a", b"data:  b ", b"event: x", b": c", b"", b"data", b"id: 1", "data: ü€".encode()]
    ),
    max_size=12,
)


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(1, 9), min_size=1))
def test_where_a_stream_is_split_makes_no_difference(
    lines: list[bytes], end: bytes, sizes: list[int]
) -> None:
    data = end.join([*lines, b"", b"data: last", b"", b": after"])
    pieces: list[bytes] = []
    place = 0
    while place < len(data):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(data[place : place + size])
        place += size
    assert decode(*pieces) == decode(data)


def test_an_event_has_a_largest_size() -> None:
    decoder = EventDecoder()
    piece = b"x" * (1 << 20)
    for _ in range(MAX_EVENT_BYTES // len(piece)):
        assert list(decoder.feed(piece)) == []
    with pytest.raises(HttpError, match="one event is larger than 16 MiB"):
        list(decoder.feed(piece))


def test_a_long_stream_of_small_events_has_no_largest_size() -> None:
    decoder = EventDecoder()
    piece = b"data: " + b"x" * 1000 + b"\n\n"
    assert sum(1 for _ in range(20_000) for _ in decoder.feed(piece)) == 20_000


def test_half_an_event_in_tiny_pieces_takes_linear_work() -> None:
    decoder = EventDecoder()
    for _ in range(200_000):
        assert list(decoder.feed(b"xx")) == []
    assert len(decoder._rest) == 200_000


def test_bytes_that_are_not_utf_8_are_an_error() -> None:
    with pytest.raises(HttpError, match="the stream of events is not UTF-8"):
        decode(b"data: \xff\n\n")
