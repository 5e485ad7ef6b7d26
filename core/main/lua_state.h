#pragma once

#include <stddef.h>

struct lua_State;

/*
 * Finds the folder that holds lua/streamlua, conf and scripts, and writes its path to home. Looks
 * at STREAMLUA_HOME, then at ../share/streamlua beside the executable's folder (an installation),
 * then at that folder and up to three above it (a build tree). Returns 0, or -1 with a sentence
 * about where it looked in home.
 */
int sl_lua_home_find(char *home, size_t size);

/*
 * Makes a Lua state ready for our modules: the standard libraries, the Lua tree of home in front
 * of package.path with Debian's folders kept behind it, and the JIT's limits raised for drivers
 * that are generated per schema. Every thread that runs Lua gets its state here, so that all of
 * them behave the same. Returns NULL when memory is short or home is too long; the caller closes
 * the state with lua_close.
 */
struct lua_State *sl_lua_state_new(const char *home);
