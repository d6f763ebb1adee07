package drivers_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
)

func TestMessagesOfRedis(t *testing.T) {
	var library testserver.Output // old connections still write to it
	drivers.LogTo(slog.New(slog.NewTextHandler(&library, &slog.HandlerOptions{Level: slog.LevelDebug})))
	server := testserver.Redis(t, nil)
	initBoth(t, server.URL())
	for _, command := range []string{
		"ACL SETUSER reader on >" + secret + " ~* +@read +info +config|get",
		"ACL SETUSER elsewhere on >" + secret + " ~{elsewhere}:* +@all",
		"HSET {foreign}:store format/tags text", "HSET {foreign}:registry format/workers text",
		`HSET {newer}:store format/tags {"v":2}`, `HSET {newer}:registry format/workers {"v":2}`,
		"SET {shape}:store text",
		"ACL SETUSER default >" + secret, // last: from now on everybody needs a password
	} {
		if _, err := server.Do(strings.Fields(command)...); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	gone := freeAddr(t)
	replica := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"replicaof", strings.Replace(gone, ":", " ", 1)}}})
	forgetful := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"appendonly", "no"}}})
	addr := server.Addr()
	fake, certificate := impostor(t, plainly)
	as := func(user string) string { return "redis://" + user + "@" + addr }
	good := as(":" + secret)
	complain(t, "redis", []complaint{
		{name: "no server", url: "redis://u:hunter2@" + gone, calls: all, want: []string{"no server answers", gone, "check that it runs"}},
		{name: "no sentinel", url: "redis+sentinel://u:hunter2@" + gone + "/m", calls: all, want: []string{"no server answers", "sentinels", gone, "check that it runs"}},
		{name: "no cluster", url: "redis+cluster://u:hunter2@" + gone, calls: all, want: []string{"no server answers", gone, "check that it runs"}},
		{name: "unknown host", url: "redis://u:hunter2@leaf.invalid", calls: all, want: []string{"leaf.invalid", "check that it runs, and the host"}},
		{name: "wrong password", url: as(":x" + secret), calls: all, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "unknown user", url: as("stranger:" + secret), calls: all, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "no password", url: server.URL(), calls: all, want: []string{"wants a password", addr, "user:password@host"}},
		{name: "no scripts", url: as("reader:" + secret), calls: all, want: []string{"lacks a permission", addr, "+@scripting", "evalsha"}},
		{name: "other keys", url: as("elsewhere:" + secret), calls: use, want: []string{"lacks a permission", addr, "~{PREFIX}:*"}},
		{name: "no such database", url: good + "/99", calls: all, want: []string{"DB index is out of range", addr}},
		{name: "no store", url: good + "?prefix=empty", calls: useStore, want: []string{"{empty}:store"}},
		{name: "no registry", url: good + "?prefix=empty", calls: useWorkers, want: []string{"{empty}:registry"}},
		{name: "foreign keys", url: good + "?prefix=foreign", calls: useStore, want: []string{"is not a format", "choose another prefix"}},
		{name: "foreign registry", url: good + "?prefix=foreign", calls: useWorkers, want: []string{"{foreign}:registry"}},
		{name: "newer keys", url: good + "?prefix=newer", calls: use, want: []string{"says format 2"}},
		{name: "another shape", url: good + "?prefix=shape", calls: []string{"advance"}, want: []string{"belongs to another program", "choose another prefix"}},
		{name: "exists", url: good, calls: []string{"init store", "init workers"}, want: []string{"{leaf}:", "already"}},
		{name: "replica", url: replica.URL(), calls: all, want: []string{"this is a replica", replica.Addr(), "name its primary, " + gone}},
		{name: "not durable", url: forgetful.URL(), calls: all, want: []string{"appendonly is no", forgetful.Addr(), "set appendonly yes", "durability=none"}},
		{name: "no TLS", url: strings.Replace(good, "redis", "rediss", 1), calls: use, within: 300 * time.Millisecond, want: []string{"does not answer in time", addr, "write redis in place of rediss"}},
		{name: "TLS only", url: "redis://:hunter2@" + fake, calls: all, want: []string{"closed the connection", fake, "write rediss"}},
		{name: "trusted", url: "rediss://:hunter2@" + fake + "?ca=" + certificate, calls: all, want: []string{"closed the connection", fake, "cert=FILE&key=FILE"}},
		{name: "not trusted", url: "rediss://:hunter2@" + fake, calls: all, want: []string{"certificate is not trusted", fake, "ca=FILE"}},
	})
	if text := library.String(); !strings.Contains(text, "connection refused") || strings.Contains(text, secret) {
		t.Errorf("the client library logged\n%s", text)
	}
}

