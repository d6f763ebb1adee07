'use strict'

const { LeafError } = require('./lib/error.cjs')
const { LeafClient } = require('./lib/client.cjs')
const { Layout } = require('./lib/layout.cjs')
const { WorkerLease } = require('./lib/lease.cjs')
const { LeafSnowflake } = require('./lib/snowflake.cjs')

module.exports = { LeafClient, LeafError, LeafSnowflake, Layout, WorkerLease }
