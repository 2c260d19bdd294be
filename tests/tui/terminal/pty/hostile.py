"""Bytes that a terminal may send and no app hopes for."""

from __future__ import annotations

PIECES = tuple(
    piece.replace(b"ESC", b"\x1b")
    for piece in (
        b"\xe9 \xc3 \xf0\x9f \xed\xa0\x80 \xff \x9b \0\0 ESC ESC[ ESC[M ESC[M#\xb0% ESC[M#\xff\xff ESC[M\x01\x02\x03 "
        b"ESC[<0;9;9M ESC[<0;99999999999;-1m ESC[<64;5;5M ESC[0;9;9M ESC[200~ ESC[201~ ESC[200~\xe9ESCQESC[201~ "
        b"ESC[12 ESC[1; ESC[3$ ESC[1:2;3u ESC[1;1;99999999999u ESC[97;1;55296u ESC[48;0;0;0;0t ESC[48;9;9;0;0t "
        b"ESC[5;9R ESC[>1;9;30c ESC]11;rgb:1e/1eESC\\ ESC]0;q\x07 ESCP1+rESC\\ ESC]q ESC[?2026;1$y ESC[?2048;2$y "
        b"ESC[I ESC[O ESC[A ESC[[A ESCOA ESC[5~ ESCx ESCESC[A ESC[" + b"9" * 90 + b"q"
    ).split(b" ")
)
