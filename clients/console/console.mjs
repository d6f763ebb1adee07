import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { Leaf, until } from './server.mjs'

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8')
const browser = await chromium.launch({
	executablePath: '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--no-proxy-server', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})
const servers = []
const serve = async (...args) => { const leaf = new Leaf(...args); servers.push(leaf); return leaf.start() }
let checks = 0, requests = []

// open opens a page. What the browser logs, and each request to another origin, fails the test.
const problems = []
async function open(leaf, hash = '#/', options = {}) {
	const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, locale: 'en-US', ...options })
	const page = await context.newPage()
	page.setDefaultTimeout(30_000)
	page.on('pageerror', e => problems.push(`${hash}: ${e.message}`))
	page.on('console', m => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) problems.push(`${hash}: ${m.text()}`) })
	page.on('request', r => { if (!r.url().startsWith(leaf.url)) requests.push(r.url()) })
	await page.goto(`${leaf.url}/${hash}`)
	return page
}
const see = async (page, text) => { await page.getByText(text).filter({ visible: true }).first().waitFor(); checks++ }
const go = (page, hash) => page.evaluate(h => { location.hash = h }, hash)

async function accessible(page, what) {
	await page.evaluate(axe)
	const { violations } = await page.evaluate(() => globalThis.axe.run())
	assert.deepEqual(violations.map(v => `${v.id}: ${v.nodes[0].html}`), [], `axe-core: ${what}`)
	checks++
}

// act opens a dialog, tries each wrong input, then the right one, and waits for the answer.
async function act(page, button, wrong, right, answer) {
	await page.locator(button).click()
	const dialog = page.locator('dialog')
	await dialog.waitFor()
	for (const [values, text] of wrong) {
		for (const [name, value] of Object.entries(values)) await dialog.locator(`[name="${name}"]`).fill(value)
		await dialog.getByRole('button', { name: 'Confirm' }).click()
		await dialog.locator('[role=alert]').getByText(text).waitFor()
		checks++
	}
	for (const [name, value] of Object.entries(right)) await dialog.locator(`[name="${name}"]`).fill(value)
	await until('the preview', async () => (await dialog.locator('.preview').textContent()).length > 10)
	await accessible(page, button)
	await dialog.getByRole('button', { name: 'Confirm' }).click()
	const said = dialog.getByText(answer)
	await said.waitFor()
	const text = await said.textContent()
	await dialog.getByText('OK').click()
	await dialog.waitFor({ state: 'detached' })
	checks++
	return text
}

// The options of tags are fields by themselves: all of them for a new tag, later those that may change.
async function options(leaf) {
	const page = await open(leaf, '#/tags')
	await act(page, 'text=Create a tag', [[{ name: 'invoice', 'option.order': 'loose' }, /Failed: .*strict/]], { 'option.order': 'strict' }, 'max_id 1')
	assert.match(leaf.command('next', 'invoice', '-n', '3'), /^1\n2\n3\n/)
	await page.getByRole('link', { name: 'invoice', exact: true }).click()
	await page.locator('dl.cards div').filter({ hasText: /^Order\s*strict$/ }).waitFor()
	await page.locator('#change-step').click()
	const names = await page.locator('dialog input').evaluateAll(all => all.map(e => e.name))
	assert(names.includes('description') && !names.includes('option.order'), `fields of a change: ${names}`)
	await page.keyboard.press('Escape')
	await act(page, '#change-step', [], { description: 'Invoices' }, 'max_id 4')
	await page.locator('dl.cards div').filter({ hasText: /^Order\s*strict$/ }).waitFor()
	await page.context().close()
	const chinese = await open(leaf, '#/tag/invoice', { locale: 'zh-CN' })
	await chinese.locator('dl.cards div').filter({ hasText: /^顺序\s*strict$/ }).waitFor()
	await chinese.context().close()
	checks += 5
}

