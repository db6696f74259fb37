// What all hostile targets share: they do a fixed amount of work between two lines on standard input, so that probes
// can be put on before it and counters read after it, and what they print depends on nothing but the work.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

// An instruction behind a call that can be probed and that no code jumps to.
#define RETURNED() __asm__ volatile("nop" ::: "memory")

// An instruction that can be probed, where the compiler would begin with a locked one, which the kernel refuses.
#define BEGIN() __asm__ volatile("mov %%rsp, %%rax" ::: "rax")

static inline void await_line(void)
{
    char c = 0;
    while (read(0, &c, 1) == 1 && c != '\n')
        ;
}

// Work is paced: return sites are learnt while it goes on.
static inline void pause_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

// Work whose length is known: no call around it can be shorter, by the clock that probes read too.
static inline void spin_us(long us)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < us * 1000);
}

static inline void said(void)
{
    printf("\n");
    fflush(stdout);
    await_line();
}
