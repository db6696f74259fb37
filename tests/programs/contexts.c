// work() is called through a pointer and takes 20 us. This program could switch stacks, as those with libcrypto can; from
// SIGUSR1 on it does, in the middle of work(), whose other half then lies between calls of a fiber.
//
//     contexts [SECONDS]
#include <ucontext.h>

#include "bounded.h"

static volatile sig_atomic_t switching;
static volatile unsigned long calls;
static ucontext_t home, fiber;

static void on_switch(int number)
{
    (void)number;
    switching = 1;
}

FUNCTION void work(int deep)
{
    calls++;
    spin_ns(20000);
    if (deep && switching)
        swapcontext(&home, &fiber);
    KEEP_FRAME();
}

static void (*volatile indirect)(int) = work;

static void run(void)
{
    for (;;) {
        indirect(0);
        swapcontext(&fiber, &home);
    }
}

int main(int argc, char **argv)
{
    static char stack[1 << 16];

    bounded(argc, argv);
    signal(SIGUSR1, on_switch);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = sizeof(stack);
    makecontext(&fiber, run, 0);
    while (!stop) {
        indirect(1);
        sleep_ns(200000);
    }
    printf("{\"calls\": %lu}\n", calls);
    return 0;
}
