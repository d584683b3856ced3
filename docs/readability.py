"""How easy the pages are to read, and how many words they have: python docs/readability.py [BEFORE]

The figure is Flesch's reading ease, 206.835 - 1.015 words a sentence - 84.6 syllables a word: 60 to 70 is plain English, below 30 hard.
Only prose counts for it: no code, no tables, no headings. A word of the count has a letter or a digit in it and stands anywhere on the
page, in code and tables too, but not in a comment; `|`, `---` and the like are none. With BEFORE, a commit, its figures stand beside.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CODE: Final = re.compile(r"(?ms)^( *)```.*?^ *```$|^ {4,}\S.*?$|<!--.*?-->")
SHORT_WORDS: Final = 5
"""A sentence with fewer is a heading of a list or the rest of one, and says nothing about how a page reads."""


def words(page: str) -> int:
    """How many words a page has, as the docstring above counts them."""
    text = re.sub(r"(?s)<!--.*?-->", "", page)
    return sum(re.search(r"\w", word) is not None for word in text.split())


def ease(page: str) -> float | None:
    """The reading ease of a page's prose; None where there are fewer than a hundred words of it."""
    found = [sentence for sentence in _sentences(page) if len(sentence) >= SHORT_WORDS]
    count = sum(map(len, found))
    if count < 100:
        return None
    syllables = sum(_syllables(word) for sentence in found for word in sentence)
    return 206.835 - 1.015 * count / len(found) - 84.6 * syllables / count


def pages() -> list[Path]:
    """README and every page of the site, which has no decision but their index."""
    found = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.name[:4].isdigit()]
    return [ROOT / "README.md", *found]


def _sentences(page: str) -> list[list[str]]:
    lines = [line for line in CODE.sub("", page).splitlines() if not line.lstrip().startswith(("|", "#", "![", "<"))]
    text = re.sub(r"\]\([^)]*\)", "]", "\n".join(lines))
    text = re.sub(r"`[^`\n]*`", "code", text)  # a name is read as one short word
    text = re.sub(r"(?m)^ *(?:[*+-]|\d+\.) ", "\n\n", text)
    parts = re.split(r"(?<=[.!?])[*\])\"”]*\s+|\n\s*\n", text)
    return [re.findall(r"[A-Za-z][A-Za-z'’-]*", part) for part in parts]


def _syllables(word: str) -> int:
    plain = re.sub(r"[^a-z]", "", word.lower())
    plain = re.sub(r"(?<=[^aeiouy])e(?:s|d)?$", "", plain) if not re.search(r"[td]ed$|[^l]les?$", plain) else plain
    return max(1, len(re.findall(r"[aeiouy]+", plain)))


def _before(commit: str) -> dict[str, str]:
    asked = ["git", "ls-tree", "-r", "--name-only", commit, "README.md", "docs"]
    names = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    shown = {name: ["git", "show", f"{commit}:{name}"] for name in names if name.endswith(".md")}
    return {
        name: subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name, command in shown.items()
    }


def main() -> None:
    """Prints a line for each page, the hardest first."""
    now = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages()}
    then = _before(sys.argv[1]) if sys.argv[1:] else {}
    for name in sorted({*now, *then}, key=lambda name: ease(now.get(name, "")) or 999):
        figures = [text for found in (then, now) if (text := found.get(name)) is not None or found is now]
        told = [f"{words(text or ''):6} {_figure(ease(text or '')):>5}" for text in figures]
        print("  ".join([*told, name]))
    for label, found in (("before", then), ("now", now)):
        if found:
            print(f"{label}: {sum(map(words, found.values()))} words on {len(found)} pages")


def _figure(found: float | None) -> str:
    return "-" if found is None else f"{found:.0f}"


if __name__ == "__main__":
    main()
