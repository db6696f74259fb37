// Signal handlers interrupt timed calls and call timed functions, on an alternate stack above and one below.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "steps.h"

enum { STACK = 1 << 18 };

static volatile long outer_calls, handled_calls;

FUNCTION void handled(void)
{
    handled_calls++;
    KEEP_FRAME();
}

static void on_signal(int number)
{
    (void)number;
    handled();
    KEEP_FRAME();
}

FUNCTION void outer(int number)
{
    outer_calls++;
    if (number % 2)
        raise(SIGUSR1);
    KEEP_FRAME();
}

static void work(void *alternate)
{
    stack_t stack = {.ss_sp = alternate, .ss_size = STACK / 4};
    sigaltstack(&stack, NULL);
    for (int i = 0; i < 500; i++) {
        outer(i);
        pause_us(600);
    }
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

static void *thread(void *area)
{
    work((char *)area + 2 * STACK); // above the thread's own stack
    return NULL;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    char *area = mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    await_line();
    work(area); // below the first thread's stack
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, area, STACK);
    pthread_t other;
    pthread_create(&other, &attributes, thread, area);
    pthread_join(other, NULL);
    printf("{\"outer\": %ld, \"handled\": %ld}", outer_calls, handled_calls);
    said();
    return 11;
}
