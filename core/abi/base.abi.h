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

/* Returns the release of the ZooKeeper client that this was built with, like "3.8.0". Static. */
const char *sl_zookeeper_version(void);

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

/*
 * Returns the code of the last failure (negative), or 0 when there is none. Like all functions
 * sl_error_* it reads the record that the last failed call of this thread left; their strings are
 * valid until the next call that fails.
 */
int32_t sl_error_code(void);

/* Returns the name of a code, "EINVAL" for SL_EINVAL, "OK" for 0, "EUNKNOWN" for any other. */
const char *sl_error_name(int32_t code);

/* Returns the phrase that describes a code, "invalid argument" for SL_EINVAL. */
const char *sl_error_text(int32_t code);

/* Returns the code whose name is given ("EINVAL"), or 0 when there is none. */
int32_t sl_error_from_name(const char *name);

/* Returns the message of the last failure, without its causes; "" when there is none. */
const char *sl_error_message(void);

/* Returns the saved errno of an ESYS failure, else 0. */
int32_t sl_error_errno(void);

/* Returns the C file, without folders, that reported the last failure; "" when there is none. */
const char *sl_error_file(void);

/* Returns the line of that report, 0 when there is none. */
int32_t sl_error_line(void);

/* Returns how many causes the last failure has (0 to 4). */
int32_t sl_error_cause_count(void);

/* Returns the message of cause index (from 0, the root last); "" for an index out of range. */
const char *sl_error_cause(int32_t index);

/* Empties the record, so that a later sl_error_code() tells of later failures only. */
void sl_error_clear(void);
