#include "main/threads.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "abi/engine.h"
#include "main/lua_state.h"
#include "stream/executor.h"

static char lua_home[PATH_MAX + 256];

/* One thread's life in Lua. */
struct life {
    /* A module that returns a function. */
    const char *module;
    /* Pushes that function's two arguments. */
    void (*push)(lua_State *L, const struct life *life);
    /* Tells the thread's owner that it can not go on. */
    void (*fail)(const struct life *life, const char *text);
    void *owner;
    /* The executor, or NULL. */
    void *executor;
    /* The place among a crew. */
    int32_t member;
};

static int
traceback(lua_State *L)
{
    if (lua_isstring(L, 1)) {
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    }
    return 1;
}

static void
live(const struct life *life)
{
    lua_State *L = sl_lua_state_new(lua_home);
    if (L == NULL) {
        life->fail(life, "no memory for a Lua state");
        return;
    }
    lua_pushcfunction(L, traceback);
    lua_getglobal(L, "require");
    lua_pushstring(L, life->module);
    int rc = lua_pcall(L, 1, 1, 1);
    if (rc == 0) {
        life->push(L, life);
        rc = lua_pcall(L, 2, 0, 1);
    }
    if (rc != 0) {
        life->fail(life, lua_isstring(L, -1) ? lua_tostring(L, -1) : "an error that is no string");
    }
    lua_close(L);
}

static void
push_executor(lua_State *L, const struct life *life)
{
    lua_pushlightuserdata(L, life->owner);
    lua_pushlightuserdata(L, life->executor);
}

static void
fail_executor(const struct life *life, const char *text)
{
    sl_worker_post(life->owner, SL_EVENT_BROKEN, -1, sl_executor_index(life->executor), text,
                   strlen(text));
}

static void
executor_main(struct sl_worker *worker, struct sl_executor *executor)
{
    live(&(struct life){
        .module = "streamlua.runtime.boot",
        .push = push_executor,
        .fail = fail_executor,
        .owner = worker,
        .executor = executor,
    });
}

static void
push_member(lua_State *L, const struct life *life)
{
    lua_pushlightuserdata(L, life->owner);
    lua_pushinteger(L, life->member);
}

/* What a message to a crew's owner says when a member can not go on; see streaming/member.lua. */
enum { KIND_BROKEN = 0 };

static void
fail_member(const struct life *life, const char *text)
{
    sl_crew_post(life->owner, life->member, KIND_BROKEN, text, strlen(text));
}

static void
crew_main(struct sl_crew *crew, int32_t member)
{
    live(&(struct life){
        .module = "streamlua.streaming.member",
        .push = push_member,
        .fail = fail_member,
        .owner = crew,
        .member = member,
    });
}

void
sl_threads_install(const char *home)
{
    snprintf(lua_home, sizeof(lua_home), "%s", home);
    sl_engine_set_executor_main(executor_main);
    sl_engine_set_crew_main(crew_main);
}
