package main

import "fmt"

// doubleBuffer shows segments over time: the next one is there before the last one ends.
func doubleBuffer(c *canvas) {
	c.open(250, "The next segment is fetched while the current one is in use", "当前号段使用期间，下一个号段已经取好")
	c.text(10, 24, "start", "dim", c.say("in memory", "内存"))
	const first, calls, high = 30, 184, 28
	names := []string{"1 … 1000", "1001 … 2000", "2001 … 3000"}
	for i, name := range names {
		x, y := first+130*i, 36+38*i
		if i > 0 {
			c.rect(x-80, y, 80, high, "soft")
			c.text(x-40, y+19, "middle", "dim", c.say("ready", "已就绪"))
		}
		c.box(x, y, 130, high, "a", "on", name)
		if i > 0 {
			c.line(x, 30, x, y, "line dash")
		}
	}
	c.line(420, 30, 420, 140, "line dash")
	c.text(428, 82, "start", "dim", c.say("and so on", "依此类推"))
	for i := range 2 {
		x := first + 130*i
		c.box(x-6, calls, 60, 24, "b", "on", "+1000")
		c.arrow(x+24, calls, x+50, 36+38*(i+1)+high+2, "line")
	}
	c.text(first+206, calls+17, "start", "dim", c.say("calls of the database", "数据库调用"))
	c.axis(226)
}

// request shows the parts that a request meets.
func request(c *canvas) {
	c.open(330, "The way of a request", "一次请求的路径")
	for i, name := range []string{"HTTP", "gRPC", c.say("Redis protocol", "Redis 协议")} {
		c.box(10+170*i, 10, 160, 34, "box", "", name)
		c.arrow(90+170*i, 44, 200+60*i, 76, "line")
	}
	c.box(130, 78, 260, 34, "box", "", c.say("issuer: scheme and key", "issuer：模式和 key"))
	c.arrow(200, 112, 130, 142, "line")
	c.arrow(320, 112, 390, 142, "line")
	c.box(10, 144, 240, 52, "a", "on", c.say("buffer of a tag", "tag 的缓冲（号段）"), c.say("adds 1 in memory", "内存中加 1"))
	c.box(270, 144, 240, 52, "a", "on", c.say("snowflake generator", "雪花生成器"), c.say("time, worker ID, sequence", "时间、worker ID、序号"))
	c.line(10, 218, width-10, 218, "line dash")
	c.text(10, 212, "start", "dim", c.say("each request", "每次请求"))
	c.text(10, 236, "start", "dim", c.say("now and then", "偶尔"))
	c.arrow(130, 196, 130, 256, "line")
	c.arrow(390, 196, 390, 256, "line")
	c.box(10, 258, 240, 52, "b", "on", c.say("store", "存储"), c.say("a segment at a time", "一次一个号段"))
	c.box(270, 258, 240, 52, "b", "on", c.say("registry of worker IDs", "worker ID 注册中心"), c.say("every 10 s", "每 10 秒一次"))
}

// lease shows one worker ID from its claim to the next holder.
func lease(c *canvas) {
	c.open(300, "The lease of a worker ID over time", "一个 worker ID 的租约随时间的变化")
	c.text(10, 24, "start", "", c.say("worker ID 7", "worker ID 7"))
	c.rect(40, 96, 280, 26, "soft")
	c.box(40, 96, 190, 26, "a", "on", c.say("IDs of server A", "服务器 A 的 ID"))
	c.text(275, 114, "middle", "", c.say("unused", "未使用"))
	c.box(320, 136, 170, 26, "b", "on", c.say("IDs of server B", "服务器 B 的 ID"))
	marks := []struct {
		x             int
		label, second string
	}{
		{40, c.say("claim", "申领"), ""},
		{110, c.say("extend", "续期"), ""},
		{180, c.say("extend", "续期"), ""},
		{230, "", ""},
	}
	for _, m := range marks {
		c.text(m.x, 60, "middle", "", m.label)
		if m.label != "" {
			c.arrow(m.x, 66, m.x, 92, "line")
		}
	}
	c.cross(230, 84)
	c.text(246, 66, "start", "", c.say("A crashes", "A 崩溃"))
	c.line(320, 40, 320, 210, "line dash")
	c.text(328, 54, "start", "", c.say("limit", "租约上限"))
	c.text(328, 182, "start", "", c.say("B starts at A's limit,", "B 从 A 的上限开始，"))
	c.text(328, 201, "start", "", c.say("whatever its clock says", "与它的时钟无关"))
	c.text(10, 238, "start", "dim", c.say("A moves the limit every 10 s, to 30 min ahead", "A 每 10 秒把上限移到 30 分钟之后"))
	c.arrow(10, 262, width-10, 262, "line")
	c.text(width-10, 282, "end", "dim", c.say("the time inside IDs", "ID 中的时间"))
}

// layouts shows the bits of the built-in layouts.
func layouts(c *canvas) {
	c.open(240, "The bits of each layout", "各布局的比特位")
	rows := []struct {
		name                        string
		zeros, time, worker, number int
		tick                        string
	}{
		{"leaf", 1, 41, 10, 12, "1 ms"},
		{"js53", 11, 41, 5, 7, "1 ms"},
		{"uid", 1, 31, 19, 13, "1 s"},
	}
	const left, bit = 8, 7.87
	for i, r := range rows {
		y := 26 + 62*i
		c.text(left, y-6, "start", "", r.name)
		c.text(width-left, y-6, "end", "dim", c.say("a tick is ", "一个刻度为 ")+r.tick)
		x := float64(left)
		for _, f := range []struct {
			bits  int
			class string
		}{{r.zeros, "box"}, {r.time, "a"}, {r.worker, "b"}, {r.number, "c"}} {
			w := float64(f.bits) * bit
			label := ""
			if f.bits > 1 {
				label = fmt.Sprint(f.bits)
			}
			ink := "on"
			if f.class == "box" {
				ink = "dim"
			}
			c.box(int(x), y, int(x+w)-int(x), 28, f.class, ink, label)
			x += w
		}
	}
	for i, l := range []struct{ class, text string }{
		{"box", c.say("always 0", "恒为 0")}, {"a", c.say("time", "时间")},
		{"b", c.say("worker ID", "worker ID")}, {"c", c.say("sequence", "序号")},
	} {
		c.rect(left+126*i, 212, 14, 14, l.class)
		c.text(left+20+126*i, 224, "start", "", l.text)
	}
}

