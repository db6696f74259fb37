// top() is slow in one call of five, for a reason that the argument chooses. The program knows how long each part of the
// slow calls took by its own clock, and prints that when it is ended. SIGUSR1 has it begin to measure anew.
//
//     slow_calls callee|nested|recursion|two|cache|own|lock
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
#define SLOW_NS 400000
#define STEPS 24000
#define LINE 8 // words in a line of the cache

static volatile sig_atomic_t stop, anew;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t in_slow, in_other, in_lock, whole, slow_slow, slow_other, slow_lock, slow_whole, slow_calls;
static uint64_t *cold, *near;
static volatile uint64_t cold_place, near_place;
static const char *mode;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(long ns)
{
    struct timespec t = {0, ns};
    nanosleep(&t, NULL);
}

static void spin_ns(uint64_t ns)
{
    for (uint64_t end = now_ns() + ns; now_ns() < end;)
        ;
}

// Lines of memory, each with the number of another one: all in one circle, in random order (Sattolo).
static uint64_t *circle(uint64_t lines)
{
    uint64_t *made = aligned_alloc(64, lines * LINE * sizeof *made);
    if (!made)
        abort();
    for (uint64_t i = 0; i < lines; i++)
        made[i * LINE] = i;
    for (uint64_t i = lines - 1; i > 0; i--) {
        uint64_t j = (uint64_t)random() % i, other = made[j * LINE];
        made[j * LINE] = made[i * LINE];
        made[i * LINE] = other;
    }
    return made;
}

FUNCTION void slow(void) { sleep_ns(700000); KEEP_FRAME(); }
FUNCTION void other(void) { spin_ns(500000); KEEP_FRAME(); }
FUNCTION void parse(void) { spin_ns(20000); KEEP_FRAME(); }
FUNCTION void two(void) { slow(); KEEP_FRAME(); }
FUNCTION void one(void) { two(); KEEP_FRAME(); }
FUNCTION void take_lock(void) { pthread_mutex_lock(&mutex); KEEP_FRAME(); }

FUNCTION void descend(int depth)
{
    if (depth)
        descend(depth - 1);
    else
        slow();
    KEEP_FRAME();
}

FUNCTION void walk(const uint64_t *lines)
{
    volatile uint64_t *place = lines == near ? &near_place : &cold_place;
    uint64_t at = *place;
    for (int i = 0; i < STEPS; i++)
        at = lines[at * LINE];
    *place = at;
    KEEP_FRAME();
}

#define TIMED(sum, call)                                                                                               \
    do {                                                                                                               \
        uint64_t before = now_ns();                                                                                    \
        call;                                                                                                          \
        sum += now_ns() - before;                                                                                      \
    } while (0)

FUNCTION void top(int is_slow)
{
    parse();
    spin_ns(20000);
    if (!strcmp(mode, "lock")) {
        TIMED(in_lock, take_lock());
        pthread_mutex_unlock(&mutex);
    }
    if (is_slow && !strcmp(mode, "callee"))
        TIMED(in_slow, slow());
    if (is_slow && !strcmp(mode, "nested"))
        TIMED(in_slow, one());
    if (is_slow && !strcmp(mode, "recursion"))
        TIMED(in_slow, descend(4));
    if (is_slow && !strcmp(mode, "two")) {
        TIMED(in_slow, slow());
        TIMED(in_other, other());
    }
    if (!strcmp(mode, "cache")) // as many steps in each call
        TIMED(in_slow, walk(is_slow ? cold : near));
    if (is_slow && !strcmp(mode, "own"))
        spin_ns(900000);
    KEEP_FRAME();
}

static void *holder(void *unused)
{
    while (!stop) {
        pthread_mutex_lock(&mutex);
        sleep_ns(1500000);
        pthread_mutex_unlock(&mutex);
        sleep_ns(6000000);
    }
    return unused;
}

static void on_end(int number) { stop = number; }
static void on_anew(int number) { anew = number; }

int main(int argc, char **argv)
{
    pthread_t thread;

    mode = argc > 1 ? argv[1] : "callee";
    signal(SIGTERM, on_end);
    signal(SIGUSR1, on_anew);
    alarm(120);
    if (!strcmp(mode, "lock"))
        pthread_create(&thread, NULL, holder, NULL);
    if (!strcmp(mode, "cache")) {
        cold = circle(1 << 21); // 128 MB
        near = circle(1 << 7); // 8 kB
    }
    for (long i = 0; !stop; i++) {
        if (anew)
            anew = 0, slow_calls = slow_whole = slow_slow = slow_other = slow_lock = 0;
        in_slow = in_other = in_lock = 0;
        uint64_t before = now_ns();
        top(i % 5 == 0);
        whole = now_ns() - before;
        if (whole > SLOW_NS) {
            slow_calls++;
            slow_whole += whole;
            slow_slow += in_slow;
            slow_other += in_other;
            slow_lock += in_lock;
        }
        sleep_ns(200000);
    }
    printf("{\"calls\": %lu, \"whole\": %lu, \"slow\": %lu, \"other\": %lu, \"take_lock\": %lu}\n", slow_calls,
           slow_whole, slow_slow, slow_other, slow_lock);
    return 0;
}
