---@meta
-- Written by scripts/gen-meta from the bare headers in core/; edit those.
error('streamlua.meta.abi describes types for editors and is not to be required')

--- Where one field of a shared struct lies, as the C compiler sees it.
---@class sl_abi_layout: ffi.cdata*
---@field type ffi.cdata*
---@field field ffi.cdata*
---@field offset integer
---@field size integer

--- A word of the dictionary: its bytes with zeros behind them.
---@class sl_known_word: ffi.cdata*
---@field bytes ffi.cdata*
---@field len ffi.cdata*

--- The dictionary. Zeroed it is empty; a word keeps its place until then.
---@class sl_words: ffi.cdata*
---@field seen integer
---@field missed integer
---@field is_stale integer
---@field words ffi.cdata*

--- Words that follow one another in a text.
---@class sl_word_run: ffi.cdata*
---@field next integer
---@field count integer
---@field has_new integer
---@field at integer
---@field place ffi.cdata*
---@field first ffi.cdata*
---@field last ffi.cdata*

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
---@field shrink integer

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

--- An entry; Lua may read value_kind, and read and write `number` while that is SL_VALUE_NUMBER.
---@class sl_keyed_entry: ffi.cdata*
---@field key ffi.cdata*
---@field value ffi.cdata*
---@field number number
---@field hash integer
---@field key_kind integer
---@field value_kind integer

--- Entries that were remembered; a short cut to those that are used over and over.
---@class sl_keyed_places: ffi.cdata*
---@field moves number
---@field entries ffi.cdata*
---@field count integer

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

--- One field of a record: 16 bytes.
---@class sl_slot: ffi.cdata*
---@field tag integer
---@field len integer
---@field number number
---@field i64 ffi.cdata*
---@field u64 ffi.cdata*
---@field offset ffi.cdata*

--- A root of the tuple tree and the edge by which a tuple hangs on it.
---@class sl_pair: ffi.cdata*
---@field root ffi.cdata*
---@field edge ffi.cdata*

--- A flat tuple:  | len anchors | root edge | slot 0 .. slot n-1 | bytes, each 8-aligned | pairs |
--- The first pair is in the header, `anchors - 1` further ones are the last bytes of the record.
---@class sl_record: ffi.cdata*
---@field len integer
---@field anchors integer
---@field root ffi.cdata*
---@field edge ffi.cdata*
---@field slots ffi.cdata*

--- Records of one stream from one task to another, handed over as a whole.
---@class sl_batch: ffi.cdata*
---@field head ffi.cdata*
---@field tail ffi.cdata*
---@field count integer
---@field source integer
---@field dest integer
---@field stream integer

--- Where one task writes the records of one stream for one other task.
---@class sl_outbox: ffi.cdata*
---@field pos ffi.cdata*
---@field limit ffi.cdata*
---@field count integer
---@field dest integer
---@field texts integer
---@field text_count integer
---@field is_near integer
---@field is_remote integer

--- The way from one task's stream to the tasks of one reader.
---@class sl_route: ffi.cdata*
---@field grouping integer
---@field component integer
---@field target_count integer
---@field key_count integer
---@field keys ffi.cdata*
---@field targets ffi.cdata*

--- Everything one task needs to emit to one of its streams.
---@class sl_emitter: ffi.cdata*
---@field stream integer
---@field field_count integer
---@field is_direct integer
---@field route_count integer
---@field routes sl_route
---@field target_count integer
---@field targets ffi.cdata*

--- The part of a task that its Lua driver reads and writes; C keeps more behind it.
---@class sl_task: ffi.cdata*
---@field record sl_record
---@field pending ffi.cdata*
---@field yield integer
---@field emits integer
---@field is_full integer
---@field wants_acks integer
---@field done_count integer
---@field done ffi.cdata*
---@field replaying integer
---@field manual_ack integer
---@field id integer
---@field index integer
---@field component integer
---@field kind integer
---@field emitted number
---@field executed number
---@field acked number
---@field failed number
---@field errors number

--- What an executor should do next.
---@class sl_turn: ffi.cdata*
---@field kind integer
---@field task integer
---@field count integer
---@field command integer
---@field argument integer
---@field source integer
---@field stream integer
---@field head ffi.cdata*
---@field batch sl_batch
---@field texts integer
---@field known integer
---@field now_ms number

--- An event; `text` belongs to the worker until the next event is taken.
---@class sl_event: ffi.cdata*
---@field kind integer
---@field task integer
---@field executor integer
---@field text_len integer
---@field text ffi.cdata*

--- How a worker is made.
---@class sl_worker_options: ffi.cdata*
---@field executors integer
---@field is_acking integer
---@field message_timeout_ms number
---@field max_spout_pending integer
---@field task_capacity integer
---@field spout_capacity integer
---@field acker_capacity integer
---@field batch_bytes integer
---@field credit integer
---@field pool_bytes number
---@field is_manual_clock integer
---@field manual_start_ms number
---@field seed ffi.cdata*
---@field remote_window integer

--- What is known of a task from outside; counters may lag behind by a turn.
---@class sl_task_stats: ffi.cdata*
---@field task integer
---@field component integer
---@field index integer
---@field executor integer
---@field emitted number
---@field executed number
---@field acked number
---@field failed number
---@field errors number
---@field queued number
---@field pending number
---@field latency_ns number

--- Where a task of the plan belongs.
---@class sl_planned: ffi.cdata*
---@field task integer
---@field component integer
---@field index integer
---@field executor integer

--- The user code that an executor is in: task -1 = none.
---@class sl_busy: ffi.cdata*
---@field task integer
---@field executor integer
---@field for_ms number

--- What the Lua runtime calls of the engine: workers, executors, tasks, emitters, acks. Structs are
--- in stream/types.abi.h. Functions that return int give 0 (or what is said) on success and a
--- negative SL_E code with the error record set on failure. This is a bare header: no preprocessor
--- lines, only what both gcc and LuaJIT's parser accept.
---@class sl_worker: ffi.cdata*

---@class sl_executor: ffi.cdata*

--- Histograms for Lua: whole numbers with a relative error of 1/64, in constant memory.
--- This is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
---@class sl_histogram: ffi.cdata*

---@class sl_setting: ffi.cdata*
---@field name ffi.cdata*
---@field text ffi.cdata*
---@field kind integer
---@field value ffi.cdata*
---@field least ffi.cdata*

---@class sl_settings: ffi.cdata*

--- A streaming context: graph, job generator, job scheduler, receivers, blocks, checkpoints.
---@class sl_streaming: ffi.cdata*

--- A clock that moves only when told.
---@class sl_streaming_clock: ffi.cdata*

--- Settings of a context; sl_abi_streaming_options_default fills in the defaults. Texts are copied.
---@class sl_streaming_options: ffi.cdata*
---@field name ffi.cdata*
---@field batch_ms ffi.cdata*
---@field phase_ms ffi.cdata*
---@field checkpoint_dir ffi.cdata*
---@field script ffi.cdata*
---@field script_hash ffi.cdata*
---@field graceful_timeout_ms ffi.cdata*
---@field final_timeout_ms ffi.cdata*
---@field block_interval_ms ffi.cdata*
---@field receiver_restart_ms ffi.cdata*
---@field wal_rolling_ms ffi.cdata*
---@field concurrent_jobs integer
---@field catch_up_max integer
---@field retained_batches integer
---@field checkpoint_keep integer
---@field skip_down_time integer
---@field back_pressure integer
---@field max_rate number
---@field initial_rate number
---@field proportional number
---@field integral number
---@field derived number
---@field min_rate number

--- A stream of the graph, as it is declared and as it is now.
---@class sl_streaming_node: ffi.cdata*
---@field name ffi.cdata*
---@field call_site ffi.cdata*
---@field slide_ms ffi.cdata*
---@field window_ms ffi.cdata*
---@field remember_ms ffi.cdata*
---@field checkpoint_ms ffi.cdata*
---@field parents ffi.cdata*
---@field parent_count integer
---@field flags integer
---@field input_id integer
---@field is_initialized integer

--- A dataset of one node at one time.
---@class sl_streaming_dataset: ffi.cdata*
---@field time ffi.cdata*
---@field handle ffi.cdata*
---@field marks integer

--- A saved dataset of a node: what a restart needs to have it again.
---@class sl_streaming_saved: ffi.cdata*
---@field time ffi.cdata*
---@field text ffi.cdata*

---@class sl_streaming_work: ffi.cdata*
---@field time ffi.cdata*
---@field id ffi.cdata*
---@field rate number
---@field kind integer
---@field node integer
---@field output integer
---@field event integer

--- Records of one input in a batch.
---@class sl_streaming_input: ffi.cdata*
---@field records ffi.cdata*
---@field metadata ffi.cdata*
---@field input_id integer
---@field node integer

--- An output operation of a batch.
---@class sl_streaming_operation: ffi.cdata*
---@field name ffi.cdata*
---@field call_site ffi.cdata*
---@field failure_reason ffi.cdata*
---@field start ffi.cdata*
---@field end ffi.cdata*
---@field id integer
---@field node integer

--- A receiver as of an event.
---@class sl_streaming_receiver: ffi.cdata*
---@field name ffi.cdata*
---@field worker ffi.cdata*
---@field last_error ffi.cdata*
---@field last_error_time ffi.cdata*
---@field input_id integer
---@field node integer
---@field is_active integer

--- A batch as it was at one moment, or another event. Times are UNKNOWN as long as they are not
--- known.
---@class sl_streaming_report: ffi.cdata*
---@field time ffi.cdata*
---@field records ffi.cdata*
---@field submission_time ffi.cdata*
---@field processing_start ffi.cdata*
---@field processing_end ffi.cdata*
---@field scheduling_delay_ms ffi.cdata*
---@field processing_delay_ms ffi.cdata*
---@field total_delay_ms ffi.cdata*
---@field inputs sl_streaming_input
---@field operations sl_streaming_operation
---@field receiver sl_streaming_receiver
---@field input_count integer
---@field operation_count integer

--- Counters of a context.
---@class sl_streaming_progress: ffi.cdata*
---@field started_at ffi.cdata*
---@field received_records ffi.cdata*
---@field processed_records ffi.cdata*
---@field completed_batches ffi.cdata*
---@field failed_batches ffi.cdata*
---@field waiting_batches ffi.cdata*
---@field running_batches ffi.cdata*
---@field retained_batches ffi.cdata*
---@field skipped_batches ffi.cdata*
---@field last_completed ffi.cdata*
---@field last_processing_delay_ms ffi.cdata*
---@field last_total_delay_ms ffi.cdata*
---@field receivers integer
---@field active_receivers integer
---@field slow_batches integer

--- A received block as the tracker knows it: where its records are, not the records.
---@class sl_streaming_block: ffi.cdata*
---@field id ffi.cdata*
---@field records ffi.cdata*
---@field worker ffi.cdata*
---@field wal_path ffi.cdata*
---@field wal_offset ffi.cdata*
---@field wal_length ffi.cdata*
---@field is_valid integer

--- What a checkpoint file says.
---@class sl_checkpoint_info: ffi.cdata*
---@field time ffi.cdata*
---@field zero_time ffi.cdata*
---@field batch_ms ffi.cdata*
---@field path ffi.cdata*
---@field name ffi.cdata*
---@field script ffi.cdata*
---@field script_hash ffi.cdata*
---@field extra ffi.cdata*
---@field extra_len ffi.cdata*
---@field pending_count integer

--- A recurring timer, a read checkpoint, a block generator, a rate estimator, a write-ahead log.
---@class sl_recurring_timer: ffi.cdata*

---@class sl_checkpoint: ffi.cdata*

