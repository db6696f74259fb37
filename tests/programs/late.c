// A C program that loads a C++ library after a while; some time later every call of relay() is left by an
// exception. A return probe on relay() would abort it.
//
// Compiled with -DHIDDEN it loads the library without a symbol that says so.
//
//     late [SECONDS] [MILLISECONDS BEFORE THE LOAD] [MILLISECONDS BETWEEN LOAD AND FIRST EXCEPTION]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "bounded.h"

#ifdef HIDDEN
static void *load(const char *path)
{
    void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    return open ? open(path, RTLD_NOW) : 0;
}
#else
#define load(path) dlopen(path, RTLD_NOW)
#endif

static unsigned long calls, caught;

static void plain(void)
{
    spin_ns(5000);
}

FUNCTION void relay(void (*callee)(void))
{
    calls++;
    callee();
    KEEP_FRAME();
}

static void relay_until(uint64_t end, void (*callee)(void))
{
    while (!stop && now_ns() < end) {
        relay(callee);
        sleep_ns(500000);
    }
}

int main(int argc, char **argv)
{
    char self[PATH_MAX] = "", path[PATH_MAX + 16];
    bounded(argc, argv);
    uint64_t before_ns = argument(argc, argv, 2, 4000) * 1000000u;
    uint64_t between_ns = argument(argc, argv, 3, 4000) * 1000000u;
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 1;
    snprintf(path, sizeof(path), "%s/thrower.so", dirname(self));
    relay_until(now_ns() + before_ns, plain);
    void *library = load(path);
    if (!library) {
        fprintf(stderr, "late: %s\n", dlerror());
        return 1;
    }
    relay_until(now_ns() + between_ns, plain);
    int (*catching)(void (*)(void (*)(void))) = (int (*)(void (*)(void (*)(void))))dlsym(library, "catching");
    while (!stop) {
        caught += (unsigned long)catching(relay);
        sleep_ns(500000);
    }
    printf("{\"relay\": %lu, \"caught\": %lu}\n", calls, caught);
    return 0;
}
