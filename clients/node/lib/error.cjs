'use strict'

/** A call failed. reason is for programs, the message is for people. */
class LeafError extends Error {
	constructor(reason, message, status = 0, cause = undefined) {
		super(message, cause && { cause })
		this.name = 'LeafError'
		this.reason = reason
		this.status = status
	}
}

const invalid = message => new LeafError('INVALID_ARGUMENT', message)

/** Returns the value, or the default if it is missing, and refuses what is no number from min to max. */
function numberOption(name, value, byDefault, min, max = Number.MAX_SAFE_INTEGER) {
	const n = value ?? byDefault
	if (typeof n !== 'number' || !(n >= min && n <= max)) {
		throw invalid(`${name}: ${String(value)} is not in ${min} … ${max}`)
	}
	return n
}

module.exports = { LeafError, invalid, numberOption }
