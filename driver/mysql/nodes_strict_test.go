package mysql_test

import (
	"testing"
)

// uid-generator's script is refused where a time may not be zero and is so by default, as
// the documentation says, and nowhere else.
func TestBaidusTableIsRefused(t *testing.T) {
	for mode, refused := range map[string]bool{"'STRICT_ALL_TABLES'": false, "'STRICT_ALL_TABLES,NO_ZERO_DATE'": true} {
		for _, explicit := range []string{"0", "1"} {
			cfg := mysqlConfig(t, mariadb, mariadb.NewDatabase(t))
			cfg.Params["sql_mode"], cfg.Params["explicit_defaults_for_timestamp"] = mode, explicit
			if _, err := mysqlDB(t, cfg).Exec(baiduTable); (err != nil) != (refused && explicit == "0") {
				t.Errorf("sql_mode=%s, explicit_defaults_for_timestamp=%s: %v", mode, explicit, err)
			}
		}
	}
}

// Our own table is one that strict servers take, and that uid-generator can use.
func TestNodesTableOnStrictServers(t *testing.T) {
	for _, explicit := range []string{"0", "1"} {
		cfg := mysqlConfig(t, mariadb, mariadb.NewDatabase(t))
		cfg.Params["sql_mode"] = "'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO'"
		cfg.Params["explicit_defaults_for_timestamp"] = explicit
		db := mysqlDB(t, cfg)
		b := nodeBed{db: db}
		if err := initNodes(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		wantAssigned(t, b.start(t, nil), 1)
		b.exec(t, baiduInsert)
		b.wantIDs(t, 1, 2)
	}
}
