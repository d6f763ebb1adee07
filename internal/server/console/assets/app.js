// The frame of the pages: navigation, sign-in, and the stream that feeds them.
import { hasToken, listen, setToken } from './api.js'
import { el, morph } from './dom.js'
import { lang, setLang, t } from './i18n.js'
import { cluster } from './cluster.js'
import { decode } from './decode.js'
import { overview } from './overview.js'
import { tag } from './tag.js'
import { tags } from './tags.js'
import { workers } from './workers.js'

const pages = { '': overview, tags, tag, workers, decode, cluster }
const main = document.getElementById('main')

// state is what pages read. update is the present page's reaction to a sample.
export const state = { me: { admin: false, options: [] }, samples: [], history: [], link: 'connecting', error: null }
let update = () => {}, stop = new AbortController(), watching = null

// watch has the stream carry the figures of these tags too.
export function watch(tags) {
	const key = JSON.stringify(tags)
	if (key === watching) return
	watching = key
	open()
}

// open opens the stream anew, unless nobody sees the page: a browser has six connections to a host,
// which hidden pages must not use up.
function open() {
	stop.abort()
	if (document.hidden) return
	stop = new AbortController()
	listen(JSON.parse(watching), on, stop.signal)
}

function on(name, data) {
	switch (name) {
	case 'hello':
		state.me = data
		state.history = data.history
		state.error = null
		state.link = 'live'
		if (state.asking) { state.asking = false; route() }
		break
	case 'sample':
		if (state.samples.length && data.time < state.samples.at(-1).time) return
		state.samples.push(data)
		state.samples = state.samples.filter(s => s.time > data.time - 15 * 60_000)
		state.link = 'live'
		update(data)
		break
	case 'stopping':
		state.link = 'stopping'
		break
	case 'lost':
		state.error = data
		state.link = 'lost'
		if (data.status === 401 || data.status === 403) askToken(data)
		else if (state.samples.length) update(state.samples.at(-1))
	}
	frame()
}

// render shows what build returns in main, changing only what differs.
export function render(...children) {
	const fresh = main.cloneNode(false)
	fresh.append(...children.flat(Infinity).filter(Boolean))
	morph(main, fresh)
}

function askToken(failure) {
	state.asking = true
	update = () => {}
	const input = el('input', { id: 'token', type: 'password', autocomplete: 'off', required: true })
	const form = el('form', { submit: e => { e.preventDefault(); setToken(input.value.trim()); watching = null; watch([]) } },
		el('label', {}, el('span', {}, t('token')), input), el('button', { class: 'primary' }, t('signIn')))
	main.replaceChildren(el('h1', {}, t('signIn')), el('p', {}, t('signInText')),
		failure.status === 403 ? el('p', { class: 'error', role: 'alert' }, t('forbidden', { text: failure.message })) : hasToken() ? el('p', { class: 'error', role: 'alert' }, t('badToken')) : '', form)
	setToken('')
	input.focus()
}

function frame() {
	const [here] = place()
	document.getElementById('skip').textContent = t('skip')
	const links = Object.keys(pages).filter(p => p !== 'tag').map(p => el('a', { href: `#/${p}`, 'aria-current': (here === 'tag' ? 'tags' : here) === p ? 'page' : null }, t(p || 'overview')))
	const nav = document.getElementById('nav'), fresh = nav.cloneNode(false)
	fresh.append(...links)
	morph(nav, fresh)
	const tools = document.getElementById('tools')
	if (!tools.firstChild) {
		tools.append(el('span', { id: 'link', role: 'status' }),
			el('button', { id: 'lang', click: () => { setLang(lang() === 'zh' ? 'en' : 'zh'); window.history.replaceState(null, '', `?lang=${lang()}${location.hash}`); route() } }),
			el('button', { id: 'out', click: () => { setToken(''); location.reload() } }))
	}
	document.getElementById('link').textContent = t(state.link)
	document.getElementById('lang').textContent = t('other')
	document.getElementById('lang').lang = lang() === 'zh' ? 'en' : 'zh'
	document.getElementById('out').textContent = t('signOut')
	document.getElementById('out').hidden = !hasToken()
}

const place = () => location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent)

function route() {
	const [name, ...rest] = place()
	const page = pages[name] ?? overview
	frame()
	document.title = `${t(name === 'tag' ? 'tag' : name || 'overview')} – Leaf`
	update = () => {}
	if (state.asking) return watch([])
	main.replaceChildren()
	update = page(rest.join('/')) ?? (() => {})
	if (state.samples.length) update(state.samples.at(-1))
}

document.addEventListener('visibilitychange', open)
addEventListener('hashchange', () => { route(); main.focus() })
document.getElementById('skip').addEventListener('click', e => { e.preventDefault(); main.focus() })
route()
