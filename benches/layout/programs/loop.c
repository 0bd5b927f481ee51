// A program whose hot loop takes half as long again if it starts 48 bytes into a line of 64 bytes, on a Zen 5 processor.
// Functions start at multiples of 16, so the order of functions decides. It writes its times to $PPROFDIFF_PROFILE.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KEEP __attribute__((noinline))

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

// UNUSED

// Counts odd numbers. It is written in assembly, so that each compiler makes the same loop.
KEEP long odd(long rounds) {
    long number = 0, sum = 0;
    __asm__ volatile(".p2align 4\n"
                     "1: add $1, %0\n"
                     "test $1, %%al\n"
                     "jz 2f\n"
                     "add $3, %1\n"
                     "2: dec %2\n"
                     "jnz 1b"
                     : "+a"(number), "+d"(sum), "+c"(rounds)
                     :
                     : "cc");
    return sum;
}

// Divides, which takes as long at each address.
KEEP long divide(long rounds) {
    volatile long divisor = 3;
    long x = 1L << 62;
    for (long i = 0; i < rounds; i++) x = x / divisor + (1L << 61);
    return x;
}

KEEP long first(long x) { return x * 3 + 1; }

KEEP long second(long x) { return first(x) ^ (x >> 7) ^ (x << 9) ^ 0x5555555555; }

KEEP long third(long x) { return second(x) + second(x + 1) * second(x + 2) - second(x * 3); }

KEEP long fourth(long x) { return x > 9 ? third(x - 1) : x % 7 ? second(x) : first(x / 3); }

int main(void) {
    const char *name = getenv("PPROFDIFF_PROFILE");
    FILE *profile = name && *name ? fopen(name, "w") : stdout;
    long kept = 0;
    double start = now();
    kept += odd(200000000);
    double middle = now();
    kept += divide(10000000);
    double end = now();
    fprintf(profile, "main;odd %.0f\nmain;divide %.0f\n", middle - start, end - middle);
    fclose(profile);
    return fourth(kept) == 42;
}