---@class sl_block_generator: ffi.cdata*

---@class sl_pid: ffi.cdata*

---@class sl_wal: ffi.cdata*

--- A record of a write-ahead log.
---@class sl_wal_segment: ffi.cdata*
---@field offset ffi.cdata*
---@field length ffi.cdata*
---@field path ffi.cdata*

--- A block that a generator has cut.
---@class sl_block_data: ffi.cdata*
---@field id ffi.cdata*
---@field records ffi.cdata*
---@field bytes ffi.cdata*
---@field len ffi.cdata*

--- A crew: threads with a Lua state each that work for one driver. This is a bare header.
---@class sl_crew: ffi.cdata*

--- A message as its receiver sees it; the bytes are valid until the receiver's next message.
---@class sl_crew_message: ffi.cdata*
---@field bytes ffi.cdata*
---@field len ffi.cdata*
---@field kind integer
---@field member integer

--- The state of one partition of a stateful stream; see batch/state_map.h.
---@class sl_state_map: ffi.cdata*

--- A topology master, or a guardian.
---@class sl_role_options: ffi.cdata*
---@field state_url ffi.cdata*
---@field topology ffi.cdata*
---@field program ffi.cdata*
---@field logs ffi.cdata*
---@field partner_pid ffi.cdata*
---@field supervisor ffi.cdata*
---@field host ffi.cdata*
---@field port integer
---@field secret ffi.cdata*
---@field secret_len integer

--- A supervisor.
---@class sl_supervisor_role_options: ffi.cdata*
---@field state_url ffi.cdata*
---@field program ffi.cdata*
---@field arguments ffi.cdata*
---@field id ffi.cdata*
---@field host ffi.cdata*
---@field folder ffi.cdata*
---@field logs ffi.cdata*
---@field first_port integer
---@field last_port integer
---@field cpu_cores number
---@field ram_bytes number
---@field is_drained boolean
---@field secret ffi.cdata*
---@field secret_len integer

--- A component of a plan.
---@class sl_plan_component: ffi.cdata*
---@field name ffi.cdata*
---@field key_groups ffi.cdata*
---@field key_group_count integer

--- Where a container runs; "" and 0 where there are no slots.
---@class sl_plan_slot: ffi.cdata*
---@field supervisor ffi.cdata*
---@field host ffi.cdata*
---@field port integer

--- The packing plan as the state manager keeps it.
---@class sl_stored_plan: ffi.cdata*
---@field topology ffi.cdata*
---@field version ffi.cdata*
---@field packing ffi.cdata*
---@field components sl_plan_component
---@field component_count integer
---@field plan sl_packing_plan
---@field slots sl_plan_slot
---@field master sl_plan_slot
---@field master_task integer

--- What is kept of a submission.
---@class sl_execution_state: ffi.cdata*
---@field topology ffi.cdata*
---@field topology_id ffi.cdata*
---@field submitted_ms ffi.cdata*
---@field user ffi.cdata*
---@field host ffi.cdata*
---@field cwd ffi.cdata*
---@field package_hash ffi.cdata*
---@field scheduler ffi.cdata*
---@field state integer
---@field is_active boolean

---@class sl_control_container: ffi.cdata*
---@field id integer
---@field pid ffi.cdata*
---@field host ffi.cdata*
---@field port integer
---@field state ffi.cdata*
---@field restarts integer

---@class sl_control_event: ffi.cdata*
---@field time_ms ffi.cdata*
---@field text ffi.cdata*

--- Sums over the workers of a component.
---@class sl_worker_counters: ffi.cdata*
---@field component ffi.cdata*
---@field executed ffi.cdata*
---@field emitted ffi.cdata*
---@field acked ffi.cdata*
---@field failed ffi.cdata*
---@field pending ffi.cdata*
---@field errors ffi.cdata*

--- How a topology is, as its topology master says.
---@class sl_control_status: ffi.cdata*
---@field topology ffi.cdata*
---@field state integer
---@field plan_version ffi.cdata*
---@field is_settled boolean
---@field failure ffi.cdata*
---@field event_count ffi.cdata*
---@field events sl_control_event
---@field shown_events integer
---@field containers sl_control_container
---@field container_count integer
---@field counters sl_worker_counters
---@field counter_count integer
---@field pid ffi.cdata*
---@field guardian_pid ffi.cdata*

--- A question for the log of a container, which its supervisor has, and the answer.
---@class sl_log_question: ffi.cdata*
---@field supervisor ffi.cdata*
---@field container integer
---@field position ffi.cdata*
---@field is_end boolean
---@field code integer
---@field reason ffi.cdata*
---@field data ffi.cdata*
---@field size integer

---@class sl_update_result: ffi.cdata*
---@field outcome integer
---@field code integer
---@field reason ffi.cdata*
---@field from_version ffi.cdata*
---@field to_version ffi.cdata*
---@field paused_ms ffi.cdata*
---@field total_ms ffi.cdata*
---@field groups_moved ffi.cdata*
---@field bytes_moved ffi.cdata*

--- A file of a code package; its path is relative, with '/', without empty, "." or ".." parts.
---@class sl_package_file: ffi.cdata*
---@field path ffi.cdata*
---@field content ffi.cdata*
---@field size integer

--- The code of a topology as it is shipped.
---@class sl_package: ffi.cdata*
---@field script ffi.cdata*
---@field files sl_package_file
---@field file_count integer
---@field overrides ffi.cdata*
---@field overrides_size integer
---@field defaults ffi.cdata*
---@field defaults_size integer

--- A topology as `load` of a client finds it. What is not there is NULL.
---@class sl_topology_view: ffi.cdata*
---@field execution sl_execution_state
---@field plan sl_stored_plan
---@field definition ffi.cdata*
---@field definition_size integer
---@field is_led boolean

--- A client of a cluster.
---@class sl_cluster: ffi.cdata*

--- What a client is given; texts are copied.
---@class sl_cluster_options: ffi.cdata*
---@field state_url ffi.cdata*
---@field program ffi.cdata*
---@field logs ffi.cdata*
---@field timeout_ms number
---@field progress_fd integer
---@field is_reader boolean
---@field launcher ffi.cdata*
---@field is_service boolean
---@field secret ffi.cdata*
---@field settings sl_settings

--- What is submitted. Everything is borrowed for the call.
---@class sl_cluster_submission: ffi.cdata*
---@field topology ffi.cdata*
---@field definition ffi.cdata*
---@field definition_size integer
---@field plan sl_stored_plan
---@field package sl_package
---@field cwd ffi.cdata*
---@field user ffi.cdata*
---@field is_active boolean
---@field timeout_ms number
---@field schedule sl_sched_request
---@field scheduler integer
---@field is_dry_run boolean

--- A change of what runs. Everything is borrowed for the call.
---@class sl_cluster_change: ffi.cdata*
---@field current sl_stored_plan
---@field proposed sl_stored_plan
---@field lock_timeout_ms number
---@field drain_timeout_ms number
---@field mode integer
---@field schedule sl_sched_request
---@field scheduler integer
---@field is_dry_run boolean

--- How a role is made.
---@class sl_worker_role_options: ffi.cdata*
---@field topology ffi.cdata*
---@field container integer
---@field host ffi.cdata*
---@field data_port integer
---@field supervisor ffi.cdata*
---@field slot_port integer
---@field state_url ffi.cdata*
---@field secret ffi.cdata*
---@field secret_len integer
---@field identity ffi.cdata*
---@field drains_owner integer
---@field no_master_ms number
---@field logs ffi.cdata*
---@field program ffi.cdata*

--- A state of a task that has come for a plan; the texts are valid until the next one is asked for.
---@class sl_staged: ffi.cdata*
---@field component ffi.cdata*
---@field state ffi.cdata*
---@field task integer
---@field entries sl_keyed

--- The code of a topology, written to files.
---@class sl_unpacked: ffi.cdata*
---@field script ffi.cdata*
---@field overrides ffi.cdata*
---@field overrides_size integer
---@field defaults ffi.cdata*
---@field defaults_size integer

--- The role of a worker process for Lua: connections to other workers and to the topology master on
--- a thread of their own (cluster/worker_role.h). The thread that made the worker calls these. This
--- is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
---@class sl_worker_role: ffi.cdata*

--- Crews over several processes for Lua (cluster/crew_link.h): members that work for the driver of a
--- stream program in another one. Functions that return int32_t return 0 or an SL_E code. This is a
--- bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
---@class sl_crew_link: ffi.cdata*

--- A server that runs.
---@class sl_http_api: ffi.cdata*

--- A command, valid until it is answered.
---@class sl_launcher_command: ffi.cdata*
---@field kind integer
---@field containers sl_packing_container
---@field container_count integer
---@field old_containers sl_packing_container
---@field old_container_count integer
---@field topology ffi.cdata*
---@field cwd ffi.cdata*
---@field user ffi.cdata*

--- What a launcher can do.
---@class sl_launcher_abilities: ffi.cdata*
---@field can_scale boolean
---@field can_restart boolean
---@field wants_updates boolean

--- A topology master and the queue of its launcher.
---@class sl_launcher_role: ffi.cdata*

