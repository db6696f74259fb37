/* A benchmark whose truth is known: drawn FACTOR CALLS prints durations that are drawn, or with "work" as third word
 * spends the time and prints what it took. Runs differ by 0.5 % (standard deviation), calls of a run by 5 %; LAB_SLOWER
 * in the environment makes the host slower. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static double normal(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += drand48();
	return sum;
}

static long long cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static volatile unsigned sink;

int main(int count, char **words)
{
	unsigned short seed[3];
	const char *slower = getenv("LAB_SLOWER");
	double factor = atof(words[1]) * (slower ? atof(slower) : 1.0);
	long calls = atol(words[2]);
	int work = count > 3 && !strcmp(words[3], "work");

	if (getrandom(seed, sizeof seed, 0) != sizeof seed)
		return 1;
	seed48(seed);
	double run = exp(0.005 * normal());
	puts("duration_ns");
	for (long call = 0; call < calls; call++) {
		double drawn = 20000 * factor * run * exp(0.05 * normal());
		if (!work) {
			printf("%.0f\n", drawn);
			continue;
		}
		long long from = cpu_ns();
		for (unsigned at = 0; at < (unsigned)drawn; at++)
			sink += at;
		printf("%lld\n", cpu_ns() - from);
	}
	return 0;
}
