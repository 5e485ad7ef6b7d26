-- Joins two streams by key: orders and the payments that belong to them.
--
--     streamlua run scripts/topologies/join.lua
--     streamlua run scripts/topologies/join.lua --set orders=1000 --executors 2
--
--     orders   ──fields(order)──┐
--                               ├──> join ──global─────────────> print
--     payments ──fields(order)──┘     └─────unmatched, global──> print
--
-- Both streams are grouped by the order's number, so an order and its payments meet in one task,
-- whichever comes first. What has found no partner is told at the end. The spouts make the data: payments
-- come in another order than orders, every tenth order is not paid, every fifth is paid in two parts, and
-- three payments belong to no order.

local streamlua = require 'streamlua'

local t = streamlua.topology('join', { orders = 20 })

local CUSTOMERS = { 'ada', 'bob', 'cleo' }

local function price_of(order) return order * 10 end

local orders = streamlua.spout {
  fields = { 'order', 'customer', 'price' },
  open = function(self, context) self.n, self.last = 0, context.config.orders end,
  next_tuple = function(self, collector)
    if self.n >= self.last then return streamlua.DONE end
    self.n = self.n + 1
    local n = self.n
    collector:emit({ n, CUSTOMERS[n % #CUSTOMERS + 1], price_of(n) }, { id = n })
  end,
}

-- Backwards, beginning with three that belong to no order.
local payments = streamlua.spout {
  fields = { 'order', 'amount' },
  open = function(self, context) self.n = context.config.orders + 4 end,
  next_tuple = function(self, collector)
    self.n = self.n - 1
    local n = self.n
    if n < 1 then
      return streamlua.DONE
    elseif n % 5 == 0 and n % 10 ~= 0 then
      collector:emit({ n, price_of(n) - 1 }, { id = n })
      collector:emit({ n, 1 }, { id = n })
    elseif n % 10 ~= 0 then
      collector:emit({ n, price_of(n) }, { id = n })
    else
      return false
    end
  end,
}

local join = streamlua.bolt {
  streams = {
    default = { 'order', 'customer', 'price', 'amount' },
    unmatched = { 'order', 'missing' },
  },
  prepare = function(self, context)
    self.customers, self.prices = context:state('customers'), context:state('prices')
    self.paid = context:state('paid')
    -- Payments that came before their order: lists of amounts.
    self.early = context:state('early')
  end,
  add_order = function(self, tuple, collector)
    local order = tuple.order
    self.customers:put(order, tuple.customer)
    self.prices:put(order, tuple.price)
    local early = self.early:get(order)
    if not early then return end
    for _, amount in ipairs(early) do self:match(order, amount, collector) end
    self.early:remove(order)
  end,
  add_payment = function(self, tuple, collector)
    local order = tuple.order
    if self.prices:get(order) then
      self:match(order, tuple.amount, collector)
    else
      local early = self.early:get(order) or {}
      early[#early + 1] = tuple.amount
      self.early:put(order, early)
    end
  end,
  match = function(self, order, amount, collector)
    self.paid:add(order, amount)
    collector:emit({ order, self.customers:get(order), self.prices:get(order), amount })
  end,
  execute = function(self, tuple, collector)
    if streamlua.tuple.component(tuple) == 'orders' then
      self:add_order(tuple, collector)
    else
      self:add_payment(tuple, collector)
    end
  end,
  finish = function(self, collector)
    for order in self.prices:each() do
      if not self.paid:get(order) then
        collector:emit({ order, 'payment' }, { stream = 'unmatched' })
      end
    end
    for order in self.early:each() do
      collector:emit({ order, 'order' }, { stream = 'unmatched' })
    end
  end,
}

t:spout('orders', orders)
t:spout('payments', payments)
t:bolt('join', join, { parallelism = 2 }):fields('orders', { 'order' }):fields('payments', { 'order' })
t:bolt('print', streamlua.io.print { format = 'json' }):global('join'):global('join', 'unmatched')
return t
