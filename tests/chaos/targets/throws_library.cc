// A function in a library that exceptions of its caller's program pass.
#include "steps.h"

extern "C" FUNCTION void library_call(int number, void (*inner)(int))
{
    inner(number);
    KEEP_FRAME();
}
