---@meta
-- Written by scripts/gen-meta from the bare headers in core/; edit those.
error('streamlua.meta.abi describes types for editors and is not to be required')

--- Where one field of a shared struct lies, as the C compiler sees it.
---@class sl_abi_layout: ffi.cdata*
---@field type ffi.cdata*
---@field field ffi.cdata*
---@field offset integer
---@field size integer

--- Bytes given to the builder, borrowed for the call.
---@class sl_topology_text: ffi.cdata*
---@field data ffi.cdata*
---@field len integer

--- A stream a component emits.
---@class sl_topology_stream: ffi.cdata*
---@field name ffi.cdata*
---@field is_direct boolean
---@field field_count integer
---@field fields ffi.cdata*

--- A stream a component reads.
---@class sl_topology_input: ffi.cdata*
---@field source ffi.cdata*
---@field stream ffi.cdata*
---@field grouping integer
---@field field_count integer
---@field fields ffi.cdata*
---@field custom_ref ffi.cdata*

--- What one task of a component needs. NaN = unset: the packing's default applies.
---@class sl_topology_resources: ffi.cdata*
---@field cpu_cores number
---@field ram_bytes number
---@field disk_bytes number

--- One key of the topology's config.
---@class sl_topology_setting: ffi.cdata*
---@field key ffi.cdata*
---@field value ffi.cdata*
---@field value_len integer

---@class sl_topology_component: ffi.cdata*
---@field kind integer
---@field name ffi.cdata*
---@field script ffi.cdata*
---@field code_name ffi.cdata*
---@field parallelism_declared number
---@field parallelism integer
---@field resources sl_topology_resources
---@field config ffi.cdata*
---@field config_len integer
---@field stream_count integer
---@field streams sl_topology_stream
---@field input_count integer
---@field inputs sl_topology_input

---@class sl_topology: ffi.cdata*
---@field name ffi.cdata*
---@field is_system boolean
---@field component_count integer
---@field components sl_topology_component
---@field setting_count integer
---@field settings sl_topology_setting

--- A component to be added, without its streams and inputs.
---@class sl_topology_component_spec: ffi.cdata*
---@field kind integer
---@field name sl_topology_text
---@field script sl_topology_text
---@field code_name sl_topology_text
---@field parallelism number
---@field resources sl_topology_resources
---@field config sl_topology_text

--- A stream to be added. fields may be NULL when field_count is 0.
---@class sl_topology_stream_spec: ffi.cdata*
---@field name sl_topology_text
---@field is_direct boolean
---@field fields sl_topology_text
---@field field_count integer

--- An input to be added. field_count may be 0, custom_ref empty.
---@class sl_topology_input_spec: ffi.cdata*
---@field source sl_topology_text
---@field stream sl_topology_text
---@field grouping integer
---@field fields sl_topology_text
---@field field_count integer
---@field custom_ref sl_topology_text

--- One finding of validation.
---@class sl_topology_problem: ffi.cdata*
---@field code integer
---@field severity integer
---@field component integer
---@field input integer
---@field component_name ffi.cdata*
---@field stream ffi.cdata*
---@field message ffi.cdata*

--- Where a component stands in the graph of who reads whom.
---@class sl_topology_place: ffi.cdata*
---@field rank integer
---@field scc integer
---@field is_cyclic boolean
---@field is_reachable boolean

--- The tasks of a component: ids first .. first + count - 1.
---@class sl_task_range: ffi.cdata*
---@field first integer
---@field count integer

--- A list of problems.
---@class sl_topology_problems: ffi.cdata*

--- A value as it passes between C and Lua.
---@class sl_value: ffi.cdata*
---@field number number
---@field integer ffi.cdata*
---@field ptr ffi.cdata*
---@field len integer
---@field tag integer

---@class sl_packing_component: ffi.cdata*
---@field name ffi.cdata*
---@field kind integer
---@field parallelism integer
---@field cpu number
---@field ram_bytes ffi.cdata*
---@field disk_bytes ffi.cdata*

