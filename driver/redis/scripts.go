package redis

import goredis "github.com/redis/go-redis/v9"

// format is the version of a store's keys, which its marker says.
const format = "1"

// Errors of the scripts, by their first word; with any of them nothing was written.
const (
	codeServer   = "LEAFSERVER"   // it is not the server that was looked at
	codeFormat   = "LEAFFORMAT"   // the store was not created, or has another format: what the marker holds
	codeTTL      = "LEAFTTL"      // the key is going to expire
	codeDamaged  = "LEAFDAMAGED"  // the key, and why
	codeUnknown  = "LEAFUNKNOWN"  // there is no such tag
	codeExists   = "LEAFEXISTS"   // there is such a tag
	codeCreated  = "LEAFCREATED"  // there is such a store: the key
	codeOverflow = "LEAFOVERFLOW" // where the counter stands
	codeBelow    = "LEAFBELOW"    // where the counter stands
	codeMoved    = "LEAFMOVED"    // the counter, or the cell, was written by others since
)

// The beginning of all scripts. ARGV[1] is the server that was looked at. The error of a
// replica has the library give up the connection, so that the next one is to the server
// that Sentinel names by then.
const prelude = `
local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then
	return redis.error_reply('READONLY this is a replica')
end
if string.match(info, 'master_replid:(%w+)') ~= ARGV[1] then
	return redis.error_reply('LEAFSERVER it is another one')
end
local function now()
	local t = redis.call('TIME')
	return t[1] .. string.format('%06d', t[2])
end
`

// The beginning of those of a store: KEYS[1] is its marker.
const storePrelude = prelude + `
local format = redis.call('GET', KEYS[1]) or ''
if format ~= '` + format + `' then
	return redis.error_reply('LEAFFORMAT ' .. string.sub(format, 1, 20))
end
`

// The beginning of those that need a counter: KEYS[2] is its tag's. Counters stay text,
// because the numbers of the scripts' language are exact only to 2^53.
const counterPrelude = storePrelude + `
local ttl = redis.call('PTTL', KEYS[2])
if ttl == -2 then
	return redis.error_reply('LEAFUNKNOWN tag')
elseif ttl ~= -1 then
	return redis.error_reply('LEAFTTL ' .. KEYS[2])
end
local function whole(text)
	return text and (text == '0' or string.find(text, '^[1-9]%d*$') and (#text < 19 or #text == 19 and text <= '9223372036854775807'))
end
local function damaged(field, text)
	return redis.error_reply('LEAFDAMAGED ' .. KEYS[2] .. ': its ' .. field .. ' is ' .. (text or 'missing'))
end
`

// KEYS: marker, tag. ARGV[2]: n. HINCRBY fails, and changes nothing, if it would pass
// the largest int64.
var advanceScript = goredis.NewScript(counterPrelude + `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'step')
local max, step, n = held[1], held[2], ARGV[2]
if not whole(max) then
	return damaged('max_id', max)
end
if n == '0' then
	if not whole(step) or step == '0' then
		return damaged('step', step)
	end
	n = step
end
local done = redis.pcall('HINCRBY', KEYS[2], 'max_id', n)
if type(done) == 'table' then
	if string.find(done.err, 'overflow', 1, true) then
		return redis.error_reply('LEAFOVERFLOW ' .. max)
	end
	return done
end
local updated = now()
redis.call('HSET', KEYS[2], 'updated', updated)
local replicas = string.match(info, 'connected_slaves:(%d+)')
local backlog = string.match(info, 'repl_backlog_active:(%d+)')
return {redis.call('HGET', KEYS[2], 'max_id'), n, step or '', replicas or '', backlog or '', updated}
`)

// KEYS: marker, tag. ARGV[2]: where the counter goes back to; ARGV[3]: from where;
// ARGV[4]: when that was written.
var returnScript = goredis.NewScript(storePrelude + `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'updated')
if held[1] ~= ARGV[3] or held[2] ~= ARGV[4] then
	return redis.error_reply('LEAFMOVED counter')
end
redis.call('HSET', KEYS[2], 'max_id', ARGV[2], 'updated', now())
return {}
`)

// KEYS: marker, tag, index of tags. ARGV[2…]: name, max_id, step, description.
var createScript = goredis.NewScript(storePrelude + `
if redis.call('EXISTS', KEYS[2]) == 1 then
	return redis.error_reply('LEAFEXISTS tag')
end
redis.call('HSET', KEYS[2], 'max_id', ARGV[3], 'step', ARGV[4], 'description', ARGV[5], 'updated', now())
redis.call('ZADD', KEYS[3], 0, ARGV[2])
return {}
`)

