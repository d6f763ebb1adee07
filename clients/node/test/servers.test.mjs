// How a client chooses among servers, with servers that answer as a test says.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeafClient, WorkerLease } from 'leaf-id'
import { withServers } from './fakes.mjs'

const answer = (start, store) => ({ status: 200, body: { ranges: [{ start: String(start), end: String(start + 1) }], store } })

test('an answered call asks no third server', async () => {
	let asked = 0
	await withServers(3, () => (++asked === 1 ? new Promise(() => {}) : answer(1)), async url => {
		const client = new LeafClient(url, { hedge: 1000 })
		await client.ordered('segment', 'order').next()
		await sleep(200)
		assert.equal(asked, 2)
		await client.close()
	})
})

const unknown = { status: 404, body: { reason: 'UNKNOWN_TAG', detail: 'the tag is unknown' } }
const away = { status: 503, body: { reason: 'STORE_UNAVAILABLE', detail: 'the store is away' } }
const frozen = { frozen: true }
const plain = answer(1)

/** Two servers, whose answers a test may change; asked has those that were asked. */
async function withTwo(use) {
	const answers = [plain, plain]
	const asked = []
	const handle = (request, i) => {
		asked.push(i)
		return answers[i].frozen ? new Promise(() => {}) : answers[i]
	}
	await withServers(2, handle, url => use(url, answers, asked))
}

// A tag that one server does not know may be another one's, unless that server has the known store or all say
// so. Only a server that knows the tag is asked first from then on.
for (const [name, known, first, second, want, active] of [
	['the other has it', 'of none', unknown, answer(1, 'mine'), undefined, 1],
	['nobody has it', 'of none', unknown, unknown, 'UNKNOWN_TAG', 0],
	['the other is away', 'of none', unknown, away, 'STORE_UNAVAILABLE', 0],
	['away, but the first knows', 'of the first', unknown, away, 'UNKNOWN_TAG', 0],
	['frozen, but the first knows', 'of the first', unknown, frozen, 'UNKNOWN_TAG', 0],
	['away first', 'of none', away, unknown, 'STORE_UNAVAILABLE', 0],
	['the other has another', 'of none', unknown, answer(1, 'other'), 'UNKNOWN_TAG', 0],
	['the first has another', 'of none', answer(1, 'other'), unknown, 'UNKNOWN_TAG', 0],
	['no tag, and no known store', undefined, unknown, answer(1, 'mine'), undefined, 1],
]) {
	test(`a tag of another server: ${name}`, () => withTwo(async (url, answers, asked) => {
		const client = new LeafClient(url, { hedge: 0 })
		const ids = client.ordered('segment', 'order')
		const answering = (...both) => { answers.splice(0, 2, ...both); asked.length = 0 }
		answering(answer(1, known && 'mine'), away)
		await ids.next() // so the first server is active
		if (known === 'of none') { // the latest answers of both are of another store than the known one
			answering(answer(1, 'other'), answer(1, 'other'))
			await assert.rejects(ids.next(), { reason: 'FOREIGN_STORE' })
		}
		await sleep(250) // the failures are forgotten
		answering(first, second)
		const begun = performance.now()
		await (want ? assert.rejects(ids.next(), { reason: want }) : ids.next())
		assert.ok(performance.now() - begun < 4000)
		assert.deepEqual(asked, [0, 1])
		await sleep(250)
		answering(plain, plain)
		await ids.next()
		assert.deepEqual(asked, [active])
		await client.close()
	}))
}

// A server of another store cannot end a tag while the one that has it is away.
test('a stock and a server of another store', () => withTwo(async (url, answers) => {
	let next = 1
	const grant = () => ({ status: 200, body: { range: { start: String(next), end: String(++next) }, step: '1', store: 'mine' } })
	let gone = false
	answers[0] = unknown
	Object.defineProperty(answers, 1, { get: () => (gone ? away : grant()) })
	const client = new LeafClient(url, { wait: 2000, maxStock: 10 })
	await client.next('order')
	gone = true
	await assert.rejects(async () => { for (;;) { await client.next('order') } }, { reason: 'EXHAUSTED' })
	gone = false
	const reasonOf = () => client.next('order').then(() => undefined, err => err.reason)
	for (let reason = await reasonOf(), end = performance.now() + 5000; reason; reason = await reasonOf()) {
		assert.equal(reason, 'EXHAUSTED')
		assert.ok(performance.now() < end)
	}
	await client.close()
}))

// A proxy's page says nothing about the servers behind it, whatever its status is.
test('pages of proxies', async () => {
	for (const status of [302, 404, 405, 413, 429]) {
		for (const body of ['<html><body>not here</body></html>', '', '[1]', { error: 'x' }, { code: 'not_found' }, { reason: 5 }, { reason: 'NotFound' }]) {
			const page = { status, body }
			await withTwo(async (url, answers, asked) => {
				const client = new LeafClient(url, { hedge: 0 })
				const ids = client.ordered('segment', 'order')
				answers[1] = away
				await ids.next() // so the first server is active
				answers.splice(0, 2, page, plain)
				asked.length = 0
				await ids.next()
				await ids.next()
				assert.deepEqual(asked, [0, 1, 1], JSON.stringify(page))
				answers[1] = page
				await assert.rejects(ids.next(), { reason: 'UNAVAILABLE', status })
				await client.close()
			})
		}
	}
})

// A callback that fails loses no answer, and does not end the program.
test('an observer that fails', () => withTwo(async (url, answers) => {
	const warnings = []
	const listener = warning => warnings.push(`${warning.name}: ${warning.message}`)
	process.on('warning', listener)
	for (const onCall of [() => { throw new Error('of the observer') }, () => { throw undefined }, async () => { throw new Error('of the observer') }]) {
		const client = new LeafClient(url, { onCall, hedge: 0 })
		assert.equal(await client.ordered('segment', 'order').next(), 1n)
		answers.fill(away)
		await assert.rejects(client.ordered('segment', 'order').next(), { reason: 'STORE_UNAVAILABLE' })
		answers.fill(plain)
		await client.close()
	}
	await sleep(10)
	process.off('warning', listener)
	const told = warnings.filter(text => text.startsWith('LeafWarning: onCall failed: '))
	assert.equal(told.length, 9, warnings.join())
	assert.match(told[0], /of the observer/)
}))

test('an onLost that fails', async () => {
	const layout = { epoch: 0, tick_ms: 1, time_bits: 41, worker_bits: 5, sequence_bits: 7 }
	const lease = { lease: 'secret', pool: 'p', worker: 1, layout, floor: 0, limit: 60_000, now: 0, renew_at: 1 }
	const lost = { status: 409, body: { reason: 'LEASE_LOST', detail: 'the lease is over' } }
	const warned = new Promise(resolve => process.once('warning', resolve))
	await withServers(1, ({ url }) => (url.endsWith('/leases') ? { status: 200, body: lease } : lost), async url => {
		const held = await WorkerLease.claim(url, 'p', { onLost: err => { throw err } })
		assert.match((await warned).message, /^onLost failed: [^]*the lease is over/)
		await held.close()
	})
})
