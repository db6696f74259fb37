// Threads that stay and threads that come and go; those that go leave by pthread_exit out of leave(), through
// a cleanup handler, which a return probe on leave() would make them skip.
//
//     threads [SECONDS] [STAYING THREADS]
#include <pthread.h>

#include "bounded.h"

enum { MOST = 64 };

static unsigned long calls[MOST], started, cleaned;

FUNCTION void work(unsigned long *count)
{
    spin_ns(10000);
    ++*count;
    KEEP_FRAME();
}

static void clean(void *count)
{
    ++*(unsigned long *)count;
}

FUNCTION void leave(void)
{
    pthread_cleanup_push(clean, &cleaned);
    spin_ns(10000);
    pthread_exit(NULL);
    pthread_cleanup_pop(0);
}

static void *staying(void *count)
{
    while (!stop) {
        work(count);
        sleep_ns(1000000);
    }
    return NULL;
}

static void *going(void *unused)
{
    (void)unused;
    leave();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST], short_lived;
    bounded(argc, argv);
    unsigned long staying_threads = argument(argc, argv, 2, 4), all = 0;
    if (staying_threads > MOST)
        staying_threads = MOST;
    for (unsigned long i = 0; i < staying_threads; i++)
        pthread_create(&threads[i], NULL, staying, &calls[i]);
    while (!stop) {
        if (pthread_create(&short_lived, NULL, going, NULL) != 0)
            break;
        started++;
        pthread_join(short_lived, NULL);
        sleep_ns(5000000);
    }
    for (unsigned long i = 0; i < staying_threads; i++) {
        pthread_join(threads[i], NULL);
        all += calls[i];
    }
    printf("{\"work\": %lu, \"leave\": %lu, \"cleaned\": %lu}\n", all, started, cleaned);
    return started == cleaned ? 0 : 1;
}
