// The scenarios of all clients, against real servers: LEAF_SCENARIOS names the file, LEAF_LAB the program that
// starts and harms the servers.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LeafClient, LeafError, LeafSnowflake } from 'leaf-id'

const { scenarios, options: defaults } = JSON.parse(fs.readFileSync(process.env.LEAF_SCENARIOS))
const lab = spawn(process.env.LEAF_LAB, { stdio: ['pipe', 'pipe', 'inherit'] })
const url = (await createInterface({ input: lab.stdout })[Symbol.asyncIterator]().next()).value
after(() => lab.stdin.end())

async function post(path) {
	const answer = await fetch(url + path, { method: 'POST' })
	assert.ok(answer.ok, `${path}: ${answer.status}: ${answer.ok || await answer.text()}`)
	return answer
}

/** One scenario: its clients by name, and all IDs that they gave. */
class Run {
	seen = new Set()
	latest = []
	programs = new Map()

	constructor(scenario, world) {
		this.scenario = scenario
		this.world = world
	}

	options() {
		const { options, token, trust } = this.scenario
		const o = { ...defaults, ...options }
		const all = {
			outageBudget: o.outage_budget, maxStock: o.max_stock, wait: o.wait, callTimeout: o.call_timeout, hedge: o.hedge, ttl: o.ttl,
			startWait: 5000, token: { all: this.world.token, weak: this.world.weak_token }[token],
			tls: this.world.cert_file && trust !== 'none' ? { ca: fs.readFileSync(this.world.cert_file) } : undefined,
		}
		return Object.fromEntries(Object.entries(all).filter(([, v]) => v !== undefined))
	}

	async program(name) {
		if (!this.programs.has(name)) {
			this.programs.set(name, await this.open())
		}
		return this.programs.get(name)
	}

	async open() {
		if (this.scenario.kind === 'lease') {
			const generator = await LeafSnowflake.open(this.world.url, 'order', this.options())
			return { ids: generator, close: () => generator.close() }
		}
		const client = new LeafClient(this.world.url, this.options())
		const ids = this.scenario.kind === 'ordered' ? client.ordered('segment', 'order') : client.tag('order')
		return { client, ids, close: () => client.close(), stats: () => client.stats().find(s => s.tag === 'order') }
	}

	/** Takes in IDs that a client gave, of a period if the tag has some. */
	add(ids, period = '') {
		for (const id of ids) {
			assert.ok(!this.seen.has(`${period} ${id}`), `${id} came twice`)
			this.seen.add(`${period} ${id}`)
		}
		this.latest = ids
	}

	/** Makes one call for numbers of a period, or of the present one, which is a year. */
	async issue(name, n, period) {
		const { client } = await this.program(name)
		const got = await client.issue('order', { n, period })
		const present = this.scenario.world.includes('period=year') ? `${new Date().getUTCFullYear()}-01-01` : ''
		assert.equal(got.period, period ?? present)
		const ids = got.ranges.flatMap(({ start, end }) => Array.from({ length: Number(end - start) }, (_, i) => start + BigInt(i)))
		assert.equal(ids.length, n)
		this.add(ids, got.period)
	}

	async take(name, n, period) {
		if (this.scenario.kind === 'issue') {
			return this.issue(name, n, period)
		}
		const { ids } = await this.program(name)
		const got = []
		for (let i = 0; i < n; i++) {
			got.push(i % 2 ? await ids.next() : BigInt(await ids.nextString()))
		}
		this.add(got)
	}

	async batch(name, n, period) {
		if (this.scenario.kind === 'issue') {
			return this.issue(name, n, period)
		}
		const { ids } = await this.program(name)
		const got = await ids.nextMany(n)
		assert.equal(got.length, n)
		this.add(got)
	}

	async reason(call) {
		try {
			await call()
		} catch (err) {
			assert.ok(err instanceof LeafError, err)
			return err.reason
		}
		return undefined
	}

	async poll(what, ms, check) {
		for (const end = performance.now() + ms; !await check();) {
			assert.ok(performance.now() < end, what)
			await sleep(5)
		}
	}

	async fails(name, reason, within = Infinity, period = undefined) {
		const begun = performance.now()
		assert.equal(await this.reason(() => this.take(name, 1, period)), reason)
		assert.ok(performance.now() - begun < within, `took ${performance.now() - begun} ms`)
	}

	async recover(name, ms, allowed = ['EXHAUSTED', 'NO_WORKER_ID', undefined]) {
		await this.poll('calls still fail', ms, async () => {
			const reason = await this.reason(() => this.take(name, 1))
			assert.ok(allowed.includes(reason), reason)
			return reason === undefined
		})
	}

	async step(step) {
		const name = step.by ?? 'a'
		const begun = performance.now()
		if ('fails' in step) {
			await ('batch' in step ? assert.rejects(this.batch(name, step.batch), { reason: step.fails }) : this.fails(name, step.fails, step.within, step.period))
			return
		}
		const does = {
			take: n => this.take(name, n),
			batch: n => this.batch(name, n, step.period),
			is: async n => { await this.take(name, 1, step.period); assert.equal(this.latest[0], BigInt(n)) },
			text: async text => {
				const { client } = await this.program(name)
				assert.deepEqual(await client.issue('order', { n: text.split(' ').length, form: true }), { ranges: [], texts: text.split(' '), period: '' })
			},
			drain: async reason => {
				let end
				while ((end = await this.reason(() => this.take(name, 1))) === undefined) {
					await sleep(this.scenario.kind === 'lease' ? 1 : 0)
				}
				assert.equal(end, reason)
			},
			recover: ms => this.recover(name, ms),
			stock: async n => { const { stats } = await this.program(name); await this.poll(`no stock of ${n}`, 20_000, () => stats().stock >= n) },
			stock_at_most: async n => { const { stock } = (await this.program(name)).stats(); assert.ok(stock <= n, `stock ${stock}`) },
			granted_at_most: async n => { const { granted } = (await this.program(name)).stats(); assert.ok(granted <= n, `granted ${granted}`) },
			harm: what => post(`/worlds/${this.world.world}/${what}`),
			calls: async n => {
				const counts = await (await fetch(`${url}/worlds/${this.world.world}/calls`)).json()
				assert.ok(counts.reduce((a, b) => a + b) <= n, `${counts} calls`)
			},
			increasing: () => assert.ok(this.latest.every((id, i) => i === 0 || id > this.latest[i - 1])),
			pass: ms => sleep(ms),
			freeze: ms => post(`/freezes?pid=${process.pid}&ms=${ms}`),
			close: async which => (await this.program(which)).close(),
		}
		const kind = Object.keys(step).find(k => k in does)
		assert.ok(kind, `unknown step ${JSON.stringify(step)}`)
		await does[kind](step[kind])
		assert.ok(performance.now() - begun < (step.within ?? Infinity), `took ${performance.now() - begun} ms`)
	}
}

for (const scenario of scenarios.filter(s => s.only?.includes('node') ?? true)) {
	test(scenario.name, { timeout: 120_000 }, async () => {
		const world = await (await post(`/worlds?${scenario.world}`)).json()
		const run = new Run(scenario, world)
		try {
			for (const [i, step] of scenario.steps.entries()) {
				await run.step(step).catch(err => { throw new Error(`step ${i + 1}, ${JSON.stringify(step)}: ${err.message}`, { cause: err }) })
			}
		} finally {
			await Promise.all([...run.programs.values()].map(p => p.close()))
			await fetch(`${url}/worlds/${world.world}`, { method: 'DELETE' })
		}
	})
}