--- The functions and constants of the C core, as `require 'streamlua.abi'.C` holds them.
---@class streamlua.abi.C
---@field SL_ABI_VERSION integer
---@field SL_WORDS_IN_RUN integer
---@field SL_WORDS_PLACES integer
---@field SL_WORDS_LONGEST integer
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
---@field SL_TOPOLOGY_FIELD_MAX integer
---@field SL_TOPOLOGY_COMPONENTS_MAX integer
---@field SL_TOPOLOGY_STREAMS_MAX integer
---@field SL_TOPOLOGY_FIELDS_MAX integer
---@field SL_TOPOLOGY_INPUTS_MAX integer
---@field SL_TOPOLOGY_KEYS_MAX integer
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
---@field SL_PACKING_SHRINK_CONTAINERS integer
---@field SL_PACKING_SHRINK_TASKS integer
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
---@field SL_SLOT_TEXT integer
---@field SL_SLOT_KEY integer
---@field SL_WAY_BITS integer
---@field SL_WAY_KEYS_MOST integer
---@field SL_WAY_KEY_BYTES_MOST integer
---@field SL_TASK_SPOUT integer
---@field SL_TASK_BOLT integer
---@field SL_TASK_ACKER integer
---@field SL_TURN_NONE integer
---@field SL_TURN_BATCH integer
---@field SL_TURN_SPOUT integer
---@field SL_TURN_ACKS integer
---@field SL_TURN_TICK integer
---@field SL_TURN_FINISH integer
---@field SL_TURN_COMMAND integer
---@field SL_TURN_READY integer
---@field SL_COMMAND_ACTIVATE integer
---@field SL_COMMAND_DEACTIVATE integer
---@field SL_COMMAND_ADD_TASK integer
---@field SL_COMMAND_REMOVE_TASK integer
---@field SL_COMMAND_ROUTES integer
---@field SL_COMMAND_DRAIN integer
---@field SL_COMMAND_STOP integer
---@field SL_COMMAND_TELL integer
---@field SL_HOLD_NOTHING integer
---@field SL_HOLD_TICKS integer
---@field SL_HOLD_TICKS_AND_WAY integer
---@field SL_SPOUT_EMITTED integer
---@field SL_SPOUT_NOTHING integer
---@field SL_SPOUT_DONE integer
---@field SL_FLUSH_OK integer
---@field SL_FLUSH_RUN integer
---@field SL_FLUSH_WAIT integer
---@field SL_EVENT_FINISHED integer
---@field SL_EVENT_READY integer
---@field SL_EVENT_BROKEN integer
---@field SL_EVENT_ERROR integer
---@field SL_EVENT_DONE integer
---@field SL_EVENT_REPORT integer
---@field SL_EVENT_STOPPED integer
---@field SL_EVENT_SIGNAL integer
---@field SL_EVENT_RESUMED integer
---@field SL_EVENT_TOLD integer
---@field SL_EVENT_ROLE integer
---@field SL_SETTING_DURATION integer
---@field SL_SETTING_NUMBER integer
---@field SL_SETTING_FLAG integer
---@field SL_STREAMING_UNKNOWN integer
---@field SL_STREAMING_INITIALIZED integer
---@field SL_STREAMING_ACTIVE integer
---@field SL_STREAMING_STOPPED integer
---@field SL_STREAMING_INPUT integer
---@field SL_STREAMING_RECEIVER integer
---@field SL_STREAMING_OUTPUT integer
---@field SL_STREAMING_PERSIST integer
---@field SL_STREAMING_MUST_CHECKPOINT integer
---@field SL_STREAMING_STATEFUL integer
---@field SL_STREAMING_OWNS_FILES integer
---@field SL_STREAMING_NOTHING integer
---@field SL_STREAMING_FOUND integer
---@field SL_STREAMING_COMPUTE integer
---@field SL_STREAMING_MARK_PERSIST integer
---@field SL_STREAMING_MARK_CHECKPOINT integer
---@field SL_STREAMING_WORK_NONE integer
---@field SL_STREAMING_WORK_START_RECEIVER integer
---@field SL_STREAMING_WORK_STOP_RECEIVER integer
---@field SL_STREAMING_WORK_START_INPUTS integer
---@field SL_STREAMING_WORK_STOP_INPUTS integer
---@field SL_STREAMING_WORK_GENERATE integer
---@field SL_STREAMING_WORK_RUN_JOB integer
---@field SL_STREAMING_WORK_DROP integer
---@field SL_STREAMING_WORK_DROP_BLOCK integer
---@field SL_STREAMING_WORK_CLEAN_LOG integer
---@field SL_STREAMING_WORK_SAVE_STATE integer
---@field SL_STREAMING_WORK_CHECKPOINT integer
---@field SL_STREAMING_WORK_RATE integer
---@field SL_STREAMING_WORK_EVENT integer
---@field SL_STREAMING_WORK_STOPPED integer
---@field SL_STREAMING_EVENT_STARTED integer
---@field SL_STREAMING_EVENT_BATCH_SUBMITTED integer
---@field SL_STREAMING_EVENT_BATCH_STARTED integer
---@field SL_STREAMING_EVENT_BATCH_COMPLETED integer
---@field SL_STREAMING_EVENT_OPERATION_STARTED integer
---@field SL_STREAMING_EVENT_OPERATION_COMPLETED integer
---@field SL_STREAMING_EVENT_RECEIVER_STARTED integer
---@field SL_STREAMING_EVENT_RECEIVER_ERROR integer
---@field SL_STREAMING_EVENT_RECEIVER_STOPPED integer
---@field SL_CREW_ANY integer
---@field SL_CREW_SIGNAL integer
---@field SL_CREW_ENDED integer
---@field SL_CREW_PEER integer
---@field SL_CREW_PEER_CAME integer
---@field SL_CREW_PEER_BROKE integer
---@field SL_CREW_PEER_RESUMED integer
---@field SL_CREW_PEER_LEFT integer
---@field SL_TOPOLOGY_STARTING integer
---@field SL_TOPOLOGY_RUNNING integer
---@field SL_TOPOLOGY_PAUSED integer
---@field SL_TOPOLOGY_KILLED integer
---@field SL_UPDATE_DONE integer
---@field SL_UPDATE_ROLLED_BACK integer
---@field SL_UPDATE_NOT_ROLLED_BACK integer
---@field SL_ASK_PLAN integer
---@field SL_ASK_SPOUTS integer
---@field SL_ASK_END integer
---@field SL_ASK_PEERS integer
---@field SL_ASK_EXPORT integer
---@field SL_ASK_DRAIN integer
---@field SL_LAUNCHER_INITIALIZE integer
---@field SL_LAUNCHER_SCHEDULE integer
---@field SL_LAUNCHER_UPDATE integer
---@field SL_LAUNCHER_ADD integer
---@field SL_LAUNCHER_REMOVE integer
---@field SL_LAUNCHER_RESTART integer
---@field SL_LAUNCHER_KILL integer
local C = {}

--- Returns SL_ABI_VERSION as it was when the library was compiled.
---@return integer
function C.sl_abi_version() end

--- Returns the release of the library, like "0.1.0". The string is static.
---@return ffi.cdata*
function C.sl_version() end

--- Returns the release of the ZooKeeper client that this was built with, like "3.8.0". Static.
---@return ffi.cdata*
function C.sl_zookeeper_version() end

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

--- Finds the next words of a text of len bytes from run->next on (base/words.abi.h), and their
--- places in the dictionary. Returns 0, or SL_EINVAL when something is NULL or run->next lies
--- outside of the text, SL_ERANGE when it is longer than 2^31 - 1 bytes.
---@param words sl_words|ffi.cdata*
---@param text string|ffi.cdata*
---@param len integer
---@param run sl_word_run|ffi.cdata*
---@return integer
function C.sl_abi_words_split(words, text, len, run) end

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

--- Returns the state's places, which live as long as the state; NULL for NULL.
---@param state sl_keyed|ffi.cdata*
---@return sl_keyed_places
function C.sl_keyed_places(state) end

--- Remembers the entry of a string key of len bytes. Returns its index in the places' entries, which
--- holds until their `moves` changes, or SL_ENOTFOUND, or SL_ELIMIT when all places are taken.
---@param state sl_keyed|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_keyed_remember_string(state, key, len) end

--- Frees all places, which changes their `moves`.
---@param state sl_keyed|ffi.cdata*
function C.sl_keyed_forget_all(state) end

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

--- Returns the bytes of the first entries that fit into `most`, at least one, of len bytes of an
--- export behind its first 8, and stores how many they are in *count. SL_EPROTO.
---@param bytes ffi.cdata*
---@param len integer
---@param most integer
---@param count ffi.cdata*
---@return ffi.cdata*
function C.sl_keyed_entries_fit(bytes, len, most, count) end

--- Puts the entries of len exported bytes (one or more groups, one after the other) and stores what
--- they held in *summary. With SL_EPROTO nothing was put; SL_ELIMIT and SL_ENOMEM leave what was put
--- so far.
---@param state sl_keyed|ffi.cdata*
---@param bytes ffi.cdata*
---@param len integer
---@param summary sl_keyed_summary|ffi.cdata*
---@return integer
function C.sl_keyed_import_bytes(state, bytes, len, summary) end

--- Takes over every key group in which another state has entries, in place of its own, and leaves
--- the other one empty. SL_EINVAL when their numbers of key groups differ.
---@param state sl_keyed|ffi.cdata*
---@param from sl_keyed|ffi.cdata*
---@return integer
function C.sl_keyed_take(state, from) end

--- Removes the entries of one key group.
---@param state sl_keyed|ffi.cdata*
---@param group integer
function C.sl_keyed_remove_group(state, group) end

--- Makes a worker without tasks; NULL with the error set when an option is out of range. Free it
--- with sl_abi_worker_free.
---@param options sl_worker_options|ffi.cdata*
---@return sl_worker
function C.sl_abi_worker_new(options) end

--- Frees a worker whose executors have stopped. NULL is fine.
---@param worker sl_worker|ffi.cdata*
function C.sl_abi_worker_free(worker) end

--- Adds a component (enum sl_task_kind; rank: position in topological order, members of a cycle
--- share rank and scc, scc -1 = in no cycle). Returns its index or an error.
---@param worker sl_worker|ffi.cdata*
---@param name string|ffi.cdata*
---@param kind integer
---@param rank integer
---@param scc integer
---@return integer
function C.sl_abi_worker_component(worker, name, kind, rank, scc) end

--- Adds a stream of the component. Returns its index or an error.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@param name string|ffi.cdata*
---@param field_count integer
---@param is_direct integer
---@return integer
function C.sl_abi_worker_stream(worker, component, name, field_count, is_direct) end

--- Lets the component read the stream; keys are positions of fields (from 0) for keyed groupings.
--- Returns its index or an error.
---@param worker sl_worker|ffi.cdata*
---@param stream integer
---@param component integer
---@param grouping integer
---@param keys ffi.cdata*
---@param key_count integer
---@return integer
function C.sl_abi_worker_reader(worker, stream, component, grouping, keys, key_count) end

--- Sets the owner (task id) of each key group of a component. Returns 0 or an error.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@param owners ffi.cdata*
---@param count integer
---@return integer
function C.sl_abi_worker_groups(worker, component, owners, count) end

--- Plans a task: its id, its index in the component (from 0), its executor. Returns the id or an
--- error.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@param id integer
---@param index integer
---@param executor integer
---@return integer
function C.sl_abi_worker_task(worker, component, id, index, executor) end

--- Says in which other process (number of its container) a task is that was planned for the executor
--- behind the last one; also when that process was replaced. Returns 0, SL_EINVAL, SL_ENOTFOUND.
---@param worker sl_worker|ffi.cdata*
---@param id integer
---@param container integer
---@return integer
function C.sl_abi_worker_place(worker, id, container) end

--- Takes a task of this process out of it, while the plan goes on to name it in another one. Then as
--- sl_abi_worker_remove_task. Returns 0, SL_EINVAL, SL_ENOTFOUND.
---@param worker sl_worker|ffi.cdata*
---@param id integer
---@param container integer
---@return integer
function C.sl_abi_worker_move_task(worker, id, container) end

--- Returns how many key groups a component has, 0 when it is not keyed. Any thread.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@return integer
function C.sl_abi_worker_group_count(worker, component) end

--- Takes a task out of the plan: once every executor has been sent SL_COMMAND_ROUTES it gets no more
--- tuples, and SL_COMMAND_REMOVE_TASK has its executor detach it when it is drained. An acker has to
--- be planned again. Returns 0, SL_ENOTFOUND, or SL_EINVAL for an acker that runs here.
---@param worker sl_worker|ffi.cdata*
---@param id integer
---@return integer
function C.sl_abi_worker_remove_task(worker, id) end

--- Tells where a task of the plan belongs, from any thread. Returns 0 or SL_ENOTFOUND.
---@param worker sl_worker|ffi.cdata*
---@param task integer
---@param planned sl_planned|ffi.cdata*
---@return integer
function C.sl_abi_worker_planned(worker, task, planned) end

--- Stores at most `capacity` ids of a component's tasks, ascending, from any thread. Returns how
--- many there are, or SL_EINVAL.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@param ids ffi.cdata*
---@param capacity integer
---@return integer
function C.sl_abi_worker_tasks(worker, component, ids, capacity) end

--- Returns an executor, NULL when there is none of this index.
---@param worker sl_worker|ffi.cdata*
---@param index integer
---@return sl_executor
function C.sl_abi_worker_executor(worker, index) end

--- Returns the number of executors.
---@param worker sl_worker|ffi.cdata*
---@return integer
function C.sl_abi_worker_executor_count(worker) end

--- Sets the text that every executor reads when it starts.
---@param worker sl_worker|ffi.cdata*
---@param text string|ffi.cdata*
---@param len integer
function C.sl_abi_worker_set_boot(worker, text, len) end

--- Returns that text (borrowed) and its length.
---@param worker sl_worker|ffi.cdata*
---@param len ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_worker_boot(worker, len) end

--- Starts a thread with a Lua state of its own for each executor. Returns 0 or an error.
---@param worker sl_worker|ffi.cdata*
---@return integer
function C.sl_abi_worker_start(worker) end

