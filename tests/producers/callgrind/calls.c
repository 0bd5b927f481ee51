// Calls from several places, recursion, and mutual recursion.
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline))

static inline int squares(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += i * i;
	return sum;
}

KEPT int work(int n) { return squares(n) + 1; }
KEPT int fib(int n) { return n < 2 ? work(2) : fib(n - 1) + fib(n - 2); }
KEPT int odd(int n);
KEPT int even(int n) { return n == 0 ? work(3) : odd(n - 1) + 1; }
KEPT int odd(int n) { return n == 0 ? 0 : even(n - 1) + work(1); }
KEPT int light(void) {
	int sum = 0;
	for (int i = 0; i < 10; i++)
		sum += work(i * 3);
	return sum;
}
KEPT int heavy(void) {
	int sum = 0;
	for (int i = 0; i < 30; i++)
		sum += work(i);
	return sum + light();
}
int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }

int main(int argc, char **argv) {
	int n = argc > 1 ? atoi(argv[1]) : 50;
	int values[200];
	for (int i = 0; i < n && i < 200; i++)
		values[i] = (i * 7919) % 101;
	qsort(values, n < 200 ? n : 200, sizeof *values, compare);
	printf("%d %d %d %d\n", light(), heavy(), fib(10), even(9) + values[3]);
	return 0;
}