// KEYS: marker, tag. ARGV[2…]: max_id or empty, step or empty, whether to change the
// description, the description, whether the counter may be lowered. One that is damaged
// may have stood anywhere: setting it may be to lower it.
var alterScript = goredis.NewScript(counterPrelude + `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'step', 'description')
local max, step, description = held[1], held[2], held[3] or ''
local to, force = ARGV[2], ARGV[6] == '1'
if to ~= '' and (force or whole(max)) then
	if not force and (#to < #max or #to == #max and to < max) then
		return redis.error_reply('LEAFBELOW ' .. max)
	end
	max = to
end
if ARGV[3] ~= '' then
	step = ARGV[3]
end
if ARGV[4] == '1' then
	description = ARGV[5]
end
if not whole(max) then
	return damaged('max_id', max)
elseif not whole(step) or step == '0' then
	return damaged('step', step)
end
local updated = now()
redis.call('HSET', KEYS[2], 'max_id', max, 'step', step, 'description', description, 'updated', updated)
return {max, step, description, updated}
`)

// KEYS: marker, tag, index of tags. ARGV[2]: name.
var deleteScript = goredis.NewScript(storePrelude + `
redis.call('ZREM', KEYS[3], ARGV[2])
if redis.call('DEL', KEYS[2]) == 0 then
	return redis.error_reply('LEAFUNKNOWN tag')
end
return {}
`)

// KEYS: marker, index of tags. ARGV[2…]: where to begin, how many.
var namesScript = goredis.NewScript(storePrelude + `
return redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], '+', 'LIMIT', 0, ARGV[3])
`)

// KEYS: marker, tags. It returns four fields of each tag.
var rowsScript = goredis.NewScript(storePrelude + `
local rows = {}
for i = 2, #KEYS do
	local held = redis.call('HMGET', KEYS[i], 'max_id', 'step', 'description', 'updated')
	for field = 1, 4 do
		rows[#rows + 1] = held[field] or ''
	end
end
return rows
`)

// KEYS: marker, index, tags. ARGV[2…]: name, max_id, step and description of each tag.
var initScript = goredis.NewScript(prelude + `
for i = 1, #KEYS do
	if redis.call('EXISTS', KEYS[i]) == 1 then
		return redis.error_reply('LEAFCREATED ' .. KEYS[i])
	end
end
redis.call('SET', KEYS[1], '` + format + `')
for i = 3, #KEYS do
	local at = 2 + 4 * (i - 3)
	redis.call('HSET', KEYS[i], 'max_id', ARGV[at + 1], 'step', ARGV[at + 2], 'description', ARGV[at + 3], 'updated', now())
	redis.call('ZADD', KEYS[2], 0, ARGV[at])
end
return {}
`)

// KEYS: marker.
var existsScript = goredis.NewScript(prelude + `return {redis.call('GET', KEYS[1]) or ''}`)

// The beginning of those of a registry: KEYS[1] is its hash.
const cellPrelude = prelude + `
if redis.call('PTTL', KEYS[1]) >= 0 then
	return redis.error_reply('LEAFTTL ' .. KEYS[1])
end
`

// KEYS: hash. ARGV[2]: field.
var getScript = goredis.NewScript(cellPrelude + `return {redis.call('HGET', KEYS[1], ARGV[2]) or nil}`)

// KEYS: hash. ARGV[2…]: field, the version of what it held, what it is to hold.
var swapScript = goredis.NewScript(cellPrelude + `
local held = redis.call('HGET', KEYS[1], ARGV[2])
if (held and '=' .. held or '') ~= ARGV[3] then
	return redis.error_reply('LEAFMOVED cell')
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
return {}
`)

// KEYS: hash. ARGV[2]: where to go on. It returns that, fields and what they hold.
var scanScript = goredis.NewScript(cellPrelude + `
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', 512)
table.insert(page[2], 1, page[1])
return page[2]
`)

var clockScript = goredis.NewScript(prelude + `return {now()}`)

// KEYS: the marker of a store, the hash of a registry, timeline. ARGV[2]: what the timeline
// must hold to be replaced; ARGV[3]: by what. Where nothing was created nothing is written.
var timelineScript = goredis.NewScript(prelude + `
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
	return {''}
end
local held = redis.call('GET', KEYS[3]) or ''
if held == ARGV[2] then
	redis.call('SET', KEYS[3], ARGV[3])
	held = ARGV[3]
end
return {held}
`)
