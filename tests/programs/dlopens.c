// Loads plugin.so from its own folder, works in it for a while, unloads it, rests, and begins again.
//
//     dlopens [SECONDS] [MILLISECONDS LOADED]
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "bounded.h"

static unsigned long loads, calls;

FUNCTION int load_and_work(const char *path, uint64_t loaded_ns)
{
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "dlopens: %s\n", dlerror());
        return 1;
    }
    void (*work)(void) = (void (*)(void))dlsym(plugin, "plugin_work");
    loads++;
    for (uint64_t end = now_ns() + loaded_ns; work && !stop && now_ns() < end; calls++) {
        work();
        sleep_ns(500000);
    }
    return dlclose(plugin);
}

int main(int argc, char **argv)
{
    char self[PATH_MAX] = "", path[PATH_MAX + 16];
    bounded(argc, argv);
    uint64_t loaded_ns = argument(argc, argv, 2, 2000) * 1000000u;
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 1;
    snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
    while (!stop) {
        if (load_and_work(path, loaded_ns) != 0)
            return 1;
        sleep_ns(loaded_ns / 4);
    }
    printf("{\"loads\": %lu, \"plugin_work\": %lu}\n", loads, calls);
    return 0;
}
