// The words of the pages, in English and Chinese: one row each, so that a test finds a missing one.
const words = {
	skip: ['Skip to the content', '跳到正文'],
	overview: ['Overview', '概览'], tags: ['Tags', '业务标签'], workers: ['Workers', '工作节点'], decode: ['Decode', 'ID 解析'], cluster: ['Servers', '集群'],
	s: ['s', '秒'], min: ['min', '分钟'], h: ['h', '小时'], days: ['days', '天'], years: ['years', '年'],
	ago: ['{time} ago', '{time}前'],
	nothing: ['Nothing to show.', '暂无数据。'],
	live: ['live', '实时'], lost: ['reconnecting', '重新连接中'], connecting: ['connecting', '连接中'], stopping: ['the server stops', '服务器正在停止'],
	other: ['中文', 'English'],
	signIn: ['Sign in', '登录'], signOut: ['Sign out', '退出'], token: ['Token', '令牌'],
	signInText: ['This server shows its state to holders of a token with the right “read”. The token stays in the memory of this page.', '此服务器只向拥有 read 权限令牌的人展示状态。令牌只保存在本页内存中。'],
	badToken: ['The server does not accept this token.', '服务器不接受此令牌。'],
	forbidden: ['The server does not show its state to this caller: {text}', '服务器不向当前调用者展示状态：{text}'],
	unreachable: ['No connection to the server ({text}). The figures below are old; this page reconnects by itself.', '与服务器的连接已断开（{text}）。下方数据为旧数据，页面会自动重连。'],
	readOnly: ['Read-only: changes need a token with the right “admin”.', '只读：修改需要具有 admin 权限的令牌。'],
	well: ['Leaf is well: {schemes} issue IDs.', 'Leaf 运行正常：{schemes} 可以发号。'],
	degraded: ['Leaf issues IDs, and needs attention: {text}', 'Leaf 仍可发号，但需要处理：{text}'],
	down: ['{schemes} cannot issue IDs: {text}', '{schemes} 无法发号：{text}'],
	todo: ['What to do: {text}', '处理办法：{text}'],
	allSchemes: ['all schemes', '所有模式'],
	idsPerSecond: ['IDs per second', '每秒发号数'], requestsPerSecond: ['Requests per second', '每秒请求数'],
	last15: ['IDs per second, the last 15 minutes', '最近 15 分钟每秒发号数'],
	latency: ['Latency p50 / p99 / p99.9', '延迟 p50 / p99 / p99.9'], lastMinute: ['requests for IDs of the last minute', '最近一分钟的取号请求'],
	stockLasts: ['Stock lasts', '库存可用'], stockNote: ['of the tag with the least, at the present rate', '按当前速率，最紧张的标签'], stock: ['Stock', '库存'], idle: ['no demand', '无请求'],
	store: ['Store', '存储'], storeUp: ['answers', '正常'], storeDown: ['does not answer', '无响应'], storeCalls: ['Store calls', '取号段次数'],
	registry: ['Registry of worker IDs', '工作节点注册中心'], lease: ['Worker ID', '工作节点 ID'], leaseFor: ['IDs for {time} without the registry', '失去注册中心后还能发号 {time}'], noLease: ['none held', '未持有'],
	clock: ['Clock offset', '时钟偏差'], clockNote: ['this machine ahead of the registry', '本机比注册中心快'],
	busiest: ['Busiest tags', '最繁忙的标签'], tag: ['Tag', '标签'], rate: ['IDs/s', 'ID/秒'], issued: ['Issued', '已发号'], lasts: ['Lasts', '可用时长'], step: ['Step', '步长'], lostIDs: ['Lost', '丢弃'], errors: ['Errors', '错误'], exhausted: ['Exhausted', '耗尽'],
	inUse: ['{n} tags in use, {failing} failing', '{n} 个标签使用中，{failing} 个异常'],
	warnings: ['Warnings', '告警'], version: ['Version', '版本'], started: ['Started', '启动时间'], connections: ['Connections', '连接数'], waits: ['Waits', '等待'],
	search: ['Search by name or description', '按名称或描述搜索'], create: ['Create a tag', '新建标签'], description: ['Description', '描述'], maxID: ['max_id', 'max_id'], updated: ['Updated', '更新时间'],
	matching: ['{from} to {to} of {total} tags', '第 {from} 至 {to} 个，共 {total} 个标签'], previous: ['Previous', '上一页'], next: ['Next', '下一页'], noTags: ['No tag matches.', '没有匹配的标签。'],
	name: ['Name', '名称'], firstID: ['First ID', '起始 ID'], cancel: ['Cancel', '取消'], confirm: ['Confirm', '确认'], preview: ['Effect', '影响'],
	createPreview: ['A new tag {name}: the first ID is {first} or, if a tag of that name was deleted, higher. A server takes {step} IDs or more at a time.', '新建标签 {name}：首个 ID 为 {first}；若曾删除同名标签则更高。服务器每次至少取 {step} 个 ID。'],
	back: ['All tags', '全部标签'], inStore: ['In the store', '存储中'], inMemory: ['In the memory of this server', '本服务器内存中'], notInUse: ['Not in use on this server since it started.', '本服务器启动后尚未使用此标签。'],
	nextID: ['Next ID here', '本机下一个 ID'], segments: ['Segments in memory: grey is used up', '内存中的号段（灰色为已用）'], stepHistory: ['Step', '步长变化'], stockHistory: ['Stock', '库存变化'],
	changeStep: ['Change the step', '修改步长'], raise: ['Skip IDs', '跳号'], observe: ['Observe IDs of others', '登记外部 ID'], remove: ['Delete', '删除'], takeOne: ['Take a test ID', '取一个测试 ID'],
	stepPreview: ['Servers take {to} IDs or more at a time instead of {from}, from their next call of the store on. Issued IDs stay valid.', '服务器下次取号段起，每次至少取 {to} 个（原为 {from}）。已发出的 ID 不受影响。'],
	raiseBy: ['How many IDs to skip', '跳过的 ID 数量'], raisePreview: ['max_id goes from {from} to {to} or higher. The IDs between are never issued. This cannot be undone.', 'max_id 从 {from} 升到至少 {to}，其间的 ID 永不发出，且无法撤销。'],
	observeMax: ['Largest ID in use elsewhere', '外部已使用的最大 ID'], observePreview: ['The counter moves above {max}, and this server drops what it holds below. Other servers may issue IDs below from their stock for a while.', '计数器移到 {max} 之上，本服务器丢弃其下的库存。其他服务器的库存中可能仍有更小的 ID。'],
	observed: ['Observed. This server dropped {dropped} IDs.', '已登记。本服务器丢弃了 {dropped} 个 ID。'], othersBelow: ['Other servers may still issue IDs below {id}.', '其他服务器仍可能发出小于 {id} 的 ID。'],
	deletePreview: ['Programs that ask for {name} get an error from now on. A new tag of that name starts at {max} or higher.', '此后请求 {name} 的程序会得到错误。同名新标签将从 {max} 或更高处开始。'], typeName: ['Type the name to confirm', '输入名称以确认'], wrongName: ['This is not the name of the tag.', '与标签名称不一致。'],
	takePreview: ['This uses up one ID of {name}: no caller ever gets it.', '这会用掉 {name} 的一个 ID，不会再发给任何调用者。'], taken: ['Test ID: {id}', '测试 ID：{id}'],
	done: ['Done: max_id {max}, step {step}.', '完成：max_id {max}，步长 {step}。'], deleted: ['Deleted.', '已删除。'], noNumber: ['Write a whole number from {from} to {to}.', '请输入 {from} 到 {to} 之间的整数。'], noName: ['Write a name.', '请输入名称。'],
	poolOf: ['Worker IDs of', '工作节点 ID 所属'], servers: ['servers', '服务器'], pool: ['pool {name}', '池 {name}'], worker: ['Worker ID', '节点 ID'], state: ['State', '状态'], holder: ['Holder', '持有者'], until: ['Until', '有效期至'], seen: ['Last seen', '最近活动'], term: ['Claims', '认领次数'], offset: ['Clock offset', '时钟偏差'],
	mine: ['this server', '本服务器'], held: ['held', '已占用'], expired: ['expired', '已过期'], free: ['free', '空闲'], mapTitle: ['Map of the worker IDs: {held} of {all} held', '节点 ID 分布：共 {all} 个，已占用 {held} 个'],
	layouts: ['Layouts', '位布局'], layout: ['Layout', '布局'], bits: ['Time / worker / sequence bits', '时间 / 节点 / 序列位数'], tick: ['Tick', '时间单位'], ends: ['Ends', '用尽时间'], left: ['Left', '剩余'],
	action: ['Action', '操作'],
	freeAction: ['Free', '释放'], freePreview: ['Worker ID {id} of {holder} becomes claimable. Do this only if the holder is certainly dead: otherwise two servers may issue the same IDs.', '节点 ID {id}（{holder}）将可被重新认领。只有确认持有者已死亡才可操作，否则两台服务器可能发出相同的 ID。'], freed: ['Freed.', '已释放。'],
	createPool: ['Create a pool', '新建池'], epoch: ['Epoch', '起始时间'], noTime: ['Write a time such as 2026-01-01T00:00:00Z.', '请输入时间，例如 2026-01-01T00:00:00Z。'], tickMillis: ['Tick in milliseconds', '时间单位（毫秒）'], workerBits: ['Worker bits', '节点位数'], sequenceBits: ['Sequence bits', '序列位数'], ttl: ['Longest lease in seconds', '最长租期（秒）'],
	createPoolPreview: ['A pool {name} of {n} worker IDs for programs with a snowflake library of their own. All of them must use this layout, which lasts until {end} and never changes.', '新建池 {name}，含 {n} 个节点 ID，供自带雪花库的程序租用。所有程序必须使用此布局；布局可用至 {end}，不可更改。'], poolCreated: ['The pool {name} is there.', '池 {name} 已建立。'],
	starts: ['Each start uses up a worker ID: {used} used, {left} left.', '每次启动消耗一个节点 ID：已用 {used}，剩余 {left}。'],
	ids: ['IDs, one on a line', 'ID，每行一个'], guess: ['guess the layout', '自动判断布局'], decodeButton: ['Decode', '解析'], local: ['Time here', '本地时间'], utc: ['UTC', 'UTC'], sequence: ['Sequence', '序列号'], ruler: ['Bits: time, worker, sequence', '位：时间、节点、序列'],
	why: ['Why this layout', '判断依据'], whyNamed: ['You chose it.', '由您指定。'], whyOnly: ['Only in this layout its time lies in the past, after the epoch.', '只有此布局下时间既晚于纪元又不在未来。'], whyRecent: ['Its time is {age} ago; in {others} it would be further from now or impossible.', '其时间为 {age}前；按 {others} 则离现在更远或不可能。'], whyNone: ['In no layout is its time in the past: it may be an ID of a counter.', '任何布局下时间都不在过去：可能是计数器（号段）ID。'],
	noID: ['{id} is not an ID: write a whole number from 0 to 9223372036854775807.', '{id} 不是 ID：请输入 0 到 9223372036854775807 之间的整数。'], tooMany: ['At most {n} IDs at a time.', '一次最多 {n} 个 ID。'],
	server: ['Server', '服务器'], configuration: ['Configuration', '配置'], same: ['like this server', '与本机一致'], differs: ['differs in: {what}', '不同之处：{what}'], unknown: ['not told', '未知'], health: ['Health', '健康'], alive: ['alive', '存活'], fine: ['well', '正常'], silent: ['silent', '无响应'], gone: ['stopped', '已停止'],
	clusterText: ['Servers that hold or held a worker ID of the same registry. A server without time-based IDs is not listed.', '在同一注册中心持有或曾持有节点 ID 的服务器。未启用时间类 ID 的服务器不在此列。'],
	'option.order': ['Order', '顺序'], 'optionHint.order': ['empty, or strict: IDs increase over all servers', '留空，或 strict：所有服务器上 ID 递增'],
	'option.period': ['Period', '周期'], 'option.zone': ['Time zone', '时区'], 'option.form': ['Form', '格式'], 'option.mask': ['Mask', '掩码'],
	refresh: ['Refresh', '刷新'], failed: ['Failed: {text}', '失败：{text}'],
}

let column = 0
export const lang = () => (column ? 'zh' : 'en')
export function setLang(name) {
	column = name === 'zh' ? 1 : 0
	document.documentElement.lang = column ? 'zh-CN' : 'en'
}
setLang(new URLSearchParams(location.search).get('lang') ?? (navigator.language.startsWith('zh') ? 'zh' : 'en'))

export const has = key => key in words

// t returns the words for a key, with {name} replaced by the value of that name.
export function t(key, values = {}) {
	return (words[key] ?? [key, key])[column].replace(/{(\w+)}/g, (_, name) => values[name] ?? '')
}
