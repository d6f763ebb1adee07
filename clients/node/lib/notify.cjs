'use strict'

const { inspect } = require('node:util')

/** Calls a callback of the program. Its failure becomes a warning: an ID must not be lost by it. */
function notify(name, callback, about) {
	new Promise(resolve => resolve(callback?.(about))).catch(err => {
		process.emitWarning(`${name} failed: ${inspect(err)}`, 'LeafWarning')
	})
}

module.exports = { notify }
