// The shared object that dlopens.c loads.
#include "bounded.h"

__attribute__((visibility("default"))) FUNCTION void plugin_work(void)
{
    (void)on_end;
    spin_ns(10000);
    KEEP_FRAME();
}
