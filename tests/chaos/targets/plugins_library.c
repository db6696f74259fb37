// What plugins.c opens and closes.
#include "steps.h"

FUNCTION int plugged(int number)
{
    KEEP_FRAME();
    return number + 1;
}