--- Settings of the packers; SL_PACKING_UNSET takes the default that is named.
---@class sl_packing_config: ffi.cdata*
---@field container_cpu number
---@field container_ram_bytes ffi.cdata*
---@field container_disk_bytes ffi.cdata*
---@field cpu_padding number
---@field ram_padding_bytes ffi.cdata*
---@field padding_percentage number
---@field containers integer
---@field max_instances integer
---@field sorting integer

---@class sl_packing_instance: ffi.cdata*
---@field component integer
---@field task integer
---@field index integer
---@field cpu number
---@field ram_bytes ffi.cdata*
---@field disk_bytes ffi.cdata*

--- instances[first .. first + count - 1] of the plan run in this container.
---@class sl_packing_container: ffi.cdata*
---@field id integer
---@field first integer
---@field count integer
---@field cpu number
---@field ram_bytes ffi.cdata*
---@field disk_bytes ffi.cdata*

--- Round robin dropped the padding of a container because the components need that room.
---@class sl_packing_warning: ffi.cdata*
---@field container integer
---@field dimension integer

--- Containers ascending by id, the instances of each ascending by task.
---@class sl_packing_plan: ffi.cdata*
---@field containers sl_packing_container
---@field instances sl_packing_instance
---@field warnings sl_packing_warning
---@field container_count integer
---@field instance_count integer
---@field warning_count integer

---@class sl_packing_request: ffi.cdata*
---@field components sl_packing_component
---@field current sl_packing_plan
---@field changes ffi.cdata*
---@field config sl_packing_config
---@field component_count integer
---@field containers integer

---@class sl_packing_container_delta: ffi.cdata*
---@field id integer
---@field state integer
---@field old_position integer
---@field new_position integer

---@class sl_packing_instance_delta: ffi.cdata*
---@field component integer
---@field task integer
---@field state integer
---@field old_container integer
---@field new_container integer

--- How one plan becomes another. Containers are matched by id and ascend by it; instances are
--- matched by (component, task) and ascend by (task, component).
---@class sl_packing_delta: ffi.cdata*
---@field containers sl_packing_container_delta
---@field instances sl_packing_instance_delta
---@field container_count integer
---@field instance_count integer
---@field kept integer
---@field moved integer
---@field started integer
---@field stopped integer

--- A node of the cluster and its slots.
---@class sl_sched_supervisor: ffi.cdata*
---@field id ffi.cdata*
---@field host ffi.cdata*
---@field first_port integer
---@field port_count integer
---@field first_used integer
---@field used_count integer
---@field cpu number
---@field ram number

---@class sl_sched_component: ffi.cdata*
---@field name ffi.cdata*
---@field kind integer
---@field first_input integer
---@field input_count integer
---@field first_task integer
---@field task_count integer

--- `count` tasks of one component.
---@class sl_sched_share: ffi.cdata*
---@field component integer
---@field count integer

--- A worker whose place or content the user fixed.
---@class sl_sched_user_worker: ffi.cdata*
---@field host ffi.cdata*
---@field port integer
---@field first_share integer
---@field share_count integer
---@field cpu number
---@field ram number

--- A worker of the previous assignment; its supervisor need not exist any more.
---@class sl_sched_previous: ffi.cdata*
---@field supervisor ffi.cdata*
---@field host ffi.cdata*
---@field port integer
---@field first_task integer
---@field task_count integer
---@field cpu number
---@field ram number

--- A container of a packing plan, for the scheduler `packed`.
---@class sl_sched_container: ffi.cdata*
---@field id integer
---@field supervisor ffi.cdata*
---@field port integer
---@field first_task integer
---@field task_count integer
---@field cpu number
---@field ram number

---@class sl_sched_request: ffi.cdata*
---@field mode integer
---@field master_alone integer
---@field workers integer
---@field reserve_workers integer
---@field use_old_assignment integer
---@field has_plan integer
---@field worker_cpu number
---@field worker_ram number
---@field components sl_sched_component
---@field inputs ffi.cdata*
---@field tasks ffi.cdata*
---@field supervisors sl_sched_supervisor
---@field ports ffi.cdata*
---@field used ffi.cdata*
---@field isolation ffi.cdata*
---@field user_workers sl_sched_user_worker
---@field shares sl_sched_share
---@field on_different_nodes ffi.cdata*
---@field previous sl_sched_previous
---@field previous_tasks ffi.cdata*
---@field dead_tasks ffi.cdata*
---@field unstopped_tasks ffi.cdata*
---@field containers sl_sched_container
---@field container_tasks ffi.cdata*
---@field component_count integer
---@field input_count integer
---@field task_count integer
---@field supervisor_count integer
---@field port_count integer
---@field used_count integer
---@field isolation_count integer
---@field user_worker_count integer
---@field share_count integer
---@field on_different_nodes_count integer
---@field previous_count integer
---@field previous_task_count integer
---@field dead_task_count integer
---@field unstopped_task_count integer
---@field container_count integer
---@field container_task_count integer

