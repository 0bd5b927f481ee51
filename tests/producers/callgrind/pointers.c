// Calls through pointers: one dispatcher with many callers and callees, and a cycle of three functions.
#include <stdio.h>

typedef long (*operation)(long, int);

static long dispatch(int which, long value, int depth);
static long add(long value, int depth) { return value + depth; }
static long twice(long value, int depth) { return depth ? dispatch(0, value * 2, depth - 1) : value; }
static long mixed(long value, int depth) { return depth ? dispatch((int)(value & 3), value + 1, depth - 1) : value; }
static long loop(long value, int depth) {
	for (int i = 0; i < 20 + depth; i++)
		value ^= value << 1 ^ i;
	return value;
}
static const operation operations[] = {add, twice, mixed, loop};

static __attribute__((noinline)) long dispatch(int which, long value, int depth) {
	return operations[which](value, depth);
}

int main(void) {
	long value = 1;
	for (int i = 0; i < 300; i++)
		value += dispatch(i & 3, value & 0xffff, i % 7);
	printf("%ld\n", value);
	return 0;
}
