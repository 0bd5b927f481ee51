# A small program for the interpreter itself to be profiled.
import json

def count(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts

print(json.dumps(count("the cat sat on the mat " * 20), sort_keys=True))
