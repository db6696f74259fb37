/* Calls a function that needs a fixed CPU time, again and again, until it is killed.
 *
 *     demand [MICROSECONDS]
 *
 * Virtual CPUs change their speed by the second, so the work is fitted to the time: by this thread's CPU clock, which
 * is read only every hundred calls, since reading it is a system call, and moves where a call is preempted.
 */
#include <stdlib.h>
#include <time.h>

enum { FIRST = 20, CALLS_A_LOOK = 100 };

/* In a register: a sum in memory takes 0.3 or 0.5 ns a round, as the CPU happens to guess where it is stored. */
__attribute__((noinline, noclone)) void demand(unsigned long rounds)
{
	unsigned long sum = 1;

	for (unsigned long i = 0; i < rounds; i++) {
		sum = sum * 3 + i;
		__asm__ volatile("" : "+r"(sum));
	}
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double wanted = (argc > 1 ? atof(argv[1]) : 1000) * 1e-6, best = 1e9, rounds;

	for (int i = 0; i < FIRST; i++) {
		double before = cpu_s();

		demand(1000000);
		if (cpu_s() - before < best)
			best = cpu_s() - before;
	}
	rounds = wanted / best * 1000000;
	for (;;) {
		double before = cpu_s();

		for (int i = 0; i < CALLS_A_LOOK; i++)
			demand(rounds);
		rounds *= wanted * CALLS_A_LOOK / (cpu_s() - before);
	}
}
