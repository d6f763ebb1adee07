// How a client chooses among servers, with servers that answer as a test says.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeafClient } from 'leaf-id'
import { withServers } from './fakes.mjs'

const answer = (start, store) => ({ status: 200, body: { ranges: [{ start: String(start), end: String(start + 1) }], store } })

test('an answered call asks no third server', async () => {
	let asked = 0
	await withServers(3, async () => { await sleep(++asked === 1 ? 400 : 0); return answer(1) }, async url => {
		const client = new LeafClient(url, { hedge: 20 })
		await client.ordered('segment', 'order').next()
		await sleep(200)
		assert.equal(asked, 2)
		await client.close()
	})
})
