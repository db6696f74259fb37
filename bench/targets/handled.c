/* A server without an end, to be mined: handled FACTOR calls handle() again and again. A call is a loop whose length
 * varies by 5 % from call to call; FACTOR makes it longer, and so does LAB_SLOWER, which makes the host slower. */
#include <stdlib.h>
#include <sys/random.h>

static double normal(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += drand48();
	return sum;
}

static volatile unsigned sink;

__attribute__((noinline)) void handle(unsigned long turns)
{
	unsigned value = 1;
	for (unsigned long i = 0; i < turns; i++)
		value = value * 1664525 + 1013904223;
	sink = value;
}

int main(int count, char **words)
{
	unsigned short seed[3];
	const char *slower = getenv("LAB_SLOWER");
	double factor = (count > 1 ? atof(words[1]) : 1) * (slower ? atof(slower) : 1);
	if (getrandom(seed, sizeof seed, 0) < 0)
		return 1;
	seed48(seed);
	for (;;)
		handle(20000 * factor * (1 + 0.05 * normal()));
}
