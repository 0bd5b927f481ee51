// A program of counting.py: splits a text into words and hashes them. `tenth` has about a tenth of the instructions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char text[8192];
static unsigned kept;
__attribute__((noinline)) unsigned hash(const char *p, int n) {
    unsigned h = 5381;
    for (int i = 0; i < n; i++) h = h * 33 + p[i];
    return h;
}
__attribute__((noinline)) void parse(void) {
    char *p = text;
    int words = 0;
    while (*p) {
        char *q = p;
        while (*q && *q != ' ') q++;
        kept += hash(p, q - p);
        words++;
        p = *q ? q + 1 : q;
    }
    kept += words;
}
__attribute__((noinline)) unsigned tenth(unsigned n) {
    unsigned x = SEED;
    for (unsigned i = 0; i < n; i++) x = x * 1664525 + 1013904223;
    return x;
}
__attribute__((noinline)) void copy(void) {
    char *c = malloc(sizeof text);
    memcpy(c, text, sizeof text);
    kept += c[100];
    free(c);
}
int main(void) {
    for (int i = 0; i < 8000; i++) text[i] = i % 7 ? 'a' + i % 26 : ' ';
    for (int r = 0; r < REPEAT; r++) {
        parse();
        copy();
        for (int k = 0; k < 1; k++) kept += tenth(TENTH);
    }
    printf("%u\n", kept);
    return 0;
}