--- A worker of the answer. The texts are those of the request and live as long as they do.
---@class sl_sched_worker: ffi.cdata*
---@field supervisor ffi.cdata*
---@field host ffi.cdata*
---@field port integer
---@field first_task integer
---@field task_count integer
---@field cpu number
---@field ram number

--- An assignment: workers by (supervisor, port), each task exactly once.
---@class sl_sched_result: ffi.cdata*
---@field workers sl_sched_worker
---@field tasks ffi.cdata*
---@field worker_count integer
---@field task_count integer
---@field moved integer

--- Keyed state of one task; see stream/state_table.h.
---@class sl_keyed: ffi.cdata*

--- A walk over entries; zeroed it starts at the first one.
---@class sl_keyed_iter: ffi.cdata*
---@field group integer
---@field end_group integer
---@field left integer
---@field slot integer
---@field capacity integer

--- What an export wrote or an import read.
---@class sl_keyed_summary: ffi.cdata*
---@field entries ffi.cdata*
---@field bytes ffi.cdata*
---@field checksum ffi.cdata*

--- The functions and constants of the C core, as `require 'streamlua.abi'.C` holds them.
---@class streamlua.abi.C
---@field SL_ABI_VERSION integer
---@field SL_COMPONENT_SPOUT integer
---@field SL_COMPONENT_BOLT integer
---@field SL_COMPONENT_STATE_SPOUT integer
---@field SL_COMPONENT_SYSTEM integer
---@field SL_GROUPING_SHUFFLE integer
---@field SL_GROUPING_FIELDS integer
---@field SL_GROUPING_ALL integer
---@field SL_GROUPING_GLOBAL integer
---@field SL_GROUPING_DIRECT integer
---@field SL_GROUPING_NONE integer
---@field SL_GROUPING_LOCAL_OR_SHUFFLE integer
---@field SL_GROUPING_PARTIAL_KEY integer
---@field SL_GROUPING_CUSTOM integer
---@field SL_TOPOLOGY_ERROR integer
---@field SL_TOPOLOGY_WARNING integer
---@field SL_TOPOLOGY_BAD_NAME integer
---@field SL_TOPOLOGY_BAD_FIELD_NAME integer
---@field SL_TOPOLOGY_DUPLICATE_COMPONENT integer
---@field SL_TOPOLOGY_DUPLICATE_STREAM integer
---@field SL_TOPOLOGY_DUPLICATE_FIELD integer
---@field SL_TOPOLOGY_DUPLICATE_INPUT integer
---@field SL_TOPOLOGY_UNKNOWN_COMPONENT integer
---@field SL_TOPOLOGY_UNKNOWN_STREAM integer
---@field SL_TOPOLOGY_UNKNOWN_FIELD integer
---@field SL_TOPOLOGY_NO_SPOUT integer
---@field SL_TOPOLOGY_SPOUT_WITH_INPUTS integer
---@field SL_TOPOLOGY_BOLT_WITHOUT_INPUTS integer
---@field SL_TOPOLOGY_NO_FIELDS integer
---@field SL_TOPOLOGY_DIRECT_MISMATCH integer
---@field SL_TOPOLOGY_BAD_PARALLELISM integer
---@field SL_TOPOLOGY_BAD_KEY_GROUPS integer
---@field SL_TOPOLOGY_BAD_RESOURCE integer
---@field SL_TOPOLOGY_STATE_SPOUT integer
---@field SL_TOPOLOGY_BAD_KIND integer
---@field SL_TOPOLOGY_BAD_GROUPING integer
---@field SL_TOPOLOGY_TOO_LARGE integer
---@field SL_TOPOLOGY_CYCLE integer
---@field SL_TOPOLOGY_UNREACHABLE integer
---@field SL_PARALLELISM_MAX integer
---@field SL_KEY_GROUPS_MIN integer
---@field SL_KEY_GROUPS_MAX integer
---@field SL_TOPOLOGY_NAME_MAX integer
---@field SL_TOPOLOGY_FIELD_MAX integer
---@field SL_TOPOLOGY_COMPONENTS_MAX integer
---@field SL_TOPOLOGY_STREAMS_MAX integer
---@field SL_TOPOLOGY_FIELDS_MAX integer
---@field SL_TOPOLOGY_INPUTS_MAX integer
---@field SL_TOPOLOGY_CONFIG_MAX integer
---@field SL_VALUE_DEPTH_MAX integer
---@field SL_VALUE_NIL integer
---@field SL_VALUE_NUMBER integer
---@field SL_VALUE_STRING integer
---@field SL_VALUE_FALSE integer
---@field SL_VALUE_TRUE integer
---@field SL_VALUE_INT64 integer
---@field SL_VALUE_UINT64 integer
---@field SL_VALUE_NULL integer
---@field SL_VALUE_TABLE integer
---@field SL_VALUE_MAP integer
---@field SL_PACKING_ROUND_ROBIN integer
---@field SL_PACKING_FIRST_FIT_DECREASING integer
---@field SL_PACKING_RESOURCE_COMPLIANT_RR integer
---@field SL_PACKING_SPOUT integer
---@field SL_PACKING_BOLT integer
---@field SL_PACKING_SYSTEM integer
---@field SL_PACKING_RAM_FIRST integer
---@field SL_PACKING_CPU_FIRST integer
---@field SL_PACKING_CPU integer
---@field SL_PACKING_RAM integer
---@field SL_PACKING_DISK integer
---@field SL_PACKING_DENSITY integer
---@field SL_PACKING_UNSET integer
---@field SL_PACKING_INSTANCES_MAX integer
---@field SL_PACKING_ID_MAX integer
---@field SL_PACKING_CPU_MAX integer
---@field SL_PACKING_UNAFFECTED integer
---@field SL_PACKING_MODIFIED integer
---@field SL_PACKING_NEW integer
---@field SL_PACKING_REMOVED integer
---@field SL_PACKING_KEPT integer
---@field SL_PACKING_MOVED integer
---@field SL_PACKING_STARTED integer
---@field SL_PACKING_STOPPED integer
---@field SL_SCHED_NEW integer
---@field SL_SCHED_KEEP integer
---@field SL_SCHED_REASSIGN integer
---@field SL_SCHED_MINIMAL integer
---@field SL_SCHED_MONITOR integer
---@field SL_SCHED_MODE_COUNT integer
---@field SL_SCHED_BALANCED integer
---@field SL_SCHED_EVEN integer
---@field SL_SCHED_ROUND_ROBIN integer
---@field SL_SCHED_PACKED integer
---@field SL_SCHED_SCHEDULER_COUNT integer
---@field SL_SCHED_SPOUT integer
---@field SL_SCHED_BOLT integer
---@field SL_SCHED_SYSTEM integer
---@field SL_SCHED_MASTER integer
---@field SL_SCHED_NO integer
---@field SL_SCHED_YES integer
---@field SL_SCHED_AUTO integer
local C = {}

