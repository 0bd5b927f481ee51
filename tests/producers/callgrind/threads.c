// Three threads with the same functions.
#include <pthread.h>
#include <stdio.h>

static __attribute__((noinline)) long step(long n) {
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += i % 7;
	return sum;
}

static void *run(void *argument) {
	long *n = argument, sum = 0;
	for (int i = 0; i < 20; i++)
		sum += step(*n + i);
	*n = sum;
	return NULL;
}

int main(void) {
	pthread_t threads[3];
	long n[3] = {50, 100, 200};
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, run, &n[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", n[0] + n[1] + n[2] + step(10));
	return 0;
}
