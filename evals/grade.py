"""Grades answers mechanically: counts tokens, cuts answers at a budget, and searches names, places and commits."""

import re
from collections.abc import Iterable, Sequence

# The parts of a text that count as one piece each; see `tokens`.
_PIECE = re.compile(rb"[a-z]+|[ \t\n]+|.", re.DOTALL)

# Characters that must not precede or follow a name. `main.read` is not named by `main.readFile`, `domain.read`,
# `main.read.func1`, `main.read::next` or `main.read-2`, but by `main.read()`, `**main.read**`, `main.read:` and
# `main.read.` as well.
_BEFORE = r"(?<![\w/$<~.-])(?<!::)"
_AFTER = r"(?![\w/<~])(?![.$-][\w({<~$])(?!::)"


def _pieces(text: bytes) -> Iterable[tuple[int, int]]:
    """Returns the end and the cost of each piece."""
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece[:1].isalpha() and piece[:1].islower():
            cost = (len(piece) + 1) // 2
        elif piece[0] in b" \t\n":
            cost = (len(piece) + 31) // 32 + (len(piece) > 1)
        else:
            cost = 1
        yield match.end(), cost


def tokens(text: str) -> int:
    """Returns the number of tokens as pprofdiff's budgets count them, which is an upper bound for common models.

    It is the function of the same name in crates/pprofdiff-report/src/tokens.rs: two lowercase letters, a digit, a
    capital, a sign, or 32 blanks count as one token.
    """
    return sum(cost for _, cost in _pieces(text.encode()))


def cut(text: str, budget: int, *, bytes_per_token: int | None = None) -> str:
    """Returns the beginning of a text that has at most this many tokens, or this many tokens of a number of bytes."""
    encoded = text.encode()
    if bytes_per_token:
        return encoded[: budget * bytes_per_token].decode(errors="ignore")
    end = total = 0
    for piece_end, cost in _pieces(encoded):
        total += cost
        if total > budget:
            break
        end = piece_end
    return encoded[:end].decode(errors="ignore")


def names(text: str, name: str) -> bool:
    """Returns whether the text contains this name of a function, label, file or commit as a whole name."""
    return re.search(_BEFORE + re.escape(name) + _AFTER, text) is not None


def names_any(text: str, candidates: Sequence[str]) -> bool:
    """Returns whether the text contains one of these names."""
    return any(names(text, name) for name in candidates)


def names_label(text: str, key: str, value: str) -> bool:
    """Returns whether the text has `key=value`, or the block of `pprof -tags` for the key lists the value."""
    if names(text, f"{key}={value}"):
        return True
    block = re.search(rf"^ *{re.escape(key)}: Total.*\n((?: +.*\n?)+?)(?:\n|\Z)", text, re.MULTILINE)
    return block is not None and names(block.group(1), value)


def names_place(text: str, places: Iterable[tuple[str, int, int]]) -> bool:
    """Returns whether the text has `FILE:LINE`, or `FILE:LINE-LINE`, within one of these ranges of lines."""
    for file, first, last in places:
        for match in re.finditer(rf"(?<![\w.-]){re.escape(file)}:(\d+)(?:-(\d+))?", text):
            if int(match.group(1)) <= last and int(match.group(2) or match.group(1)) >= first:
                return True
    return False


def names_commit(text: str, commit: str) -> bool:
    """Returns whether the text has the commit's name, shortened to at least seven digits."""
    return any(commit.startswith(word) for word in re.findall(r"(?<!\w)[0-9a-f]{7,40}(?!\w)", text))


def first_claim(tool: str, answer: str) -> str:
    """Returns the line of an answer that a reader would take for its first cause: a numbered cause, or a row."""
    if tool == "pprofdiff":
        found = re.search(r"^1\. .*", answer, re.MULTILINE)
        return found.group() if found else ""
    rows = re.split(r"^ *flat .*cum%\n", answer, maxsplit=1, flags=re.MULTILINE)
    return rows[1].split("\n")[0] if len(rows) > 1 else ""


def claims(tool: str, answer: str) -> int:
    """Returns the number of causes, or of rows of pprof, in an answer."""
    pattern = r"^\d+\. " if tool == "pprofdiff" else r"^ *-?[\d.]+\w* +[\d.]+% +[\d.]+% "
    return len(re.findall(pattern, answer, re.MULTILINE))


def agent_causes(answer: str) -> list[str]:
    """Returns the first three lines `CAUSE: ...` of an agent's answer, each with at most 200 characters."""
    return [text.strip()[:200] for text in re.findall(r"^CAUSE:(.*)$", answer, re.MULTILINE)][:3]
