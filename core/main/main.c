/* The streamlua executable: finds the Lua tree, makes a state and hands argv to streamlua.cli. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/thread.h"
#include "main/interrupt.h"
#include "main/lua_state.h"
#include "main/threads.h"

#if defined(__SANITIZE_ADDRESS__)
/* LuaJIT walks the real stack, so locals must live there; variables of the user still win. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "detect_stack_use_after_return=0";
}
#endif

static int
traceback(lua_State *L)
{
    if (lua_isstring(L, 1)) {
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    }
    return 1;
}

/* Leaves the table {[0] = program, first argument, ...} on the stack, as Lua's `arg` is. */
static void
push_arguments(lua_State *L, int argc, char **argv)
{
    lua_createtable(L, argc > 0 ? argc - 1 : 0, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
}

static int
run_cli(lua_State *L, int argc, char **argv)
{
    lua_pushcfunction(L, traceback);
    int handler = lua_gettop(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "streamlua.cli");
    if (lua_pcall(L, 1, 1, handler) != 0) {
        goto fail;
    }
    lua_getfield(L, -1, "main");
    push_arguments(L, argc, argv);
    if (lua_pcall(L, 1, 1, handler) != 0) {
        goto fail;
    }
    return lua_isnumber(L, -1) ? (int)lua_tointeger(L, -1) : 0;
fail:
    fprintf(stderr, "error: internal: %s\n",
            lua_isstring(L, -1) ? lua_tostring(L, -1) : "an error that is no string");
    return 1;
}

struct arguments {
    int argc;
    char **argv;
};

static int
run(int argc, char **argv)
{
    char home[PATH_MAX + 256];
    if (sl_lua_home_find(home, sizeof(home)) != 0) {
        fprintf(stderr,
                "error: Lua files not found: %s\n"
                "hint: set STREAMLUA_HOME to the folder that holds lua/streamlua\n",
                home);
        return 1;
    }
    lua_State *L = sl_lua_state_new(home);
    if (L == NULL) {
        return 1;
    }
    sl_threads_install(home);
    sl_interrupt_install(L);
    int code = run_cli(L, argc, argv);
    lua_close(L);
    return code;
}

/*
 * Takes the place of standard files that were closed, so that no file which is opened later gets
 * their numbers and then our messages.  Reading or writing them fails as before.
 */
static void
standard_files_occupy(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        }
    }
}

/* Ends the process itself: after a fork this is the only thread of the child. */
static void *
lua_thread(void *argument)
{
    struct arguments *arguments = argument;
    exit(run(arguments->argc, arguments->argv));
}

/* Lua runs on a thread of its own for the sake of its stack: see base/thread.h. */
int
main(int argc, char **argv)
{
    standard_files_occupy();
    struct arguments arguments = {argc, argv};
    struct sl_thread thread;
    int rc = sl_thread_start(&thread, lua_thread, &arguments);
    if (rc != 0) {
        fprintf(stderr, "error: start a thread: %s\n", strerror(rc));
        return 1;
    }
    /* Signals interrupt Lua, not this wait. */
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    sl_thread_join(&thread);
    return 1;
}