async function actions(leaf) {
	const page = await open(leaf, '#/tags')
	await page.getByText('leaf-segment-test').waitFor()
	await act(page, 'text=Create a tag', [[{ name: '', step: '10' }, 'Write a name'], [{ name: 'shop', step: 'ten' }, 'whole number'], [{ step: '0' }, 'whole number'], [{ name: 'order', step: '10' }, 'Failed']],
		{ name: 'shop', step: '100', first: '500', description: 'Orders of the shop' }, 'max_id 500')
	await act(page, 'text=Create a tag', [[{ name: 'shop', step: '10' }, 'Failed']], { name: 'shop.two', step: '10', first: '1', description: '' }, 'max_id 1')
	await page.locator('#search').fill('ORDERS of')
	await see(page, '1 to 1 of 1 tags')
	await page.locator('#search').fill('no such tag')
	await see(page, 'No tag matches.')
	await page.locator('#search').fill('')
	await page.getByRole('link', { name: 'shop', exact: true }).click()
	await see(page, 'Orders of the shop')
	await act(page, '#change-step', [[{ step: '2147483648' }, 'whole number']], { step: '200' }, 'step 200')
	await see(page, '200')
	await act(page, '#raise', [[{ by: '-1' }, 'whole number'], [{ by: '9223372036854775807' }, 'Failed']], { by: '1000' }, 'max_id 1500')
	await act(page, '#observe', [[{ max: 'x' }, 'whole number']], { max: '5000' }, 'Observed')
	const id = BigInt((await act(page, '#take', [], {}, 'Test ID:')).match(/\d+/)[0])
	assert(id > 5000n, `the test ID ${id}`)
	assert(!leaf.command('next', 'shop', '-n', '50').split('\n').includes(String(id)), 'the test ID came again')
	await act(page, '#delete', [[{ name: 'shop.two' }, 'not the name']], { name: 'shop' }, 'Deleted')
	assert(!/^shop /m.test(leaf.command('tag', 'list')), 'the tag is still there')
	await page.context().close()
}

// A name with HTML is text everywhere.
async function html(leaf) {
	const name = '<img-src=x-onerror=alert(1)>', text = '<script>document.title="broken"</script>'
	let made = name
	try { leaf.command('tag', 'create', name, '--description', text) } catch { made = 'markup'; leaf.command('tag', 'create', made, '--description', text) }
	const page = await open(leaf, '#/tags')
	await see(page, text)
	await go(page, `#/tag/${encodeURIComponent(made)}`)
	await see(page, text)
	await go(page, '#/tag/%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D1%22%3E')
	await see(page, '<img src=x onerror="document.title=1">')
	assert.notEqual(await page.title(), 'broken')
	assert.notEqual(await page.title(), '1')
	await page.context().close()
}

// Figures on a quiet server are those of /metrics.
async function figures(leaf, hash) {
	const page = await open(leaf, hash)
	await page.locator('[data-metric="leaf_tag_ids_issued_total"]').first().waitFor()
	await until('equal figures', async () => {
		const [shown, real] = await Promise.all([page.$$eval('[data-metric]', all => all.map(e => ({ ...e.dataset }))), leaf.figures()])
		const differ = shown.filter(({ metric, labels, value }) => {
			const key = Object.keys(real).find(k => k === metric || k.startsWith(`${metric}{`) && k.includes(`"${labels}"`))
			return key && isFinite(real[key]) && Math.abs(real[key] - Number(value)) > 1e-9 * Math.abs(real[key]) && !/stock_seconds/.test(metric) // demand decays
		})
		checks += shown.length
		return shown.length > 5 && differ.length === 0
	})
	await page.context().close()
}

async function decoding(leaf) {
	const [id] = leaf.command('next', 'x', '--scheme', 'snowflake').trim().split('\n')
	const page = await open(leaf, '#/decode')
	await page.locator('#ids').fill(`${id}\nnonsense\n12`)
	await page.getByRole('button', { name: 'Decode' }).click()
	await see(page, 'nonsense is not an ID')
	await see(page, 'it may be an ID of a counter')
	assert.match(await page.locator('#decoded section').first().textContent(), /ago|Only in this layout/)
	await page.locator('#layout').selectOption('js53')
	await page.locator('#ids').fill('7250361098241')
	await page.getByRole('button', { name: 'Decode' }).click()
	await see(page, 'You chose it.')
	await page.locator('#ids').fill(id)
	await page.getByRole('button', { name: 'Decode' }).click()
	await see(page, 'Failed')
	await page.context().close()
}

async function killed(leaf) {
	const page = await open(leaf)
	await see(page, 'Leaf is well')
	await leaf.kill()
	await see(page, 'No connection to the server')
	await leaf.start()
	await see(page, 'Leaf is well')
	await page.context().close()
}

