/* Calls a function that needs a fixed amount of CPU time, again and again, until it is killed.
 *
 *     demand [MICROSECONDS]
 */
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline, noclone)) void demand(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sink += i;
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double wanted = (argc > 1 ? atof(argv[1]) : 1000) * 1e-6, best = 1e9, before;

	for (int i = 0; i < 20; i++) {
		before = cpu_s();
		demand(1000000);
		if (cpu_s() - before < best)
			best = cpu_s() - before;
	}
	for (;;)
		demand(wanted / best * 1000000);
}
