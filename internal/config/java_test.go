package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

const shipped = `leaf.name=com.sankuai.leaf.opensource.test
leaf.segment.enable=false
#leaf.jdbc.url=
#leaf.jdbc.username=
#leaf.jdbc.password=

leaf.snowflake.enable=false
#leaf.snowflake.zk.address=
#leaf.snowflake.port=
`

func TestJava(t *testing.T) {
	tests := map[string]struct {
		text    string
		store   string
		workers string // empty: the scheme is off
		notices []string
	}{
		"master": {
			"leaf.segment.enable=true\nleaf.jdbc.url=jdbc:mysql://db:3306/leaf\nleaf.jdbc.username=root\nleaf.jdbc.password=p@ss\nleaf.snowflake.enable=false\n",
			"mysql://root:p%40ss@db:3306/leaf?tls=preferred", "", nil,
		},
		"starter spelling": {
			"leaf.segment.enable=true\nleaf.segment.url=jdbc:mysql://db/leaf\nleaf.segment.username=u\nleaf.segment.password=p\nleaf.snowflake.enable=false\n",
			"mysql://u:p@db/leaf?tls=preferred", "", nil,
		},
		"no expansion, Latin-1, escapes": {
			"leaf.jdbc.url: jdbc:mysql://db/leaf\nleaf.jdbc.username u\nleaf.jdbc.password=${x}\\u0024\xe9\nleaf.snowflake.enable=false\n",
			"mysql://u:%24%7Bx%7D%24%C3%A9@db/leaf?tls=preferred", "", nil,
		},
		"absent enable means on": {
			"leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.jdbc.username=u\nleaf.jdbc.password=p\n",
			"mysql://u:p@db/leaf?tls=preferred", "",
			[]string{"FILE: snowflake is on (leaf.snowflake.enable is absent, which means true) but leaf.snowflake.zk.address is missing: the scheme does not start"},
		},
		"no port": {
			"leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.jdbc.username=u\nleaf.jdbc.password=p\nleaf.snowflake.enable=TRUE\nleaf.snowflake.zk.address=zk\n",
			"mysql://u:p@db/leaf?tls=preferred", "",
			[]string{"FILE: snowflake is on (leaf.snowflake.enable=TRUE) but leaf.snowflake.port is missing: the scheme does not start"},
		},
		"snowflake": {
			"leaf.name=n\nleaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.jdbc.username=u\nleaf.jdbc.password=p\nleaf.snowflake.enable=TRUE\nleaf.snowflake.zk.address=zk:2181\nleaf.snowflake.port=8080\n",
			"mysql://u:p@db/leaf?tls=preferred", "zookeeper://zk:2181?layout=leaf&name=n&port=8080", nil,
		},
		"snowflake alone, chroot, no name": {
			"leaf.segment.enable=false\nleaf.snowflake.address=zk1, zk2:2182/apps/leaf\nleaf.snowflake.port=9\n",
			"", "zookeeper://zk1,zk2:2182/apps/leaf?layout=leaf&name=null&port=9",
			[]string{"FILE: leaf.name is missing: Java Leaf is called null in ZooKeeper then, and so is this server"},
		},
		"segment without address": {
			"leaf.name=com.shop\nleaf.snowflake.zk.address=zk\nleaf.snowflake.port=9\n",
			"", "zookeeper://zk?layout=leaf&name=com.shop&port=9",
			[]string{"FILE: segment is on (leaf.segment.enable is absent, which means true) but leaf.jdbc.url is missing: the scheme does not start"},
		},
		"both spellings, unknown keys": {
			"leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.segment.url=jdbc:mysql://other/leaf\nleaf.jdbc.username=u\nleaf.segment.username=u\nleaf.jdbc.password=p\nleaf.jdbc.pasword=p\nleaf.zzzzzzzzzzzz=1\nother=1\nleaf.snowflake.enable=no\n",
			"mysql://u:p@db/leaf?tls=preferred", "",
			[]string{
				"FILE: leaf.snowflake.enable=no is neither true nor false; Java Leaf takes it for false, and so does this server",
				"FILE: leaf.segment.url is ignored, because leaf.jdbc.url is set too",
				"FILE: leaf.jdbc.pasword is not a key of Java Leaf and is ignored; did you mean leaf.jdbc.password?",
				"FILE: leaf.zzzzzzzzzzzz is not a key of Java Leaf and is ignored",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := write(t, "leaf.properties", test.text)
			cfg, notices, err := config.Load(config.Source{Java: javaURLs, File: file})
			if err != nil {
				t.Fatal(err)
			}
			want := config.Default()
			want.Listen, want.RESP, want.StartWait = ":8080", config.Off, 15*time.Second
			want.Segment.Policy, want.PublicRead = config.PolicyLeaf, true
			want.Store, want.Segment.Enable = test.store, test.store != ""
			want.Workers, want.Snowflake.Enable = test.workers, test.workers != ""
			if cfg.SnowflakeOff != "" && !slices.ContainsFunc(notices, func(n string) bool { return strings.Contains(n, cfg.SnowflakeOff) }) {
				t.Errorf("%q is told to callers, and in no notice", cfg.SnowflakeOff)
			}
			cfg.SnowflakeOff = ""
			if diff := cmp.Diff(want, cfg); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			for i, n := range notices {
				notices[i] = strings.ReplaceAll(n, file, "FILE")
			}
			if diff := cmp.Diff(test.notices, notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
			checkConvert(t, file, cfg)
		})
	}
}

// checkConvert checks that the converted file means the same as the original.
func checkConvert(t *testing.T, file string, want config.Config) {
	t.Helper()
	text, notices, err := config.Convert(config.Source{File: file, Java: javaURLs})
	if err != nil {
		t.Fatal(err)
	}
	cfg := load(t, config.Source{File: write(t, "leaf.yaml", text)})
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("converted configuration (-want +got):\n%s\n%s", diff, text)
	}
	if cfg.Store != "" {
		notices = append(notices, "password")
	}
	for _, n := range notices {
		if !strings.Contains(text, n) {
			t.Errorf("the converted file does not say %q:\n%s", n, text)
		}
	}
}