async function workers(leaf) {
	const page = await open(leaf, '#/workers')
	await see(page, 'this server')
	await see(page, 'Map of the worker IDs: 1 of 1,024 held')
	await act(page, '#create-pool', [[{ name: '' }, 'Write a name'], [{ name: 'billing', epoch: 'yesterday' }, 'Write a time'], [{ epoch: '2026-01-01T00:00:00Z', worker: '0' }, 'whole number'], [{ worker: '22', sequence: '22' }, 'Failed'], [{ worker: '10', sequence: '12', ttl: '0' }, 'whole number']],
		{ name: 'billing', ttl: '600' }, 'The pool billing is there')
	assert.match(leaf.command('worker', 'pool', 'list'), /billing/)
	await page.getByRole('link', { name: 'pool billing' }).click()
	await see(page, 'Map of the worker IDs: 0 of 1,024 held')
	await go(page, '#/workers/none')
	await see(page, 'Failed')
	await page.context().close()
}

// A second server on the same database: it differs, it loses its store, it dies, and its worker ID
// is freed.
async function cluster(leaf) {
	const other = await serve('other', ['--store', `sqlite:${leaf.folder}/data/leaf.db`], { LEAF_SNOWFLAKE_CLOCK_TOLERANCE: '4s' })
	const page = await open(leaf, '#/cluster')
	await page.getByRole('row').nth(2).waitFor()
	await see(page, /differs in: .*snowflake/)
	await see(page, 'well')
	await other.kill()
	await go(page, '#/workers')
	const row = page.getByRole('row').filter({ hasText: `:${other.port} ` })
	await act(page, `tr:has-text(":${other.port} ") button`, [], {}, 'Freed')
	await row.getByText('free', { exact: true }).waitFor()
	assert.match(leaf.command('worker', 'list'), new RegExp(` no .*:${other.port} `))
	await go(page, '#/cluster')
	await see(page, 'stopped')
	await page.context().close()
}

async function tokens() {
	const folder = process.env.LEAF_TMP, make = (...args) => execFileSync(process.env.LEAF_BIN, ['token', 'new', ...args], { encoding: 'utf8' })
	writeFileSync(`${folder}/tokens.yaml`, `tokens:\n${make('--name', 'ops', '--right', 'admin', '--take', '*', '--secret-file', `${folder}/ops`)}${make('--name', 'look', '--right', 'read', '--secret-file', `${folder}/look`)}`, { mode: 0o600 })
	writeFileSync(`${folder}/leaf.yaml`, `tokens_file: ${folder}/tokens.yaml\n`)
	const leaf = await serve('guarded', ['--config', `${folder}/leaf.yaml`])
	const page = await open(leaf, '#/tags')
	await see(page, 'holders of a token')
	assert(!/leaf-segment-test/.test(await page.content()), 'a tag without a token')
	await accessible(page, 'sign in')
	const signIn = async text => { await page.locator('#token').fill(text); await page.getByRole('button', { name: 'Sign in' }).click() }
	await signIn('leaf_wrong')
	await see(page, 'does not accept this token')
	await signIn(readFileSync(`${folder}/look`, 'utf8').trim())
	await see(page, 'Read-only')
	await see(page, 'leaf-segment-test')
	assert(await page.getByRole('button', { name: 'Create a tag' }).isDisabled(), 'a reader may create')
	const kept = await page.evaluate(() => JSON.stringify([location.href, Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]))
	assert(!kept.includes('leaf_'), `the page keeps the token: ${kept}`)
	await page.getByRole('button', { name: 'Sign out' }).click()
	await see(page, 'holders of a token')
	await signIn(readFileSync(`${folder}/ops`, 'utf8').trim())
	await see(page, 'leaf-segment-test')
	await act(page, 'text=Create a tag', [], { name: 'guarded', step: '5', first: '1', description: '' }, 'max_id 1')
	await page.context().close()
}

