// longjmp out of nested calls, tail calls, and a signal handler.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf escape;
static volatile int handled;

static __attribute__((noinline)) int deep(int n) {
	if (n == 0)
		longjmp(escape, 1);
	return deep(n - 1) + 1;
}
static __attribute__((noinline)) int tail(int n) { return n ? n * 3 : deep(5); }
static void handler(int number) { handled += number; }

int main(void) {
	signal(SIGUSR1, handler);
	volatile int sum = 0;
	for (volatile int i = 0; i < 10; i++) {
		if (setjmp(escape) == 0)
			sum += tail(i & 1);
		if (i % 3 == 0)
			raise(SIGUSR1);
	}
	printf("%d %d\n", sum, handled);
	return 0;
}
