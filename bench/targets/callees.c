// outer() calls inner() so many times as its argument says; with 0 both are called in turn, neither in the other.
//
//     callees NUMBER
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

FUNCTION void inner(void) { KEEP_FRAME(); }

FUNCTION void outer(long times)
{
    while (times-- > 0)
        inner();
    KEEP_FRAME();
}

int main(int argc, char **argv)
{
    long times = argc > 1 ? atol(argv[1]) : 1;

    alarm(120);
    for (;;) {
        outer(times);
        if (!times)
            inner();
    }
}
