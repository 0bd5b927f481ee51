/* A printing press for words: allocates sheets, sets lines and sorts them. Two kinds of threads; what it keeps depends on
   its argument, so that two runs differ. Usage: press ROUNDS */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sheet {
    struct sheet *next;
    char *text;
};

static struct sheet *kept;
static volatile unsigned long checksum;

/* Is inlined into its callers. */
static inline __attribute__((always_inline)) unsigned long mix(unsigned long sum, unsigned char letter) {
    for (int i = 0; i < 8; i++)
        sum = (sum ^ letter) * 1099511628211ul + i;
    return sum;
}

static __attribute__((noinline)) unsigned long set_line(char *line, size_t length, unsigned long seed) {
    for (size_t i = 0; i < length; i++) {
        seed = mix(seed, (unsigned char)i);
        line[i] = 'a' + seed % 26;
    }
    return seed;
}

static int by_letter(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}

static __attribute__((noinline)) void sort_line(char *line, size_t length) {
    qsort(line, length, 1, by_letter);
}

static __attribute__((noinline)) struct sheet *print_sheet(size_t length) {
    struct sheet *sheet = malloc(sizeof *sheet);
    sheet->text = malloc(length);
    checksum = set_line(sheet->text, length, length);
    sort_line(sheet->text, length);
    return sheet;
}

static __attribute__((noinline)) void fold(unsigned depth) {
    if (depth > 0) {
        fold(depth - 1);
        checksum = mix(checksum, depth);
        return;
    }
    struct sheet *sheet = print_sheet(512);
    sheet->next = kept;
    kept = sheet;
}

static void *count(void *rounds) {
    for (unsigned long i = 0; i < *(unsigned long *)rounds * 20000; i++)
        checksum = mix(checksum, i);
    return NULL;
}

int main(int argc, char **argv) {
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    pthread_t counter;
    if (pthread_create(&counter, NULL, count, &rounds) != 0)
        return 1;
    for (unsigned long i = 0; i < rounds; i++) {
        struct sheet *thrown = print_sheet(4096);
        free(thrown->text);
        free(thrown);
        for (unsigned depth = 0; depth < 6; depth++)
            fold(depth);
    }
    pthread_join(counter, NULL);
    printf("%lu\n", checksum);
    return 0;
}
