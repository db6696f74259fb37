// Exceptions go from one thread to another, and through a library that calls back, by timed calls on both sides.
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "steps.h"

extern "C" void library_call(int number, void (*inner)(int));

static std::atomic<long> task_calls, collect_calls, thrown_calls, library_calls, caught;

extern "C" {
FUNCTION void thrown(int number)
{
    BEGIN();
    thrown_calls++;
    spin_us(30);
    if (number % 3 == 0)
        throw std::runtime_error("every third");
    spin_us(30);
}

FUNCTION int task(int number)
{
    BEGIN();
    task_calls++;
    library_calls++;
    library_call(number, thrown);
    RETURNED();
    spin_us(30);
    return number;
}

FUNCTION int collect(std::future<int> &result)
{
    BEGIN();
    collect_calls++;
    spin_us(60);
    int value = result.get();
    KEEP_FRAME();
    return value;
}
}

static void work()
{
    for (int i = 0; i < 200; i++) {
        std::packaged_task<int(int)> packaged(task);
        std::future<int> result = packaged.get_future();
        std::thread other(std::move(packaged), i);
        try {
            collect(result);
            RETURNED();
        } catch (const std::exception &) {
            caught++;
        }
        other.join();
        pause_us(4000);
    }
}

int main()
{
    await_line();
    std::thread second(work);
    work();
    second.join();
    printf("{\"task\": %ld, \"collect\": %ld, \"thrown\": %ld, \"library_call\": %ld, \"caught\": %ld, "
           "\"least_ns\": {\"task\": 90000, \"collect\": 60000, \"thrown\": 60000, \"library_call\": 60000}}",
           task_calls.load(), collect_calls.load(), thrown_calls.load(), library_calls.load(), caught.load());
    said();
    return caught.load() % 100;
}
