// What all target programs share: they end by themselves, spin by the clock, and know their true counts.
//
// Every program takes the seconds it may run as its first argument (10 if none is given), ends early and in
// order at SIGTERM or SIGINT, and prints one line of JSON with its true counts when it ends.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// A function of its own in every build: probes need an entry, call paths need a frame.
#define FUNCTION __attribute__((noinline, noclone))

// After a call: the compiler cannot turn the call before it into a jump.
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static volatile sig_atomic_t stop;

static void on_end(int number)
{
    (void)number;
    stop = 1;
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// The same duration on every machine, however fast it is.
static inline void spin_ns(uint64_t duration_ns)
{
    uint64_t end = now_ns() + duration_ns;
    while (now_ns() < end)
        ;
}

static inline void sleep_ns(uint64_t duration_ns)
{
    struct timespec t = {(time_t)(duration_ns / 1000000000u), (long)(duration_ns % 1000000000u)};
    nanosleep(&t, NULL);
}

// A reproducible stream (xorshift64*), so that a run differs from the next in its timing only.
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

// Uniform in (0, 1).
static inline double random_unit(uint64_t *state)
{
    return ((double)(random_next(state) >> 11) + 0.5) / 9007199254740992.0;
}

static inline unsigned long argument(int argc, char **argv, int which, unsigned long otherwise)
{
    return argc > which ? strtoul(argv[which], NULL, 10) : otherwise;
}

// Set up the end: by the clock, by SIGTERM, by SIGINT. Returns the seconds.
static inline unsigned long bounded(int argc, char **argv)
{
    unsigned long seconds = argument(argc, argv, 1, 10);
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_end;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)seconds);
    return seconds;
}
