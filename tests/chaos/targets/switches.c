// Eight fibers over a hand-written switch, each in the middle of a timed call whose own work is known.
#include "steps.h"
#include "switches.h"

enum { FIBERS = 8, ROUNDS = 60, STACK = 1 << 16 };

static void *home, *fiber[FIBERS];
static volatile long step_calls, inner_calls, outside_calls;
static int current;

FUNCTION void inner(int number)
{
    inner_calls++;
    spin_us(30);
    if (number % 3 == 0)
        hop(&fiber[current], home);
    spin_us(30);
    KEEP_FRAME();
}

FUNCTION void step(int number)
{
    step_calls++;
    inner(number);
    hop(&fiber[current], home);
    inner(number + 1);
    KEEP_FRAME();
}

// On the first stack, while calls are open on the others.
FUNCTION void outside(void)
{
    outside_calls++;
    spin_us(20);
    KEEP_FRAME();
}

static void run(void)
{
    for (int i = 0; i < ROUNDS; i++)
        step(i);
    for (;;)
        hop(&fiber[current], home);
}

int main(void)
{
    for (int i = 0; i < FIBERS; i++)
        fiber[i] = fresh(malloc(STACK), STACK, run);
    await_line();
    for (long turn = 0; step_calls < FIBERS * ROUNDS || turn % 64; turn++) {
        current = (int)(turn * 5 % FIBERS);
        hop(&home, fiber[current]);
        outside();
        pause_us(600);
    }
    printf("{\"step\": %ld, \"inner\": %ld, \"outside\": %ld, "
           "\"least_ns\": {\"step\": 120000, \"inner\": 60000, \"outside\": 20000}}",
           step_calls, inner_calls, outside_calls);
    said();
    return 18;
}
