// Elements, numbers and times. Nothing here or elsewhere writes text as HTML.
import { lang, t } from './i18n.js'

const svgNames = new Set(['svg', 'path', 'rect', 'line', 'text', 'circle', 'g', 'title'])

// el makes an element. Attributes whose value is null, undefined or false are left out; functions
// become listeners.
export function el(name, attributes = {}, ...children) {
	const e = svgNames.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name)
	for (const [key, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false) continue
		if (typeof value === 'function') e.addEventListener(key, value)
		else e.setAttribute(key, value === true ? '' : value)
	}
	e.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false))
	return e
}

// morph makes old look like fresh and keeps what is equal, so that focus and selection stay.
export function morph(old, fresh) {
	if (old.nodeName !== fresh.nodeName) return old.replaceWith(fresh)
	if (old.nodeType === Node.TEXT_NODE) {
		if (old.data !== fresh.data) old.data = fresh.data
		return
	}
	for (const a of [...old.attributes]) if (!fresh.hasAttribute(a.name)) old.removeAttribute(a.name)
	for (const a of fresh.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value)
	const was = [...old.childNodes], now = [...fresh.childNodes]
	now.forEach((child, i) => (i < was.length ? morph(was[i], child) : old.append(child)))
	was.slice(now.length).forEach(child => child.remove())
}

export const number = n => (n === undefined || n === null ? '–' : typeof n === 'bigint' || typeof n === 'string' ? BigInt(n).toLocaleString(lang()) : n.toLocaleString(lang(), { maximumFractionDigits: n < 10 ? 2 : 0 }))

export function duration(seconds) {
	if (seconds === undefined || seconds === null || !isFinite(seconds)) return '–'
	const a = Math.abs(seconds), n = (x, digits = 3) => Number(x.toPrecision(digits)).toLocaleString(lang())
	if (a === 0) return `0 ${t('s')}`
	if (a < 1e-3) return `${n(seconds * 1e6)} µs`
	if (a < 1) return `${n(seconds * 1e3)} ms`
	if (a < 120) return `${n(seconds)} ${t('s')}`
	if (a < 7200) return `${n(seconds / 60)} ${t('min')}`
	if (a < 172800) return `${n(seconds / 3600)} ${t('h')}`
	if (a < 63072000) return `${n(seconds / 86400)} ${t('days')}`
	return `${n(seconds / 31556952)} ${t('years')}`
}

// seconds reads a duration of protobuf's JSON.
export const seconds = text => (text ? parseFloat(text) : undefined)

export function moment(value) {
	if (!value) return '–'
	const d = new Date(value)
	return el('time', { datetime: d.toISOString(), title: d.toISOString() }, d.toLocaleString(lang(), { hour12: false }))
}

export const ago = value => (value ? t('ago', { time: duration(Math.max(0, (Date.now() - new Date(value)) / 1000)) }) : '–')

// metric shows a figure that /metrics has under the same name.
export function metric(values, name, labels = '', show = number) {
	const value = values[name]?.[labels]
	return el('span', { 'data-metric': name, 'data-labels': labels, 'data-value': value ?? '' }, show(value))
}

export const card = (title, value, note) => el('div', { class: 'card' }, el('dt', {}, title), el('dd', {}, value), note ? el('dd', { class: 'note' }, note) : null)
export const cards = (...list) => el('dl', { class: 'cards' }, list)

// table shows rows; a column is its title, and whether it is text.
export function table(caption, columns, rows, empty) {
	if (!rows.length) return el('div', { class: 'scroll' }, el('p', { class: 'empty' }, empty ?? t('nothing')))
	return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
		el('table', {}, el('caption', {}, caption),
			el('thead', {}, el('tr', {}, columns.map(([title, text, sort]) => el('th', { scope: 'col', class: text ? 'text' : null, 'aria-sort': sort }, title)))),
			el('tbody', {}, rows.map(cells => el('tr', {}, cells.map((c, i) => el('td', { class: columns[i][1] ? 'text' : null }, c ?? '–')))))))
}

// dot shows a state by colour and shape.
export const dot = (kind, text) => el('span', { class: 'state' },
	el('svg', { viewBox: '0 0 10 10', 'aria-hidden': 'true' }, kind === 'good' ? el('circle', { cx: 5, cy: 5, r: 4.5, class: 'f0' }) : kind === 'bad' ? el('rect', { x: 1, y: 1, width: 8, height: 8, class: 'f2' }) : el('circle', { cx: 5, cy: 5, r: 3.5, class: 'fx' })), text)