--- Waits for the threads; they must have been told to stop.
---@param worker sl_worker|ffi.cdata*
function C.sl_abi_worker_join(worker) end

--- Sends a command (enum sl_command). Returns 0 or SL_EINVAL.
---@param worker sl_worker|ffi.cdata*
---@param executor integer
---@param command integer
---@param argument integer
---@return integer
function C.sl_abi_worker_command(worker, executor, command, argument) end

--- Sends SL_COMMAND_TELL with a text; SL_EVENT_TOLD follows. Returns 0 or SL_EINVAL.
---@param worker sl_worker|ffi.cdata*
---@param executor integer
---@param argument integer
---@param text string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_worker_tell(worker, executor, argument, text, len) end

--- Waits for an event, at most timeout_ms (negative = for ever). Returns 1 with *event, or 0.
---@param worker sl_worker|ffi.cdata*
---@param timeout_ms number
---@param event sl_event|ffi.cdata*
---@return integer
function C.sl_abi_worker_wait(worker, timeout_ms, event) end

--- Posts an event (enum sl_event_kind) to the owner, from any thread.
---@param worker sl_worker|ffi.cdata*
---@param kind integer
---@param task integer
---@param executor integer
---@param text string|ffi.cdata*
---@param len integer
function C.sl_abi_worker_post(worker, kind, task, executor, text, len) end

--- Reads the counters of a task; they may be a turn old. Returns 0 or SL_ENOTFOUND.
---@param worker sl_worker|ffi.cdata*
---@param task integer
---@param stats sl_task_stats|ffi.cdata*
---@return integer
function C.sl_abi_worker_stats(worker, task, stats) end

--- Reads the sums of the counters of a component's tasks that were removed. Returns 0 or an error.
---@param worker sl_worker|ffi.cdata*
---@param component integer
---@param stats sl_task_stats|ffi.cdata*
---@return integer
function C.sl_abi_worker_gone_stats(worker, component, stats) end

--- Tells which user code an executor is in and for how long.
---@param worker sl_worker|ffi.cdata*
---@param executor integer
---@param busy sl_busy|ffi.cdata*
function C.sl_abi_worker_busy(worker, executor, busy) end

--- Returns a quantile (0..1) of the complete latency in milliseconds, -1 without any. The
--- executors must have stopped.
---@param worker sl_worker|ffi.cdata*
---@param quantile number
---@return number
function C.sl_abi_worker_latency_ms(worker, quantile) end

--- Returns how many tuples were dropped because a cycle of bolts overflowed.
---@param worker sl_worker|ffi.cdata*
---@return integer
function C.sl_abi_worker_dropped_in_cycles(worker) end

--- Moves a manual clock on. Returns 0 or SL_EINVAL.
---@param worker sl_worker|ffi.cdata*
---@param ms number
---@return integer
function C.sl_abi_worker_advance(worker, ms) end

--- Returns the time of the worker's clock in milliseconds since the epoch.
---@param worker sl_worker|ffi.cdata*
---@return number
function C.sl_abi_worker_now_ms(worker) end

--- From now on SIGINT and SIGTERM reach the worker's owner as SL_EVENT_SIGNAL. NULL gives them
--- back their default. Returns 0 or an error.
---@param worker sl_worker|ffi.cdata*
---@return integer
function C.sl_abi_worker_catch_signals(worker) end

--- Returns how many cores this process may use.
---@return integer
function C.sl_abi_core_count() end

--- Returns milliseconds that never go back, with fractions.
---@return number
function C.sl_abi_monotonic_ms() end

--- Writes out what stdio holds, as far as that needs no waiting, and ends the process at once,
--- whatever its threads are doing.
---@param code integer
function C.sl_abi_process_exit(code) end

--- Takes a planned task in and builds its emitters. Returns 0 or an error.
---@param executor sl_executor|ffi.cdata*
---@param task integer
---@param out ffi.cdata*
---@return integer
function C.sl_abi_executor_attach(executor, task, out) end

--- Lets a task go that has been taken out of the plan; its pointer and those of its emitters are
--- dead then. Returns 0, SL_EAGAIN while it has input or output under way, SL_EINVAL while it is
--- planned, SL_ENOTFOUND.
---@param executor sl_executor|ffi.cdata*
---@param task integer
---@return integer
function C.sl_abi_executor_detach(executor, task) end

--- Builds the emitters of all attached tasks anew: all pointers to emitters, routes and outboxes got
--- before are dead. Returns 0 or an error.
---@param executor sl_executor|ffi.cdata*
---@return integer
function C.sl_abi_executor_route(executor) end

--- Returns the index in the worker.
---@param executor sl_executor|ffi.cdata*
---@return integer
function C.sl_abi_executor_index(executor) end

--- Finds what to do next (enum sl_turn_kind) and stores it in *turn; without may_block
--- SL_TURN_NONE when there is nothing. Every turn is ended by sl_abi_batch_end, sl_abi_spout_end
--- or sl_abi_turn_end.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param may_block integer
---@return integer
function C.sl_abi_executor_next(executor, turn, may_block) end

--- As next, but only input of this task, inside another one's turn.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param task integer
---@return integer
function C.sl_abi_executor_nested(executor, turn, task) end

--- One step of waiting for room in an outbox: SL_TURN_READY = there may be room, SL_TURN_BATCH or
--- SL_TURN_TICK = run this nested, SL_TURN_NONE = nothing moves (only without may_block),
--- SL_ECANCELED = the executor has been told to stop.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param outbox sl_outbox|ffi.cdata*
---@param need integer
---@param may_block integer
---@return integer
function C.sl_abi_executor_await(executor, turn, outbox, need, may_block) end

--- The same for a free root of a spout task or completed roots to take.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param task sl_task|ffi.cdata*
---@param may_block integer
---@return integer
function C.sl_abi_executor_await_root(executor, turn, task, may_block) end

--- Says that user code of a task is called outside of a turn (open, close and their kind), so that
--- sl_abi_worker_busy names it; task -1: the call has returned.
---@param executor sl_executor|ffi.cdata*
---@param task integer
function C.sl_abi_executor_calls(executor, task) end

--- Returns the text of this turn's command (borrowed until the next turn), NULL when it has none.
---@param executor sl_executor|ffi.cdata*
---@param len ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_executor_told(executor, len) end

--- Returns the time in milliseconds since the epoch.
---@param executor sl_executor|ffi.cdata*
---@return number
function C.sl_abi_executor_now_ms(executor) end

--- Returns the milliseconds until a timer or a spout's back-off is due; 0 = one is.
---@param executor sl_executor|ffi.cdata*
---@return number
function C.sl_abi_executor_due_ms(executor) end

--- Ends a batch turn after `count` records; head is the first one not executed.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param count integer
---@param head ffi.cdata*
function C.sl_abi_batch_end(executor, turn, count, head) end

--- Returns how many records of the turn come before the task's current record.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@return integer
function C.sl_abi_batch_position(executor, turn) end

--- Returns a key that the turn's records name by its number (borrowed), NULL when there is none.
---@param turn sl_turn|ffi.cdata*
---@param number integer
---@param len ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_turn_key(turn, number, len) end

--- Ends a spout turn: calls made, how the last one ended (enum sl_spout_result), when to call
--- again at the latest (-1: as the back-off says).
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
---@param calls integer
---@param result integer
---@param again_ms number
function C.sl_abi_spout_end(executor, turn, calls, result, again_ms) end

--- Ends any other turn.
---@param executor sl_executor|ffi.cdata*
---@param turn sl_turn|ffi.cdata*
function C.sl_abi_turn_end(executor, turn) end

--- The task is open and may run.
---@param task sl_task|ffi.cdata*
function C.sl_abi_task_opened(task) end

--- Asks for ticks, aligned to multiples of the period or from now on.
---@param task sl_task|ffi.cdata*
---@param period_ms number
---@param is_aligned integer
function C.sl_abi_task_tick(task, period_ms, is_aligned) end

--- Holds an executor (enum sl_hold), or no longer: then tasks whose time came meanwhile tick once.
---@param executor sl_executor|ffi.cdata*
---@param hold integer
function C.sl_abi_executor_hold(executor, hold) end

--- A spout that was DONE is to be called again.
---@param task sl_task|ffi.cdata*
function C.sl_abi_spout_reopen(task) end

--- Returns the number of streams the task emits.
---@param task sl_task|ffi.cdata*
---@return integer
function C.sl_abi_task_emitter_count(task) end

--- Returns an emitter; they come in the order of the component's streams.
---@param task sl_task|ffi.cdata*
---@param index integer
---@return sl_emitter
function C.sl_abi_task_emitter(task, index) end

--- Returns a route of the emitter, NULL when there is none of this index.
---@param emitter sl_emitter|ffi.cdata*
---@param route integer
---@return sl_route
function C.sl_abi_emitter_route(emitter, route) end

--- Hands the records over and finds a buffer with room for `need` bytes: enum sl_flush_result, or
--- SL_ENOMEM.
---@param outbox sl_outbox|ffi.cdata*
---@param need integer
---@return integer
function C.sl_abi_outbox_flush(outbox, need) end

--- Returns the next target of a shuffle.
---@param route sl_route|ffi.cdata*
---@return sl_outbox
function C.sl_abi_route_next(route) end

--- Returns the target of a key by its hash (fields, partial key).
---@param route sl_route|ffi.cdata*
---@param hash integer|ffi.cdata*
---@return sl_outbox
function C.sl_abi_route_key(route, hash) end

--- The same for a key that is one number.
---@param route sl_route|ffi.cdata*
---@param key number
---@return sl_outbox
function C.sl_abi_route_number(route, key) end

--- The same for a key that is one string.
---@param route sl_route|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@return sl_outbox
function C.sl_abi_route_string(route, key, len) end

--- Returns the way (see enum sl_way_limits) of a key that is one string, of a route by fields. When
--- it is kept, the key gets a number, unless it is too long, one too many, or its receiver is in
--- another process. The caller keeps it until sl_abi_route_forget and asks for each key once.
---@param route sl_route|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param is_kept integer
---@return integer
function C.sl_abi_route_way(route, key, len, is_kept) end

--- Forgets the numbers of all keys.
---@param route sl_route|ffi.cdata*
function C.sl_abi_route_forget(route) end

--- Forgets the chosen targets.
---@param emitter sl_emitter|ffi.cdata*
function C.sl_abi_emitter_clear(emitter) end

--- Chooses the targets of a route without a key.
---@param emitter sl_emitter|ffi.cdata*
---@param route integer
function C.sl_abi_emitter_add(emitter, route) end

--- Chooses the target of a route by key.
---@param emitter sl_emitter|ffi.cdata*
---@param route integer
---@param hash integer|ffi.cdata*
function C.sl_abi_emitter_add_key(emitter, route, hash) end

--- Chooses a task; SL_ENOTFOUND when the route does not lead there.
---@param emitter sl_emitter|ffi.cdata*
---@param route integer
---@param task integer
---@return integer
function C.sl_abi_emitter_add_task(emitter, route, task) end

--- Copies the scratch record to a chosen target with an edge for every anchor. Returns 0, or the
--- bytes that the outbox lacks room for.
---@param task sl_task|ffi.cdata*
---@param emitter sl_emitter|ffi.cdata*
---@param target integer
---@param bytes integer
---@return integer
function C.sl_abi_emitter_copy(task, emitter, target, bytes) end

--- Returns the task's record for building a tuple of up to `bytes` bytes.
---@param task sl_task|ffi.cdata*
---@param bytes integer
---@return sl_record
function C.sl_abi_task_scratch(task, bytes) end

