// What the scenarios leave out. LEAF_URL is a server with the tag "order".
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import * as esm from 'leaf-id'
import { LeafClient, LeafSnowflake, WorkerLease } from 'leaf-id'

const url = process.env.LEAF_URL
const pool = (prefix, bits) => {
	const name = `${prefix}-${process.pid}`
	const args = ['worker', 'pool', 'create', name, '--layout', `epoch=2026-01-01T00:00:00Z,worker=${bits},sequence=4`, '--server', url]
	const { status, stderr } = spawnSync(process.env.LEAF_BIN, args, { encoding: 'utf8' })
	assert.equal(status, 0, stderr)
	return name
}

test('one package for import and require', () => {
	const cjs = createRequire(import.meta.url)('leaf-id')
	for (const name of ['LeafClient', 'LeafError', 'LeafSnowflake', 'Layout', 'WorkerLease']) {
		assert.equal(cjs[name], esm[name], name)
		assert.equal(typeof esm[name], 'function', name)
	}
})

test('many calls at once', async () => {
	const client = new LeafClient(url, { wait: 20_000 })
	const tag = client.tag('order')
	assert.equal(tag.tryNext(), undefined) // nothing is in memory yet
	const calls = Array.from({ length: 5000 }, (_, i) => (i % 50 ? tag.next() : tag.nextMany(20)))
	const ids = (await Promise.all(calls)).flat()
	assert.equal(ids.length, 4900 + 100 * 20)
	for (let id = tag.tryNext(); ids.length < 8000; id = tag.tryNext() ?? await tag.next()) {
		ids.push(id, BigInt(tag.tryNextString() ?? await client.nextString('order')))
	}
	const ranges = await client.take('order', 100)
	for (const { start, end } of ranges) {
		for (let id = start; id < end; id++) {
			ids.push(id)
		}
	}
	assert.ok(ids.every(id => typeof id === 'bigint'))
	assert.equal(new Set(ids).size, ids.length)
	const [stats] = client.stats()
	assert.ok(stats.issued >= ids.length && stats.granted >= stats.issued, JSON.stringify(stats))
	const closing = client.close()
	assert.equal(client.close(), closing)
	await closing
	assert.equal(client.stats()[0].stock, 0)
	assert.throws(() => client.tryNext('another'), { reason: 'CLOSED' })
})

test('bad options', () => {
	for (const [servers, options] of [
		['h'], ['ftp://h'], [undefined], ['http://'], ['http://h/path'], ['http://a,http://b'], ['http://a:b@h'], ['http://x@h', { token: 'y' }],
		['http://h', { token: 'y', tokenFile: 'z' }], ['http://h', { maxStock: 0 }], ['http://h', { wait: -1 }], ['http://h', { hedge: NaN }],
		['http://h', { callTimeout: '5s' }],
	]) {
		assert.throws(() => new LeafClient(servers, options), { reason: 'INVALID_ARGUMENT' }, `${servers} ${JSON.stringify(options)}`)
	}
	new LeafClient('leafs://to%2Fken@h1:8443,h2/')
})

test('a token in a file', async () => {
	const file = path.join(os.tmpdir(), `leaf-token-${process.pid}`)
	const client = new LeafClient(url, { tokenFile: file })
	const ids = client.ordered('segment', 'order')
	await assert.rejects(ids.next(), { reason: 'UNAVAILABLE', message: /ENOENT/ })
	fs.writeFileSync(file, 'a token\n')
	assert.equal(typeof await ids.next(), 'bigint')
	await client.close()
	fs.unlinkSync(file)
})

test('observed calls', async () => {
	const calls = []
	const client = new LeafClient(url, { wait: 20_000, onCall: c => calls.push(c) })
	await client.next('order')
	await assert.rejects(client.ordered('segment', 'nope').next(), { reason: 'UNKNOWN_TAG', status: 404 })
	await client.close()
	assert.deepEqual(calls.map(c => [c.procedure, c.error?.reason]).slice(0, 1), [['Advance', undefined]])
	assert.ok(calls.some(c => c.procedure === 'Take' && c.error.reason === 'UNKNOWN_TAG' && c.took > 0 && url.endsWith(c.server)))
})

test('ordered snowflake IDs', async () => {
	const client = new LeafClient(url, { wait: 20_000 })
	const ids = [...await client.ordered('snowflake').nextMany(1000), await client.ordered('snowflake').next()]
	assert.equal(new Set(ids).size, 1001)
	await assert.rejects(client.ordered('snowflake').nextMany(0), { reason: 'INVALID_ARGUMENT' })
	await client.close()
})

