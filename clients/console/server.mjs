// Starts the servers that the test looks at.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const environment = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('LEAF_')))

// A Leaf is a server on a data folder; it can be killed and started again on its port.
export class Leaf {
	constructor(name, options = [], more = {}) {
		this.folder = `${process.env.LEAF_TMP}/${name}`
		mkdirSync(this.folder)
		this.options = options
		this.environment = { ...environment, LEAF_LOG_FORMAT: 'text', ...more }
		this.port = 0
	}

	async start() {
		const log = `${this.folder}/log`
		writeFileSync(log, '')
		this.process = spawn('sh', ['-c', `exec "$0" "$@" 2>>${log}`, process.env.LEAF_BIN, 'serve', '--listen', `127.0.0.1:${this.port}`, '--resp', 'off', '--data', 'data', ...this.options],
			{ env: this.environment, stdio: 'ignore', cwd: this.folder })
		await until(`${this.folder} serves`, async () => {
			const found = /msg=serving.* url=(\S+)/.exec(readFileSync(log, 'utf8'))
			if (!found) return false
			this.url = found[1]
			this.port = new URL(this.url).port
			return (await fetch(`${this.url}/readyz`).catch(() => ({}))).ok
		})
		return this
	}

	async kill() {
		const ended = new Promise(resolve => this.process.once('exit', resolve))
		this.process.kill('SIGKILL')
		await ended
	}

	command(...args) { return execFileSync(process.env.LEAF_BIN, [...args, '--server', this.url], { env: environment, encoding: 'utf8' }) }

	async figures() {
		const text = await (await fetch(`${this.url}/metrics`, { headers: this.token ? { Authorization: `Bearer ${this.token}` } : {} })).text()
		return Object.fromEntries(text.split('\n').filter(line => line && line[0] !== '#').map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
	}
}

export async function until(what, done, limit = 60_000) {
	for (const end = Date.now() + limit; ; await new Promise(r => setTimeout(r, 100))) {
		const result = await done()
		if (result) return result
		if (Date.now() > end) throw new Error(`not within ${limit / 1000} s: ${what}`)
	}
}
