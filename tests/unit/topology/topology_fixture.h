#pragma once
/* Short ways to write topologies in tests. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/random.h"
#include "topology/topology.h"

/* Splits "a b c" into texts that point into it. */
static inline uint32_t
fixture_words(const char *text, struct sl_topology_text *words, uint32_t limit)
{
    uint32_t count = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        assert_true(count < limit);
        words[count++] = (struct sl_topology_text){text, len};
        text += len + (text[len] == ' ');
    }
    return count;
}

/* Adds a component with one stream "default" of these fields ("a b"); NULL = no stream. */
static inline uint32_t
fixture_add(struct sl_topology *t, enum sl_component_kind kind, const char *name,
            const char *fields, double parallelism)
{
    struct sl_topology_component_spec spec = {
        .kind = kind,
        .name = sl_topology_text(name),
        .script = sl_topology_text("topo.lua"),
        .code_name = sl_topology_text(name),
        .parallelism = parallelism,
        .resources = {NAN, NAN, NAN},
        .config = sl_topology_text(""),
    };
    uint32_t index = sl_topology_add(t, &spec);
    if (fields != NULL) {
        struct sl_topology_text words[16];
        struct sl_topology_stream_spec stream = {
            .name = sl_topology_text("default"),
            .fields = words,
            .field_count = fixture_words(fields, words, 16),
        };
        sl_topology_add_stream(t, index, &stream);
    }
    return index;
}

static inline uint32_t
fixture_spout(struct sl_topology *t, const char *name)
{
    return fixture_add(t, SL_COMPONENT_SPOUT, name, "word", 1);
}

static inline uint32_t
fixture_bolt(struct sl_topology *t, const char *name)
{
    return fixture_add(t, SL_COMPONENT_BOLT, name, "word", 1);
}

/* Adds a stream to the last component. */
static inline void
fixture_stream(struct sl_topology *t, const char *name, const char *fields, bool is_direct)
{
    struct sl_topology_text words[16];
    struct sl_topology_stream_spec stream = {
        .name = sl_topology_text(name),
        .is_direct = is_direct,
        .fields = words,
        .field_count = fixture_words(fields, words, 16),
    };
    sl_topology_add_stream(t, t->component_count - 1, &stream);
}

/* Adds an input to a component. */
static inline void
fixture_reads(struct sl_topology *t, uint32_t component, const char *source, const char *stream,
              enum sl_grouping_kind grouping, const char *fields)
{
    struct sl_topology_text words[16];
    struct sl_topology_input_spec input = {
        .source = sl_topology_text(source),
        .stream = sl_topology_text(stream),
        .grouping = grouping,
        .fields = words,
        .field_count = fixture_words(fields, words, 16),
        .custom_ref = sl_topology_text(""),
    };
    sl_topology_add_input(t, component, &input);
}

static inline void
fixture_shuffle(struct sl_topology *t, uint32_t component, const char *source)
{
    fixture_reads(t, component, source, "default", SL_GROUPING_SHUFFLE, "");
}

static inline struct sl_topology *
fixture_new(void)
{
    return sl_topology_new(sl_topology_text("t"));
}

/* lines -> split x2 -> count x4 on word. */
static inline struct sl_topology *
fixture_word_count(void)
{
    struct sl_topology *t = sl_topology_new(sl_topology_text("wordcount"));
    fixture_add(t, SL_COMPONENT_SPOUT, "lines", "line", 1);
    uint32_t split = fixture_add(t, SL_COMPONENT_BOLT, "split", "word", 2);
    fixture_shuffle(t, split, "lines");
    uint32_t count = fixture_add(t, SL_COMPONENT_BOLT, "count", "word count", 4);
    fixture_reads(t, count, "split", "default", SL_GROUPING_FIELDS, "word");
    return t;
}

static inline char *
fixture_random_name(struct sl_random *random)
{
    static const char chars[] = "abcXYZ019_.-";
    size_t len = 1 + (size_t)sl_random_below(random, 12);
    char *name = sl_alloc(len + 1);
    for (size_t i = 0; i < len; i++) {
        name[i] = chars[sl_random_below(random, sizeof(chars) - 1)];
    }
    name[len] = '\0';
    return name;
}

/* A topology of any shape, valid or not; everything it says can be encoded. */
static inline struct sl_topology *
fixture_random(struct sl_random *random)
{
    char *names[8];
    for (int i = 0; i < 8; i++) {
        names[i] = fixture_random_name(random);
    }
    struct sl_topology *t = sl_topology_new(sl_topology_text(names[0]));
    uint64_t components = sl_random_below(random, 6);
    for (uint64_t i = 0; i < components; i++) {
        struct sl_topology_component_spec spec = {
            .kind = (enum sl_component_kind)(1 + sl_random_below(random, 4)),
            .name = sl_topology_text(names[sl_random_below(random, 8)]),
            .script = sl_topology_text("./a b/\xc3\xa9.lua"),
            .code_name = sl_topology_text(names[sl_random_below(random, 8)]),
            .parallelism = (double)sl_random_below(random, 100),
            .resources = {sl_random_below(random, 2) ? NAN : sl_random_double(random), NAN,
                          (double)sl_random_below(random, 1 << 30)},
            .config = {"{\0\xff}", sl_random_below(random, 5)},
        };
        uint32_t index = sl_topology_add(t, &spec);
        for (uint64_t j = sl_random_below(random, 3); j > 0; j--) {
            fixture_stream(t, names[sl_random_below(random, 8)],
                           sl_random_below(random, 2) ? "a b c" : "",
                           sl_random_below(random, 2) == 1);
        }
        for (uint64_t j = sl_random_below(random, 4); j > 0; j--) {
            fixture_reads(t, index, names[sl_random_below(random, 8)],
                          names[sl_random_below(random, 8)],
                          (enum sl_grouping_kind)(1 + sl_random_below(random, 9)),
                          sl_random_below(random, 2) ? "x y" : "");
        }
    }
    for (uint64_t i = sl_random_below(random, 4); i > 0; i--) {
        sl_topology_set(t, sl_topology_text(names[sl_random_below(random, 8)]),
                        (struct sl_topology_text){"\"v\0w\"", sl_random_below(random, 6)});
    }
    for (int i = 0; i < 8; i++) {
        sl_free(names[i]);
    }
    return t;
}
