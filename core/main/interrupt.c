/*
 * Ctrl-C for the REPL. A signal handler alone can not stop `while true do end`, so while a chunk
 * runs the handler asks Lua to call a hook before every instruction, and the hook raises. It stays
 * until the chunk is over: a chunk that catches the error and goes on is stopped again at its next
 * instruction. Code that the JIT compiled has no hooks, so the REPL runs with the JIT off.
 *
 *   local interrupt = require 'streamlua.interrupt'
 *   interrupt.open()            -- SIGINT is ours from now on
 *   interrupt.arm(source)       -- it raises "interrupted", but not in code of that chunk name
 *   interrupt.disarm()          -- it is only noted
 *   interrupt.take()            -- true once when it came since the last look
 *   interrupt.fd()              -- readable since then: poll it together with the terminal
 *   interrupt.close()           -- SIGINT is what it was before
 */
#include "main/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

/* One REPL a process: signals belong to the process. */
static struct {
    lua_State *L;
    struct sigaction before;
    bool is_open;
    volatile sig_atomic_t is_armed;
    volatile sig_atomic_t is_pending;
    /* A byte goes through it with every signal, so that one that comes just before a wait ends that
     * wait; -1 while closed. */
    int pipe[2];
    /* Chunk name of the code that must not be interrupted. */
    char source[512];
} interrupt = {.pipe = {-1, -1}};

/* True when the function at a level of the stack is the REPL's own. */
static bool
is_own_level(lua_State *L, int level)
{
    lua_Debug ar;
    return lua_getstack(L, level, &ar) != 0 && lua_getinfo(L, "S", &ar) != 0 &&
           strcmp(ar.source, interrupt.source) == 0;
}

static void
raise_hook(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    /* The REPL itself, and C functions that it calls. */
    if (is_own_level(L, 0) || is_own_level(L, 1)) {
        return;
    }
    lua_pushliteral(L, "interrupted");
    lua_error(L);
}

static void
on_signal(int signal_number)
{
    (void)signal_number;
    int saved = errno;
    interrupt.is_pending = 1;
    if (write(interrupt.pipe[1], "!", 1) < 0) {
        /* A full pipe is readable already. */
        errno = 0;
    }
    if (interrupt.is_armed) {
        lua_sethook(interrupt.L, raise_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
    }
    errno = saved;
}

static int
interrupt_open(lua_State *L)
{
    struct sigaction action = {.sa_handler = on_signal};
    /* No SA_RESTART: a wait for input ends, so that the prompt can react. */
    sigemptyset(&action.sa_mask);
    interrupt.L = L;
    if (interrupt.pipe[0] < 0 && pipe2(interrupt.pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        return luaL_error(L, "interrupt: no pipe");
    }
    if (sigaction(SIGINT, &action, interrupt.is_open ? NULL : &interrupt.before) == 0) {
        interrupt.is_open = true;
    }
    return 0;
}

static int
interrupt_arm(lua_State *L)
{
    snprintf(interrupt.source, sizeof(interrupt.source), "%s", luaL_checkstring(L, 1));
    interrupt.L = L;
    interrupt.is_armed = 1;
    return 0;
}

static int
interrupt_disarm(lua_State *L)
{
    interrupt.is_armed = 0;
    lua_sethook(L, NULL, 0, 0);
    return 0;
}

static int
interrupt_take(lua_State *L)
{
    char bytes[64];
    while (interrupt.pipe[0] >= 0 && read(interrupt.pipe[0], bytes, sizeof(bytes)) > 0) {
    }
    lua_pushboolean(L, interrupt.is_pending != 0);
    interrupt.is_pending = 0;
    return 1;
}

static int
interrupt_fd(lua_State *L)
{
    lua_pushinteger(L, interrupt.pipe[0]);
    return 1;
}

static int
interrupt_close(lua_State *L)
{
    interrupt_disarm(L);
    if (interrupt.is_open) {
        sigaction(SIGINT, &interrupt.before, NULL);
        interrupt.is_open = false;
    }
    for (int i = 0; i < 2; i++) {
        if (interrupt.pipe[i] >= 0) {
            close(interrupt.pipe[i]);
            interrupt.pipe[i] = -1;
        }
    }
    return 0;
}

static int
open_module(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", interrupt_open},
        {"arm", interrupt_arm},
        {"disarm", interrupt_disarm},
        {"take", interrupt_take},
        {"fd", interrupt_fd},
        {"close", interrupt_close},
        {NULL, NULL},
    };
    lua_newtable(L);
    for (const luaL_Reg *f = functions; f->name != NULL; f++) {
        lua_pushcfunction(L, f->func);
        lua_setfield(L, -2, f->name);
    }
    return 1;
}

void
sl_interrupt_install(lua_State *L)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, open_module);
    lua_setfield(L, -2, "streamlua.interrupt");
    lua_pop(L, 2);
}
