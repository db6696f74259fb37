/* Threads that are blocked for known shares of their time; prints those at its end, or at SIGTERM. usage: lock_shares SECONDS [IDLE]
 *
 * One holds a lock for 40 of each 120 ms, four want it each 3 ms, IDLE further ones sleep. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINE __attribute__((noinline, noclone))
#define WORKERS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;
static double held, wanted[WORKERS], began;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static void rest(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

NOT_INLINE static void hold(void)
{
	double since = now();

	pthread_mutex_lock(&lock);
	rest(40);
	pthread_mutex_unlock(&lock);
	held += now() - since;
}

NOT_INLINE static void pause_between(void)
{
	rest(80);
	sink++;
}

static void *holder(void *unused)
{
	for (;;) {
		hold();
		pause_between();
	}
	return unused;
}

NOT_INLINE static void take_lock(void)
{
	pthread_mutex_lock(&lock);
	sink++;
	pthread_mutex_unlock(&lock);
	sink++;
}

NOT_INLINE static void update(double *spent)
{
	double since = now();

	take_lock();
	*spent += now() - since;
}

NOT_INLINE static void pause_shortly(void)
{
	rest(3);
	sink++;
}

static void *worker(void *spent)
{
	for (;;) {
		update(spent);
		pause_shortly();
	}
	return spent;
}

static void *idler(void *unused)
{
	for (;;)
		rest(1000000);
	return unused;
}

static void tell(int number)
{
	double all = now() - began, of_workers = 0;
	int i;

	(void)number;
	for (i = 0; i < WORKERS; i++)
		of_workers += wanted[i];
	printf("{\"hold\": %.4f, \"update\": %.4f}\n", held / all, of_workers / all);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	int i, idle = argc > 2 ? atoi(argv[2]) : 0;
	pthread_attr_t small;
	pthread_t thread;

	began = now();
	signal(SIGTERM, tell);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	pthread_create(&thread, &small, holder, NULL);
	for (i = 0; i < WORKERS; i++)
		pthread_create(&thread, &small, worker, &wanted[i]);
	for (i = 0; i < idle; i++)
		pthread_create(&thread, &small, idler, NULL);
	sleep(argc > 1 ? atoi(argv[1]) : 60);
	tell(0);
	return 0;
}
