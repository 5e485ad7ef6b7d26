#include "main/lua_state.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SL_LUA_MALLOC 1
#else
#define SL_LUA_MALLOC 0
#endif

/* The file by which a folder is known to be the home. */
static const char *const HOME_MARK = "lua/streamlua/abi.lua";
enum { HOME_LEVELS = 3 };

static bool
is_home(const char *folder)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", folder, HOME_MARK);
    return n > 0 && (size_t)n < sizeof(path) && access(path, R_OK) == 0;
}

/* Cuts the last part off a path; false when nothing is left to cut. */
static bool
path_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) {
        return false;
    }
    *slash = '\0';
    return true;
}

static bool
home_take(char *home, size_t size, const char *folder)
{
    char real[PATH_MAX];
    if (!is_home(folder) || realpath(folder, real) == NULL || strlen(real) >= size) {
        return false;
    }
    strcpy(home, real);
    return true;
}

int
sl_lua_home_find(char *home, size_t size)
{
    const char *named = getenv("STREAMLUA_HOME");
    if (named != NULL && named[0] != '\0') {
        if (home_take(home, size, named)) {
            return 0;
        }
        snprintf(home, size, "STREAMLUA_HOME is %s, which has no %s", named, HOME_MARK);
        return -1;
    }

    char folder[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (n <= 0) {
        snprintf(home, size, "the path of the executable can not be read");
        return -1;
    }
    folder[n] = '\0';
    path_up(folder);
    char start[PATH_MAX];
    strcpy(start, folder);

    /* An installation may lie inside a source tree, so the nearer place comes first. */
    char share[PATH_MAX + sizeof("/../share/streamlua")];
    snprintf(share, sizeof(share), "%s/../share/streamlua", folder);
    if (home_take(home, size, share)) {
        return 0;
    }
    for (int level = 0; level <= HOME_LEVELS; level++) {
        if (home_take(home, size, folder)) {
            return 0;
        }
        if (!path_up(folder)) {
            break;
        }
    }
    snprintf(home, size, "no %s in ../share/streamlua of %s, in it, or up to %d folders above it",
             HOME_MARK, start, HOME_LEVELS);
    return -1;
}

#if SL_LUA_MALLOC
/* Under a sanitizer Lua's blocks come from malloc, so that the sanitizer watches them too. */
static void *
lua_malloc(void *ctx, void *block, size_t old_size, size_t size)
{
    (void)ctx;
    (void)old_size;
    if (size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, size);
}
#endif

static int
panic(lua_State *L)
{
    fprintf(stderr, "error: Lua panicked: %s\n", lua_tostring(L, -1));
    return 0;
}

static const char SETUP[] =
    "local home = ...\n"
    "local function with(path, part)\n"
    "  if (';' .. path .. ';'):find(';' .. part .. ';', 1, true) then return path end\n"
    "  return path .. ';' .. part\n"
    "end\n"
    "local path, cpath = package.path, package.cpath\n"
    "path = with(path, '/usr/share/lua/5.1/?.lua')\n"
    "path = with(path, '/usr/share/lua/5.1/?/init.lua')\n"
    "cpath = with(cpath, '/usr/lib/" SL_MULTIARCH "/lua/5.1/?.so')\n"
    "package.path = home .. '/lua/?.lua;' .. home .. '/lua/?/init.lua;' .. path\n"
    "package.cpath = cpath\n"
    "jit.opt.start('maxtrace=8000', 'maxrecord=16000', 'maxmcode=40960', 'sizemcode=512')\n"
    /* Collects all the time, so that a reference kept alive by chance only is found. A step must
     * not be a whole collection: a trace that begins with one would be left and entered again for
     * ever. */
    "if os.getenv('SL_GC') == 'stress' then\n"
    "  collectgarbage('setpause', 0)\n"
    "  collectgarbage('setstepmul', 1000)\n"
    "end\n";

/* Opens the libraries and runs SETUP; called in protected mode because both may raise. */
static int
prepare(lua_State *L)
{
    luaL_openlibs(L);
    if (luaL_loadbuffer(L, SETUP, sizeof(SETUP) - 1, "=setup") != 0) {
        return lua_error(L);
    }
    lua_insert(L, -2);
    lua_call(L, 1, 0);
    return 0;
}

struct lua_State *
sl_lua_state_new(const char *home)
{
#if SL_LUA_MALLOC
    lua_State *L = lua_newstate(lua_malloc, NULL);
#else
    lua_State *L = luaL_newstate();
#endif
    if (L == NULL) {
        return NULL;
    }
    lua_atpanic(L, panic);
    lua_pushcfunction(L, prepare);
    lua_pushstring(L, home);
    if (lua_pcall(L, 1, 0, 0) != 0) {
        fprintf(stderr, "error: Lua state: %s\n", lua_tostring(L, -1));
        lua_close(L);
        return NULL;
    }
    return L;
}
