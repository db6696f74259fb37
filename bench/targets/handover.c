/* Two processes hand a byte to each other; prints their CPU time per switch, ns.
 *
 *     handover [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double used_s(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100000, there[2], back[2];
	char byte = 0;

	if (pipe(there) || pipe(back))
		return 1;
	if (!fork()) {
		while (read(there[0], &byte, 1) == 1 && byte == 0)
			if (write(back[1], &byte, 1) != 1)
				return 1;
		return 0;
	}
	for (int i = 0; i < rounds; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 1;
	byte = 1;
	if (write(there[1], &byte, 1) != 1)
		return 1;
	wait(NULL);
	printf("%.1f\n", (used_s(RUSAGE_SELF) + used_s(RUSAGE_CHILDREN)) / (2.0 * rounds) * 1e9);
	return 0;
}
