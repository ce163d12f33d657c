import base64

import pytest

from app.context.image_size import image_size

APP0 = b"\xff\xe0\x00\x10" + bytes(14)
EXIF = b"\xff\xe1" + (20_002).to_bytes(2, "big") + bytes(20_000)
FRAME = b"\xff\xc2\x00\x11\x08" + (480).to_bytes(2, "big") + (640).to_bytes(2, "big") + bytes(20)


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\x00\x00\x00\x00WEBP" + kind + b"\x00\x00\x00\x00" + body


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes([0, 0, 2, 128, 0, 0, 1, 224]), (640, 480)),
        (b"GIF89a" + bytes([128, 2, 224, 1]), (640, 480)),
        (b"\xff\xd8" + APP0 + EXIF + b"\xff\xc4\x00\x04\x00\x00" + FRAME, (640, 480)),
        (webp(b"VP8X", bytes(4) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")), (640, 480)),
        (webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")), (640, 480)),
        (webp(b"VP8 ", bytes(6) + bytes([128, 2, 224, 1])), (640, 480)),
        (webp(b"ICCP", bytes(20)), None),
        (b"\x89PNG", None),
        (b"\xff\xd8" + APP0, None),
        (b"BM" + bytes(60), None),
        (b"", None),
    ],
)
def test_the_size_is_read_from_the_header(data: bytes, size: tuple[int, int] | None):
    assert image_size(base64.b64encode(data).decode()) == size


def test_text_that_is_no_base64_has_no_size():
    assert image_size("===!") is None