// crash shows a crash: it costs numbers, and each number comes once.
func crash(c *canvas) {
	c.open(170, "A crash leaves a gap, never a duplicate", "崩溃只会留下空洞，不会产生重复")
	c.text(10, 24, "start", "dim", c.say("numbers of one tag", "同一个 tag 的编号"))
	c.box(10, 40, 150, 34, "a", "on", c.say("issued by A", "A 已发出"))
	c.rect(160, 40, 150, 34, "lost")
	c.cross(160, 57)
	c.box(310, 40, 200, 34, "b", "on", c.say("issued by B", "B 发出"))
	c.text(235, 96, "middle", "", c.say("lost with A's memory", "随 A 的内存丢失"))
	c.arrow(310, 126, 310, 78, "line")
	c.text(310, 146, "middle", "", c.say("the counter in the database", "数据库中的计数器"))
}

// failover shows a replica without the last writes, and the guard.
func failover(c *canvas) {
	c.open(330, "A fail-over that lost writes, and the guard", "丢失写入的主从切换与防倒退保护")
	c.text(10, 22, "start", "dim", c.say("before: server A and the primary", "切换前：服务器 A 与主库"))
	c.box(10, 32, 300, 30, "a", "on", c.say("issued", "已发出"))
	c.arrow(310, 92, 310, 66, "line")
	c.text(310, 108, "middle", "", c.say("primary's counter, and A's mark", "主库计数器，也是 A 记住的高水位"))
	c.text(10, 142, "start", "dim", c.say("after: the replica lacks the last write", "切换后：从库缺少最后一次写入"))
	c.rect(10, 152, 190, 30, "soft")
	c.rect(200, 152, 110, 30, "lost")
	c.cross(255, 167)
	c.text(255, 202, "middle", "", c.say("granted again:", "再次分配："))
	c.text(255, 221, "middle", "", c.say("A throws it away", "A 将其丢弃"))
	c.arrow(130, 208, 196, 186, "line")
	c.text(126, 222, "end", "", c.say("replica's counter", "从库计数器"))
	c.text(10, 254, "start", "dim", c.say("then: A lifts the counter", "随后：A 抬高计数器"))
	c.rect(10, 264, 300, 30, "soft")
	c.rect(310, 264, 110, 30, "lost")
	c.text(365, 284, "middle", "", c.say("skipped", "跳过"))
	c.box(420, 264, 90, 30, "b", "on", c.say("next IDs", "后续 ID"))
	c.arrow(316, 312, 414, 312, "line")
	c.text(310, 317, "end", "dim", "regression_jump")
}

// relays shows servers behind servers.
func relays(c *canvas) {
	c.open(320, "A tree of relays", "级联的 Leaf 服务器")
	c.box(180, 10, 160, 34, "b", "on", c.say("database", "数据库"))
	for i := range 2 {
		x := 90 + 180*i
		c.arrow(x+80, 82, 240+40*i, 46, "line")
		c.box(x, 84, 160, 34, "a", "on", c.say("central server", "中心服务器"))
	}
	for i, site := range []string{c.say("site 1", "机房 1"), c.say("site 2", "机房 2"), c.say("site 3", "机房 3")} {
		x := 10 + 175*i
		c.arrow(x+75, 164, []int{165, 225, 355}[i], 120, "line")
		c.box(x, 166, 150, 52, "a", "on", c.say("relay", "中继（relay）"), site)
		for k := range 3 {
			c.arrow(x+24+51*k, 262, x+45+30*k, 220, "line")
			c.box(x+51*k, 264, 46, 26, "box", "", c.say("app", "应用"))
		}
	}
	c.text(width/2, 312, "middle", "dim", c.say("an arrow leads to the server that is asked for ranges", "箭头指向被请求号段的一方"))
}

// rollingUpdate shows the replacement of three servers one by one.
func rollingUpdate(c *canvas) {
	c.open(250, "A rolling update of three servers", "三台服务器的滚动升级")
	for i := range 3 {
		y, x := 34+50*i, 100+130*i
		c.text(10, y+20, "start", "", string(rune('A'+i)))
		c.box(30, y, x-30, 30, "a", "on", "")
		c.rect(x, y, 50, 30, "soft")
		c.rect(x+50, y, 36, 30, "lost")
		c.rect(x+86, y, 20, 30, "soft")
		c.rect(x+106, y, width-10-x-106, 30, "b")
	}
	c.text(10, 22, "start", "dim", c.say("two of three serve at any time", "任何时刻都有两台在服务"))
	for i, l := range []struct{ class, text string }{
		{"a", c.say("old version", "旧版本")},
		{"soft", c.say("/readyz 503", "/readyz 503")},
		{"lost", c.say("not running", "未运行")},
		{"b", c.say("new version", "新版本")},
	} {
		c.rect(10+126*i, 196, 14, 14, l.class)
		c.text(30+126*i, 208, "start", "", l.text)
	}
	c.axis(226)
}
