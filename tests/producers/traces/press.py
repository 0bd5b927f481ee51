"""A printing press for words, for profilers of Python. Usage: python3 press.py ROUNDS."""

import sys
import threading


def set_line(length, seed):
    line = []
    for i in range(length):
        seed = (seed * 1103515245 + i) % 2147483648
        line.append(chr(97 + seed % 26))
    return "".join(line)


def fold(depth):
    if depth:
        return fold(depth - 1)
    return "".join(sorted(set_line(5000, 7)))


def print_sheets(rounds):
    for _ in range(rounds):
        for depth in range(3):
            fold(depth)


if __name__ == "__main__":
    rounds = int(sys.argv[1])
    helper = threading.Thread(target=print_sheets, args=(rounds // 2,), name="helper")
    helper.start()
    print_sheets(rounds)
    helper.join()
