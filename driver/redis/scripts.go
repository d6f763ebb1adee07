package redis

import (
	"crypto/sha1"
	"encoding/hex"
)

// A script is a program that the server runs as one step.
type script struct{ text, hash string }

func newScript(body string) script {
	return plainScript(scriptServer + scriptFormat + body)
}

func plainScript(text string) script {
	sum := sha1.Sum([]byte(text)) // by which the server finds it
	return script{text, hex.EncodeToString(sum[:])}
}

// What a script answers first; anything but answerOK means that nothing was written.
const (
	answerOK       = "ok"
	answerServer   = "server"   // not the server that was looked at
	answerFormat   = "format"   // not created, or of another format: what the marker holds
	answerTTL      = "ttl"      // the key is going to expire
	answerDamaged  = "damaged"  // why
	answerUnknown  = "unknown"  // no such tag
	answerExists   = "exists"   // there is one already
	answerOverflow = "overflow" // where the counter stands
	answerBelow    = "below"    // where the counter stands
	answerMoved    = "moved"    // the key holds something else by now
)

// The beginning of all scripts. ARGV[1] is the format, ARGV[2] the server that was
// looked at; KEYS[1] is the marker. The error has the library give up the connection,
// so that the next one is to the server that Sentinel names by then. Counters stay text throughout: the numbers of the
// scripts' language are exact only to 2^53.
const (
	scriptServer = `
local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then
	return redis.error_reply('READONLY this is a replica')
end
if string.match(info, 'master_replid:(%w+)') ~= ARGV[2] then
	return {'server'}
end
local function now()
	local t = redis.call('TIME')
	return t[1] .. string.format('%06d', t[2])
end
`
	scriptFormat = `
local format = redis.call('GET', KEYS[1])
if format ~= ARGV[1] then
	return {'format', format or ''}
end
`
)

// KEYS: marker, tag. ARGV[3]: n. HINCRBY fails, and changes nothing, if it would pass
// the largest int64; it would create a missing counter, so that is looked for first.
const advanceText = `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'step')
local max, step, n = held[1], held[2], ARGV[3]
if not max then
	if redis.call('EXISTS', KEYS[2]) == 0 then
		return {'unknown'}
	end
	return {'damaged', 'it has no max_id'}
end
if redis.call('PTTL', KEYS[2]) >= 0 then
	return {'ttl'}
end
if not string.find(max, '^%d+$') then
	return {'damaged', 'its max_id is ' .. max}
end
if n == '0' then
	if not step or not string.find(step, '^[1-9]%d*$') then
		return {'damaged', 'its step is ' .. (step or 'missing')}
	end
	n = step
end
local done = redis.pcall('HINCRBY', KEYS[2], 'max_id', n)
if type(done) == 'table' then
	if string.find(done.err, 'overflow', 1, true) then
		return {'overflow', max}
	end
	return done
end
local updated = now()
redis.call('HSET', KEYS[2], 'updated', updated)
local replicas = string.match(info, 'connected_slaves:(%d+)')
local backlog = string.match(info, 'repl_backlog_active:(%d+)')
return {'ok', redis.call('HGET', KEYS[2], 'max_id'), n, step or '', replicas or '', backlog or '', updated}
`

// KEYS: marker, tag. ARGV[3]: where the counter goes back to; ARGV[4]: from where;
// ARGV[5]: when that was written.
const returnText = `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'updated')
if held[1] ~= ARGV[4] or held[2] ~= ARGV[5] then
	return {'moved'}
end
redis.call('HSET', KEYS[2], 'max_id', ARGV[3], 'updated', now())
return {'ok'}
`

// KEYS: marker, tag, index of tags. ARGV[3…]: name, max_id, step, description.
const createText = `
if redis.call('EXISTS', KEYS[2]) == 1 then
	return {'exists'}
end
redis.call('HSET', KEYS[2], 'max_id', ARGV[4], 'step', ARGV[5], 'description', ARGV[6], 'updated', now())
redis.call('ZADD', KEYS[3], 0, ARGV[3])
return {'ok'}
`

// KEYS: marker, tag. ARGV[3…]: max_id or empty, step or empty, whether to change the
// description, the description, whether the counter may be lowered. One that is damaged
// may have stood anywhere: setting it may be to lower it.
const alterText = `
local held = redis.call('HMGET', KEYS[2], 'max_id', 'step', 'description')
if redis.call('EXISTS', KEYS[2]) == 0 then
	return {'unknown'}
end
if redis.call('PTTL', KEYS[2]) >= 0 then
	return {'ttl'}
end
local max, step, description = held[1], held[2], held[3] or ''
if ARGV[3] ~= '' then
	local known = max and string.find(max, '^%d+$')
	local below = known and (#ARGV[3] < #max or #ARGV[3] == #max and ARGV[3] < max)
	if below and ARGV[7] ~= '1' then
		return {'below', max}
	end
	if known or ARGV[7] == '1' then
		max = ARGV[3]
	end
end
if ARGV[4] ~= '' then
	step = ARGV[4]
end
if ARGV[5] == '1' then
	description = ARGV[6]
end
if not max or not string.find(max, '^%d+$') then
	return {'damaged', 'its max_id is ' .. (max or 'missing')}
end
if not step or not string.find(step, '^[1-9]%d*$') then
	return {'damaged', 'its step is ' .. (step or 'missing')}
end
local updated = now()
redis.call('HSET', KEYS[2], 'max_id', max, 'step', step, 'description', description, 'updated', updated)
return {'ok', max, step, description, updated}
`

