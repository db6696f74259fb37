// Threads end inside timed calls, by themselves and by cancellation; their cleanup handlers must run.
#include <pthread.h>

#include "steps.h"

static volatile long leave_calls, wait_calls, plain_calls, cleaned;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void clean(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    cleaned++;
    pthread_mutex_unlock(&lock);
}

FUNCTION void leave(void)
{
    BEGIN();
    __atomic_fetch_add(&leave_calls, 1, __ATOMIC_SEQ_CST);
    if (leave_calls > 0) // always, but the compiler cannot know
        pthread_exit(NULL);
    KEEP_FRAME();
}

FUNCTION void wait_long(void)
{
    BEGIN();
    __atomic_fetch_add(&wait_calls, 1, __ATOMIC_SEQ_CST);
    while (wait_calls > 0)
        pause();
    KEEP_FRAME();
}

FUNCTION void plain(void)
{
    BEGIN();
    __atomic_fetch_add(&plain_calls, 1, __ATOMIC_SEQ_CST);
    KEEP_FRAME();
}

static void *leaver(void *unused)
{
    pthread_cleanup_push(clean, unused);
    plain();
    leave();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *waiter(void *unused)
{
    pthread_cleanup_push(clean, unused);
    plain();
    wait_long();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    await_line();
    for (int i = 0; i < 150; i++) {
        pthread_t one, two;
        pthread_create(&one, NULL, leaver, NULL);
        pthread_create(&two, NULL, waiter, NULL);
        pthread_join(one, NULL);
        while (wait_calls <= i)
            pause_us(100);
        pause_us(4000);
        pthread_cancel(two);
        pthread_join(two, NULL);
    }
    printf("{\"leave\": %ld, \"wait_long\": %ld, \"plain\": %ld, \"cleaned\": %ld}", leave_calls, wait_calls,
           plain_calls, cleaned);
    said();
    return 10;
}
