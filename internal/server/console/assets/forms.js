// Dialogs for changes: a form, a preview of the effect, and what the server says.
import { el } from './dom.js'
import { has, t } from './i18n.js'

// whole reads a whole number within bounds, or throws the text for people.
export function whole(text, from, to) {
	if (!/^-?\d+$/.test(text.trim()) || BigInt(text) < BigInt(from) || BigInt(text) > BigInt(to)) throw new Error(t('noNumber', { from, to }))
	return BigInt(text).toString()
}

export const LARGEST = '9223372036854775807', LARGEST_STEP = '2147483647'

// field makes an input with its label.
export const field = (name, label, attributes = {}) => el('label', {}, el('span', {}, label), el('input', { name, autocomplete: 'off', ...attributes }))

// optionLabel is the name of a tag's option for people; one without words has the server's name.
export const optionLabel = name => (has(`option.${name}`) ? t(`option.${name}`) : name)

// optionFields makes an input for each option of tags that this server knows; values are a tag's.
export const optionFields = (options, values = {}) => options.map(o => field(`option.${o.name}`, optionLabel(o.name), { value: values[o.name] ?? '', title: o.usage, placeholder: has(`optionHint.${o.name}`) ? t(`optionHint.${o.name}`) : o.usage }))

// optionsOf reads those inputs; an empty one removes the option.
export const optionsOf = (options, v) => Object.fromEntries(options.map(o => [o.name, v[`option.${o.name}`].trim()]))

// ask opens a dialog. preview returns the effect of the values, or throws why they are wrong; act
// does it and returns the text for people.
export function ask(title, fields, preview, act, { danger = false, done = () => {} } = {}) {
	const effect = el('p', { class: 'preview', 'aria-live': 'polite' }), error = el('p', { class: 'error', role: 'alert', hidden: true })
	const confirm = el('button', { class: danger ? 'danger' : 'primary' }, t('confirm'))
	const values = () => Object.fromEntries(new FormData(form))
	const check = () => {
		try { effect.textContent = preview(values()); error.hidden = true; return true } catch (e) { effect.textContent = ''; fail(e); return false }
	}
	const fail = e => { error.textContent = e.message; error.hidden = false }
	const form = el('form', {
		input: check,
		submit: async e => {
			e.preventDefault()
			if (!check()) return
			confirm.disabled = true
			try {
				const text = await act(values())
				form.replaceChildren(el('h2', {}, title), el('p', { class: 'preview', role: 'status' }, text), el('div', { class: 'row' }, el('button', { type: 'button', click: () => dialog.close() }, 'OK')))
				form.querySelector('button').focus()
				done()
			} catch (e) { fail(new Error(t('failed', { text: e.message }))) } finally { confirm.disabled = false }
		},
	}, el('h2', { id: 'dialog-title' }, title), fields, effect, error,
		el('div', { class: 'row' }, confirm, el('button', { type: 'button', click: () => dialog.close() }, t('cancel'))))
	const dialog = el('dialog', { 'aria-labelledby': 'dialog-title', close: () => dialog.remove() }, form)
	document.body.append(dialog)
	dialog.showModal()
	try { effect.textContent = preview(values()) } catch { /* nothing is typed in yet */ }
}