--- Returns SL_ABI_VERSION as it was when the library was compiled.
---@return integer
function C.sl_abi_version() end

--- Returns the release of the library, like "0.1.0". The string is static.
---@return ffi.cdata*
function C.sl_version() end

--- Returns the text of all bare headers, NUL-terminated, in the order of core/abi/order.txt.
--- The string is static. The Lua module streamlua.abi hands it to ffi.cdef.
---@return ffi.cdata*
function C.sl_abi_text() end

--- Returns the number of entries of sl_abi_layouts().
---@return integer
function C.sl_abi_layout_count() end

--- Returns the layouts of all structs in the ABI text: per struct one entry for the whole and one
--- a field, in the order of the text. The array is static; bit fields are left out.
---@return sl_abi_layout
function C.sl_abi_layouts() end

--- Returns the code of the last failure (negative), or 0 when there is none. Like all functions
--- sl_error_* it reads the record that the last failed call of this thread left; their strings are
--- valid until the next call that fails.
---@return integer
function C.sl_error_code() end

--- Returns the name of a code, "EINVAL" for SL_EINVAL, "OK" for 0, "EUNKNOWN" for any other.
---@param code integer
---@return ffi.cdata*
function C.sl_error_name(code) end

--- Returns the phrase that describes a code, "invalid argument" for SL_EINVAL.
---@param code integer
---@return ffi.cdata*
function C.sl_error_text(code) end

