#pragma once
/*
 * Requests of the reference's test tables: spouts S and bolts B, containers for 4 instances, and
 * plans as text: "1[S0#1 S1#2] 2[B0#3]" (index, then task).
 */
#include "unit.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/random.h"
#include "packing/packing.h"
#include "packing/resource.h"

enum { FIXTURE_COMPONENTS_MAX = 64, FIXTURE_TEXT = 1 << 20 };

struct fixture {
    struct sl_packing_component components[FIXTURE_COMPONENTS_MAX];
    int32_t changes[FIXTURE_COMPONENTS_MAX];
    struct sl_packing_request request;
};

static const struct sl_packing_config FIXTURE_CONFIG = {
    .container_cpu = -1,
    .container_ram_bytes = -1,
    .container_disk_bytes = -1,
    .cpu_padding = -1,
    .ram_padding_bytes = -1,
    .padding_percentage = -1,
    .containers = -1,
    .max_instances = 4,
    .sorting = SL_PACKING_RAM_FIRST,
};

static inline struct sl_packing_component
fixture_component(const char *name, int32_t kind, int32_t parallelism)
{
    return (struct sl_packing_component){name, kind, parallelism, -1, -1, -1};
}

/* S spouts and B bolts with the tables' defaults. */
static inline void
fixture_create(struct fixture *self, int32_t spouts, int32_t bolts)
{
    memset(self, 0, sizeof(*self));
    self->components[0] = fixture_component("S", SL_PACKING_SPOUT, spouts);
    self->components[1] = fixture_component("B", SL_PACKING_BOLT, bolts);
    self->request = (struct sl_packing_request){
        .components = self->components,
        .component_count = 2,
        .config = FIXTURE_CONFIG,
        .containers = SL_PACKING_UNSET,
    };
}

/* The plan as text; with_tasks = false leaves out "#task". Static buffer. */
static inline const char *
fixture_text(const struct fixture *self, const struct sl_packing_plan *plan, bool with_tasks)
{
    static char text[FIXTURE_TEXT];
    size_t at = 0;
    for (int32_t k = 0; k < plan->container_count; k++) {
        const struct sl_packing_container *container = &plan->containers[k];
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d[", k > 0 ? " " : "",
                               container->id);
        for (int32_t i = 0; i < container->count; i++) {
            const struct sl_packing_instance *instance = &plan->instances[container->first + i];
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%d", i > 0 ? " " : "",
                                   self->components[instance->component].name, instance->index);
            if (with_tasks) {
                at += (size_t)snprintf(text + at, sizeof(text) - at, "#%d", instance->task);
            }
        }
        at += (size_t)snprintf(text + at, sizeof(text) - at, "]");
    }
    return text;
}

/* Packs, or fails the test with the message. */
static inline struct sl_packing_plan *
fixture_pack(const struct fixture *self, int packer)
{
    struct sl_packing_plan *plan;
    int rc = sl_packing_pack(packer, &self->request, &plan);
    if (rc != 0) {
        fail_msg("%s: %s", sl_err_name(rc), sl_err_last()->msg);
    }
    return plan;
}

/* Expects a refusal that holds the text; returns its message. */
static inline const char *
fixture_refuse(const struct fixture *self, int packer, const char *part)
{
    struct sl_packing_plan *plan;
    int rc = sl_packing_pack(packer, &self->request, &plan);
    if (rc == 0) {
        fail_msg("packed: %s", fixture_text(self, plan, true));
    }
    assert_int_equal(rc, SL_EUNSATISFIABLE);
    assert_null(plan);
    if (strstr(sl_err_last()->msg, part) == NULL) {
        fail_msg("'%s' does not hold '%s'", sl_err_last()->msg, part);
    }
    return sl_err_last()->msg;
}

/* Reads "1[S0#1 B0#2] 3[B1#4]" into a plan; every instance is a default one, containers are sums
 * and one core and GiB more. */
static inline struct sl_packing_plan *
fixture_parse(const struct fixture *self, const char *text)
{
    int32_t containers = 0;
    int32_t instances = 0;
    for (const char *c = text; *c != '\0'; c++) {
        containers += *c == '[';
        instances += *c == '#';
    }
    struct sl_packing_plan *plan = sl_packing_plan_new(containers, instances, 0);
    int32_t at = 0;
    for (int32_t k = 0; k < containers; k++) {
        struct sl_packing_container *container = &plan->containers[k];
        int used = 0;
        assert_int_equal(sscanf(text, " %d[%n", &container->id, &used), 1);
        text += used;
        container->first = at;
        while (*text != ']') {
            char name[65];
            struct sl_packing_instance *instance = &plan->instances[at++];
            assert_int_equal(
                sscanf(text, " %64[A-Za-z]%d#%d%n", name, &instance->index, &instance->task, &used),
                3);
            text += used;
            while (instance->component < self->request.component_count &&
                   strcmp(self->components[instance->component].name, name) != 0) {
                instance->component++;
            }
            instance->cpu = 1;
            instance->ram_bytes = instance->disk_bytes = SL_GIB;
        }
        text++;
        container->count = at - container->first;
        container->cpu = container->count + 1;
        container->ram_bytes = container->disk_bytes = (container->count + 1) * SL_GIB;
    }
    return plan;
}

