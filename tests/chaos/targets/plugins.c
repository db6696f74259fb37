// A library with a timed function comes and goes.
#include <dlfcn.h>

#include "steps.h"

static volatile long rounds;

FUNCTION int use(const char *path)
{
    rounds++;
    void *library = dlopen(path, RTLD_NOW);
    int (*plugged)(int) = (int (*)(int))dlsym(library, "plugged");
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        sum += plugged(i);
        pause_us(200);
    }
    dlclose(library);
    return sum;
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096];
    snprintf(path, sizeof path, "%s_library", argv[0]);
    void *first = dlopen(path, RTLD_NOW); // so that its function is known before the work begins
    if (!first)
        return 1;
    await_line();
    dlclose(first);
    long sum = 0;
    for (int i = 0; i < 200; i++)
        sum += use(path);
    first = dlopen(path, RTLD_NOW);
    printf("{\"use\": %ld, \"plugged\": %ld, \"sum\": %ld}", rounds, rounds * 10, sum);
    said();
    return 9;
}
