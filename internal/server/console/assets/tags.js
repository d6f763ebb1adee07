// The list of tags: search, sort, pages, and a new tag.
import { admin } from './api.js'
import { render, state, watch } from './app.js'
import { duration, el, metric, moment, number, table } from './dom.js'
import { ask, field, LARGEST, LARGEST_STEP, optionFields, optionsOf, whole } from './forms.js'
import { t } from './i18n.js'

const SIZE = 50

export function tags() {
	const view = { contains: '', order: 'name', skip: 0, list: [], total: 0, error: null }
	watch([])
	let latest = 0, timer
	const load = async () => {
		const mine = ++latest
		try {
			const res = await admin('ListTags', { pageSize: SIZE, contains: view.contains, orderBy: view.order, skip: view.skip })
			if (mine !== latest) return
			Object.assign(view, { list: res.tags ?? [], total: res.total ?? 0, error: null })
			watch(view.list.map(tag => tag.name))
		} catch (e) { if (mine === latest) view.error = e }
		show()
	}
	const sort = key => el('button', { click: () => { view.order = view.order === key ? `-${key}` : key; view.skip = 0; load() } }, t({ name: 'tag', max_id: 'maxID' }[key] ?? key))
	const direction = key => (view.order === key ? 'ascending' : view.order === `-${key}` ? 'descending' : null)
	const page = by => { view.skip = Math.max(0, view.skip + by); load() }
	const search = el('input', { type: 'search', id: 'search', value: '', input: e => { clearTimeout(timer); timer = setTimeout(() => { view.contains = e.target.value; view.skip = 0; load() }, 200) } })
	const add = el('button', { class: 'primary', click: () => create(load) }, t('create'))
	const results = el('div', { id: 'results' })
	render(el('h1', {}, t('tags')))
	const main = document.getElementById('main')
	main.append(el('form', { class: 'inline', submit: e => e.preventDefault() }, el('label', {}, el('span', {}, t('search')), search), add), results)
	const show = s => {
		const v = (s ?? state.samples.at(-1))?.values ?? {}
		add.disabled = !state.me.admin
		add.title = state.me.admin ? '' : t('readOnly')
		results.replaceChildren(...[
			view.error ? el('p', { class: 'error', role: 'alert' }, t('failed', { text: view.error.message })) : null,
			table(t('matching', { from: number(view.list.length ? view.skip + 1 : 0), to: number(view.skip + view.list.length), total: number(view.total) }),
				[[sort('name'), true, direction('name')], [sort('max_id'), false, direction('max_id')], [sort('step'), false, direction('step')], [sort('updated'), false, direction('updated')], [t('issued')], [t('stock')], [t('lasts')], [t('description'), true]],
				view.list.map(tag => [el('a', { href: `#/tag/${encodeURIComponent(tag.name)}` }, tag.name), number(tag.maxId ?? '0'), number(tag.step ?? '0'), moment(tag.updated),
					metric(v, 'leaf_tag_ids_issued_total', tag.name), metric(v, 'leaf_tag_stock', tag.name), metric(v, 'leaf_tag_stock_seconds', tag.name, duration), tag.description]), t('noTags')),
			el('div', { class: 'row' }, el('button', { id: 'previous', disabled: view.skip === 0, click: () => page(-SIZE) }, t('previous')), el('button', { id: 'next', disabled: view.skip + view.list.length >= view.total, click: () => page(SIZE) }, t('next')),
				state.me.admin ? null : el('span', { class: 'soft' }, t('readOnly'))),
		].filter(Boolean))
	}
	show()
	load()
	return s => { if (!results.contains(document.activeElement)) show(s) }
}

function create(done) {
	const read = v => {
		if (!v.name) throw new Error(t('noName'))
		return { name: v.name, step: whole(v.step, 1, LARGEST_STEP), maxId: whole(v.first, 1, LARGEST), description: v.description, options: optionsOf(state.me.options, v) }
	}
	ask(t('create'), [field('name', t('name'), { maxlength: 128 }), field('step', t('step'), { value: '1000', inputmode: 'numeric' }), field('first', t('firstID'), { value: '1', inputmode: 'numeric' }), field('description', t('description')), ...optionFields(state.me.options)],
		v => { const tag = read(v); return t('createPreview', { name: tag.name, first: tag.maxId, step: tag.step }) },
		async v => { const { tag } = await admin('CreateTag', read(v)); return t('done', { max: tag.maxId, step: tag.step }) }, { done })
}
