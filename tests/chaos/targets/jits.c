// Machine code made at run time (LuaJIT) calls functions of the program: no file holds their callers.
#include <luajit-2.1/lauxlib.h>
#include <luajit-2.1/lua.h>
#include <luajit-2.1/luajit.h>
#include <luajit-2.1/lualib.h>

#include "steps.h"

enum { ROUNDS = 1200, PER_ROUND = 8 };

static volatile long compiled_calls, outer_calls;
static volatile double sum;

// Called by compiled code.
FUNCTION double made(double x)
{
    compiled_calls++;
    KEEP_FRAME();
    return x + 1;
}

static const char SCRIPT[] = "local ffi = require('ffi')\n"
                             "local made = ffi.cast('double (*)(double)', address)\n"
                             "function work(n)\n"
                             "  local x = 0\n"
                             "  for i = 1, n do x = made(x) end\n"
                             "  return x\n"
                             "end\n";

FUNCTION void outer(lua_State *lua)
{
    outer_calls++;
    lua_getglobal(lua, "work");
    lua_pushinteger(lua, PER_ROUND);
    if (lua_pcall(lua, 1, 1, 0))
        _exit(9);
    sum += lua_tonumber(lua, -1);
    lua_pop(lua, 1);
    KEEP_FRAME();
}

int main(void)
{
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    lua_pushlightuserdata(lua, (void *)made);
    lua_setglobal(lua, "address");
    if (luaL_dostring(lua, SCRIPT))
        _exit(8);
    for (int i = 0; i < 200; i++) // until it is compiled
        outer(lua);
    compiled_calls = outer_calls = 0;
    sum = 0;
    await_line();
    for (int i = 0; i < ROUNDS; i++) {
        outer(lua);
        pause_us(700);
    }
    printf("{\"outer\": %ld, \"made\": %ld, \"sum\": %.0f}", outer_calls, compiled_calls, sum);
    said();
    return 12;
}
