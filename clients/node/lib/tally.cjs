'use strict'

const { LeafError } = require('./error.cjs')

/** Reports whether a server does not know the tag: its store may be another one than the others have. */
const isIgnorant = error => error?.reason === 'UNKNOWN_TAG'

/** The errors of a call that no server has answered yet. */
class Tally {
	proven = false // the known store is that of a server that does not know the tag
	#unknown // of a server that does not know the tag
	#away = false // one of the others is of a server that may have the store
	#failures = []
	#worst

	add(server, error) {
		if (isIgnorant(error)) {
			this.#unknown = error
			this.proven ||= server.proven
			return
		}
		this.#away ||= error.reason !== 'FOREIGN_STORE'
		this.#failures.push(error.message)
		this.#worst = error.status > 0 || !this.#worst ? error : this.#worst
	}

	/**
	 * Returns the error of the call. A tag is unknown only if a server of the known store said so, or if
	 * all servers did: the tags of another store say nothing.
	 */
	error() {
		if (this.#unknown && (this.proven || !this.#away)) {
			return this.#unknown
		}
		return new LeafError(this.#worst.reason, this.#failures.join('; '), this.#worst.status, this.#worst)
	}
}

module.exports = { Tally, isIgnorant }
