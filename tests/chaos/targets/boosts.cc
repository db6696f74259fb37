// Fibers of boost.context in the middle of timed calls, and exceptions thrown and caught on their stacks.
#include <boost/context/fiber.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "steps.h"

namespace context = boost::context;

static volatile long step_calls, inner_calls, caught;

extern "C" {
FUNCTION void inner(int number, context::fiber &home)
{
    inner_calls++;
    spin_us(30);
    if (number % 3 == 0)
        home = std::move(home).resume();
    if (number % 5 == 0)
        throw std::runtime_error("every fifth");
    spin_us(30);
}

FUNCTION void step(int number, context::fiber &home)
{
    step_calls++;
    for (int i = 0; i < 2; i++) {
        try {
            inner(number + i, home);
            RETURNED();
        } catch (const std::exception &) {
            caught++;
        }
        home = std::move(home).resume();
    }
}
}

int main()
{
    enum { FIBERS = 8, ROUNDS = 60 };
    std::vector<context::fiber> fibers;
    for (int n = 0; n < FIBERS; n++)
        fibers.emplace_back([](context::fiber &&home) {
            for (int i = 0; i < ROUNDS; i++)
                step(i, home);
            return std::move(home);
        });
    await_line();
    for (int left = FIBERS, turn = 0; left; turn++) {
        context::fiber &next = fibers[turn * 5 % FIBERS];
        if (!next)
            continue;
        next = std::move(next).resume();
        left -= !next;
        pause_us(600);
    }
    printf("{\"step\": %ld, \"inner\": %ld, \"caught\": %ld, \"least_ns\": {\"step\": 60000, \"inner\": 60000}}",
           step_calls, inner_calls, caught);
    said();
    return 19;
}