// KEYS: marker, tag, index of tags. ARGV[3]: name.
const deleteText = `
local found = redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[3])
if found == 0 then
	return {'unknown'}
end
return {'ok'}
`

// KEYS: marker, index of tags. ARGV[3…]: where to begin, how many.
const namesText = `
local names = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[3], '+', 'LIMIT', 0, ARGV[4])
table.insert(names, 1, 'ok')
return names
`

// KEYS: marker, tags. Four fields of each tag follow the answer.
const rowsText = `
local rows = {'ok'}
for i = 2, #KEYS do
	local held = redis.call('HMGET', KEYS[i], 'max_id', 'step', 'description', 'updated')
	for field = 1, 4 do
		rows[#rows + 1] = held[field] or ''
	end
end
return rows
`

// KEYS: marker, cell.
const loadText = `
local held = redis.call('GET', KEYS[2])
if not held then
	return {'ok', '0', ''}
end
if redis.call('PTTL', KEYS[2]) >= 0 then
	return {'ttl'}
end
return {'ok', '1', held}
`

// KEYS: marker, cell, index of workers. ARGV[3…]: whether the cell was ever written,
// what it held, what it is to hold, worker ID.
const swapText = `
local held = redis.call('GET', KEYS[2])
if (held and '1' or '0') ~= ARGV[3] or held and held ~= ARGV[4] then
	return {'moved'}
end
if held and redis.call('PTTL', KEYS[2]) >= 0 then
	return {'ttl'}
end
redis.call('SET', KEYS[2], ARGV[5])
redis.call('ZADD', KEYS[3], ARGV[6], ARGV[6])
return {'ok'}
`

// KEYS: marker, index of workers.
const workersText = `
local ids = redis.call('ZRANGE', KEYS[2], 0, -1)
table.insert(ids, 1, 'ok')
return ids
`

// KEYS: marker, cells. Whether each was written, and what it holds, follow the answer.
const cellsText = `
local cells = {'ok'}
for i = 2, #KEYS do
	local held = redis.call('GET', KEYS[i])
	cells[#cells + 1] = held and '1' or '0'
	cells[#cells + 1] = held or ''
end
return cells
`

const clockText = `return {'ok', now()}`

// KEYS: marker, index, tags. ARGV[3…]: name, max_id, step and description of each tag.
const initText = `
for i = 1, #KEYS do
	if redis.call('EXISTS', KEYS[i]) == 1 then
		return {'exists'}
	end
end
redis.call('SET', KEYS[1], ARGV[1])
for i = 3, #KEYS do
	local at = 3 + 4 * (i - 3)
	redis.call('HSET', KEYS[i], 'max_id', ARGV[at + 1], 'step', ARGV[at + 2], 'description', ARGV[at + 3], 'updated', now())
	redis.call('ZADD', KEYS[2], 0, ARGV[at])
end
return {'ok'}
`

// KEYS: marker.
const existsText = `return {'ok', redis.call('GET', KEYS[1]) or ''}`

// KEYS: the markers of a store and of a registry, reign. ARGV[3]: what the reign must hold to
// be replaced; ARGV[4]: by what. Where nothing was created nothing is written.
const reignText = `
if redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
	return {'ok', ''}
end
local held = redis.call('GET', KEYS[3]) or ''
if held == ARGV[3] then
	redis.call('SET', KEYS[3], ARGV[4])
	held = ARGV[4]
end
return {'ok', held}
`

// scripts are all of them.
type scripts struct {
	advance, giveBack, create, alter, remove, names, rows script
	load, swap, workers, cells, clock                     script
	init, exists, reign                                   script
}

func newScripts() *scripts {
	return &scripts{
		advance: newScript(advanceText), giveBack: newScript(returnText), create: newScript(createText),
		alter: newScript(alterText), remove: newScript(deleteText), names: newScript(namesText), rows: newScript(rowsText),
		load: newScript(loadText), swap: newScript(swapText), workers: newScript(workersText),
		cells: newScript(cellsText), clock: newScript(clockText),
		reign: plainScript(scriptServer + reignText),
		init:  plainScript(scriptServer + initText), exists: plainScript(scriptServer + existsText),
	}
}