func TestJavaNothingToServe(t *testing.T) {
	const (
		nothing      = "FILE: segment.enable: nothing is left to serve: "
		segmentOff   = "leaf.segment.enable is not true"
		segmentBare  = "segment is on (leaf.segment.enable is absent, which means true) but leaf.jdbc.url is missing"
		snowflakeOff = "leaf.snowflake.enable is not true"
		noZooKeeper  = "snowflake is on (leaf.snowflake.enable is absent, which means true) but leaf.snowflake.zk.address is missing"
		noPort       = "snowflake is on (leaf.snowflake.enable is absent, which means true) but leaf.snowflake.port is missing"
	)
	for name, test := range map[string]struct{ text, want string }{
		"shipped file":       {shipped, segmentOff + "; " + snowflakeOff},
		"empty":              {"", segmentBare + "; " + noZooKeeper},
		"snowflake, no port": {"leaf.segment.enable=false\nleaf.snowflake.zk.address=zk:2181\n", segmentOff + "; " + noPort},
		"no address":         {"leaf.segment.enable=true\nleaf.jdbc.username=u\nleaf.snowflake.enable=false\n", snowflakeOff + "; segment is on (leaf.segment.enable=true) but leaf.jdbc.url is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "leaf.properties", test.text)
			fails(t, config.Source{File: file}, nothing+test.want)
			if _, _, err := config.Convert(config.Source{File: file, Java: javaURLs}); err == nil {
				t.Error("Convert accepted it")
			}
		})
	}
}

func TestWorkersStandInForJavaAddress(t *testing.T) {
	file := write(t, "leaf.properties", "leaf.segment.enable=false\n")
	cfg, notices, err := config.Load(config.Source{Java: javaURLs, File: file, Flags: map[string]string{"workers": "static:3"}})
	if err != nil || cfg.Workers != "static:3" || !cfg.Snowflake.Enable || len(notices) != 0 {
		t.Errorf("workers %q, enabled %v, %q, %v: --workers should stand in for leaf.snowflake.zk.address", cfg.Workers, cfg.Snowflake.Enable, notices, err)
	}
}

func TestJavaBadZooKeeper(t *testing.T) {
	const segment = "leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.snowflake.zk.address="
	for text, want := range map[string]string{
		"zk:2181\nleaf.snowflake.port=http\n": `FILE: leaf.snowflake.port: "http" is not a number from 1 to 65535`,
		"zk:x\nleaf.snowflake.port=1\n":       "FILE: leaf.snowflake.zk.address: URL zookeeper://zk:xxxxx: invalid argument: a host or its port is malformed: write zookeeper://h1:2181,h2:2181, or zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P",
	} {
		fails(t, config.Source{File: write(t, "leaf.properties", segment+text)}, want)
	}
}

func TestStoreStandsInForJavaAddress(t *testing.T) {
	file := write(t, "leaf.properties", "leaf.snowflake.enable=false\n")
	cfg := load(t, config.Source{File: file, Flags: map[string]string{"store": "sqlite:x"}})
	if cfg.Store != "sqlite:x" || cfg.Segment.Policy != config.PolicyLeaf {
		t.Errorf("store %q, policy %q: --store should stand in for leaf.jdbc.url", cfg.Store, cfg.Segment.Policy)
	}
}

func TestJavaBadURL(t *testing.T) {
	file := write(t, "leaf.properties", "leaf.jdbc.url=jdbc:oracle:thin:@db\nleaf.jdbc.password=secret\n")
	_, _, err := config.Load(config.Source{Java: javaURLs, File: file})
	if err == nil || !strings.HasPrefix(err.Error(), file+": leaf.jdbc.url: ") {
		t.Errorf("error %v, want one that names leaf.jdbc.url", err)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v shows the password", err)
	}
}

func TestJavaListen(t *testing.T) {
	file := write(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://db/leaf\n")
	cfg := load(t, config.Source{File: file, Flags: map[string]string{"listen": "127.0.0.1:9"}})
	if cfg.Listen != "127.0.0.1:9" {
		t.Errorf("listen = %q, want --listen to win", cfg.Listen)
	}
}

// Java Leaf has no Redis protocol: its port opens only where a file, a variable or a flag asks for
// it.
func TestJavaRESP(t *testing.T) {
	file := write(t, "leaf.properties", "leaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.snowflake.enable=false\n")
	if cfg := load(t, config.Source{File: file}); cfg.RESP != config.Off {
		t.Errorf("resp = %q, want off", cfg.RESP)
	}
	if cfg := load(t, config.Source{File: file, Environ: []string{"LEAF_RESP=127.0.0.1:9"}}); cfg.RESP != "127.0.0.1:9" {
		t.Errorf("resp = %q, want what LEAF_RESP asks for", cfg.RESP)
	}
}
