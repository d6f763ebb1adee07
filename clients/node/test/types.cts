import leaf = require('leaf-id')

const client: leaf.LeafClient = new leaf.LeafClient('http://h')
export const id: Promise<bigint> = client.tag('order').next()
