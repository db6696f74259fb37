// A thousand functions, called one after the other, and the longest time between two of them.
//
//     thousand          then a line with milliseconds for each run; answers the longest gap, ns
#include <stdio.h>
#include <time.h>

#define ONE(n) __attribute__((noinline, noclone)) void f##n(void) { __asm__ volatile("push %rbp\n\tpop %rbp"); }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
#define ALL(of)                                                                                                        \
    of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9)
ALL(HUNDRED)

#define P1(n) f##n,
#define P10(n) P1(n##0) P1(n##1) P1(n##2) P1(n##3) P1(n##4) P1(n##5) P1(n##6) P1(n##7) P1(n##8) P1(n##9)
#define P100(n) P10(n##0) P10(n##1) P10(n##2) P10(n##3) P10(n##4) P10(n##5) P10(n##6) P10(n##7) P10(n##8) P10(n##9)
static void (*const functions[])(void) = {ALL(P100)};

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(void)
{
    long ms;
    while (scanf("%ld", &ms) == 1) {
        long last = now_ns(), end = last + ms * 1000000L, longest = 0;
        while (last < end)
            for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
                functions[i]();
                long now = now_ns();
                if (now - last > longest)
                    longest = now - last;
                last = now;
            }
        printf("%ld\n", longest);
        fflush(stdout);
    }
    return 0;
}