--- Returns the code whose name is given ("EINVAL"), or 0 when there is none.
---@param name string|ffi.cdata*
---@return integer
function C.sl_error_from_name(name) end

--- Returns the message of the last failure, without its causes; "" when there is none.
---@return ffi.cdata*
function C.sl_error_message() end

--- Returns the saved errno of an ESYS failure, else 0.
---@return integer
function C.sl_error_errno() end

--- Returns the C file, without folders, that reported the last failure; "" when there is none.
---@return ffi.cdata*
function C.sl_error_file() end

--- Returns the line of that report, 0 when there is none.
---@return integer
function C.sl_error_line() end

--- Returns how many causes the last failure has (0 to 4).
---@return integer
function C.sl_error_cause_count() end

--- Returns the message of cause index (from 0, the root last); "" for an index out of range.
---@param index integer
---@return ffi.cdata*
function C.sl_error_cause(index) end

--- Empties the record, so that a later sl_error_code() tells of later failures only.
function C.sl_error_clear() end

--- Returns an empty topology, to be freed with sl_abi_topology_free. NULL: no name given.
---@param name string|ffi.cdata*
---@param name_len integer
---@return sl_topology
function C.sl_abi_topology_new(name, name_len) end

--- Frees a topology of any function here. NULL is allowed.
---@param topology sl_topology|ffi.cdata*
function C.sl_abi_topology_free(topology) end

--- Adds a component; nothing is validated yet. Returns its index from 0, or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param spec sl_topology_component_spec|ffi.cdata*
---@return integer
function C.sl_abi_topology_add(topology, spec) end

--- Adds a stream to the component with this index. Returns the index of the stream, or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param component integer
---@param spec sl_topology_stream_spec|ffi.cdata*
---@return integer
function C.sl_abi_topology_add_stream(topology, component, spec) end

--- Adds an input to the component with this index. Returns the index of the input, or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param component integer
---@param spec sl_topology_input_spec|ffi.cdata*
---@return integer
function C.sl_abi_topology_add_input(topology, component, spec) end

--- Sets a config key to a canonical value (streamlua.topology.canonical). Returns 0 or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param key sl_topology_text
---@param value sl_topology_text
---@return integer
function C.sl_abi_topology_set(topology, key, value) end

--- Returns everything that is wrong with a user's topology, to be freed with
--- sl_abi_topology_problems_free. NULL (SL_EINVAL) for a system topology.
---@param topology sl_topology|ffi.cdata*
---@return sl_topology_problems
function C.sl_abi_topology_validate(topology) end

--- Frees a list of problems. NULL is allowed.
---@param problems sl_topology_problems|ffi.cdata*
function C.sl_abi_topology_problems_free(problems) end

--- Returns the number of problems, or SL_EINVAL.
---@param problems sl_topology_problems|ffi.cdata*
---@return integer
function C.sl_abi_topology_problem_count(problems) end

--- Returns a problem by its index from 0, valid as long as the list; NULL out of range.
---@param problems sl_topology_problems|ffi.cdata*
---@param index integer
---@return sl_topology_problem
function C.sl_abi_topology_problem(problems, index) end

--- Returns the word for a problem code, "unknown-component" and so on; NULL for other numbers.
---@param code integer
---@return ffi.cdata*
function C.sl_abi_topology_problem_name(code) end

--- Returns "spout", "bolt", "state_spout" or "system"; NULL for other numbers.
---@param kind integer
---@return ffi.cdata*
function C.sl_abi_component_kind_name(kind) end

