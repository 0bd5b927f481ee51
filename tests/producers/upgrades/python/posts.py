"""Renders posts of a forum (Markdown), a fixed number of times.

The library is mistune: 0.8.4 on side a, 3.0.2, which was rewritten, on side b. Usage: posts.py FOLDER_OF_THE_LIBRARY [ROUNDS]
"""

import sys

sys.path.insert(0, sys.argv[1])

import mistune

render = mistune.markdown if mistune.__version__ < "2" else mistune.create_markdown()


def post(number):
    """Makes up a post."""
    parts = [f"# Post {number}\n"]
    for i in range(12):
        parts.append(f"Some *words* of **weight {i}**, with `code` and [a link](http://example.org/{i} \"title\") to it.\n")
        parts.append("\n".join(f"- item {j} with _stress_\n  and more" for j in range(4)) + "\n")
        parts.append(f"> quoted by {number}\n> again\n\n```c\nint x = {i};\n```\n")
        parts.append("1. one\n2. two\n\n---\n")
    return "\n".join(parts)


def count_tags(html):
    """Counts the tags of each name: the program's own work."""
    tags = {}
    for piece in html.split("<")[1:]:
        name = piece.split(">")[0].split(" ")[0]
        if not name.startswith("/"):
            tags[name] = tags.get(name, 0) + 1
    return tags


def main():
    """Does the work."""
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 70
    posts = [post(number) for number in range(20)]
    tags = 0
    for _ in range(rounds):
        for text in posts:
            tags += sum(count_tags(render(text)).values())
    print(tags, "tags")


main()