func TestMessagesOfEtcd(t *testing.T) {
	open := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true})
	closed := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true})
	initBoth(t, open.URL("ids"))
	setUp(t, open, func(c *clientv3.Client) error {
		_, err1 := c.Put(t.Context(), "/foreign/format/tags", "text")
		_, err2 := c.Put(t.Context(), "/foreign/format/workers", "text")
		return errors.Join(err1, err2)
	})
	setUp(t, closed, func(c *clientv3.Client) error {
		_, err1 := c.UserAdd(t.Context(), "root", secret)
		_, err2 := c.UserGrantRole(t.Context(), "root", "root")
		_, err3 := c.UserAdd(t.Context(), "guest", secret)
		_, err4 := c.RoleAdd(t.Context(), "other")
		_, err5 := c.RoleGrantPermission(t.Context(), "other", "/other/", clientv3.GetPrefixRangeEnd("/other/"), clientv3.PermissionType(clientv3.PermReadWrite))
		_, err6 := c.UserGrantRole(t.Context(), "guest", "other")
		_, err7 := c.AuthEnable(t.Context())
		return errors.Join(err1, err2, err3, err4, err5, err6, err7)
	})
	gone, gone2, addr := freeAddr(t), freeAddr(t), closed.Endpoints()[0]
	fake, _ := impostor(t, plainly)
	complain(t, "etcd", []complaint{
		{name: "no server", url: "etcd://u:hunter2@" + gone, calls: all, want: []string{"no etcd answers", gone, "check that it runs"}},
		{name: "no server of two", url: "etcd://u:hunter2@" + gone + "," + gone2, calls: useStore, want: []string{"no etcd answers", gone, gone2}},
		{name: "unknown host", url: "etcd://u:hunter2@leaf.invalid", calls: all, want: []string{"leaf.invalid", "check that it runs, and the hosts"}},
		{name: "wrong password", url: "etcd://guest:x" + secret + "@" + addr, calls: []string{"advance", "list workers", "init store"}, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "unknown user", url: "etcd://stranger:" + secret + "@" + addr, calls: []string{"advance", "list workers", "init store"}, want: []string{"refuses the user", addr, "check the user name and the password"}},
		{name: "no password", url: "etcd://" + addr, calls: []string{"advance", "list workers", "init store"}, want: []string{"demands a user", addr, "user:password@"}},
		{name: "no permission", url: "etcd://guest:" + secret + "@" + addr + "/ids", calls: []string{"advance", "list workers", "init store"}, want: []string{"may not read and write", addr, "grant-permission ROLE --prefix=true readwrite /ids/"}},
		{name: "no store", url: open.URL("empty"), calls: useStore, want: []string{"/empty/format/tags", "leaf init --store"}},
		{name: "no registry", url: open.URL("empty"), calls: []string{"list workers"}, want: []string{"/empty/format/workers", "leaf init --workers"}},
		{name: "foreign keys", url: open.URL("foreign"), calls: []string{"advance", "list workers"}, want: []string{"/foreign/format/", "is not a format"}},
		{name: "exists", url: open.URL("ids"), calls: []string{"init store", "init workers"}, want: []string{"a key /ids/format/", "already"}},
		{name: "no TLS", url: open.URL("ids") + "?tls=true", calls: []string{"advance", "list workers", "init store"}, want: []string{open.Endpoints()[0], "remove tls"}},
		{name: "TLS only", url: "etcd://u:hunter2@" + fake, calls: []string{"advance", "list workers", "init store"}, want: []string{fake, "add tls=true"}},
		{name: "not trusted", url: "etcd://u:hunter2@" + fake + "?tls=true", calls: []string{"advance", "list workers", "init store"}, want: []string{"certificate is not trusted", fake, "ca=FILE"}},
	})
}

