// A storm of forks, some from within a timed call; parents and children call the timed function.
#include <sys/mman.h>
#include <sys/wait.h>

#include "steps.h"

static long *calls;

FUNCTION void work(void)
{
    BEGIN();
    __atomic_fetch_add(&calls[0], 1, __ATOMIC_SEQ_CST);
    KEEP_FRAME();
}

FUNCTION pid_t forking(void)
{
    BEGIN();
    __atomic_fetch_add(&calls[1], 1, __ATOMIC_SEQ_CST);
    pid_t child = fork();
    KEEP_FRAME();
    return child;
}

int main(void)
{
    calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    await_line();
    int failed = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 6; i++) {
            if (forking())
                continue;
            for (int n = 0; n < 5; n++)
                work();
            _exit(7);
        }
        work();
        for (int i = 0; i < 6; i++) {
            int status = 0;
            wait(&status);
            failed += status != 7 << 8;
        }
        pause_us(5000);
    }
    printf("{\"work\": %ld, \"forking\": %ld, \"failed\": %d}", calls[0], calls[1], failed);
    said();
    return 7;
}
