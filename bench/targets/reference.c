/* The same small pieces of work, again and again: how fast is this CPU just now?
 *
 *     reference FILE
 *
 * A virtual CPU shares a core's execution units and caches with strangers, so its speed changes by the second, and not by
 * the same factor for all kinds of work. Five kinds are timed by this thread's CPU clock some sixty times a second: dense
 * arithmetic, loads that stay in the first and in the second cache, branches that cannot be foreseen, system calls. Each
 * is done once before it is timed, so that what other programs left in the caches does not matter. FILE holds the
 * number of rounds and the ns of each kind, all added up; until standard input ends.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 5, PAUSE_MS = 15, SMALL = 1 << 14, LARGE = 1 << 18 };

static volatile uint64_t sink;
static uint8_t memory[LARGE];

static void arithmetic(int rounds)
{
	uint64_t a = 1, b = 2, c = 3, d = 4;

	for (int i = 0; i < rounds; i++) {
		a += a << 3, b ^= b >> 5, c += c << 7, d ^= d >> 9;
		a ^= i, b += i, c ^= i, d += i;
	}
	sink = a + b + c + d;
}

static void loads(int rounds, uint32_t mask)
{
	uint32_t x = 12345;
	uint64_t sum = 0;

	for (int i = 0; i < rounds; i++) {
		x = x * 1664525 + 1013904223;
		sum += memory[x >> 8 & mask];
	}
	sink = sum;
}

static void small_loads(int rounds)
{
	loads(rounds, SMALL - 1);
}

static void large_loads(int rounds)
{
	loads(rounds, LARGE - 1);
}

static void branches(int rounds)
{
	uint32_t x = 777;
	uint64_t sum = 0;

	for (int i = 0; i < rounds; i++) {
		x = x * 1664525 + 1013904223;
		if (x & 0x10000) {
			sum += 3;
			__asm__ volatile("");
		} else {
			sum ^= x;
			__asm__ volatile("");
		}
		memory[x >> 12 & 4095] = sum;
	}
	sink = sum;
}

static void calls(int rounds)
{
	for (int i = 0; i < rounds; i++)
		syscall(SYS_getppid);
}

static const struct {
	void (*work)(int);
	int before, timed;
} kinds[KINDS] = {
	{ arithmetic, 500, 8000 }, { small_loads, 8000, 8000 }, { large_loads, 12000, 6000 }, { branches, 500, 3000 }, { calls, 5, 150 },
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
	volatile uint64_t *told = mmap(0, (1 + KINDS) * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (file < 0 || told == MAP_FAILED)
		return 2;
	while (poll(&input, 1, PAUSE_MS) == 0) {
		for (int kind = 0; kind < KINDS; kind++) {
			uint64_t begun;

			kinds[kind].work(kinds[kind].before);
			begun = cpu_ns();
			kinds[kind].work(kinds[kind].timed);
			told[1 + kind] += cpu_ns() - begun;
		}
		told[0]++;
	}
	return 0;
}
