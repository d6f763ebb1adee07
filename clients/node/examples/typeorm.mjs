// IDs from Leaf as primary keys of TypeORM: npm install leaf-id typeorm sql.js
// IDs exceed 2^53, so they are bigint columns and strings in the program, as TypeORM has them.
import { DataSource, EntitySchema, EventSubscriber } from 'typeorm'
import { LeafClient } from 'leaf-id'

const leaf = new LeafClient(process.env.LEAF_URL ?? 'http://127.0.0.1:8080')

const Order = new EntitySchema({
	name: 'Order',
	tableName: 'orders',
	columns: { id: { type: 'bigint', primary: true }, item: { type: 'text' } },
})

/** Gives an ID to each new entity that has none. */
class LeafIds {
	async beforeInsert({ entity, metadata }) {
		if (metadata.name === 'Order' && entity.id === undefined) {
			entity.id = await leaf.nextString('order')
		}
	}
}

EventSubscriber()(LeafIds) // in TypeScript: @EventSubscriber() above the class

const db = await new DataSource({ type: 'sqljs', entities: [Order], subscribers: [LeafIds], synchronize: true }).initialize()
const orders = db.getRepository(Order)
await orders.save([{ item: 'tea' }, { item: 'cups' }])
console.log(await orders.find())
await db.destroy()
await leaf.close()
