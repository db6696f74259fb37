// A server without an end, to be mined: it handles one request after the other. A call of Server::handle is a loop whose
// length varies by 5 % from call to call. -DFACTOR=1.03 makes a build that is 3 % slower; LAB_SLOWER in the environment
// makes the host slower.
#include <cstdlib>
#include <sys/random.h>

#ifndef FACTOR
#define FACTOR 1.0
#endif

namespace {

double normal()
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += drand48();
	return sum;
}

volatile unsigned sink;

} // namespace

struct Server {
	void handle(unsigned long turns);
};

__attribute__((noinline)) void Server::handle(unsigned long turns)
{
	unsigned value = 1;
	for (unsigned long i = 0; i < turns; i++)
		value = value * 1664525 + 1013904223;
	sink = value;
}

int main()
{
	unsigned short seed[3];
	const char *slower = getenv("LAB_SLOWER");
	double turns = 20000 * FACTOR * (slower ? atof(slower) : 1);
	if (getrandom(seed, sizeof seed, 0) < 0)
		return 1;
	seed48(seed);
	Server server;
	for (;;)
		server.handle(turns * (1 + 0.05 * normal()));
}