--- Returns the name of a grouping such as "local_or_shuffle"; NULL for other numbers.
---@param grouping integer
---@return ffi.cdata*
function C.sl_abi_grouping_kind_name(grouping) end

--- Writes the place of every component in the graph; count must be the number of components. Returns
--- 0 or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param places sl_topology_place|ffi.cdata*
---@param count integer
---@return integer
function C.sl_abi_topology_places(topology, places, count) end

--- Returns the system topology of a valid user's topology, a new value. ackers is the number of
--- acker tasks, -1 = as the topology's config says. NULL with SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@param ackers integer
---@return sl_topology
function C.sl_abi_topology_system(topology, ackers) end

--- Writes the first task ids of a system topology, a range a component; count must be the number of
--- components. Returns 0, SL_EINVAL or SL_ERANGE.
---@param topology sl_topology|ffi.cdata*
---@param ranges sl_task_range|ffi.cdata*
---@param count integer
---@return integer
function C.sl_abi_topology_task_ranges(topology, ranges, count) end

--- Returns the number of key groups of a topology: config key_groups or the default; or SL_EINVAL.
---@param topology sl_topology|ffi.cdata*
---@return integer
function C.sl_abi_topology_key_groups(topology) end

--- Returns the default number of key groups for the largest parallelism, or SL_EINVAL below 1.
---@param largest_parallelism integer
---@return integer
function C.sl_abi_key_groups_default(largest_parallelism) end

--- Writes the first owner (a task id) of each of group_count groups: contiguous ranges in the order
--- of the task_count tasks, equal within 1. Returns 0 or SL_EINVAL.
---@param tasks ffi.cdata*
---@param task_count integer
---@param owners ffi.cdata*
---@param group_count integer
---@return integer
function C.sl_abi_key_groups_assign(tasks, task_count, owners, group_count) end

--- Writes the owners after a change of the tasks, equal within 1 and with the fewest groups moved;
--- new_owners may be old_owners. Returns the number of groups that moved, or SL_EINVAL.
---@param old_owners ffi.cdata*
---@param group_count integer
---@param tasks ffi.cdata*
---@param task_count integer
---@param new_owners ffi.cdata*
---@return integer
function C.sl_abi_key_groups_rebalance(old_owners, group_count, tasks, task_count, new_owners) end

--- Encodes a topology (proto/topology.proto). Returns the number of bytes, which are written to data
--- when capacity is not less; SL_EINVAL or SL_ELIMIT.
---@param topology sl_topology|ffi.cdata*
---@param data ffi.cdata*
---@param capacity integer
---@return integer
function C.sl_abi_topology_encode(topology, data, capacity) end

--- Returns the topology that bytes encode, a new value. NULL with SL_EPROTO, SL_ELIMIT or SL_EINVAL.
---@param data ffi.cdata*
---@param size integer
---@return sl_topology
function C.sl_abi_topology_decode(data, size) end

--- Returns 1 when two topologies say the same, else 0; SL_EINVAL without two topologies.
---@param a sl_topology|ffi.cdata*
---@param b sl_topology|ffi.cdata*
---@return integer
function C.sl_abi_topology_equal(a, b) end

--- Returns the hash of a Lua number as a key.
---@param key number
---@return ffi.cdata*
function C.sl_keyhash_number(key) end

--- Returns the hash of a string of len bytes as a key.
---@param key string|ffi.cdata*
---@param len integer
---@return ffi.cdata*
function C.sl_keyhash_string(key, len) end

--- Stores the hash of an encoded value (stream/value.abi.h) as a key in *hash. Returns 0, or
--- SL_EPROTO when the len bytes are malformed, SL_EINVAL without a place for the result.
---@param key ffi.cdata*
---@param len integer
---@param hash ffi.cdata*
---@return integer
function C.sl_keyhash_encoded(key, len, hash) end

--- Returns the hash of a key of several fields: folds `next` into the hash of those before it.
---@param hash integer|ffi.cdata*
---@param next integer|ffi.cdata*
---@return ffi.cdata*
function C.sl_keyhash_combine(hash, next) end

