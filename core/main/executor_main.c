#include "main/executor_main.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "abi/engine.h"
#include "main/lua_state.h"
#include "stream/executor.h"

static char lua_home[PATH_MAX + 256];

static int
traceback(lua_State *L)
{
    if (lua_isstring(L, 1)) {
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    }
    return 1;
}

static void
post_broken(struct sl_worker *worker, struct sl_executor *executor, const char *text)
{
    sl_worker_post(worker, SL_EVENT_BROKEN, -1, sl_executor_index(executor), text, strlen(text));
}

/* The one call into Lua of an executor's life. */
static void
executor_main(struct sl_worker *worker, struct sl_executor *executor)
{
    lua_State *L = sl_lua_state_new(lua_home);
    if (L == NULL) {
        post_broken(worker, executor, "no memory for a Lua state");
        return;
    }
    lua_pushcfunction(L, traceback);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "streamlua.runtime.boot");
    if (lua_pcall(L, 1, 1, 1) != 0) {
        goto fail;
    }
    lua_pushlightuserdata(L, worker);
    lua_pushlightuserdata(L, executor);
    if (lua_pcall(L, 2, 0, 1) != 0) {
        goto fail;
    }
    lua_close(L);
    return;
fail:
    post_broken(worker, executor,
                lua_isstring(L, -1) ? lua_tostring(L, -1) : "an error that is no string");
    lua_close(L);
}

void
sl_executor_main_install(const char *home)
{
    snprintf(lua_home, sizeof(lua_home), "%s", home);
    sl_engine_set_executor_main(executor_main);
}
