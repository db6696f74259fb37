// A C program that loads a C++ library after a while; some time later every call of relay() is left by an
// exception. A return probe on relay() would abort it.
//
// It names dlopen. Compiled with -DBY_NAME it asks dlsym for it. Compiled with -DHIDDEN it finds it in the list of what
// is loaded, without a symbol that says so.
//
//     late [SECONDS] [MILLISECONDS BEFORE THE LOAD] [MILLISECONDS BETWEEN LOAD AND FIRST EXCEPTION]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "bounded.h"

#ifdef HIDDEN
// Return the address of a function that a loaded file offers, 0 if it does not.
static void *offered(const struct link_map *file, const char *name)
{
    const ElfW(Sym) *symbols = 0;
    const char *strings = 0;
    for (const ElfW(Dyn) *each = file->l_ld; each->d_tag != DT_NULL; each++) {
        // the kernel's own file is read-only, so its addresses are not relocated
        uintptr_t at = each->d_un.d_ptr + (each->d_un.d_ptr < file->l_addr ? file->l_addr : 0);
        if (each->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)at;
        if (each->d_tag == DT_STRTAB)
            strings = (const char *)at;
    }
    for (const ElfW(Sym) *each = symbols; each && (const char *)each < strings; each++)
        if (each->st_shndx && !strcmp(strings + each->st_name, name))
            return (void *)(file->l_addr + each->st_value);
    return 0;
}

static void *load(const char *path)
{
    for (const struct link_map *file = _r_debug.r_map; file; file = file->l_next) {
        void *(*open)(const char *, int) = (void *(*)(const char *, int))offered(file, "dlopen");
        if (open)
            return open(path, RTLD_NOW);
    }
    return 0;
}
#elif defined(BY_NAME)
#define offered dlsym
static void *load(const char *path)
{
    void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
    return open ? open(path, RTLD_NOW) : 0;
}
#else
#define offered dlsym
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
    int (*catching)(void (*)(void (*)(void))) = (int (*)(void (*)(void (*)(void))))offered(library, "catching");
    while (!stop) {
        caught += (unsigned long)catching(relay);
        sleep_ns(500000);
    }
    printf("{\"relay\": %lu, \"caught\": %lu}\n", calls, caught);
    return 0;
}
