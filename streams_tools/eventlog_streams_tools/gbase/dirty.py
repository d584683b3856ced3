"""Reads of a buffer that is used again and again: what each read wrote is told from what earlier
reads left behind it.

A read is written from the buffer's first byte on. Where a byte differs from what stood there
before, this read wrote it; a record that does not differ at all was left there, unless the read
begins with it: a read wrote something. Whatever is neither a record nor surely left over is damage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DamageError
from eventlog.core.plural import count_words
from eventlog.sources.gbase.records import COMMON_BYTES, FIELDS, LEAST, SCHEME, Framer, RecordFrame

_common = Binary(">4I").unpack_from
_SCHEME: Final = SCHEME.to_bytes(4, "big")
NO_BEGINNING: Final = "a read does not begin with a record, so the one before ended inside of one"
CUT: Final = "the read before ended inside a record, and this one begins with another: {} without an end"


class LeftOver(Struct, frozen=True):
    """Bytes that an earlier read left in the buffer."""

    offset: int
    data: bytes


class DirtyReads:
    """Takes reads in their order.

    What it finds damaged is left in the framer, for the next call to raise.
    """

    def __init__(self, framer: Framer, largest: int) -> None:
        self._framer = framer
        self._largest = largest
        self._buffer = bytearray()
        self._sure = False
        """Whether a read surely wrote the beginning of a record that is kept."""
        self._held: RecordFrame | None = None
        """The last record of a read, whose end may have been left over; the next read tells."""
        self._behind: list[LeftOver] = []
        """What was left over behind that record, which comes after it."""
        self._doubtful = False
        """Whether what is kept may end with what was left over, so that the next read completes it
        with wrong bytes.
        """

    def take(self, chunk: bytes) -> list[RecordFrame | LeftOver]:
        """Return the records a read wrote, and the bytes left over from earlier reads."""
        framer = self._framer
        if framer.damage is not None:
            raise framer.damage
        entries: list[RecordFrame | LeftOver] = self._about_the_read_before(chunk)
        if self._is_broken():
            return entries
        begin = framer.offset + framer.kept
        # What the buffer held before this read; only there can anything have been left over.
        ground = len(self._buffer)
        written = self._find_written_end(chunk)
        try:
            records = framer.feed(chunk)
        except DamageError:
            records = []
        for number, record in enumerate(records):
            at = record.offset - begin
            # The same bytes stood there before, so an earlier read left them, and all behind them.
            if at > 0 and at >= written and at + len(record.data) <= ground:
                entries += self._all_but_held(records[:number], begin + written, None)
                framer.drop()
                return entries + self._after_held([LeftOver(record.offset, chunk[at:])])
        # A record that two reads made together may have been completed by left-over bytes. If what
        # follows is damage, its own end never came.
        joined = self._join(records, begin)
        if joined is not None and self._is_broken():
            return entries + self._without_its_end(joined)
        entries += self._all_but_held(records, begin + written, joined)
        # The end of this read is as it stood before, or nothing was whole since such a read.
        self._doubtful = written < len(chunk) or (self._doubtful and framer.offset < begin)
        if framer.kept:
            entries += self._after_held(self._rest(framer.offset - begin, written, ground))
        return entries

    def last(self) -> list[RecordFrame | LeftOver]:
        """Return the record that no further read could tell anything of, and what is left over behind it."""
        held, self._held = self._held, None
        behind, self._behind = self._behind, []
        if held is None or self._misses_bytes():
            return [*behind]
        return [held, *behind]

    def _after_held(self, left: list[LeftOver]) -> list[LeftOver]:
        """Keep back what is left over behind a record that is held itself."""
        if self._held is None:
            return left
        self._behind += left
        return []

    def close(self) -> None:
        """Raise DamageError if there was unreported damage, or if the last record is incomplete."""
        # Left-over zeros or the end of an older record are no truncated record, so they are dropped
        # before the framer would call them one.
        if self._framer.damage is None and not self.record_is_kept():
            self._framer.drop()
        self._framer.close()

    def _is_broken(self) -> bool:
        return self._framer.damage is not None

    def _about_the_read_before(self, chunk: bytes) -> list[RecordFrame | LeftOver]:
        """Finish the read before, now that this one shows how its end continues."""
        entries = self._confirm(chunk)
        framer = self._framer
        if self._is_broken() or not framer.kept or not begins_record(chunk, self._largest):
            return entries
        # What was kept never goes on, for this read begins with a record of its own.
        rest, offset = framer.rest, framer.offset
        if self.record_is_kept():
            framer.damage = DamageError(CUT.format(count_words(len(rest), "byte")), offset=offset)
            return entries
        framer.drop()
        return [*entries, LeftOver(offset, rest)]

    def _confirm(self, chunk: bytes) -> list[RecordFrame | LeftOver]:
        """Return the held record: it was whole if another record begins behind it."""
        framer = self._framer
        held, self._held = self._held, None
        behind, self._behind = self._behind, []
        if held is None:
            return []
        # It was whole if another record begins behind it: in what that read kept, in that and this
        # read together, or at the beginning of this one.
        rest = framer.rest
        if len(rest) >= COMMON_BYTES:
            goes_on = self._sure
        else:
            goes_on = bool(rest) and begins_record(rest + chunk, self._largest)
        if goes_on or (begins_record(chunk, self._largest) and not self._misses_bytes()):
            return [held, *behind]
        return [*self._without_its_end(held), *behind]

    def _misses_bytes(self) -> bool:
        # The read wrote a few bytes behind the record that is held, too few for another one: they
        # are its own, where left-over ones took their place.
        return self._sure and 0 < self._framer.kept < COMMON_BYTES

    def _without_its_end(self, record: RecordFrame) -> list[RecordFrame | LeftOver]:
        """Takes a record for damage that was completed with what an earlier read left behind it."""
        self._framer.damage = DamageError(f"the end of the record was not read; {NO_BEGINNING}", offset=record.offset)
        return [LeftOver(record.offset, record.data)]

    def _join(self, records: list[RecordFrame], begin: int) -> RecordFrame | None:
        """Return the only record, if an earlier read began it and nothing yet confirms its end."""
        if len(records) != 1 or not self._doubtful or records[0].offset >= begin:
            return None
        # With a whole header behind it somebody has seen what follows.
        if self._framer.kept >= COMMON_BYTES and self._framer.damage is None:
            return None
        return records[0]

    def _all_but_held(
        self,
        records: list[RecordFrame],
        written: int,
        joined: RecordFrame | None,
    ) -> list[RecordFrame]:
        """Hold back the last record if its end may be left over from an earlier read; return the
        others.
        """
        if records and (records[-1] is joined or records[-1].offset + len(records[-1].data) > written):
            self._held = records[-1]
            return records[:-1]
        return records

    def _rest(self, at: int, written: int, ground: int) -> list[LeftOver]:
        """Handle the bytes behind the last record of a read; they begin at `at`."""
        framer = self._framer
        rest = framer.rest
        if framer.damage is None:  # it may go on in the next read
            # Nothing can have been left there.
            new = len(rest) >= COMMON_BYTES and at + COMMON_BYTES > ground
            self._sure = at < written or new
            return []
        # Bytes that this read wrote, a first byte that no read had reached before, or a header
        # farther on: something of it is the stream's, so it is damage and not left over.
        unknown = rest[max(ground - at, 0) :]
        if at < written or (at == 0 and unknown) or next_header(unknown, self._largest) is not None:
            if at == 0:
                framer.damage = DamageError(f"{framer.damage.problem}; {NO_BEGINNING}", offset=framer.offset)
            return []
        offset = framer.offset
        framer.drop()
        return [LeftOver(offset, rest)]

    def record_is_kept(self) -> bool:
        """Return True if the kept bytes look like the beginning of a record."""
        return self._sure or may_begin(self._framer.rest, self._largest)

    def _find_written_end(self, chunk: bytes) -> int:
        """Return the offset behind which the chunk equals the buffer before.

        Bytes never seen before do not count.
        """
        before = bytes(self._buffer[: len(chunk)])
        self._buffer[: len(chunk)] = chunk
        if chunk.startswith(before):
            return 0
        same = len(before)
        low = 0
        while low < same:  # the number of equal bytes at the end, by halving: slices compare in C
            middle = (low + same + 1) // 2
            if chunk[len(before) - middle : len(before)] == before[len(before) - middle :]:
                low = middle
            else:
                same = middle - 1
        return len(before) - low


def dirty_frames(
    chunks: Iterable[bytes],
    framer: Framer,
    largest: int,
) -> Iterator[list[RecordFrame]]:
    """Yield the records of a whole stream, each chunk a read; DamageError after the last good one."""
    reads = DirtyReads(framer, largest)
    for chunk in chunks:
        records = [entry for entry in reads.take(chunk) if isinstance(entry, RecordFrame)]
        if records:
            yield records
    if last := [entry for entry in reads.last() if isinstance(entry, RecordFrame)]:
        yield last
    reads.close()


def begins_record(data: bytes, largest: int) -> bool:
    """Return True if the bytes begin with a record's header, as far as they reach."""
    if len(data) < COMMON_BYTES:
        return may_begin(data, largest)
    header, payload, scheme, _ = _common(data)
    return bool(scheme == SCHEME and header >= COMMON_BYTES and header + payload <= largest)


def may_begin(data: bytes, largest: int) -> bool:
    """Return True if so few bytes can begin a header; zeros, as in a new buffer, cannot."""
    # Bytes that are not there yet count as zeros, the least that they can be: what is too large
    # even so is no header.
    whole = data + bytes(max(0, 8 - len(data)))
    header, payload = int.from_bytes(whole[:4], "big"), int.from_bytes(whole[4:8], "big")
    return any(data) and header <= largest and header + payload <= largest and _SCHEME.startswith(data[8:12])


def next_header(data: bytes, largest: int) -> int | None:
    """Return the offset of the next whole header; None if there is none."""
    at = 0
    # The scheme is the third of the four numbers that every header begins with (gbase-cdc.md 1), so
    # it is looked for, and the header is where it stands less 8.
    while (scheme := data.find(_SCHEME, at + 8)) >= 0:
        at = scheme - 8
        if at + COMMON_BYTES > len(data):
            return None
        if _is_header(data, at, largest):
            return at
        at += 1
    return None


def _is_header(data: bytes, at: int, largest: int) -> bool:
    header, payload, scheme, number = _common(data, at)
    return scheme == SCHEME and number in FIELDS and LEAST[number] <= header and header + payload <= largest
