// The examples, with a database that a test stands for.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'node:test'
import { withServers } from './fakes.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))

// A client of Prisma that runs the extension's queries, and at the end those of rows with an ID and without one.
const PRISMA = `
exports.PrismaClient = class {
	$extends({ query: { order } }) {
		const rows = []
		const query = async args => { rows.push(...[args.data ?? args.create].flat()) }
		const run = kind => args => order[kind]({ args, query })
		return {
			$executeRaw: async () => {},
			order: { create: run('create'), createMany: run('createMany'), findMany: async () => rows.length },
			async $disconnect() {
				await run('create')({ data: { item: 'own', id: 7n } })
				await run('create')({ data: { item: 'undefined', id: undefined } })
				await run('createMany')({ data: [{ item: 'null', id: null }] })
				await run('upsert')({ create: { item: 'upsert', id: undefined } })
				rows.forEach(row => console.log(row.item, String(row.id)))
			},
		}
	}
}
`

test('prisma', async t => {
	const folder = fs.mkdtempSync(`${here}prisma-`) // below the client, which it imports
	t.after(() => fs.rmSync(folder, { recursive: true }))
	fs.copyFileSync(`${here}../examples/prisma.mjs`, `${folder}/prisma.mjs`)
	const modules = { '@prisma/client': PRISMA, '@prisma/adapter-libsql': 'exports.PrismaLibSql = class {}' }
	for (const [name, text] of Object.entries(modules)) {
		fs.mkdirSync(`${folder}/node_modules/${name}`, { recursive: true })
		fs.writeFileSync(`${folder}/node_modules/${name}/index.js`, text)
	}
	const grant = { status: 200, body: { range: { start: '101', end: '201' }, step: '100', store: 'mine' } }
	await withServers(1, () => grant, async url => {
		const { stdout } = await promisify(execFile)(process.execPath, [`${folder}/prisma.mjs`], { env: { ...process.env, LEAF_URL: url }, timeout: 20_000 })
		assert.deepEqual(stdout.trim().split('\n'), ['3', 'tea 101', 'cups 102', 'sugar 103', 'own 7', 'undefined 104', 'null 105', 'upsert 106'])
	})
})
