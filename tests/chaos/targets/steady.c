// Well behaved; what is done to it from outside is the hostile part.
#include <poll.h>

#include "steps.h"

// With UNTIL_LINE it works on until it is told, so that what is done to it finds it working however late it begins.
#ifdef UNTIL_LINE
static int wanted(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (poll(&input, 1, 0) == 0)
        return 1;
    await_line();
    return 0;
}
#else
static int wanted(void) { return 0; }
#endif

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
    for (int i = 0; i < 1500 || wanted(); i++) {
        outer(i);
        pause_us(550);
    }
    printf("{\"outer\": %ld, \"inner\": %ld}", outer_calls, inner_calls);
    said();
    return 12;
}
