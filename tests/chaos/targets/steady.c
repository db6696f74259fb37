// Well behaved; what is done to it from outside is the hostile part.
#include "steps.h"

static volatile long outer_calls, inner_calls;

FUNCTION void inner(int number)
{
    inner_calls++;
    if (number % 4 == 0)
        pause_us(100);
    KEEP_FRAME();
}

FUNCTION void outer(int number)
{
    outer_calls++;
    inner(number);
    inner(number + 1);
    KEEP_FRAME();
}

int main(void)
{
    await_line();
    for (int i = 0; i < 1500; i++) {
        outer(i);
        pause_us(550);
    }
    printf("{\"outer\": %ld, \"inner\": %ld}", outer_calls, inner_calls);
    said();
    return 12;
}