func setUp(t *testing.T, server *testserver.EtcdCluster, do func(*clientv3.Client) error) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: server.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := do(c); err != nil {
		t.Fatal(err)
	}
}

func TestMessagesOfZooKeeper(t *testing.T) {
	server := testserver.ZooKeeper(t)
	conn, _, err := zk.Connect([]string{server.Addr()}, 5*time.Second, zk.WithLogger(silence{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.AddAuth("digest", []byte("owner:"+secret)); err != nil {
		t.Fatal(err)
	}
	acls := map[string][]zk.ACL{
		"/closed": zk.DigestACL(zk.PermAll, "owner", secret),
		"/look":   append(zk.DigestACL(zk.PermAll, "owner", secret), zk.WorldACL(zk.PermRead)...),
	}
	for chroot, acl := range acls {
		for _, path := range []string{"", "/snowflake", "/snowflake/leaf", "/snowflake/leaf/format", "/snowflake/leaf/format/workers"} {
			if _, err := conn.Create(chroot+path, []byte(`{"v":1}`), 0, acl); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := "zookeeper://" + server.Addr()
	if err := initRegistry(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	gone, gone2 := freeAddr(t), freeAddr(t)
	fake, _ := impostor(t, plainly)
	complain(t, "zookeeper", []complaint{
		{name: "no server", url: "zookeeper://" + gone, calls: allWorkers, want: []string{"no connection", gone, "check that it runs"}},
		{name: "no server of two", url: "zookeeper://" + gone + "," + gone2, calls: useWorkers, want: []string{gone, gone2, "check that it runs"}},
		{name: "unknown host", url: "zookeeper://leaf.invalid", calls: allWorkers, want: []string{"leaf.invalid", "check that it runs, and the hosts"}},
		{name: "another server", url: "zookeeper://" + fake, calls: allWorkers, want: []string{fake, "is it a ZooKeeper, and part of a quorum?"}},
		{name: "no registry", url: at + "?name=empty", calls: useWorkers, want: []string{"/snowflake/empty", "leaf init --workers"}},
		{name: "no chroot", url: at + "/nowhere", calls: append([]string{"init workers"}, useWorkers...), want: []string{"no /nowhere", "correct the path or create it"}},
		{name: "ACL of another", url: at + "/closed", calls: useWorkers, want: []string{server.Addr(), "an ACL keeps out", "setAcl"}},
		{name: "may not write", url: at + "/look", calls: []string{"clock"}, want: []string{server.Addr(), "an ACL keeps out", "setAcl"}},
		{name: "exists", url: at, calls: []string{"init workers"}, want: []string{"/snowflake/leaf/format/workers already"}},
	})
	complain(t, "tree of Java", []complaint{
		{name: "no server", url: "zookeeper://" + gone + "?layout=leaf&name=n&port=1", calls: useWorkers, want: []string{"no connection", gone, "check that it runs"}},
		{name: "ACL of another", url: at + "/closed?layout=leaf&name=leaf&port=1", calls: []string{"list workers"}, want: []string{server.Addr(), "an ACL keeps out", "setAcl"}},
	})
}

type silence struct{}

func (silence) Printf(string, ...any) {}
