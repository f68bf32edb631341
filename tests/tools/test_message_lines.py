"""Lines come out whole however the bytes come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigon_tools import message_lines
from tigon_tools.message_lines import LineBuffer, LineTooLong

line = st.binary(max_size=30).filter(lambda data: b"\n" not in data)


@given(st.lists(line), line, st.data())
def test_cut_anywhere_the_lines_are_the_same(lines: list[bytes], rest: bytes, data: st.DataObject) -> None:
    stream = b"".join(one + b"\n" for one in lines) + rest
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    buffer = LineBuffer()
    heard = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        heard += buffer.feed(stream[start:end])
    assert heard == lines


@pytest.mark.parametrize("pieces", [[b"x" * 101], [b"x" * 60, b"y" * 60], [b"x" * 101 + b"\n"]])
def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    monkeypatch.setattr(message_lines, "LONGEST_LINE", 100)
    buffer = LineBuffer()
    with pytest.raises(LineTooLong):
        for piece in pieces:
            buffer.feed(piece)
