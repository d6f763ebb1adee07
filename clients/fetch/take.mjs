// 10,000 snowflake IDs in JSON are distinct; and an error tells what it is.
import assert from 'node:assert/strict'

const url = process.env.LEAF_URL

const batch = await (await fetch(`${url}/v1/ids/snowflake/x?n=10000`)).json()
assert.equal(new Set(batch.ids).size, 10_000)
assert.ok(batch.ids.every(id => typeof id === 'string' && /^[0-9]+$/.test(id)))
assert.ok(new Set(batch.ids.map(Number)).size < 10_000, 'as numbers they would not be distinct: the test shows something')

const single = []
for (let i = 0; i < 100; i++) {
	const res = await fetch(`${url}/v1/ids/segment/order`)
	assert.equal(res.headers.get('cache-control'), 'no-store')
	single.push(...(await res.json()).ids)
}
assert.equal(new Set(single).size, 100)

const { ranges } = await (await fetch(`${url}/v1/ids/segment/order?n=1000000&ranges=1&contiguous=1`, { method: 'POST' })).json()
assert.deepEqual(ranges.map(r => r.count), ['1000000'])
assert.ok(BigInt(ranges[0].start) > BigInt(single.at(-1)))

const missing = await fetch(`${url}/v1/ids/segment/nope`)
assert.equal(missing.status, 404)
assert.equal((await missing.json()).reason, 'UNKNOWN_TAG')

const next = await fetch(`${url}/leaf.v1.LeafService/Next`, {
	method: 'POST',
	headers: { 'Content-Type': 'application/json' },
	body: JSON.stringify({ scheme: 'snowflake' }),
})
assert.match((await next.json()).id, /^[0-9]+$/)

console.log(`Node ${process.version}: 10,000 snowflake IDs, all distinct after JSON.parse; a range of 1,000,000`)
