// What a load task can do: CPU demands of four kinds, sleeping, the disk, clocks, and a lock that two threads pass.
// One unit of a demand is the same work on every machine.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { INTEGER, FLOAT, SORT, MEMORY, SLEEP, READ, WRITE, CLOCK, SYSCALL, PINGPONG, KINDS };
static const char *const KIND_NAMES[KINDS] = {"integer", "float", "sort",  "memory",  "sleep",
                                              "read",    "write", "clock", "syscall", "pingpong"};

enum { SORTED = 256, BLOCK = 1 << 20, FILE_BLOCKS = 32 };
static const size_t CHASED = (size_t)32 << 20;

static volatile uint64_t sink;
static uint64_t random_state = 88172645463325252ull;

static int64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

// Fibonacci, a term a cycle. With a term a round the loop would need all of what a core can begin in a cycle: as long as
// somebody used the core's other thread, which a guest cannot see, it took twice the time where other code took a tenth more.
#define TERMS(a, b) a += b; __asm__ volatile("" : "+r"(a), "+r"(b)); b += a; __asm__ volatile("" : "+r"(a), "+r"(b));

static void integer(int64_t units)
{
    uint64_t a = sink, b = 1;
    for (; units >= 8; units -= 8) {
        TERMS(a, b) TERMS(a, b) TERMS(a, b) TERMS(a, b)
    }
    for (; units > 0; units -= 2) {
        TERMS(a, b)
    }
    sink = a;
}

static void floating(int64_t units)
{
    double x = 0, y = 0;
    for (int64_t i = 0; i < units; i++) { // a point inside the Mandelbrot set: never leaves
        double t = x * x - y * y - 0.1;
        y = 2 * x * y + 0.1;
        x = t;
    }
    sink = (uint64_t)(x * 1e6) + (uint64_t)(y * 1e6);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort(int64_t units)
{
    static uint32_t items[SORTED];
    for (int64_t i = 0; i < units; i++) {
        uint32_t seed = 2463534242u;
        for (int j = 0; j < SORTED; j++)
            items[j] = seed = seed * 1664525u + 1013904223u;
        qsort(items, SORTED, sizeof items[0], ascending);
    }
    sink = items[0];
}

static uint32_t *chain;

static void memory(int64_t units)
{
    uint32_t at = (uint32_t)sink % (CHASED / sizeof *chain);
    for (int64_t i = 0; i < units; i++)
        at = chain[at];
    sink = at;
}

static void make_chain(void) // one cycle through all of it (Sattolo), so that each step misses the caches
{
    uint32_t n = CHASED / sizeof *chain;
    if (chain || !(chain = malloc(CHASED)))
        return;
    for (uint32_t i = 0; i < n; i++)
        chain[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = next_random() % i, t = chain[i];
        chain[i] = chain[j];
        chain[j] = t;
    }
}

static int disk = -1;
static char *block;

static int make_file(const char *folder) // nameless: nothing is left whatever ends us
{
    if (disk >= 0)
        return 0;
    disk = open(folder, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
    if (disk < 0 || posix_memalign((void **)&block, 4096, BLOCK))
        return -1;
    memset(block, 0x5a, BLOCK);
    for (int i = 0; i < FILE_BLOCKS; i++)
        if (pwrite(disk, block, BLOCK, (off_t)i * BLOCK) != BLOCK)
            return -1;
    return fsync(disk);
}

static void transfer(int64_t bytes, int writing)
{
    for (int64_t done = 0; done < bytes; done += BLOCK) {
        off_t at = (off_t)(next_random() % FILE_BLOCKS) * BLOCK;
        ssize_t moved = writing ? pwrite(disk, block, BLOCK, at) : pread(disk, block, BLOCK, at);
        sink += (uint64_t)moved;
    }
}

static void sleep_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static sem_t there, back;
static int partner_cpu = -1;

static void *partner(void *unused)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (partner_cpu >= 0) {
        CPU_SET(partner_cpu, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    for (;;) {
        sem_wait(&there);
        sem_post(&back);
    }
    return unused;
}

static int make_partner(void)
{
    pthread_t thread;
    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    return pthread_create(&thread, NULL, partner, NULL);
}

static int prepare_step(enum kind kind, const char *folder)
{
    switch (kind) {
    case MEMORY: make_chain(); return chain ? 0 : -1;
    case READ:
    case WRITE: return make_file(folder);
    case PINGPONG: return make_partner();
    default: return 0;
    }
}

static void do_step(enum kind kind, int64_t amount)
{
    switch (kind) {
    case INTEGER: integer(amount); break;
    case FLOAT: floating(amount); break;
    case SORT: sort(amount); break;
    case MEMORY: memory(amount); break;
    case SLEEP: sleep_ns(amount); break;
    case READ: transfer(amount, 0); break;
    case WRITE: transfer(amount, 1); break;
    case CLOCK:
        for (int64_t i = 0; i < amount; i++)
            sink += (uint64_t)now_ns();
        break;
    case SYSCALL:
        for (int64_t i = 0; i < amount; i++)
            sink += (uint64_t)syscall(SYS_getppid);
        break;
    case PINGPONG:
        for (int64_t i = 0; i < amount; i++) {
            sem_post(&there);
            sem_wait(&back);
        }
        break;
    default: break;
    }
}
