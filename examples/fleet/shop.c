/* A small server: each turn parses, looks up, renders and packs, then rests. The environment says how fast the host is. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifndef PARSE
#define PARSE 40000
#endif

static volatile uint64_t sink;
static double slowness = 1.0;

static void work(uint64_t steps)
{
    uint64_t value = 1;
    for (uint64_t at = 0; at < (uint64_t)(slowness * steps); at++)
        value = value * 6364136223846793005ull + 1442695040888963407ull;
    sink = value;
}

__attribute__((noinline)) void parse(void) { work(PARSE); sink++; }
__attribute__((noinline)) void lookup(void) { work(60000); sink++; }
__attribute__((noinline)) void render(void) { work(90000); sink++; }
__attribute__((noinline)) void pack(void) { work(30000); sink++; }

int main(void)
{
    const char *given = getenv("SLOWNESS");
    if (given != NULL)
        slowness = atof(given);
    for (;;) {
        parse();
        lookup();
        render();
        pack();
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}
