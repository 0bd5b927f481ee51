// A small tool: it parses numbers, hashes, sorts, multiplies matrices and counts words. pairs.py edits one function at a
// time. Each function prints its result, so that an edit of its data is visible too.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))

static const uint32_t nibbles[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                     0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
static const char *const days[] = {"monday", "tuesday", "wednesday", "thursday", "friday"};
static const unsigned char weights[8] = {1, 2, 4, 8, 16, 32, 64, 128};
static unsigned calls;
static int limits[4] = {100, 250, 500, 900};

static inline uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static inline int weigh(int x) { return x * 3 + (x >> 4); }

KEEP static int left(int x) { return x * 5 + 1; }

KEEP static int right(int x) { return x * 7 + 2; }

KEEP static int difference(int x, int y) { return 4 * x - y; }

// Parses decimal numbers between separators and adds them.
KEEP int64_t parse(const char *text) {
    int64_t sum = 0, value = 0;
    int sign = 1;
    for (; *text; text++) {
        if (*text >= '0' && *text <= '9') {
            value = value * 10 + (*text - '0');
        } else if (*text == '-') {
            sign = -1;
        } else {
            sum += sign * value;
            value = 0;
            sign = 1;
        }
    }
    return sum + sign * value;
}

KEEP uint64_t hash(const unsigned char *data, size_t len) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) {
        h ^= data[i];
        h *= 0x100000001b3u;
        h = rotate(h, 23);
    }
    return h;
}

KEEP uint32_t checksum(const unsigned char *data, size_t len) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < len; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}

KEEP void sort(int *values, int n) {
    for (int i = 1; i < n; i++) {
        int value = values[i], j = i;
        while (j > 0 && values[j - 1] > value) {
            values[j] = values[j - 1];
            j--;
        }
        values[j] = value;
    }
}

KEEP double multiply(const double *a, const double *b, double *c, int n) {
    double trace = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0.125;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
        trace += c[i * n + i] * 1.5;
    }
    return trace;
}

// Counts words of at least three letters.
KEEP int words(const char *text) {
    int count = 0, length = 0;
    for (;; text++) {
        if ((*text | 32) >= 'a' && (*text | 32) <= 'z') {
            length++;
            continue;
        }
        if (length >= 3) count++;
        length = 0;
        if (!*text) return count;
    }
}

KEEP int find(const int *values, int n, int wanted) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (values[middle] < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

KEEP const char *day(int k) { return days[(unsigned)k % 5]; }

KEEP int limit(int k, int x) { return x > limits[k & 3] ? limits[k & 3] : x; }

KEEP int interpret(const char *program, int x) {
    for (; *program; program++) {
        switch (*program) {
        case 'a': x = left(x); break;
        case 'b': x = right(x); break;
        case 'c': x = x * x; break;
        case 'd': x = x / 3; break;
        case 'e': x = ~x; break;
        case 'f': x += weights[x & 7]; break;
        case 'g': x ^= 0x55; break;
        case 'h': calls++; break;
        }
    }
    return x;
}

KEEP int fold(const int *values, int n) {
    int x = 1;
    for (int i = 0; i < n; i++) x = left(x) ^ values[i];
    return x;
}

KEEP int compare(const int *values, int n) {
    int x = 0;
    for (int i = 1; i < n; i++) x += difference(values[i], values[i - 1]);
    return x;
}

KEEP int score(const int *values, int n) {
    int x = 0;
    for (int i = 0; i < n; i++) x += weigh(values[i]);
    return x;
}

KEEP void report(const char *name, long value) {
    calls++;
    printf("%s: %ld\n", name, value);
}

int main(int count, char **arguments) {
    static const char text[] = "12 apples, 7 pears and -30 plums for 1999 guests on 24 tables";
    const unsigned char *bytes = (const unsigned char *)text;
    int values[64];
    double a[64], b[64], c[64];
    for (int i = 0; i < 64; i++) {
        values[i] = i * 37 % 101;
        a[i] = i % 7;
        b[i] = i % 5;
    }
    report("parse", parse(text));
    report("hash", (long)hash(bytes, sizeof text));
    report("checksum", checksum(bytes, sizeof text));
    report("fold", fold(values, 64));
    report("compare", compare(values, 64));
    report("score", score(values, 64));
    sort(values, 64);
    report("sort", values[3] * 1000 + values[40]);
    report("find", find(values, 64, 52) * 100 + find(values, 64, 7));
    report("multiply", (long)(1000 * multiply(a, b, c, 8)));
    report("words", words(text));
    report("interpret", interpret("abcfdgeabfhabfffaf", 9));
    if (count > 9) limits[0] = atoi(arguments[9]);
    report("limit", limit(2, 1000) + limit(3, 1000));
    for (int k = 0; k < 8; k++) report("weights", interpret("f", k));
    for (int k = 0; k < 5; k++) puts(day(k));
    return 0;
}