// Each page: no violation of accessibility, in both colour schemes, on a phone, and in Chinese.
async function looks(leaf) {
	for (const [name, options, query] of [['light', { colorScheme: 'light' }, ''], ['dark', { colorScheme: 'dark' }, ''], ['phone', { viewport: { width: 390, height: 844 }, colorScheme: 'light' }, ''], ['zh', { locale: 'zh-CN' }, '']]) {
		const page = await open(leaf, `${query}#/`, options)
		for (const view of ['', 'tags', 'tag/order', 'workers', 'decode', 'cluster']) {
			await go(page, `#/${view}`)
			await page.locator('h1').waitFor()
			if (view === 'decode') {
				await page.locator('#ids').fill(leaf.command('next', 'x', '--scheme', 'snowflake').trim())
				await page.locator('main button.primary').click()
				await page.locator('#decoded svg').waitFor()
			}
			await page.locator({ '': 'dl.cards', tags: 'tbody a', 'tag/order': '.chart svg', workers: 'tbody td', decode: '#decoded', cluster: 'tbody td' }[view]).first().waitFor()
			await accessible(page, `${name} ${view}`)
			const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
			assert(wide <= 0, `${name} ${view} is ${wide} pixels too wide`)
			if (process.env.LEAF_SCREENSHOTS) await page.screenshot({ path: `${process.env.LEAF_SCREENSHOTS}/console-${view.split('/')[0] || 'overview'}-${name}.png` })
		}
		assert.equal(await page.evaluate(() => document.documentElement.lang), name === 'zh' ? 'zh-CN' : 'en')
		await page.context().close()
	}
}

// The keyboard alone reaches and closes a dialog; the focus survives new figures.
async function keyboard(leaf) {
	const page = await open(leaf, '#/tag/order')
	await page.locator('#raise').focus()
	await new Promise(r => setTimeout(r, 2500)) // two samples come
	assert.equal(await page.evaluate(() => document.activeElement.id), 'raise')
	await page.keyboard.press('Enter')
	await page.locator('dialog').waitFor()
	await page.keyboard.press('Escape')
	await page.locator('dialog').waitFor({ state: 'detached' })
	checks++
	await page.context().close()
}

// A hidden page has no stream; a visible one has figures again. Rare samples are enough for a rate.
async function hidden(leaf) {
	const page = await open(leaf)
	await see(page, 'Leaf is well')
	const show = visible => page.evaluate(hide => {
		Object.defineProperty(document, 'hidden', { value: hide, configurable: true })
		document.dispatchEvent(new Event('visibilitychange'))
	}, !visible)
	const ended = page.waitForEvent('requestfailed', r => r.url().includes('/console/events'))
	await show(false)
	await ended
	const again = page.waitForRequest(r => r.url().includes('/console/events'))
	await show(true)
	await again
	await see(page, 'Leaf is well')
	assert.deepEqual(await page.evaluate(async () => {
		const { lately } = await import('/console/chart.js'), at = time => ({ time }), now = at(20_000)
		return [[at(0), now], [at(0), at(16_000), at(19_000), now], [now]].map(list => lately(list, now, 5000).time)
	}), [0, 16_000, 20_000])
	checks += 2
	await page.context().close()
}

// The first picture comes soon and is small.
async function light(leaf) {
	const page = await open(leaf, '#/')
	await see(page, 'Leaf is well')
	const { paint, bytes } = await page.evaluate(() => ({
		paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
		bytes: performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(e => !/events/.test(e.name)).reduce((sum, e) => sum + e.transferSize, 0),
	}))
	assert(bytes < 200_000, `${bytes} bytes`)
	await page.context().close()
	return `first paint ${Math.round(paint)} ms, ${bytes} bytes`
}

let failed = 0
try {
	const leaf = await serve('plain')
	leaf.command('tag', 'create', 'order', '--step', '1000')
	leaf.command('next', 'order', '-n', '900')
	for (const part of [actions, options, html, workers, cluster, decoding, keyboard, hidden, looks]) await part(leaf)
	await figures(leaf, '#/')
	await figures(leaf, '#/tag/order')
	const cost = await light(leaf)
	await tokens()
	await killed(leaf)
	assert.deepEqual(problems.filter(p => !/ERR_|Failed to fetch/.test(p)), [], 'what the browser complained of')
	assert.deepEqual(requests, [], 'requests to other hosts')
	console.log(`ok: ${checks} checks, ${cost}`)
} catch (e) {
	failed = 1
	console.log(e.stack)
	for (const context of browser.contexts()) for (const page of context.pages()) console.log((await page.locator('body').innerText().catch(() => '')).slice(0, 2000))
} finally {
	await browser.close()
	for (const leaf of servers) leaf.process.kill('SIGKILL')
}
process.exit(failed)
