// A prefork server without the network: workers take a System V semaphore, allocate, give it back, rest.
//
//     forks [SECONDS] [WORKERS] [MICROSECONDS OF REST]
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "bounded.h"

enum { MOST = 256 };

struct counts {
    unsigned long served, mallocs, semops;
};

FUNCTION void take(int semaphore)
{
    struct sembuf down = {0, -1, SEM_UNDO};
    semop(semaphore, &down, 1);
    KEEP_FRAME();
}

FUNCTION void give(int semaphore)
{
    struct sembuf up = {0, 1, SEM_UNDO};
    semop(semaphore, &up, 1);
    KEEP_FRAME();
}

FUNCTION void allocate(size_t size)
{
    char *volatile block = malloc(size);
    if (block)
        block[0] = 1;
    free(block);
    KEEP_FRAME();
}

static void serve(int semaphore, struct counts *mine, uint64_t rest_ns)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!stop) {
        take(semaphore);
        allocate(64 + mine->served % 512);
        give(semaphore);
        mine->served++;
        mine->mallocs++;
        mine->semops += 2;
        sleep_ns(rest_ns);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    bounded(argc, argv);
    unsigned long workers = argument(argc, argv, 2, 8);
    uint64_t rest_ns = argument(argc, argv, 3, 2000) * 1000u;
    pid_t pids[MOST];
    if (workers > MOST)
        workers = MOST;
    struct counts *counts =
        mmap(NULL, MOST * sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (semaphore < 0 || counts == MAP_FAILED) {
        perror("forks");
        return 1;
    }
    semctl(semaphore, 0, SETVAL, 1);
    for (unsigned long i = 0; i < workers; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            serve(semaphore, &counts[i], rest_ns);
    }
    while (!stop)
        sleep_ns(50000000);
    struct counts all = {0, 0, 0};
    for (unsigned long i = 0; i < workers; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGTERM);
    for (unsigned long i = 0; i < workers; i++) {
        if (pids[i] > 0)
            waitpid(pids[i], NULL, 0);
        all.served += counts[i].served;
        all.mallocs += counts[i].mallocs;
        all.semops += counts[i].semops;
    }
    semctl(semaphore, 0, IPC_RMID);
    printf("{\"workers\": %lu, \"served\": %lu, \"mallocs\": %lu, \"semops\": %lu}\n", workers, all.served, all.mallocs,
           all.semops);
    return 0;
}
