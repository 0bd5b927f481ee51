"""Renders a notebook of nested notes, again and again; profiled from outside by Austin.

Usage: notes.py base|new. In new, the index is searched word by word for every link (slower), and
headings are no longer numbered (removed).
"""

import sys
import threading


class Note:
    def __init__(self, name, depth):
        self.name = name
        self.links = [f"note-{(number * 7 + depth) % 40}" for number in range(6)]
        self.children = [Note(f"{name}.{number}", depth - 1) for number in range(3)] if depth else []


def render(note, version, index, level=0):
    """Recursive."""
    lines = ["#" * level + " " + heading(note, version)]
    lines += [render_link(link, version, index) for link in note.links]
    lines += [render(child, version, index, level + 1) for child in note.children]
    return "\n".join(lines)


def heading(note, version):
    return number_heading(note.name) if version == "base" else note.name.title()


def number_heading(name):
    numbers = [str(sum(ord(letter) for letter in part * 20)) for part in name.split(".")]
    return ".".join(numbers) + " " + name.title()


def render_link(link, version, index):
    target = index[link] if version == "base" else search(link, index)
    return f"[{link}]({target})"


def search(link, index):
    for name, target in index.items():
        if name.casefold() == link.casefold():
            return target
    raise KeyError(link)


def count_words(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def main(version):
    index = {f"note-{number}": f"/notes/{number}.html" for number in range(40)}
    notebook = Note("notebook", 5)
    done = threading.Event()
    saver = threading.Thread(target=done.wait, name="saver")
    saver.start()
    for _ in range(300):
        count_words(render(notebook, version, index))
    done.set()
    saver.join()


main(sys.argv[1])
