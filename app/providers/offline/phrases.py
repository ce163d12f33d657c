"""Every sentence of the agent, in both languages."""

from app.providers.offline.language import Language

_INTRO_EN = (
    "I am hango's offline helper: a small program with fixed rules, not a language model. "
    "I work on this session's files: list, read, search, write, append, replace text, count (lines, words, characters, "
    "files), and summarize by extraction. "
    'For example: "list the files, write notes.md with three lines, read it back". '
    "For a real model, set ANTHROPIC_API_KEY and start the server again."
)
_INTRO_VI = (
    "Tôi là trợ lý ngoại tuyến của hango: một chương trình nhỏ theo quy tắc cố định, không phải mô hình ngôn ngữ. "
    "Tôi làm việc trên các tệp của phiên này: liệt kê, đọc, tìm, ghi, ghi thêm, thay thế, đếm (dòng, từ, ký tự, tệp) "
    'và tóm tắt bằng cách trích. Ví dụ: "liệt kê các tệp, viết notes.md gồm ba dòng, rồi đọc lại". '
    "Muốn dùng mô hình thật, hãy đặt ANTHROPIC_API_KEY rồi khởi động lại máy chủ."
)
_TABLE: dict[str, tuple[str, str]] = {
    "intro": (_INTRO_EN, _INTRO_VI),
    "greeting": ("Hello. ", "Xin chào. "),
    "lead": ("I will {steps}.", "Tôi sẽ {steps}."),
    "and": (" and ", " và "),
    "do.list": ("list {path}", "liệt kê {path}"),
    "do.locate": ("look for a file in {path}", "tìm tệp trong {path}"),
    "do.read": ("read {path}", "đọc {path}"),
    "do.search": ("search {path}", "tìm trong {path}"),
    "do.write": ("write {path}", "ghi {path}"),
    "do.append": ("append to {path}", "ghi thêm vào {path}"),
    "do.replace": ("replace text in {path}", "thay thế trong {path}"),
    "do.count": ("count in {path}", "đếm trong {path}"),
    "do.summarize": ("summarize {path}", "tóm tắt {path}"),
    "failed": ("I could not {what}: {error}", "Tôi không thể {what}: {error}"),
    "not_offered": (
        "I could not {what}: the tool {tool} is not offered in this session.",
        "Tôi không thể {what}: phiên này không có công cụ {tool}.",
    ),
    "gone": (
        "I did {what}, but its result is no longer in view.",
        "Tôi đã {what}, nhưng kết quả không còn trong tầm nhìn.",
    ),
    "unfinished": ("I did not {what}; that part was not reached.", "Tôi chưa {what}; phần đó chưa được thực hiện."),
    "no_outcome": (
        "I did not {what}: the step before left nothing whole to write.",
        "Tôi không {what}: bước trước không cho kết quả trọn vẹn để ghi.",
    ),
    "listed": ("{path} holds {count} file(s):", "{path} có {count} tệp:"),
    "no_files": ("There are no files in {path}.", "Không có tệp nào trong {path}."),
    "more": ("... and {count} more", "... và {count} mục nữa"),
    "located": ("Files named like {text} in {path}:", "Các tệp có tên như {text} trong {path}:"),
    "not_located": ("No file in {path} is named like {text}.", "Không có tệp nào trong {path} có tên như {text}."),
    "whole": ("{path} ({total} line(s)):", "{path} ({total} dòng):"),
    "part": ("{path}, lines {first} to {last} of {total}:", "{path}, dòng {first} đến {last} trong {total}:"),
    "empty": ("{path} is empty.", "{path} rỗng."),
    "binary": ("{path} is not a text file.", "{path} không phải tệp văn bản."),
    "cut": ("(cut here)", "(cắt ở đây)"),
    "matches": ("{count} line(s) in {path} contain {text}:", "{count} dòng trong {path} chứa {text}:"),
    "no_match": ("No line in {path} contains {text}.", "Không dòng nào trong {path} chứa {text}."),
    "wrote": ("I wrote {path} ({size} bytes).", "Tôi đã ghi {path} ({size} byte)."),
    "appended": ("I added {size} bytes to the end of {path}.", "Tôi đã thêm {size} byte vào cuối {path}."),
    "invented": (
        "The request gave no text, so I made up the {count} line(s) myself.",
        "Yêu cầu không cho nội dung, nên tôi tự đặt {count} dòng.",
    ),
    "partly": ("Only {count} of the parts were written.", "Chỉ {count} phần được ghi."),
    "replaced": ("I replaced {old} with {new}: {result}", "Tôi đã thay {old} bằng {new}: {result}"),
    "files": ("{count} file(s)", "{count} tệp"),
    "lines": ("{count} line(s)", "{count} dòng"),
    "words": ("{count} word(s)", "{count} từ"),
    "characters": ("{count} character(s)", "{count} ký tự"),
    "occurrences": ("{text} occurs {count} time(s)", "{text} xuất hiện {count} lần"),
    "counted": ("{path}: {counts}.", "{path}: {counts}."),
    "counted_part": (
        "{path}: {counts} in its first {lines} of {total} lines, which is all I read.",
        "{path}: {counts} trong {lines} dòng đầu trên tổng số {total} dòng; tôi chỉ đọc đến đó.",
    ),
    "not_read": ("{count} further file(s) were not read.", "Còn {count} tệp nữa chưa được đọc."),
    "digest": ("{path}: {lines} line(s), {words} word(s).", "{path}: {lines} dòng, {words} từ."),
    "digest_part": (
        "{path}: {total} lines; this is from the first {lines}.",
        "{path}: {total} dòng; phần này lấy từ {lines} dòng đầu.",
    ),
    "headings": ("Headings: {items}", "Đề mục: {items}"),
    "opens": ("It begins: {text}", "Mở đầu: {text}"),
    "key_lines": ("Key lines: {items}", "Dòng đáng chú ý: {items}"),
    "unknown": ("I did not act on {part}: I did not understand it.", "Tôi chưa làm phần {part}: tôi không hiểu."),
    "cannot": ("I cannot do this: {part}", "Tôi không làm được việc này: {part}"),
    "forbidden": ("As you asked, I left this undone: {part}", "Theo yêu cầu, tôi không làm việc này: {part}"),
    "which_file": ("Which file is meant by {part}? Please name it.", "{part} nói về tệp nào? Hãy nêu tên tệp."),
    "which_text": (
        "Which text is meant by {part}? Please put it in quotes.",
        "{part} nói về đoạn chữ nào? Hãy đặt nó trong dấu ngoặc kép.",
    ),
    "too_many": (
        "I take no more than 40 steps at a time; the rest of the request was left undone.",
        "Tôi chỉ làm tối đa 40 bước một lần; phần còn lại của yêu cầu chưa được làm.",
    ),
    "asked_first": (
        "The first thing you asked, as far as I can see: {text}",
        "Điều đầu tiên bạn yêu cầu mà tôi còn thấy: {text}",
    ),
    "asked_last": ("Before this you asked: {text}", "Trước đó bạn yêu cầu: {text}"),
    "asked_nothing": ("This is the first request that I can see.", "Đây là yêu cầu đầu tiên mà tôi thấy."),
}  # fmt: skip


def say(language: Language, name: str, **values: object) -> str:
    english, vietnamese = _TABLE[name]
    return (vietnamese if language is Language.VIETNAMESE else english).format(**values)
