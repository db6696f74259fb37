// The neighbour that nobody chose: it measures what its own calls of malloc and semop cost, in batches of
// 1,000, and prints their medians and smallest values. A probe that reached it would show at once.
//
//     control [SECONDS]
#include <sys/ipc.h>
#include <sys/sem.h>

#include "bounded.h"

enum { BATCH = 1000, MOST = 1 << 20 };

static int semaphore;

static void batch_malloc(void)
{
    for (int i = 0; i < BATCH; i++) {
        void *volatile block = malloc(100);
        free(block);
    }
}

static void batch_semop(void)
{
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
    for (int i = 0; i < BATCH / 2; i++) {
        semop(semaphore, &up, 1);
        semop(semaphore, &down, 1);
    }
}

static int by_value(const void *left, const void *right)
{
    double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static double timed(void (*batch)(void))
{
    uint64_t start = now_ns();
    batch();
    return (double)(now_ns() - start) / BATCH;
}

int main(int argc, char **argv)
{
    double *mallocs = malloc(MOST * sizeof(double)), *semops = malloc(MOST * sizeof(double));
    size_t n = 0;
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (semaphore < 0 || !mallocs || !semops) {
        perror("control");
        return 1;
    }
    bounded(argc, argv);
    for (int i = 0; i < 20; i++) { // caches, frequency, first page faults
        batch_malloc();
        batch_semop();
    }
    for (; !stop && n < MOST; n++) {
        mallocs[n] = timed(batch_malloc);
        semops[n] = timed(batch_semop);
    }
    semctl(semaphore, 0, IPC_RMID);
    if (n == 0)
        return 1;
    qsort(mallocs, n, sizeof(double), by_value);
    qsort(semops, n, sizeof(double), by_value);
    printf("{\"batches\": %zu, \"malloc_ns\": %.3f, \"malloc_least_ns\": %.3f, \"semop_ns\": %.3f, "
           "\"semop_least_ns\": %.3f}\n",
           n, mallocs[n / 2], mallocs[0], semops[n / 2], semops[0]);
    return 0;
}
