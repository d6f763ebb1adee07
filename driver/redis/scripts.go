package redis

import (
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf/segment"
)

// Errors of the scripts, by their first word; with any of them nothing was written.
const (
	codeServer = "LEAFSERVER" // it is not the server that was looked at
	codeTTL    = "LEAFTTL"    // the key is going to expire
	codeMoved  = "LEAFMOVED"  // the cell was written by others since
)

// The beginning of all scripts. ARGV[1] is the expected server. On a replica's error the library
// closes the connection, so that the next one goes to the server that Sentinel then names.
const prelude = `
local info = redis.call('INFO', 'replication')
if not string.find(info, 'role:master', 1, true) then
	return redis.error_reply('READONLY this is a replica')
end
if string.match(info, 'master_replid:(%w+)') ~= ARGV[1] then
	return redis.error_reply('LEAFSERVER it is another one')
end
local function now(digits)
	local t = redis.call('TIME')
	return t[1] .. string.sub(string.format('%06d', t[2]), 1, digits)
end
`

// The beginning of scripts for a hash, KEYS[1]. ARGV[2] is the field, except in a scan.
const cellPrelude = prelude + `
if redis.call('PTTL', KEYS[1]) >= 0 then
	return redis.error_reply('LEAFTTL ' .. KEYS[1])
end
`

// replicas is the server's information on them: how many are connected, and whether some recently were.
const replicas = `string.match(info, 'connected_slaves:(%d+)') or '', string.match(info, 'repl_backlog_active:(%d+)') or ''`

var getScript = goredis.NewScript(cellPrelude + `return {redis.call('HGET', KEYS[1], ARGV[2]) or nil}`)

// ARGV[3…]: the version of the field's content, the new content. It returns the server's information
// on replicas.
var swapScript = goredis.NewScript(cellPrelude + `
local held = redis.call('HGET', KEYS[1], ARGV[2])
if (held and '=' .. held or '') ~= ARGV[3] then
	return redis.error_reply('LEAFMOVED cell')
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
return {` + replicas + `}
`)

// ARGV[3]: n. It returns the content of the field, the distance that its counter moved, and the
// server's information on replicas. The text is that of package kv; one without the identity of the
// store does not change, nor does one of a tag with an order. The script adds in two parts, because its numbers are exact only to 2^53.
var addScript = goredis.NewScript(cellPrelude + `
local held = redis.call('HGET', KEYS[1], ARGV[2])
if not held then
	return {}
end
local function whole(text, largest)
	return (text == '0' or string.find(text, '^[1-9]')) and (#text < #largest or #text == #largest and text <= largest)
end
local function sum(a, b)
	local low = string.sub(a, -9) + string.sub(b, -9)
	local high = ('0' .. string.sub(a, 1, -10)) + ('0' .. string.sub(b, 1, -10)) + math.floor(low / 1000000000)
	if high == 0 then
		return string.format('%d', low)
	end
	return string.format('%d%09d', high, low % 1000000000)
end
local largest, by = '9223372036854775807', '0'
local v, max, step, rest = string.match(held, '^{"v":([12]),"max_id":(%d+),"step":(%d+),(.*"store":"[^"]*","updated":)%d+}$')
if max and not string.find(rest, '"order":"', 1, true) and whole(max, largest) and step ~= '0' and whole(step, '` + strconv.Itoa(segment.MaxStep) + `') then
	local n = ARGV[3] == '0' and step or ARGV[3]
	local to = sum(max, n)
	if whole(to, largest) then
		held, by = '{"v":' .. v .. ',"max_id":' .. to .. ',"step":' .. step .. ',' .. rest .. now(3) .. '}', n
		redis.call('HSET', KEYS[1], ARGV[2], held)
	end
end
return {held, by, ` + replicas + `}
`)

// ARGV[2]: the cursor. It returns the next cursor, and fields with their contents.
var scanScript = goredis.NewScript(cellPrelude + `
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', 512)
table.insert(page[2], 1, page[1])
return page[2]
`)

var clockScript = goredis.NewScript(prelude + `return {now(6)}`)

// KEYS: the hashes of a store and of a registry, timeline. ARGV[2]: the expected timeline; ARGV[3]:
// the new one. Without a store or registry it writes nothing.
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
