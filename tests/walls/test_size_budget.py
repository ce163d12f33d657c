"""Small files and small functions: the budget of docs/system-architecture.md."""

from statistics import median

from tests.walls.sources import APP, ROOT, TESTS, functions, python_files, shown

FILE_MEDIAN, FILE_MOST = 90, 400
FUNCTION_MEDIAN, FUNCTION_MOST = 10, 60


def file_lengths(*folders):
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*folders)}
    return {name: lines for name, lines in lengths.items() if lines}


def function_lengths():
    return {
        f"{shown(path)}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in python_files(APP)
        for function in functions(path)
    }


def over(lengths, most):
    return [f"{name}: {lines} lines, {most} allowed" for name, lines in lengths.items() if lines > most]


def test_the_median_file_is_short():
    middle = median(file_lengths(APP).values())
    assert middle <= FILE_MEDIAN, f"the median file of app/ has {middle} lines, {FILE_MEDIAN} allowed: split by role"


def test_the_median_function_is_short():
    middle = median(function_lengths().values())
    assert middle <= FUNCTION_MEDIAN, f"the median function of app/ has {middle} lines, {FUNCTION_MEDIAN} allowed"


def test_no_file_is_long():
    assert over(file_lengths(APP, TESTS, ROOT / "bench", ROOT / "alembic"), FILE_MOST) == []


def test_no_function_is_long():
    assert over(function_lengths(), FUNCTION_MOST) == []