--- Begins a tree with this record as its only first edge; the task must have a free root. Returns
--- the slot.
---@param task sl_task|ffi.cdata*
---@param record sl_record|ffi.cdata*
---@return integer
function C.sl_abi_root_open(task, record) end

--- Begins a tree whose edges follow, and makes it the anchor of the next copies. Returns the slot.
---@param task sl_task|ffi.cdata*
---@return integer
function C.sl_abi_root_begin(task) end

--- All first edges of the tree have been written.
---@param task sl_task|ffi.cdata*
---@param slot integer
function C.sl_abi_root_end(task, slot) end

--- Frees the first `count` completed roots.
---@param task sl_task|ffi.cdata*
---@param count integer
function C.sl_abi_roots_release(task, count) end

--- Anchors a record on the current one, which has one root.
---@param task sl_task|ffi.cdata*
---@param record sl_record|ffi.cdata*
function C.sl_abi_task_anchor(task, record) end

--- Acks the current record.
---@param task sl_task|ffi.cdata*
function C.sl_abi_task_ack(task) end

--- Fails the current record.
---@param task sl_task|ffi.cdata*
function C.sl_abi_task_fail(task) end

--- Starts the time-out of the current record's roots again.
---@param task sl_task|ffi.cdata*
function C.sl_abi_task_reset(task) end

--- Counts an error of the task's user code. Other threads read the counter.
---@param task sl_task|ffi.cdata*
function C.sl_abi_task_count_error(task) end

--- Keeps the current record for a later ack. Returns its handle, -1 when it is untracked.
---@param task sl_task|ffi.cdata*
---@return number
function C.sl_abi_task_hold(task) end

--- Acks or fails a kept record. SL_ENOTFOUND when it was settled before or is too old.
---@param task sl_task|ffi.cdata*
---@param handle number
---@param has_failed integer
---@return integer
function C.sl_abi_held_settle(task, handle, has_failed) end

--- Starts the time-out of a kept record's roots again.
---@param task sl_task|ffi.cdata*
---@param handle number
---@return integer
function C.sl_abi_held_reset(task, handle) end

--- Begins an empty list of anchors.
---@param task sl_task|ffi.cdata*
function C.sl_abi_anchors_clear(task) end

--- Adds the current record to the anchors.
---@param task sl_task|ffi.cdata*
function C.sl_abi_anchors_add_current(task) end

--- Adds a kept record to the anchors; nothing when it is too old.
---@param task sl_task|ffi.cdata*
---@param handle number
function C.sl_abi_anchors_add_held(task, handle) end

--- Unless sl_abi_deadline_clear() comes first, after `ms` milliseconds (more than 0) the
--- NUL-terminated `text`, which is copied, is written to standard error and the process ends with
--- exit code `code`, whatever its threads are doing. Setting it again replaces it. Returns 0, or
--- SL_EINVAL without a text or for a time that is not above 0, SL_ESYS when no thread can be made.
---@param ms number
---@param text string|ffi.cdata*
---@param code integer
---@return integer
function C.sl_abi_deadline_set(ms, text, code) end

--- Takes the deadline back; without one it does nothing. The process goes on when this has returned.
function C.sl_abi_deadline_clear() end

--- Makes an empty histogram; free it with sl_abi_histogram_free.
---@return sl_histogram
function C.sl_abi_histogram_new() end

--- Frees a histogram; NULL is fine.
---@param histogram sl_histogram|ffi.cdata*
function C.sl_abi_histogram_free(histogram) end

--- Counts a value, rounded to a whole number.
---@param histogram sl_histogram|ffi.cdata*
---@param value number
function C.sl_abi_histogram_record(histogram, value) end

--- Returns how many values were counted.
---@param histogram sl_histogram|ffi.cdata*
---@return number
function C.sl_abi_histogram_count(histogram) end

--- Returns the value at a quantile in 0..1, 0 without any.
---@param histogram sl_histogram|ffi.cdata*
---@param quantile number
---@return number
function C.sl_abi_histogram_quantile(histogram, quantile) end

--- Returns the mean, 0 without any.
---@param histogram sl_histogram|ffi.cdata*
---@return number
function C.sl_abi_histogram_mean(histogram) end

--- Returns row `index` of the table, with the default as its value; NULL behind the last.
---@param index integer
---@return sl_setting
function C.sl_abi_settings_row(index) end

--- Makes settings with all defaults; free them with sl_abi_settings_free.
---@return sl_settings
function C.sl_abi_settings_new() end

--- Frees settings; NULL is fine.
---@param settings sl_settings|ffi.cdata*
function C.sl_abi_settings_free(settings) end

--- Sets a value by name: milliseconds, a number, or 0 and 1. Returns 0, SL_ENOTFOUND for an unknown
--- name, SL_ERANGE for a value that is no whole number or out of range, SL_EINVAL for NULL.
---@param settings sl_settings|ffi.cdata*
---@param name string|ffi.cdata*
---@param value number
---@return integer
function C.sl_abi_settings_set(settings, name, value) end

--- Looks at values that depend on each other. Returns 0 or SL_EINVAL; the message names both.
---@param settings sl_settings|ffi.cdata*
---@return integer
function C.sl_abi_settings_check(settings) end

--- Returns the greatest multiple of duration (> 0) counted from zero that is <= time; division
--- truncates.
---@param time integer|ffi.cdata*
---@param duration integer|ffi.cdata*
---@param zero integer|ffi.cdata*
---@return number
function C.sl_abi_time_floor(time, duration, zero) end

--- Returns 1 when time is a multiple of duration (> 0), else 0.
---@param time integer|ffi.cdata*
---@param duration integer|ffi.cdata*
---@return integer
function C.sl_abi_time_is_multiple(time, duration) end

--- Makes a manual clock that shows start_ms; to be freed with sl_abi_streaming_clock_free.
---@param start_ms integer|ffi.cdata*
---@return sl_streaming_clock
function C.sl_abi_streaming_clock_new(start_ms) end

--- Frees a clock; contexts and timers that use it must be gone. NULL is fine.
---@param clock sl_streaming_clock|ffi.cdata*
function C.sl_abi_streaming_clock_free(clock) end

--- Returns the time of a manual clock, or of the system's when clock is NULL. Any thread.
---@param clock sl_streaming_clock|ffi.cdata*
---@return number
function C.sl_abi_streaming_clock_now(clock) end

--- Sets a manual clock, forward or backward. Any thread.
---@param clock sl_streaming_clock|ffi.cdata*
---@param time integer|ffi.cdata*
function C.sl_abi_streaming_clock_set(clock, time) end

