"""Ten small programs that cProfile records, one function each."""

import json
import re
import threading
from functools import lru_cache


class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side * self.side


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return 3 * self.radius * self.radius


def work(n):
    return sum(i * i for i in range(n))


def light():
    return [work(3) for _ in range(10)]


def heavy(rounds):
    return [work(300) for _ in range(rounds)] + light()


def callers(rounds=30):
    """A function that several others call, with different costs."""
    light()
    heavy(rounds)
    work(50)


def fib(n):
    return work(2) if n < 2 else fib(n - 1) + fib(n - 2)


def recursion():
    fib(12)


def even(n):
    return work(5) if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def mutual():
    even(20)
    odd(7)


def methods():
    """Methods of the same name in one file."""
    shapes = [Square(i) if i % 2 else Circle(i) for i in range(200)]
    return sum(shape.area() for shape in shapes)


def key(word):
    return len(word), word


def callbacks():
    """Built-in functions that call back."""
    words = [str(i * 7919 % 1000) for i in range(500)]
    return sorted(words, key=key), max(words, key=key), list(map(key, words))


def parsing():
    """The standard library."""
    text = json.dumps({str(i): [i, {"x": i / 3}] for i in range(100)})
    return json.loads(text), re.findall(r"(\d+)\.(\d+)", text)


def numbers(n):
    for i in range(n):
        yield work(i % 5)


def generators():
    return sum(numbers(200))


@lru_cache(maxsize=None)
def paths(x, y):
    return 1 if x == 0 or y == 0 else paths(x - 1, y) + paths(x, y - 1)


def caching():
    """Recursion through a function in C."""
    paths(8, 8)


def chain(n):
    return work(n) if n == 0 else step(n)


def step(n):
    return chain(n - 1)


def fails(n):
    if n == 0:
        raise ValueError
    fails(n - 1)


def errors():
    """Exceptions through several calls, and a chain of calls."""
    for _ in range(20):
        try:
            fails(5)
        except ValueError:
            chain(15)


def threads():
    """Threads, of which cProfile records only the main one."""
    running = [threading.Thread(target=work, args=(100,)) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


PROGRAMS = [callers, recursion, mutual, methods, callbacks, parsing, generators, caching, errors, threads]
