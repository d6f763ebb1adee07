// The vectors that the server and all clients run: LEAF_VECTORS names their folder.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Layout, LeafClient, LeafError, WorkerLease } from 'leaf-id'
import { withServers } from './fakes.mjs'

const vectors = name => JSON.parse(fs.readFileSync(`${process.env.LEAF_VECTORS}/${name}.json`))
const invalid = { name: 'LeafError', reason: 'INVALID_ARGUMENT' }
const layoutOf = l => new Layout(l.epoch, l.tick_ms, l.time_bits, l.worker_bits, l.sequence_bits)

test('layouts', () => {
	const { layouts, invalid: bad } = vectors('layouts')
	for (const l of layouts) {
		const layout = layoutOf(l)
		for (const { id, tick, worker, sequence, time } of l.ids) {
			assert.equal(layout.compose(tick, worker, sequence), BigInt(id), l.name)
			assert.deepEqual(layout.decode(id), { tick, worker, sequence, time }, l.name)
		}
		for (const { tick, worker, sequence } of l.refused) {
			assert.throws(() => layout.compose(tick, worker, sequence), invalid, l.name)
		}
		for (const id of l.undecodable) {
			assert.throws(() => layout.decode(id), invalid, l.name)
		}
	}
	for (const l of bad) {
		assert.throws(() => layoutOf(l), invalid, JSON.stringify(l))
	}
})

test('a server from before periods and forms', async () => {
	await withServers(2, () => ({ status: 200, body: { ranges: [{ start: '1', end: '2' }] } }), async url => {
		const client = new LeafClient(url)
		await assert.rejects(client.issue('order', { period: '2026-11-23' }), { reason: 'UNSUPPORTED' })
		await assert.rejects(client.issue('order', { form: true }), { reason: 'UNSUPPORTED' })
		assert.deepEqual(await client.issue('order'), { ranges: [{ start: 1n, end: 2n }], texts: [], period: '' })
		await client.close()
	})
})

test('leases', async () => {
	for (const v of vectors('leases').leases) {
		const released = []
		const handle = ({ method, url }) => {
			if (method === 'DELETE') {
				released.push(url.split('used=')[1])
			}
			const { layout, worker, floor, limit } = v
			return { status: 200, body: { lease: 'secret', pool: 'p', worker, layout, floor, limit, now: floor, renew_at: floor + 600_000 } }
		}
		await withServers(1, handle, async url => {
			const lease = await WorkerLease.claim(url, 'p')
			const covers = id => {
				const { worker, time } = lease.layout.decode(id)
				return worker === lease.worker && lease.useSpan(time, time + lease.layout.tickMs - 1)
			}
			assert.deepEqual(v.outside.filter(covers), [], v.name)
			assert.deepEqual(v.inside.filter(covers), v.inside, v.name)
			lease.seal()
			assert.deepEqual(v.inside.filter(covers), [], v.name)
			await lease.close()
			await lease.close()
			assert.deepEqual(released, [v.used_after_last === undefined ? 'none' : String(v.used_after_last)], v.name)
		})
	}
})

test('renewals', async () => {
	for (const v of vectors('leases').renewals) {
		const answers = [v.limit, ...v.answers]
		const layout = { epoch: 0, tick_ms: 1, time_bits: 41, worker_bits: 5, sequence_bits: 7 }
		const limits = []
		let lease
		const handle = () => {
			if (lease) {
				limits.push(lease.limit) // after the answer before
			}
			const limit = answers.shift() ?? 0
			return { status: 200, body: { lease: 'secret', pool: 'p', worker: 1, layout, floor: 0, limit, now: 0, renew_at: 1 } }
		}
		await withServers(1, handle, async url => {
			lease = await WorkerLease.claim(url, 'p')
			while (limits.length <= v.limits.length) {
				await sleep(1)
			}
			await lease.close()
		})
		assert.deepEqual(limits.slice(0, v.limits.length + 1), [v.limit, ...v.limits], v.name)
	}
})

test('errors', async () => {
	const { errors, strange } = vectors('errors')
	for (const e of errors) {
		await refused(e.http, { reason: e.reason, status: e.http.status, message: /what happened/ }, claim)
		await refused(e.connect, { reason: e.reason, status: e.connect.status, message: /what happened/ }, take)
	}
	for (const e of strange) {
		for (const call of [claim, take]) {
			await refused(e, { reason: e.reason }, call)
		}
	}
})

const claim = url => WorkerLease.claim(url, 'p')

async function take(url) {
	const client = new LeafClient(url, { hedge: 0 })
	try {
		await client.ordered('segment', 'order').next()
	} finally {
		await client.close()
	}
}

/** Two servers give this answer: the call must fail so, after it has asked both or one. Of an unknown tag it asks both. */
async function refused({ status, body, another_server: another }, want, call) {
	another ||= want.reason === 'UNKNOWN_TAG'
	let asked = 0
	await withServers(2, () => { asked++; return { status, body } }, url => assert.rejects(call(url), want))
	assert.equal(asked, another ? 2 : 1, JSON.stringify(body))
}

test('errors are LeafError', () => assert.throws(() => new LeafClient('ftp://h'), LeafError))