/* The checks that every plan passes: well-formed, counts as wanted, in order. */
static inline void
fixture_check(const struct fixture *self, const struct sl_packing_plan *plan, const int32_t *wanted)
{
    int rc = sl_packing_plan_check(plan, self->request.component_count);
    if (rc != 0) {
        fail_msg("%s", sl_err_last()->msg);
    }
    int32_t counts[FIXTURE_COMPONENTS_MAX] = {0};
    for (int32_t k = 0; k < plan->container_count; k++) {
        const struct sl_packing_container *container = &plan->containers[k];
        assert_true(k == 0 || container->id > plan->containers[k - 1].id);
        for (int32_t i = 0; i < container->count; i++) {
            const struct sl_packing_instance *instance = &plan->instances[container->first + i];
            assert_true(i == 0 || instance->task > instance[-1].task);
            counts[instance->component]++;
        }
    }
    for (int32_t c = 0; c < self->request.component_count; c++) {
        assert_int_equal(counts[c], wanted[c]);
    }
}

/* One row of the tables. */
struct fixture_row {
    const char *id;
    int32_t spouts, bolts;
    /* 0 stands for the default in each of these. */
    double padding_percentage;
    int32_t containers;
    double cpu, ram, disk;
    double spout_ram, bolt_ram;
    /* Rows with a change pack first. */
    int32_t spout_change, bolt_change;
    /* Expected layout without tasks, or the part of a refusal. */
    const char *layout;
    const char *refusal;
};

/* Stands for a value of 0, which the rows use for "default". */
#define FIXTURE_ZERO (-2.0)

static inline int64_t
fixture_bytes(double gib)
{
    return gib == 0 ? -1 : gib == FIXTURE_ZERO ? 0 : (int64_t)(gib * (double)SL_GIB);
}

static inline void
fixture_apply(struct fixture *self, const struct fixture_row *row)
{
    fixture_create(self, row->spouts != 0 ? row->spouts : 4, row->bolts != 0 ? row->bolts : 3);
    struct sl_packing_config *config = &self->request.config;
    config->padding_percentage = row->padding_percentage == 0 ? -1
                                 : row->padding_percentage == FIXTURE_ZERO
                                     ? 0
                                     : row->padding_percentage;
    config->containers = row->containers == 0 ? -1 : row->containers;
    config->container_cpu = row->cpu == 0 ? -1 : row->cpu;
    config->container_ram_bytes = fixture_bytes(row->ram);
    config->container_disk_bytes = fixture_bytes(row->disk);
    self->components[0].ram_bytes = fixture_bytes(row->spout_ram);
    self->components[1].ram_bytes = fixture_bytes(row->bolt_ram);
    self->changes[0] = row->spout_change;
    self->changes[1] = row->bolt_change;
}

/* Packs a row, repacks it when it has a change, and compares. */
static inline void
fixture_run_row(const struct fixture_row *row, int packer)
{
    struct fixture fixture;
    fixture_apply(&fixture, row);
    bool is_repack = row->spout_change != 0 || row->bolt_change != 0;
    if (!is_repack && row->refusal != NULL) {
        fixture_refuse(&fixture, packer, row->refusal);
        return;
    }
    struct sl_packing_plan *plan = fixture_pack(&fixture, packer);
    if (is_repack) {
        struct sl_packing_plan *current = plan;
        fixture.request.current = current;
        fixture.request.changes = fixture.changes;
        if (row->refusal != NULL) {
            fixture_refuse(&fixture, packer, row->refusal);
            sl_packing_plan_free(current);
            return;
        }
        plan = fixture_pack(&fixture, packer);
        sl_packing_plan_free(current);
    }
    const char *text = fixture_text(&fixture, plan, strchr(row->layout, '#') != NULL);
    if (strcmp(text, row->layout) != 0) {
        fail_msg("row %s: %s, expected %s", row->id, text, row->layout);
    }
    int32_t wanted[] = {fixture.components[0].parallelism + row->spout_change,
                        fixture.components[1].parallelism + row->bolt_change};
    fixture_check(&fixture, plan, wanted);
    sl_packing_plan_free(plan);
}
