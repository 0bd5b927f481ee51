// A program of counting.py: sorts numbers and searches them. `tenth` has about a tenth of the instructions.
#include <stdio.h>
#include <stdlib.h>
static int numbers[1000];
static unsigned kept;
__attribute__((noinline)) int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) void fill(void) {
    unsigned x = SEED;
    for (int i = 0; i < 1000; i++) {
        x = x * 1664525 + 1013904223;
        numbers[i] = x % 10007;
    }
}
__attribute__((noinline)) int search(int n) {
    int low = 0, high = 1000;
    while (low < high) {
        int middle = (low + high) / 2;
        if (numbers[middle] < n) low = middle + 1;
        else high = middle;
    }
    return low;
}
__attribute__((noinline)) unsigned tenth(unsigned n) {
    unsigned x = 1;
    for (unsigned i = 0; i < n; i++) x = x * 31 + i;
    return x;
}
int main(void) {
    for (int r = 0; r < REPEAT; r++) {
        fill();
        qsort(numbers, 1000, sizeof(int), compare);
        for (int i = 0; i < 500; i++) kept += search(i);
        for (int k = 0; k < 6; k++) kept += tenth(TENTH);
    }
    printf("%u\n", kept);
    return 0;
}
