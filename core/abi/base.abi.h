/*
 * What the library says about itself: its version, its ABI text and the layouts of its structs.
 * This is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

enum {
    /* Grows with every incompatible change of a prototype or a layout. */
    SL_ABI_VERSION = 1,
};

/* Where one field of a shared struct lies, as the C compiler sees it. */
struct sl_abi_layout {
    /* The type as C writes it, like "struct sl_abi_layout". */
    const char *type;
    /* Name of the field, or "" for the struct as a whole. */
    const char *field;
    /* Offset of the field in bytes; 0 for the struct as a whole. */
    uint32_t offset;
    /* Size in bytes; 0 for a flexible array member. */
    uint32_t size;
};

/* Returns SL_ABI_VERSION as it was when the library was compiled. */
int32_t sl_abi_version(void);

/* Returns the release of the library, like "0.1.0". The string is static. */
const char *sl_version(void);

/*
 * Returns the text of all bare headers, NUL-terminated, in the order of core/abi/order.txt.
 * The string is static. The Lua module streamlua.abi hands it to ffi.cdef.
 */
const char *sl_abi_text(void);

/* Returns the number of entries of sl_abi_layouts(). */
int32_t sl_abi_layout_count(void);

/*
 * Returns the layouts of all structs in the ABI text: per struct one entry for the whole and one
 * a field, in the order of the text. The array is static; bit fields are left out.
 */
const struct sl_abi_layout *sl_abi_layouts(void);
