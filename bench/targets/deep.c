/* Calls leaf() under a stack of a given number of frames, and prints every tenth of a second what a call takes, in
 * ns of CPU time.
 *
 *     deep FRAMES [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* begins with a push, so that its probe is emulated */
__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("" ::: "rbx");
}

__attribute__((noinline)) static void loop(void)
{
	double begin = now(CLOCK_MONOTONIC), start = begin, end, cpu = now(CLOCK_THREAD_CPUTIME_ID), used;
	long calls = 0;

	while (start - begin < seconds) {
		for (int i = 0; i < 100; i++)
			leaf();
		calls += 100;
		end = now(CLOCK_MONOTONIC);
		if (end - start >= 0.1) {
			used = now(CLOCK_THREAD_CPUTIME_ID); /* time in which others run is not counted */
			printf("%.1f\n", (used - cpu) / calls * 1e9);
			fflush(stdout);
			cpu = used;
			start = end;
			calls = 0;
		}
	}
	__asm__ volatile("");
}

__attribute__((noinline)) static void deeper(int frames)
{
	volatile char local[64]; /* frames of servers have about 100 bytes */

	local[frames & 63] = 1;
	if (frames)
		deeper(frames - 1);
	else
		loop();
	__asm__ volatile("" ::"r"(&local));
}

int main(int argc, char **argv)
{
	(void)argc;
	seconds = argc > 2 ? atof(argv[2]) : 600;
	/* _start, two frames of libc, main, loop and the last deeper stand on the stack too */
	deeper(atoi(argv[1]) - 6);
	return 0;
}