--- Returns the key group of a hash, hash mod group_count, from 0; group_count 0 counts as 1.
---@param hash integer|ffi.cdata*
---@param group_count integer
---@return integer
function C.sl_keyhash_group(hash, group_count) end

--- Returns the key group of a number, as sl_keyhash_group(sl_keyhash_number(key), group_count).
---@param key number
---@param group_count integer
---@return integer
function C.sl_keyhash_group_of_number(key, group_count) end

--- Returns the key group of a string of len bytes.
---@param key string|ffi.cdata*
---@param len integer
---@param group_count integer
---@return integer
function C.sl_keyhash_group_of_string(key, len, group_count) end

--- Returns `value` when its len bytes are exactly one well-formed encoded value. NULL with SL_EPROTO
--- when they are not, with SL_EINVAL when value is NULL.
---@param value ffi.cdata*
---@param len integer
---@return ffi.cdata*
function C.sl_value_checked(value, len) end

--- Packs a request (its `current` is NULL) or repacks it with an sl_packing_packer. *plan is a new
--- plan, to be freed with sl_abi_packing_plan_free, or NULL. SL_EINVAL: malformed request;
--- SL_ELIMIT, SL_ERANGE: too large; SL_EUNSATISFIABLE: no plan, the message names component,
--- resource, need and room.
---@param packer integer
---@param request sl_packing_request|ffi.cdata*
---@param plan ffi.cdata*
---@return integer
function C.sl_abi_packing_pack(packer, request, plan) end

--- Frees a plan of sl_abi_packing_pack. NULL is allowed.
---@param plan sl_packing_plan|ffi.cdata*
function C.sl_abi_packing_plan_free(plan) end

--- Returns "round_robin" and so on, NULL for other numbers. The string is static.
---@param packer integer
---@return ffi.cdata*
function C.sl_abi_packing_packer_name(packer) end

--- Compares two plans whose instances number the components alike, from 0 to component_count - 1.
--- *delta is to be freed with sl_abi_packing_delta_free. SL_EINVAL when a plan is malformed.
---@param old_plan sl_packing_plan|ffi.cdata*
---@param new_plan sl_packing_plan|ffi.cdata*
---@param component_count integer
---@param delta ffi.cdata*
---@return integer
function C.sl_abi_packing_delta_new(old_plan, new_plan, component_count, delta) end

--- Frees a delta of sl_abi_packing_delta_new. NULL is allowed.
---@param delta sl_packing_delta|ffi.cdata*
function C.sl_abi_packing_delta_free(delta) end

--- Assigns the tasks of *request with the built-in scheduler (enum sl_sched_scheduler). On success
--- *result holds the workers by (supervisor, port), whose texts point into the request; free it with
--- sl_scheduling_result_free. Returns 0 or SL_EINVAL (null pointer, or the request contradicts
--- itself), SL_EUNSATISFIABLE (no assignment keeps what is asked), SL_ECONFLICT (nothing needs
--- assigning).
---@param request sl_sched_request|ffi.cdata*
---@param scheduler integer
---@param result sl_sched_result|ffi.cdata*
---@return integer
function C.sl_scheduling_assign(request, scheduler, result) end

--- Frees the arrays of a result and zeroes it; NULL and an empty one are fine.
---@param result sl_sched_result|ffi.cdata*
function C.sl_scheduling_result_free(result) end

--- Makes an empty state of key_groups groups that takes at most limit_bytes (0 = no limit), to be
--- freed with sl_keyed_free. NULL with SL_EINVAL, SL_ELIMIT or SL_ENOMEM in the error record.
---@param key_groups integer
---@param limit_bytes integer|ffi.cdata*
---@return sl_keyed
function C.sl_keyed_new(key_groups, limit_bytes) end

--- Frees a state with all entries; NULL is fine.
---@param state sl_keyed|ffi.cdata*
function C.sl_keyed_free(state) end

--- Returns how many entries there are.
---@param state sl_keyed|ffi.cdata*
---@return number
function C.sl_keyed_size(state) end

--- Returns the bytes that all entries take outside the Lua heap.
---@param state sl_keyed|ffi.cdata*
---@return number
function C.sl_keyed_memory(state) end