--- Makes a timer of this period (> 0) on a clock (NULL: the system's), to be freed with
--- sl_abi_recurring_timer_free. NULL with SL_EINVAL.
---@param clock sl_streaming_clock|ffi.cdata*
---@param period_ms integer|ffi.cdata*
---@return sl_recurring_timer
function C.sl_abi_recurring_timer_new(clock, period_ms) end

--- Frees a timer; NULL is fine.
---@param timer sl_recurring_timer|ffi.cdata*
function C.sl_abi_recurring_timer_free(timer) end

--- Returns the first multiple of the period after now.
---@param timer sl_recurring_timer|ffi.cdata*
---@return number
function C.sl_abi_recurring_timer_start_time(timer) end

--- Returns the first time after now on the grid of the period through `original`.
---@param timer sl_recurring_timer|ffi.cdata*
---@param original integer|ffi.cdata*
---@return number
function C.sl_abi_recurring_timer_restart_time(timer, original) end

--- Starts ticking at time `start`. SL_ECONFLICT when it was started before.
---@param timer sl_recurring_timer|ffi.cdata*
---@param start integer|ffi.cdata*
---@return integer
function C.sl_abi_recurring_timer_start(timer, start) end

--- Returns the nominal time of a tick that is due and counts it as fired, or UNKNOWN.
---@param timer sl_recurring_timer|ffi.cdata*
---@return number
function C.sl_abi_recurring_timer_next(timer) end

--- Returns the clock time of the next tick, or UNKNOWN when there will be none.
---@param timer sl_recurring_timer|ffi.cdata*
---@return number
function C.sl_abi_recurring_timer_due(timer) end

--- Stops. With interrupt != 0 at once: returns the last nominal time that fired (UNKNOWN if none).
--- Else the tick being waited for still fires and UNKNOWN is returned;
--- sl_abi_recurring_timer_stopped tells when it has.
---@param timer sl_recurring_timer|ffi.cdata*
---@param interrupt integer
---@return number
function C.sl_abi_recurring_timer_stop(timer, interrupt) end

--- Returns the last nominal time that fired once the timer has stopped, UNKNOWN before.
---@param timer sl_recurring_timer|ffi.cdata*
---@return number
function C.sl_abi_recurring_timer_stopped(timer) end

--- Makes a rate estimator ("pid"). NULL with SL_EINVAL for batch_ms <= 0, a negative gain or
--- min_rate <= 0. To be freed with sl_abi_pid_free.
---@param batch_ms integer|ffi.cdata*
---@param proportional number
---@param integral number
---@param derived number
---@param min_rate number
---@return sl_pid
function C.sl_abi_pid_new(batch_ms, proportional, integral, derived, min_rate) end

--- Frees an estimator; NULL is fine.
---@param pid sl_pid|ffi.cdata*
function C.sl_abi_pid_free(pid) end

--- Takes a completed batch (end of processing, records, two delays in ms). Returns the new rate in
--- records per second, or UNKNOWN for none.
---@param pid sl_pid|ffi.cdata*
---@param time integer|ffi.cdata*
---@param records integer|ffi.cdata*
---@param processing_ms integer|ffi.cdata*
---@param scheduling_ms integer|ffi.cdata*
---@return number
function C.sl_abi_pid_compute(pid, time, records, processing_ms, scheduling_ms) end

--- Fills in the defaults.
---@param options sl_streaming_options|ffi.cdata*
function C.sl_abi_streaming_options_default(options) end

--- Makes a context on a clock (NULL: the system's), to be freed with sl_abi_streaming_free. NULL
--- with SL_EINVAL naming the option, SL_ESYS when the checkpoint directory can not be made.
---@param options sl_streaming_options|ffi.cdata*
---@param clock sl_streaming_clock|ffi.cdata*
---@return sl_streaming
function C.sl_abi_streaming_new(options, clock) end

--- Frees a context, stopped or not; files that are being written are finished. NULL is fine.
---@param context sl_streaming|ffi.cdata*
function C.sl_abi_streaming_free(context) end

--- Returns enum sl_streaming_state.
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_streaming_state(context) end

--- Sets the checkpoint directory (made at once), or NULL for none. SL_ECONFLICT after start.
---@param context sl_streaming|ffi.cdata*
---@param dir string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_checkpoint_dir(context, dir) end

--- Sets the remember duration of all outputs. SL_ECONFLICT when called twice or after start.
---@param context sl_streaming|ffi.cdata*
---@param remember_ms integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_remember(context, remember_ms) end

--- Adds a stream to the graph (its fields up to flags; parents must exist). Returns its number,
--- from 0. SL_ECONFLICT after start or stop (the text says which) and for a restored context,
--- SL_EEXIST for a name that is taken, SL_EINVAL for a slide or window that is no multiple of its
--- parents' slide, or parents of different slides.
---@param context sl_streaming|ffi.cdata*
---@param node sl_streaming_node|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_add(context, node) end

--- Gives a node another name before start. SL_EEXIST when it is taken.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param name string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_name(context, node, name) end

--- Raises the remember duration of a node (never lowers it) before start.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param ms integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_remember(context, node, ms) end

--- Sets the checkpoint interval of a node and that it persists. SL_ECONFLICT after start.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param ms integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_checkpoint(context, node, ms) end

--- Sets or clears that a node persists. SL_ECONFLICT after start.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param is_on integer
---@return integer
function C.sl_abi_streaming_node_persist(context, node, is_on) end

--- Fills in a node as it is now.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param out sl_streaming_node|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_get(context, node, out) end

--- Returns the number of nodes.
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_streaming_node_count(context) end

--- Adds a worker that can run receivers, with its number of slots; the first one has id 0. Workers
--- that can run nothing more are taken out with sl_abi_streaming_worker_remove.
---@param context sl_streaming|ffi.cdata*
---@param name string|ffi.cdata*
---@param host string|ffi.cdata*
---@param slots integer
---@return integer
function C.sl_abi_streaming_worker_add(context, name, host, slots) end

--- Takes a worker out: its receivers are placed elsewhere.
---@param context sl_streaming|ffi.cdata*
---@param worker integer
---@return integer
function C.sl_abi_streaming_worker_remove(context, worker) end

--- Sets the host on which the receiver of an input wants to run.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param host string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_preferred_host(context, node, host) end

--- Takes over a checkpoint: zero time, batch interval, pending batches, and the saved datasets of
--- nodes with the same names. All nodes must have been added. SL_ECONFLICT names a stateful node of
--- the checkpoint that is missing (allowed with drop_missing != 0), or a batch interval that
--- differs.
---@param context sl_streaming|ffi.cdata*
---@param checkpoint sl_checkpoint|ffi.cdata*
---@param drop_missing integer
---@return integer
function C.sl_abi_streaming_restore(context, checkpoint, drop_missing) end

--- Validates and starts. SL_EINVAL with the first rule that is broken (no output operation, a
--- checkpoint interval without a directory, ...), SL_EUNSATISFIABLE when there are not more slots
--- than receivers, SL_ECONFLICT when it was stopped; 1 when it is active already.
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_streaming_start(context) end

--- Begins a stop, graceful or not; the driver goes on until SL_STREAMING_WORK_STOPPED. A graceful
--- stop can be turned into an immediate one. Returns 1 when it was stopped already. Any thread.
---@param context sl_streaming|ffi.cdata*
---@param graceful integer
---@return integer
function C.sl_abi_streaming_stop(context, graceful) end

--- Stores the next work in *work and returns its kind.
---@param context sl_streaming|ffi.cdata*
---@param work sl_streaming_work|ffi.cdata*
---@return integer
function C.sl_abi_streaming_next(context, work) end

--- Waits until there may be work, sl_abi_streaming_wake is called, or max_ms passed. With a manual
--- clock due times do not end the wait. Returns at once when there is work.
---@param context sl_streaming|ffi.cdata*
---@param max_ms integer|ffi.cdata*
function C.sl_abi_streaming_wait(context, max_ms) end

--- Ends a sl_abi_streaming_wait, also one that begins later. Any thread.
---@param context sl_streaming|ffi.cdata*
function C.sl_abi_streaming_wake(context) end

--- Returns what the event of the last work is about; valid until the next sl_abi_streaming_next.
---@param context sl_streaming|ffi.cdata*
---@return sl_streaming_report
function C.sl_abi_streaming_report(context) end

--- Returns the zero time, UNKNOWN before start.
---@param context sl_streaming|ffi.cdata*
---@return number
function C.sl_abi_streaming_zero_time(context) end

--- Returns 1 when no batch is being generated, waits or runs, else 0.
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_streaming_is_idle(context) end

--- Looks up the dataset of a node at a time. Returns enum sl_streaming_found with *out filled in
--- as far as it applies. SL_ECONFLICT when the stream was never initialised.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@param out sl_streaming_dataset|ffi.cdata*
---@return integer
function C.sl_abi_streaming_find(context, node, time, out) end

--- Remembers the dataset (handle > 0) that was computed for a node at a time. SL_EEXIST when there
--- is one.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@param handle integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_put(context, node, time, handle) end

--- Returns how many datasets a node holds, and stores up to max of them, in order of time.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param out sl_streaming_dataset|ffi.cdata*
---@param max integer
---@return integer
function C.sl_abi_streaming_datasets(context, node, out, max) end

--- Reports the records of an input in a batch. SL_EEXIST for a second report. metadata may be NULL.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@param records integer|ffi.cdata*
---@param metadata string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_input_report(context, node, time, records, metadata) end

--- Within a generation: output `node` has a job. Returns its number in the set.
---@param context sl_streaming|ffi.cdata*
---@param time integer|ffi.cdata*
---@param node integer
---@return integer
function C.sl_abi_streaming_job_add(context, time, node) end

--- Ends the generation of a batch; error NULL when it went well, else the batch is lost.
---@param context sl_streaming|ffi.cdata*
---@param time integer|ffi.cdata*
---@param error string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_generated(context, time, error) end

--- Ends a job; error NULL when it went well. SL_ENOTFOUND for an unknown job. Any thread.
---@param context sl_streaming|ffi.cdata*
---@param job integer|ffi.cdata*
---@param error string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_job_end(context, job, error) end

--- Reports that the dataset of a node at a time was saved as `text`; it is part of the checkpoints
--- from now on.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@param text string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_saved(context, node, time, text) end

--- Stores saved dataset `index` of a node in *out; SL_ENOTFOUND past the end.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param index integer
---@param out sl_streaming_saved|ffi.cdata*
---@return integer
function C.sl_abi_streaming_saved_get(context, node, index, out) end

--- Ends SL_STREAMING_WORK_SAVE_STATE.
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_streaming_state_saved(context) end

--- Writes the checkpoint that SL_STREAMING_WORK_CHECKPOINT asked for, with the driver's own section;
--- it goes to the disk in another thread.
---@param context sl_streaming|ffi.cdata*
---@param extra ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_streaming_checkpoint_write(context, extra, len) end

--- Fills in the counters.
---@param context sl_streaming|ffi.cdata*
---@param out sl_streaming_progress|ffi.cdata*
function C.sl_abi_streaming_progress(context, out) end

--- Returns the report of a retained batch, 0 = the newest one that completed; NULL past the end.
---@param context sl_streaming|ffi.cdata*
---@param index integer
---@return sl_streaming_report
function C.sl_abi_streaming_completed(context, index) end

--- A receiver has started on a worker. SL_EINVAL for a node without receiver, SL_ECLOSED when the
--- context stops, SL_EFENCED when it was scheduled to another worker: the receiver must end then.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param worker integer
---@return integer
function C.sl_abi_streaming_receiver_started(context, node, worker) end

--- A receiver reports an error and goes on.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param message string|ffi.cdata*
---@return integer
function C.sl_abi_streaming_receiver_error(context, node, message) end

--- A receiver has ended, for whatever reason (message may be NULL); unless the context stops it is
--- started again after delay_ms (UNKNOWN: the setting).
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param message string|ffi.cdata*
---@param delay_ms integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_receiver_ended(context, node, message, delay_ms) end

--- Adds a received block: the log first, then memory. Returns 1 when this block was added before.
--- SL_ECLOSED when the context stops, SL_EIO or SL_ESYS when the log can not be written: the block
--- is not taken then. Any thread.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param block sl_streaming_block|ffi.cdata*
---@return integer
function C.sl_abi_streaming_block_add(context, node, block) end

--- Returns the number of blocks of an input in a batch.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_streaming_block_count(context, node, time) end

--- Stores block `index` of an input in a batch in *out; SL_ENOTFOUND past the end.
---@param context sl_streaming|ffi.cdata*
---@param node integer
---@param time integer|ffi.cdata*
---@param index integer
---@param out sl_streaming_block|ffi.cdata*
---@return integer
function C.sl_abi_streaming_block_get(context, node, time, index, out) end

--- Makes a block generator for a receiver: rates as in the options; ids of blocks never repeat.
--- queue_max blocks wait at most. To be freed with sl_abi_block_generator_free.
---@param clock sl_streaming_clock|ffi.cdata*
---@param interval_ms integer|ffi.cdata*
---@param queue_max integer
---@param max_rate number
---@param initial_rate number
---@return sl_block_generator
function C.sl_abi_block_generator_new(clock, interval_ms, queue_max, max_rate, initial_rate) end

--- Frees a generator with what it holds; NULL is fine.
---@param generator sl_block_generator|ffi.cdata*
function C.sl_abi_block_generator_free(generator) end

--- Starts. SL_ECONFLICT when it was started before.
---@param generator sl_block_generator|ffi.cdata*
---@return integer
function C.sl_abi_block_generator_start(generator) end

--- Adds records, encoded one after the other; they land in one block together. SL_EAGAIN when the
--- rate does not allow them now (sl_abi_block_generator_retry tells when), SL_ECLOSED when not
--- active. Any thread.
---@param generator sl_block_generator|ffi.cdata*
---@param bytes ffi.cdata*
---@param len integer
---@param records integer|ffi.cdata*
---@return integer
function C.sl_abi_block_generator_add(generator, bytes, len, records) end

--- Returns in how many ms the next record may be added, 0 = now. Any thread.
---@param generator sl_block_generator|ffi.cdata*
---@return number
function C.sl_abi_block_generator_retry(generator) end

--- Takes the next block that is cut and stores it in *out. Returns 1, or 0 when there is none.
---@param generator sl_block_generator|ffi.cdata*
---@param out sl_block_data|ffi.cdata*
---@return integer
function C.sl_abi_block_generator_pull(generator, out) end

--- Returns the clock time of the next cut, UNKNOWN when there will be none.
---@param generator sl_block_generator|ffi.cdata*
---@return number
function C.sl_abi_block_generator_due(generator) end

--- Makes a block of what has been added, without waiting for the next cut:
--- sl_abi_block_generator_pull gives it. Any thread.
---@param generator sl_block_generator|ffi.cdata*
function C.sl_abi_block_generator_cut(generator) end

--- Stops taking records; what was added before comes out with sl_abi_block_generator_pull. Stopping
--- twice is fine. Any thread.
---@param generator sl_block_generator|ffi.cdata*
function C.sl_abi_block_generator_stop(generator) end

--- Sets the rate (records per second); rate <= 0 is ignored. Any thread.
---@param generator sl_block_generator|ffi.cdata*
---@param rate number
function C.sl_abi_block_generator_rate(generator, rate) end

--- Opens the log in a directory; nothing is made on disk before the first write. rolling_ms > 0. To
--- be closed with sl_abi_wal_free.
---@param dir string|ffi.cdata*
---@param rolling_ms integer|ffi.cdata*
---@return sl_wal
function C.sl_abi_wal_new(dir, rolling_ms) end

--- Closes a log; NULL is fine.
---@param wal sl_wal|ffi.cdata*
function C.sl_abi_wal_free(wal) end

--- Appends a record at a time; its place in *out. SL_ESYS when it could not be written.
---@param wal sl_wal|ffi.cdata*
---@param bytes ffi.cdata*
---@param len integer
---@param time integer|ffi.cdata*
---@param out sl_wal_segment|ffi.cdata*
---@return integer
function C.sl_abi_wal_write(wal, bytes, len, time, out) end

--- Reads one record. Its bytes are valid until the next read of this log; NULL with an error.
---@param wal sl_wal|ffi.cdata*
---@param segment sl_wal_segment|ffi.cdata*
---@param len ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_wal_read(wal, segment, len) end

--- Deletes the files that end before a time.
---@param wal sl_wal|ffi.cdata*
---@param threshold integer|ffi.cdata*
---@return integer
function C.sl_abi_wal_clean(wal, threshold) end

--- Reads the newest usable checkpoint of a directory, to be freed with sl_abi_checkpoint_free. NULL
--- with SL_ENOTFOUND (no directory or no checkpoint file) or SL_EPROTO (none is readable).
---@param dir string|ffi.cdata*
---@return sl_checkpoint
function C.sl_abi_checkpoint_read(dir) end

--- Frees a checkpoint; NULL is fine.
---@param checkpoint sl_checkpoint|ffi.cdata*
function C.sl_abi_checkpoint_free(checkpoint) end

--- Fills in what a checkpoint says; the texts live as long as it.
---@param checkpoint sl_checkpoint|ffi.cdata*
---@param out sl_checkpoint_info|ffi.cdata*
function C.sl_abi_checkpoint_get(checkpoint, out) end

--- Stores pending batch `index`, in order of time, in *time.
---@param checkpoint sl_checkpoint|ffi.cdata*
---@param index integer
---@param time ffi.cdata*
---@return integer
function C.sl_abi_checkpoint_pending(checkpoint, index, time) end

--- Makes a crew of `members` (>= 1); NULL with SL_EINVAL. Free it with sl_abi_crew_free.
---@param members integer
---@return sl_crew
function C.sl_abi_crew_new(members) end

--- Closes a crew, waits for its threads and frees it. NULL is fine.
---@param crew sl_crew|ffi.cdata*
function C.sl_abi_crew_free(crew) end

--- Sets the text that every member reads when it starts.
---@param crew sl_crew|ffi.cdata*
---@param text string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_crew_set_boot(crew, text, len) end

--- Returns that text (borrowed) and its length.
---@param crew sl_crew|ffi.cdata*
---@param len ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_crew_boot(crew, len) end

--- Messages to the owner end the wait of this context (sl_abi_streaming_wait) from now on; NULL:
--- they wake nobody. Before the threads are started.
---@param crew sl_crew|ffi.cdata*
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_crew_wakes(crew, context) end

--- Starts all threads. SL_ESYS when one can not be, SL_EUNAVAIL when this process has no Lua states
--- to give (a stock luajit).
---@param crew sl_crew|ffi.cdata*
---@return integer
function C.sl_abi_crew_start(crew) end

--- Sends len bytes to a member, or to whichever comes first (SL_CREW_ANY). Any thread.
---@param crew sl_crew|ffi.cdata*
---@param member integer
---@param kind integer
---@param bytes string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_crew_send(crew, member, kind, bytes, len) end

--- For a member: its next message, with takes_shared != 0 also one for any, waiting at most
--- timeout_ms (negative: as long as it takes). Returns 1 with *message, 0 when there is none,
--- SL_ECLOSED when the crew has been closed.
---@param crew sl_crew|ffi.cdata*
---@param member integer
---@param takes_shared integer
---@param timeout_ms number
---@param message sl_crew_message|ffi.cdata*
---@return integer
function C.sl_abi_crew_receive(crew, member, takes_shared, timeout_ms, message) end

--- Sends len bytes to the owner. Any thread.
---@param crew sl_crew|ffi.cdata*
---@param member integer
---@param kind integer
---@param bytes string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_crew_post(crew, member, kind, bytes, len) end

--- For the owner: its next message, likewise. Returns 1 with *message, or 0.
---@param crew sl_crew|ffi.cdata*
---@param timeout_ms number
---@param message sl_crew_message|ffi.cdata*
---@return integer
function C.sl_abi_crew_take(crew, timeout_ms, message) end

--- Lets no member wait any more: they finish what they have and end.
---@param crew sl_crew|ffi.cdata*
---@return integer
function C.sl_abi_crew_close(crew) end

--- From now on SIGINT and SIGTERM reach the crew's owner as messages (SL_CREW_SIGNAL). NULL gives
--- them back their default. SL_ESYS when they can not be caught.
---@param crew sl_crew|ffi.cdata*
---@return integer
function C.sl_abi_crew_catch_signals(crew) end

--- Makes an empty map, to be freed with sl_abi_state_map_free. NULL with SL_ENOMEM.
---@return sl_state_map
function C.sl_abi_state_map_new() end

--- Frees a map with all entries; NULL is fine.
---@param map sl_state_map|ffi.cdata*
function C.sl_abi_state_map_free(map) end

--- Returns how many entries there are.
---@param map sl_state_map|ffi.cdata*
---@return number
function C.sl_abi_state_map_size(map) end

--- Returns the bytes that all entries take outside the Lua heap.
---@param map sl_state_map|ffi.cdata*
---@return number
function C.sl_abi_state_map_memory(map) end

--- Removes all entries.
---@param map sl_state_map|ffi.cdata*
function C.sl_abi_state_map_clear(map) end

--- Stores the value and the time of a key. Returns 1, 0 when there is none, or an error.
---@param map sl_state_map|ffi.cdata*
---@param key number
---@param value sl_value|ffi.cdata*
---@param time ffi.cdata*
---@return integer
function C.sl_abi_state_map_get_number(map, key, value, time) end

--- As sl_abi_state_map_get_number for a string of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param value sl_value|ffi.cdata*
---@param time ffi.cdata*
---@return integer
function C.sl_abi_state_map_get_string(map, key, len, value, time) end

--- As sl_abi_state_map_get_number for an encoded key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param value sl_value|ffi.cdata*
---@param time ffi.cdata*
---@return integer
function C.sl_abi_state_map_get_encoded(map, key, len, value, time) end

--- Sets the value of a key to a number, with a time.
---@param map sl_state_map|ffi.cdata*
---@param key number
---@param value number
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_number_number(map, key, value, time) end

--- As sl_abi_state_map_put_number_number for a string key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param value number
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_string_number(map, key, len, value, time) end

--- As sl_abi_state_map_put_number_number for an encoded key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param value number
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_encoded_number(map, key, len, value, time) end

--- Sets the value of a key, with a time, to value_len bytes: those of a string with
--- SL_VALUE_STRING, any encoded value with SL_VALUE_TABLE.
---@param map sl_state_map|ffi.cdata*
---@param key number
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_number(map, key, tag, value, value_len, time) end

--- As sl_abi_state_map_put_number for a string key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_string(map, key, len, tag, value, value_len, time) end

--- As sl_abi_state_map_put_number for an encoded key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@param tag integer
---@param value ffi.cdata*
---@param value_len integer
---@param time integer|ffi.cdata*
---@return integer
function C.sl_abi_state_map_put_encoded(map, key, len, tag, value, value_len, time) end

--- Removes a key. Returns 1, 0 when it was not there, or an error.
---@param map sl_state_map|ffi.cdata*
---@param key number
---@return integer
function C.sl_abi_state_map_remove_number(map, key) end

--- As sl_abi_state_map_remove_number for a string of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_state_map_remove_string(map, key, len) end

--- As sl_abi_state_map_remove_number for an encoded key of len bytes.
---@param map sl_state_map|ffi.cdata*
---@param key ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_state_map_remove_encoded(map, key, len) end

--- Stores the next entry of a walk and returns 1, or returns 0 at its end. A zeroed iterator starts
--- at the first entry. The entry just given may be removed and values may be replaced; keys added
--- meanwhile may be missed, and may make others be missed or seen twice.
---@param map sl_state_map|ffi.cdata*
---@param iter sl_keyed_iter|ffi.cdata*
---@param key sl_value|ffi.cdata*
---@param value sl_value|ffi.cdata*
---@param time ffi.cdata*
---@return integer
function C.sl_abi_state_map_walk(map, iter, key, value, time) end

--- Stores the entry with the smallest time if that is below the threshold and returns 1, else
--- returns 0. It comes again until it is removed or put with another time. Takes time in proportion
--- to what it gives; the first call orders all entries once.
---@param map sl_state_map|ffi.cdata*
---@param threshold integer|ffi.cdata*
---@param key sl_value|ffi.cdata*
---@param value sl_value|ffi.cdata*
---@param time ffi.cdata*
---@return integer
function C.sl_abi_state_map_expired(map, threshold, key, value, time) end

--- Writes all entries to a new file at a path, checksummed; the file appears whole or not at all.
--- SL_ESYS when it can not be written.
---@param map sl_state_map|ffi.cdata*
---@param path string|ffi.cdata*
---@return integer
function C.sl_abi_state_map_save(map, path) end

--- Puts the entries of a saved file. SL_ENOTFOUND without one, SL_EPROTO when it is not whole
--- (nothing is put then), SL_ESYS when it can not be read.
---@param map sl_state_map|ffi.cdata*
---@param path string|ffi.cdata*
---@return integer
function C.sl_abi_state_map_load(map, path) end

--- Returns a client, to be closed with sl_abi_cluster_close. NULL: SL_EINVAL for a bad address.
---@param options sl_cluster_options|ffi.cdata*
---@return sl_cluster
function C.sl_abi_cluster_open(options) end

--- Ends the client's session and frees it. NULL is allowed.
---@param cluster sl_cluster|ffi.cdata*
function C.sl_abi_cluster_close(cluster) end

--- Reads the names of all topologies, sorted. Returns how many there are, or an error: SL_EUNAVAIL
--- when the state manager can not be reached.
---@param cluster sl_cluster|ffi.cdata*
---@return integer
function C.sl_abi_cluster_names(cluster) end

--- Returns a name that sl_abi_cluster_names read, by its index from 0; NULL out of range.
---@param cluster sl_cluster|ffi.cdata*
---@param index integer
---@return ffi.cdata*
function C.sl_abi_cluster_name(cluster, index) end

--- Reads what is stored of a topology. *view is valid until the next load or the close. SL_ENOTFOUND
--- when there is no such topology.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param view ffi.cdata*
---@return integer
function C.sl_abi_cluster_load(cluster, topology, view) end

--- Reads the code package of a topology. *package is valid until the next load or the close.
--- SL_ENOTFOUND.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param package ffi.cdata*
---@return integer
function C.sl_abi_cluster_package(cluster, topology, package) end

--- Stores a topology, starts its processes and waits until all its tasks run. SL_EEXIST: there is
--- one of that name. SL_EUSER: it can not start, and nothing of it is left. SL_ETIMEOUT: not all run
--- yet, the message names what is missing, and it goes on starting. Of a dry run *planned is the
--- plan that masters made, valid until the next call of this client; else NULL.
---@param cluster sl_cluster|ffi.cdata*
---@param submission sl_cluster_submission|ffi.cdata*
---@param planned ffi.cdata*
---@return integer
function C.sl_abi_cluster_submit(cluster, submission, planned) end

--- Asks the topology master how the topology is. *status is valid until the next call of this
--- client. SL_ENOTFOUND, SL_EUNAVAIL when nobody leads it.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param status ffi.cdata*
---@return integer
function C.sl_abi_cluster_status(cluster, topology, status) end

--- Asks supervisors for the logs of containers, all at once, and fills in the answers, which are
--- valid until the next call of this client; each has its own error. With wait_ms it waits so long
--- for something new in one of them.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param questions sl_log_question|ffi.cdata*
---@param count integer
---@param wait_ms number
---@return integer
function C.sl_abi_cluster_logs(cluster, topology, questions, count, wait_ms) end

--- Has the spouts called, or not any more, and waits until it is so. Returns 1 when it was so
--- before, 0 when it was changed, or an error as sl_abi_cluster_status, SL_ETIMEOUT, SL_ECONFLICT.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param is_active boolean
---@param timeout_ms number
---@return integer
function C.sl_abi_cluster_set_active(cluster, topology, is_active, timeout_ms) end

--- Restarts a container, or all of them (0), and waits until they run. SL_ENOTFOUND, SL_ETIMEOUT.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param container integer
---@param timeout_ms number
---@return integer
function C.sl_abi_cluster_restart(cluster, topology, container, timeout_ms) end

--- Changes a topology from one plan to the next. *result is NULL for a dry run, *planned is the plan
--- with the slots that masters chose, or NULL; both are valid until the next call of this client.
--- *result also tells of a change that failed and was, or was not, rolled back. An error: nothing
--- was touched. SL_ECONFLICT: the plan changed, somebody else is changing it, or nothing would
--- change.
---@param cluster sl_cluster|ffi.cdata*
---@param change sl_cluster_change|ffi.cdata*
---@param result ffi.cdata*
---@param planned ffi.cdata*
---@return integer
function C.sl_abi_cluster_update(cluster, change, result, planned) end

--- Ends a topology: its spouts are paused and what is in flight may take wait_ms; then its processes
--- end and what is stored of it is deleted; is_purged: also what masters keep for its return.
--- Finishes what an interrupted kill left. SL_ENOTFOUND when there is no trace of it.
---@param cluster sl_cluster|ffi.cdata*
---@param topology string|ffi.cdata*
---@param wait_ms number
---@param timeout_ms number
---@param is_purged boolean
---@return integer
function C.sl_abi_cluster_kill(cluster, topology, wait_ms, timeout_ms, is_purged) end

--- Returns the SHA-256 of a package's files, without its config, as 64 hexadecimal digits, valid
--- until the next call in this thread; NULL with SL_EINVAL or SL_ELIMIT.
---@param package sl_package|ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_package_hash(package) end

--- The guardian of a local topology, which starts its topology master anew whenever it dies.
---@param options sl_role_options|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return integer
function C.sl_abi_role_guardian(options, settings) end

--- The topology master, which has the workers started, and watches them.
---@param options sl_role_options|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return integer
function C.sl_abi_role_topology_master(options, settings) end

--- A supervisor. SL_EINVAL: no slots; SL_EEXIST: there is one of that name; SL_EFENCED: it would
--- listen where other machines reach it, without a secret; SL_EUNAVAIL: no master for too long.
---@param options sl_supervisor_role_options|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return integer
function C.sl_abi_role_supervisor(options, settings) end

--- The process of a master: listen is "HOST:PORT" (port 0: any), folder is for what it takes in,
--- secret is the cluster's or NULL. Returns the exit code, or an error when it could not begin:
--- SL_EFENCED for an address that other machines can reach when there is no secret, SL_EIO, SL_ESYS.
---@param state_url string|ffi.cdata*
---@param listen string|ffi.cdata*
---@param folder string|ffi.cdata*
---@param secret string|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return integer
function C.sl_abi_role_master(state_url, listen, folder, secret, settings) end

--- Reads the code of a topology from the state manager and writes it to files in a folder of their
--- own; blocks for up to 30 s. NULL with the error set: SL_ENOTFOUND, SL_EUNAVAIL, SL_ETIMEOUT,
--- SL_EPROTO, SL_EINVAL, SL_ESYS.
---@param state_url string|ffi.cdata*
---@param topology string|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return sl_unpacked
function C.sl_abi_package_unpack(state_url, topology, settings) end

--- Removes the files and frees it. NULL is fine.
---@param unpacked sl_unpacked|ffi.cdata*
function C.sl_abi_package_unpack_free(unpacked) end

--- Starts the role of a worker that was made with a remote_window; it listens when this returns.
--- `settings` are those of the control plane. NULL with the error set: SL_EINVAL, SL_EFENCED (other
--- machines could reach it and there is no secret), SL_EEXIST, SL_EIO, SL_ESYS.
---@param worker sl_worker|ffi.cdata*
---@param options sl_worker_role_options|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@return sl_worker_role
function C.sl_abi_worker_role_new(worker, options, settings) end

--- Ends the role; the executors must have stopped. NULL is fine.
---@param role sl_worker_role|ffi.cdata*
function C.sl_abi_worker_role_free(role) end

--- Returns the port for data.
---@param role sl_worker_role|ffi.cdata*
---@return integer
function C.sl_abi_worker_role_port(role) end

--- Answers a request (SL_EVENT_ROLE): code 0, or an SL_E code with the text.
---@param role sl_worker_role|ffi.cdata*
---@param request integer
---@param code integer
---@param text string|ffi.cdata*
---@param len integer
function C.sl_abi_worker_role_answer(role, request, code, text, len) end

--- Adds a piece of a state with so many key groups to the next answer to an export; everything is
--- copied. A count of 0: a part of an entry that is not its last one. `whole`, with the first piece
--- of a state and group: what all of them have; else NULL.
---@param role sl_worker_role|ffi.cdata*
---@param state string|ffi.cdata*
---@param key_groups integer
---@param group integer
---@param entries string|ffi.cdata*
---@param size integer
---@param count number
---@param whole sl_keyed_summary|ffi.cdata*
function C.sl_abi_worker_role_piece(role, state, key_groups, group, entries, size, count, whole) end

--- Gives the next state of a task that has come for the plan of a version. Returns 1, or 0 when
--- there is none any more; SL_EINVAL.
---@param role sl_worker_role|ffi.cdata*
---@param version number
---@param staged sl_staged|ffi.cdata*
---@return integer
function C.sl_abi_worker_role_staged(role, version, staged) end

--- Says which submission this is, where there is no topology master. Returns 0 or SL_EINVAL.
---@param role sl_worker_role|ffi.cdata*
---@param topology_id string|ffi.cdata*
---@return integer
function C.sl_abi_worker_role_topology(role, topology_id) end

--- Says which process (16 bytes) a container is and where it listens, where there is no topology
--- master, when the tasks here are planned: what peers send is taken from then on. Returns 0 or
--- SL_EINVAL.
---@param role sl_worker_role|ffi.cdata*
---@param container integer
---@param identity string|ffi.cdata*
---@param host string|ffi.cdata*
---@param port integer
---@return integer
function C.sl_abi_worker_role_peer(role, container, identity, host, port) end

--- Tells the topology master an error of user code, of a task or ("" and 0) of none.
---@param role sl_worker_role|ffi.cdata*
---@param component string|ffi.cdata*
---@param task integer
---@param text string|ffi.cdata*
---@param len integer
---@param is_fatal integer
function C.sl_abi_worker_role_report(role, component, task, text, len, is_fatal) end

--- Sets the counters of a component that the owner counts itself, for `describe`; from 0 on, all of
--- them. SL_EINVAL for a NULL pointer.
---@param role sl_worker_role|ffi.cdata*
---@param counters sl_worker_counters|ffi.cdata*
---@return integer
function C.sl_abi_worker_role_count(role, counters) end

--- Joins a crew with those of the other processes of a worker that was made with a remote_window,
--- before its role is made. NULL with SL_EINVAL.
---@param worker sl_worker|ffi.cdata*
---@param crew sl_crew|ffi.cdata*
---@return sl_crew_link
function C.sl_abi_crew_link_new(worker, crew) end

--- Parts them again; the role must have been freed. NULL is fine.
---@param link sl_crew_link|ffi.cdata*
function C.sl_abi_crew_link_free(link) end

--- Has the crew work for the driver in container `peer` from now on; -1: its owner is here.
---@param link sl_crew_link|ffi.cdata*
---@param peer integer
---@return integer
function C.sl_abi_crew_link_serve(link, peer) end

--- Sends len bytes to a member of the crew in container `peer` (SL_CREW_ANY: whichever comes first),
--- or, in a process that serves, to the driver. SL_EINVAL, SL_ELIMIT (more than 1 GiB). Any thread.
---@param link sl_crew_link|ffi.cdata*
---@param peer integer
---@param member integer
---@param kind integer
---@param bytes string|ffi.cdata*
---@param len integer
---@return integer
function C.sl_abi_crew_link_send(link, peer, member, kind, bytes, len) end

--- Events of a worker end the wait of this context (sl_abi_streaming_wait) from now on; NULL: they
--- wake nobody.
---@param worker sl_worker|ffi.cdata*
---@param context sl_streaming|ffi.cdata*
---@return integer
function C.sl_abi_worker_wakes(worker, context) end

--- Serves the API on `listen` ("127.0.0.1:9000"; port 0 picks one) on threads of its own. secret is
--- the cluster's, or NULL. Each request is carried out by a process `program arguments...
--- api-request`; arguments is NULL-terminated. Returns NULL with SL_EINVAL for a bad address,
--- SL_EFENCED for one that other machines can reach when there is no secret, SL_EEXIST when it is in
--- use, SL_EUNAVAIL.
---@param listen string|ffi.cdata*
---@param secret string|ffi.cdata*
---@param program string|ffi.cdata*
---@param arguments ffi.cdata*
---@return sl_http_api
function C.sl_abi_http_api_start(listen, secret, program, arguments) end

--- The address with its real port, as long as the server runs. NULL for NULL.
---@param api sl_http_api|ffi.cdata*
---@return ffi.cdata*
function C.sl_abi_http_api_address(api) end

--- Ends the server and the requests that are under way. NULL is allowed.
---@param api sl_http_api|ffi.cdata*
function C.sl_abi_http_api_stop(api) end

--- Blocks until the process is told to end (SIGINT, SIGTERM). Returns the number of the signal, or
--- an error: SL_EIO.
---@return integer
function C.sl_abi_http_wait_for_end() end

--- Returns the SHA-256 of bytes as 64 hexadecimal digits, valid until the next call in this thread.
--- NULL with SL_EINVAL when they are missing.
---@param data ffi.cdata*
---@param size integer
---@return ffi.cdata*
function C.sl_abi_http_hash(data, size) end

--- Returns the HMAC-SHA-256 of a text under a secret in the same way.
---@param secret string|ffi.cdata*
---@param text string|ffi.cdata*
---@param size integer
---@return ffi.cdata*
function C.sl_abi_http_mac(secret, text, size) end

--- Returns 32 hexadecimal digits that nobody can guess, valid until the next call in this thread.
---@return ffi.cdata*
function C.sl_abi_http_nonce() end

--- Starts a topology master on a thread. Returns NULL with SL_EINVAL when something is missing, or
--- SL_ESYS. Free it with sl_abi_launcher_end.
---@param options sl_role_options|ffi.cdata*
---@param settings sl_settings|ffi.cdata*
---@param abilities sl_launcher_abilities|ffi.cdata*
---@return sl_launcher_role
function C.sl_abi_launcher_start(options, settings, abilities) end

--- Waits for a command, at most timeout_ms. Returns 1 with *command, which has to be answered before
--- the next; 0 when the time is over; SL_ECLOSED when the topology master has ended.
---@param role sl_launcher_role|ffi.cdata*
---@param timeout_ms number
---@param command ffi.cdata*
---@return integer
function C.sl_abi_launcher_next(role, timeout_ms, command) end

--- Answers a command: with a text why it could not be done; or with NULL when it was, and for
--- SL_LAUNCHER_ADD the real numbers of the containers (NULL: as asked). Returns 0, or SL_EINVAL:
--- numbers are missing or doubled, and the command counts as failed.
---@param role sl_launcher_role|ffi.cdata*
---@param failure string|ffi.cdata*
---@param ids ffi.cdata*
---@param count integer
---@return integer
function C.sl_abi_launcher_done(role, failure, ids, count) end

--- Tells that a container ended and was started again.
---@param role sl_launcher_role|ffi.cdata*
---@param container integer
---@param text string|ffi.cdata*
function C.sl_abi_launcher_ended(role, container, text) end

--- Waits for the topology master's end and frees the role. Returns the exit code of the process.
---@param role sl_launcher_role|ffi.cdata*
---@return integer
function C.sl_abi_launcher_end(role) end

return C
