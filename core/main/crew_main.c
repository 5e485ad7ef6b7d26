/* The one call into Lua of a crew member's life. */

#include "main/crew_main.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "abi/engine.h"
#include "main/lua_state.h"

static char lua_home[PATH_MAX + 256];

/* What a message to the owner says when a member can not go on; see streaming/member.lua. */
enum { KIND_BROKEN = 0 };

static int
traceback(lua_State *L)
{
    if (lua_isstring(L, 1)) {
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
    }
    return 1;
}

static void
post_broken(struct sl_crew *crew, int32_t member, const char *text)
{
    sl_crew_post(crew, member, KIND_BROKEN, text, strlen(text));
}

static void
crew_main(struct sl_crew *crew, int32_t member)
{
    lua_State *L = sl_lua_state_new(lua_home);
    if (L == NULL) {
        post_broken(crew, member, "no memory for a Lua state");
        return;
    }
    lua_pushcfunction(L, traceback);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "streamlua.streaming.member");
    if (lua_pcall(L, 1, 1, 1) != 0) {
        goto fail;
    }
    lua_pushlightuserdata(L, crew);
    lua_pushinteger(L, member);
    if (lua_pcall(L, 2, 0, 1) != 0) {
        goto fail;
    }
    lua_close(L);
    return;
fail:
    post_broken(crew, member,
                lua_isstring(L, -1) ? lua_tostring(L, -1) : "an error that is no string");
    lua_close(L);
}

void
sl_crew_main_install(const char *home)
{
    snprintf(lua_home, sizeof(lua_home), "%s", home);
    sl_engine_set_crew_main(crew_main);
}
