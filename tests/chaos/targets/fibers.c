// Eight fibers take turns in the middle of timed calls, on stacks that lie in no order.
#include <ucontext.h>

#include "steps.h"

enum { FIBERS = 8, ROUNDS = 150, STACK = 1 << 16 };

static ucontext_t home, fiber[FIBERS];
static volatile long step_calls, inner_calls;
static int current;

FUNCTION void inner(int number)
{
    inner_calls++;
    if (number % 3 == 0)
        swapcontext(&fiber[current], &home);
    KEEP_FRAME();
}

FUNCTION void step(int number)
{
    step_calls++;
    inner(number);
    swapcontext(&fiber[current], &home);
    inner(number + 1);
    KEEP_FRAME();
}

static void run(void)
{
    for (int i = 0; i < ROUNDS; i++)
        step(i);
    for (;;)
        swapcontext(&fiber[current], &home);
}

int main(void)
{
    for (int i = 0; i < FIBERS; i++) {
        getcontext(&fiber[i]);
        fiber[i].uc_stack.ss_sp = malloc(STACK);
        fiber[i].uc_stack.ss_size = STACK;
        fiber[i].uc_link = &home;
        makecontext(&fiber[i], run, 0);
    }
    await_line();
    for (long turn = 0; step_calls < FIBERS * ROUNDS || turn % 64; turn++) {
        current = (int)(turn * 5 % FIBERS);
        swapcontext(&home, &fiber[current]);
        pause_us(500);
    }
    printf("{\"step\": %ld, \"inner\": %ld}", step_calls, inner_calls);
    said();
    return 4;
}
