// A library whose nameless functions lock, try and unlock a System V semaphore, as libapr's do: the demo has to
// find out by disassembly which is which.
#include <sys/ipc.h>
#include <sys/sem.h>

#define NAMELESS static __attribute__((noinline))

static struct sembuf op_on, op_try, op_off;

__attribute__((visibility("default"))) void apr_proc_mutex_unix_setup_lock(void)
{
    op_on.sem_num = 0;
    op_on.sem_op = -1;
    op_on.sem_flg = SEM_UNDO;
    op_try.sem_num = 0;
    op_try.sem_op = -1;
    op_try.sem_flg = SEM_UNDO | IPC_NOWAIT;
    op_off.sem_num = 0;
    op_off.sem_op = 1;
    op_off.sem_flg = SEM_UNDO;
}

NAMELESS int sysv_lock(int id)
{
    int result;
    do
        result = semop(id, &op_on, 1);
    while (result == -2);
    return result;
}

NAMELESS int sysv_try(int id)
{
    int result;
    do
        result = semop(id, &op_try, 1);
    while (result == -2);
    return result;
}

NAMELESS int sysv_unlock(int id)
{
    int result;
    do
        result = semop(id, &op_off, 1);
    while (result == -2);
    return result;
}

NAMELESS int sysv_other(int id)
{
    struct sembuf given = {0, 3, 0};
    int result = semop(id, &given, 1);
    __asm__ volatile("" ::: "memory");
    return result;
}

__attribute__((visibility("default"))) int (*const methods[])(int) = {sysv_lock, sysv_try, sysv_unlock, sysv_other};
