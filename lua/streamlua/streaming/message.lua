--- Kinds of messages between the driver of a run and the members of its crew.
--
--     local message = require 'streamlua.streaming.message'
--     print(message.TASK)

return {
  -- To the driver: the member can not go on; the text says why. core/main/threads.c knows it too.
  BROKEN = 0,
  -- To the driver: the script is loaded.
  READY = 1,
  -- To a member: {id, task}; back: {id, result} or {id, failure}.
  TASK = 2,
  RESULT = 3,
  -- To the member of the output operations: {id, node, time, partitions}; back as for a task.
  OUTPUT = 4,
  -- To the driver: the program calls ssc:stop(options).
  STOP = 5,
  -- To the driver: a line for the user.
  WARNING = 6,
  -- To a member: run the receiver of a node; {node, run}.
  RECEIVE = 7,
  -- To such a member: end the receiver; set its rate.
  RECEIVER_STOP = 8,
  RECEIVER_RATE = 9,
  -- To the driver: {node} has started; {node, message}; {node, message, delay_ms} has ended.
  RECEIVER_STARTED = 10,
  RECEIVER_ERROR = 11,
  RECEIVER_ENDED = 12,
  -- To the driver: {node, id, addr, len, n} lies in memory; from another process {node, id, run, member,
  -- n, bytes}, which is answered.
  BLOCK = 13,
  -- From an output operation under way: {output, what, n}, what = 'blocks', 'count' or 'take'; back:
  -- {blocks}, {count}, {items} or {failure}.
  ASK = 14,
  GIVE = 15,
  -- From another process to the driver's: its crew is there and may be given work; {slots}.
  HOST = 16,
  -- To a receiver in another process: what became of its block; {id, is_taken}.
  BLOCK_TAKEN = 17,
  -- To a member in another process: the driver has done without it for too long; that process ends.
  GIVEN_UP = 18,
  -- To the driver: a block that was told of before is in no batch; {node, id}.
  BLOCK_REFUSED = 19,
}
