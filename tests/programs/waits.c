// Functions that wait, each in a thread of its own: on a condition variable (futex), a timer, a System V
// semaphore, a pipe. A fifth thread wakes them about a thousand times a second.
//
//     waits [SECONDS]
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include "bounded.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long wakes, by_condition, by_timer, by_semaphore, by_pipe;
static int semaphore, ends[2];
static volatile int waker_stops;

FUNCTION void wait_condition(void)
{
    pthread_mutex_lock(&mutex);
    unsigned long seen = wakes;
    while (wakes == seen && !stop)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    by_condition++;
}

FUNCTION void wait_timer(void)
{
    sleep_ns(1000000);
    by_timer++;
}

FUNCTION void wait_semaphore(void)
{
    struct sembuf take = {0, -1, 0};
    semop(semaphore, &take, 1);
    by_semaphore++;
}

FUNCTION void wait_pipe(void)
{
    char byte;
    if (read(ends[0], &byte, 1) == 1)
        by_pipe++;
}

static void *repeat(void *wait)
{
    while (!stop)
        ((void (*)(void))wait)();
    return NULL;
}

static void *wake_all(void *unused)
{
    (void)unused;
    // goes on after the end until all that wait have seen it
    while (!waker_stops) {
        struct sembuf give = {0, 1, 0};
        sleep_ns(1000000);
        pthread_mutex_lock(&mutex);
        wakes++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        if (semctl(semaphore, 0, GETVAL) == 0)
            semop(semaphore, &give, 1);
        if (write(ends[1], "", 1) != 1)
            break;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    void (*waits[])(void) = {wait_condition, wait_timer, wait_semaphore, wait_pipe};
    pthread_t threads[4], waker;
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (semaphore < 0 || pipe(ends) != 0) {
        perror("waits");
        return 1;
    }
    bounded(argc, argv);
    pthread_create(&waker, NULL, wake_all, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, repeat, (void *)waits[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    waker_stops = 1;
    pthread_join(waker, NULL);
    semctl(semaphore, 0, IPC_RMID);
    printf("{\"wait_condition\": %lu, \"wait_timer\": %lu, \"wait_semaphore\": %lu, \"wait_pipe\": %lu}\n",
           by_condition, by_timer, by_semaphore, by_pipe);
    return 0;
}