--- Returns the number of key groups.
---@param state sl_keyed|ffi.cdata*
---@return integer
function C.sl_keyed_groups(state) end

--- Removes all entries.
---@param state sl_keyed|ffi.cdata*
function C.sl_keyed_remove_all(state) end

--- Stores the value of a key in *out. Returns 1, 0 when there is none (*out is nil), or an error.
---@param state sl_keyed|ffi.cdata*
---@param key number
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_get_number(state, key, out) end

--- As sl_keyed_get_number for a string of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_get_string(state, key, len, out) end

--- As sl_keyed_get_number for an encoded key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_get_encoded(state, key, len, out) end

--- Sets the value of a key to a number.
---@param state sl_keyed|ffi.cdata*
---@param key number
---@param value number
---@return integer
function C.sl_keyed_put_number_number(state, key, value) end

--- As sl_keyed_put_number_number for a string key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param value number
---@return integer
function C.sl_keyed_put_string_number(state, key, len, value) end

--- Sets the value of a key to value_len bytes: those of a string with SL_VALUE_STRING, any encoded
--- value with SL_VALUE_TABLE.
---@param state sl_keyed|ffi.cdata*
---@param key number
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@return integer
function C.sl_keyed_put_number(state, key, tag, value, value_len) end

--- As sl_keyed_put_number for a string key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@return integer
function C.sl_keyed_put_string(state, key, len, tag, value, value_len) end

--- As sl_keyed_put_number for an encoded key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@return integer
function C.sl_keyed_put_encoded(state, key, len, tag, value, value_len) end

--- Adds delta to the number of a key (a missing one counts as 0) and stores the result in *out. A
--- value that is an int64 or uint64 stays one and takes whole deltas only. SL_EINVAL when the value
--- is no number.
---@param state sl_keyed|ffi.cdata*
---@param key number
---@param delta number
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_add_number(state, key, delta, out) end

--- As sl_keyed_add_number for a string key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param delta number
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_add_string(state, key, len, delta, out) end

--- As sl_keyed_add_number for an encoded key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param delta number
---@param out sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_add_encoded(state, key, len, delta, out) end

--- Removes a key. Returns 1, 0 when it was not there, or an error.
---@param state sl_keyed|ffi.cdata*
---@param key number
---@return integer
function C.sl_keyed_remove_number(state, key) end

--- As sl_keyed_remove_number for a string of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_keyed_remove_string(state, key, len) end

--- As sl_keyed_remove_number for an encoded key of len bytes.
---@param state sl_keyed|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@return integer
function C.sl_keyed_remove_encoded(state, key, len) end

--- Stores the next entry of a walk and returns 1, or returns 0 at its end. A zeroed iterator starts
--- at the first entry. The entry just given may be removed and values may be replaced; keys added
--- meanwhile may be missed, and may make others be missed or seen twice.
---@param state sl_keyed|ffi.cdata*
---@param iter sl_keyed_iter|ffi.cdata*
---@param key sl_value|ffi.cdata*
---@param value sl_value|ffi.cdata*
---@return integer
function C.sl_keyed_walk(state, iter, key, value) end

--- Returns the entries of one key group as bytes, their number in *len and what they hold in
--- *summary; valid until the next export of this state or its end. NULL with SL_EINVAL for a group
--- that does not exist. The bytes count in no limit.
---@param state sl_keyed|ffi.cdata*
---@param group integer
---@param len ffi.cdata*
---@param summary sl_keyed_summary|ffi.cdata*
---@return ffi.cdata*
function C.sl_keyed_export(state, group, len, summary) end

--- Puts the entries of len exported bytes (one or more groups, one after the other) and stores what
--- they held in *summary. With SL_EPROTO nothing was put; SL_ELIMIT and SL_ENOMEM leave what was put
--- so far.
---@param state sl_keyed|ffi.cdata*
---@param bytes ffi.cdata*
---@param len integer
---@param summary sl_keyed_summary|ffi.cdata*
---@return integer
function C.sl_keyed_import_bytes(state, bytes, len, summary) end

--- Removes the entries of one key group.
---@param state sl_keyed|ffi.cdata*
---@param group integer
function C.sl_keyed_remove_group(state, group) end

return C
