// The library that late loads: what it throws passes through frames of the program that called it.
#include <stdexcept>

static void throwing()
{
    throw std::runtime_error("through the caller's frame");
}

// Call a function that calls back; return 1 if it was left by the exception.
extern "C" int catching(void (*relay)(void (*)()))
{
    try {
        relay(throwing);
    } catch (const std::runtime_error &) {
        return 1;
    }
    return 0;
}