test('a lease for another library', async () => {
	const name = pool('node-lease', 1)
	const a = await WorkerLease.claim(url, name, { ttl: 30_000, holder: 'a' })
	const b = await WorkerLease.claim(url, name, { holder: 'b' })
	assert.notEqual(a.worker, b.worker)
	await assert.rejects(WorkerLease.claim(url, name), { reason: 'NO_FREE_WORKER_ID', status: 503 })
	await assert.rejects(WorkerLease.claim(url, 'typo'), { reason: 'UNKNOWN_POOL', status: 404 })
	await assert.rejects(WorkerLease.claim(url, name, { ttl: 1500 }), { reason: 'INVALID_ARGUMENT' })
	const used = a.now()
	assert.ok(a.isValid() && a.use(used) && b.use(b.limit - 1))
	assert.ok(!b.use(b.limit) && !a.use(a.limit) && !a.use(a.floor - 1) && !a.use(NaN))
	assert.ok(!JSON.stringify(a).includes(a.id))
	await a.release()
	assert.ok(!a.use(used) && !a.isValid())
	await a.close()
	const c = await WorkerLease.claim(url, name)
	assert.equal(c.worker, a.worker)
	assert.ok(c.floor > used)
	await Promise.all([b.close(), c.close()])
})

test('closed while it claims another lease', async () => {
	const name = pool('node-closed', 1)
	let release
	const released = new Promise(resolve => { release = resolve })
	let claims = 0
	let claimed
	const again = new Promise(resolve => { claimed = resolve })
	const proxy = http.createServer((request, response) => {
		const claim = request.method === 'POST' && request.url === '/v1/workers/leases'
		const onward = http.request(url + request.url, { method: request.method, headers: request.headers }, async answer => {
			if (claim && ++claims === 2) {
				claimed()
				await released
			}
			response.writeHead(answer.statusCode, answer.headers)
			answer.pipe(response)
		})
		request.pipe(onward)
	})
	await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve))
	const other = await WorkerLease.claim(url, name)
	const generator = await LeafSnowflake.open(`http://127.0.0.1:${proxy.address().port}`, name, { ttl: 2000 })
	const { status } = await fetch(`${url}/v1/workers/leases/${generator.lease.id}?used=none`, { method: 'DELETE' })
	assert.equal(status, 204)
	await again
	const closing = generator.close()
	await Promise.race([closing, new Promise(resolve => setTimeout(resolve, 200))])
	release()
	await closing
	await (await WorkerLease.claim(url, name)).close() // the only other worker ID
	await other.close()
	proxy.close()
})

test('the date of the machine does not matter', async t => {
	const name = pool('node-date', 1)
	const real = Date.now
	const ids = []
	for (const off of [-3600_000, 3600_000, 0]) {
		t.mock.method(Date, 'now', () => real() + off)
		const generator = await LeafSnowflake.open(url, name)
		ids.push(...await generator.nextMany(500))
		const { time, worker } = generator.layout.decode(ids.at(-1))
		assert.ok(Math.abs(time - real()) < 5000, `${time - real()} ms`)
		assert.equal(worker, generator.lease.worker)
		await generator.close()
		t.mock.restoreAll()
	}
	assert.equal(new Set(ids).size, ids.length)
})

test('idle clients end with the program', () => {
	const script = `
		const { LeafClient, LeafSnowflake } = require('leaf-id')
		const client = new LeafClient('${url}')
		Promise.all([client.next('order'), LeafSnowflake.open('${url}', '${pool('node-idle', 3)}')]).then(([, g]) => g.next()).then(String).then(console.log)`
	const begun = performance.now()
	const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 20_000, cwd: import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname) })
	assert.equal(status, 0, stderr)
	assert.match(stdout, /^\d+\n$/)
	assert.ok(performance.now() - begun < 10_000)
})

test('a blocked program does not take answers for missing', async () => {
	const client = new LeafClient(url, { wait: 300, callTimeout: 300, hedge: 0 })
	const id = client.next('order')
	await new Promise(resolve => setImmediate(resolve)) // the request is on its way
	for (const end = performance.now() + 1000; performance.now() < end;);
	assert.equal(typeof await id, 'bigint')
	await client.close()
})
