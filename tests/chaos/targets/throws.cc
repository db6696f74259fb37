// Exceptions leave timed functions in every way: over frames, out of a shared library, on several threads, rethrown,
// and caught in the very function that calls, so that the next call stands on the same place of the stack.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "steps.h"

extern "C" void library_call(int number, void (*inner)(int));

static std::atomic<long> leaf_calls, middle_calls, again_calls, ways_calls, other_calls, library_calls, caught;

extern "C" {
FUNCTION void leaf(int number)
{
    BEGIN();
    leaf_calls++;
    if (number % 3 == 0)
        throw std::runtime_error("every third");
    KEEP_FRAME();
}

FUNCTION void middle(int number)
{
    BEGIN();
    middle_calls++;
    leaf(number);
    KEEP_FRAME();
}

FUNCTION void again(int number)
{
    BEGIN();
    again_calls++;
    try {
        middle(number);
    } catch (...) {
        KEEP_FRAME();
        throw;
    }
    KEEP_FRAME();
}

FUNCTION void other(int number)
{
    BEGIN();
    other_calls++;
    pause_us(200 + number % 2);
}

// One indirect call for both: one of them is thrown out of, the other returns to the same place.
FUNCTION void ways(int number)
{
    BEGIN();
    ways_calls++;
    for (int i = 0; i < 2; i++) {
        void (*volatile callee)(int) = i ? other : leaf;
        try {
            callee(number);
        } catch (const std::exception &) {
            caught++;
        }
    }
}
}

static void work(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        try {
            again(i);
        } catch (const std::exception &) {
            caught++;
        }
        try {
            library_calls++;
            library_call(i, middle);
        } catch (const std::exception &) {
            caught++;
        }
        ways(i);
        pause_us(1000);
    }
}

int main()
{
    await_line();
    std::thread one(work, 400), two(work, 400);
    work(400);
    one.join();
    two.join();
    printf("{\"leaf\": %ld, \"middle\": %ld, \"again\": %ld, \"ways\": %ld, \"other\": %ld, \"library_call\": %ld, "
           "\"caught\": %ld}",
           leaf_calls.load(), middle_calls.load(), again_calls.load(), ways_calls.load(), other_calls.load(),
           library_calls.load(), caught.load());
    said();
    return caught.load() % 100;
}
