// Takes IDs apart.
import { admin, call } from './api.js'
import { render, watch } from './app.js'
import { duration, el, moment } from './dom.js'
import { LARGEST, whole } from './forms.js'
import { t } from './i18n.js'

const MOST = 100
const BUILT_IN = ['leaf', 'js53', 'uid', 'uid-baidu']

export function decode() {
	watch([])
	const text = el('textarea', { id: 'ids', spellcheck: 'false' }), choice = el('select', { id: 'layout' }, el('option', { value: '' }, t('guess')))
	const out = el('div', { id: 'decoded', 'aria-live': 'polite' })
	let names = BUILT_IN
	const offer = () => choice.append(...names.map(n => el('option', { value: n }, n)))
	admin('Status', { skipTags: true }).then(s => { names = [...new Set([...(s.lease?.layouts ?? []).map(l => l.name), ...BUILT_IN])] }, () => {}).finally(offer)
	const run = async e => {
		e.preventDefault()
		const ids = text.value.split(/[\s,]+/).filter(Boolean)
		if (ids.length > MOST) return out.replaceChildren(el('p', { class: 'error', role: 'alert' }, t('tooMany', { n: MOST })))
		out.replaceChildren(...await Promise.all(ids.map(id => one(id, choice.value, names))))
	}
	render(el('h1', {}, t('decode')))
	document.getElementById('main').append(el('form', { submit: run }, el('label', {}, el('span', {}, t('ids')), text), el('div', { class: 'row' }, el('label', {}, el('span', {}, t('layout')), choice), el('button', { class: 'primary' }, t('decodeButton')))), out)
}

async function one(id, layout, names) {
	const title = el('h2', { class: 'mono' }, id)
	try { whole(id, 0, LARGEST) } catch { return el('section', {}, title, el('p', { class: 'error', role: 'alert' }, t('noID', { id }))) }
	try {
		if (layout) return el('section', {}, title, parts(id, await call('LeafService', 'Decode', { id, layout }), t('whyNamed')))
		const all = (await Promise.all(names.map(n => call('LeafService', 'Decode', { id, layout: n }).catch(e => { if (e.status !== 400) throw e })))).filter(Boolean)
		const [d, why] = likely(all)
		return el('section', {}, title, parts(id, d, why))
	} catch (e) { return el('section', {}, title, el('p', { class: 'error', role: 'alert' }, t('failed', { text: e.message }))) }
}

// likely chooses the layout in which an ID is the youngest that is not from the future, and says
// why. Layouts with equal bits and epoch are one.
function likely(all) {
	const age = d => (Date.now() - new Date(d.time)) / 1000
	const past = all.filter(d => age(d) > -120 && BigInt(d.tick ?? 0) > 0n).sort((a, b) => age(a) - age(b))
	if (!past.length) return [all[0], t('whyNone')]
	const others = [...new Set(all.filter(d => d.time !== past[0].time).map(d => d.layout))]
	return [past[0], past.length === 1 ? t('whyOnly') : t('whyRecent', { age: duration(age(past[0])), others: others.join(', ') || '–' })]
}

function parts(id, d, why) {
	if (!d) return el('p', { class: 'error' }, why)
	const row = (title, value) => [el('dt', {}, title), el('dd', {}, value)]
	return [el('dl', { class: 'cards' }, [[t('local'), moment(d.time)], [t('utc'), d.time], [t('worker'), d.worker ?? '0'], [t('sequence'), d.sequence ?? '0'], [t('layout'), d.layout]].map(([k, v]) => el('div', { class: 'card' }, row(k, v)))),
		ruler(id, d), el('p', { class: 'soft' }, `${t('why')}: ${why}`)]
}

// ruler shows the 64 bits, coloured by field.
function ruler(id, d) {
	const bits = BigInt(id).toString(2).padStart(64, '0')
	const s = d.sequenceBits ?? 0, w = d.workerBits ?? 0
	const field = i => (63 - i < s ? 2 : 63 - i < s + w ? 1 : 63 - i < s + w + (d.timeBits ?? 0) ? 0 : 'x')
	return el('div', { class: 'chart' }, el('svg', { viewBox: '0 0 720 46', role: 'img', 'aria-label': `${t('ruler')}: ${d.timeBits} / ${w} / ${s}` },
		[...bits].map((b, i) => [el('rect', { x: i * 11.25, y: 2, width: 10.5, height: 24, class: `f${field(i)}`, opacity: b === '1' ? 1 : .35 }), el('text', { x: i * 11.25 + 5, y: 40, 'text-anchor': 'middle' }, b)])))
}
