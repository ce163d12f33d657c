"""Lines for a file whose request gave none. They say what they are, so that nobody takes them for somebody's words."""

from app.providers.offline.language import Language

MAX_LINES = 200

_BODY = {
    Language.ENGLISH: (
        "This file was written by the offline helper, because the request gave no text for it.",
        "Replace these lines with your own.",
    ),
    Language.VIETNAMESE: (
        "Tệp này do trợ lý ngoại tuyến viết, vì yêu cầu không cho sẵn nội dung.",
        "Hãy thay những dòng này bằng nội dung của bạn.",
    ),
}
_ADDED = {
    Language.ENGLISH: "Line {n}, added by the offline helper.",
    Language.VIETNAMESE: "Dòng {n}, do trợ lý ngoại tuyến thêm.",
}
_FURTHER = {Language.ENGLISH: "Line {n}.", Language.VIETNAMESE: "Dòng {n}."}


def invented_lines(path: str, count: int, language: Language, added: bool) -> list[str]:
    """`count` lines (at most MAX_LINES): a title and a notice for a new file, plain numbered ones to add."""
    wanted = range(1, min(count, MAX_LINES) + 1)
    if added:
        return [_ADDED[language].format(n=n) for n in wanted]
    first = [_title(path), *_BODY[language]]
    return [first[n - 1] if n <= len(first) else _FURTHER[language].format(n=n) for n in wanted]


def _title(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, _, extension = name.rpartition(".")
    words = (stem or name).replace("_", " ").replace("-", " ").strip() or name
    return f"# {words.capitalize()}" if extension == "md" else words.capitalize()
