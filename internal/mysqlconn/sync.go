package mysqlconn

import "log/slog"

// A Sync is how a server brings a commit to its disk.
type Sync struct {
	Flush  string // innodb_flush_log_at_trx_commit
	Binlog string // sync_binlog; empty: the server has no binary log of its own files
}

// SyncVariables are the variables that [SyncOf] needs.
var SyncVariables = []string{"innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog", "binlog_storage_engine"}

// SyncOf reads the variables. MariaDB's binlog_storage_engine keeps the binary log in InnoDB.
func SyncOf(vars map[string]string) Sync {
	s := Sync{Flush: vars["innodb_flush_log_at_trx_commit"]}
	if IsOn(vars["log_bin"]) && vars["binlog_storage_engine"] == "" {
		s.Binlog = vars["sync_binlog"]
	}
	return s
}

// Flushed reports whether InnoDB syncs each commit. At 3, MariaDB does so both when it prepares the
// commit and when it completes it.
func (s Sync) Flushed() bool { return s.Flush == "1" || s.Flush == "3" }

// Warn logs the settings with which a power cut may take back the stake. With a binary log InnoDB
// syncs only the prepared commit, and the recovery undoes all that the binary log lacks.
func (s Sync) Warn(logger *slog.Logger, stake string, attrs ...any) {
	warn := func(name, value string) {
		logger.Warn("a power cut may take back "+stake+": set "+name+"=1 on the server", append(attrs, name, value)...)
	}
	if !s.Flushed() {
		warn("innodb_flush_log_at_trx_commit", s.Flush)
	}
	if s.Binlog != "" && s.Binlog != "1" && s.Flush != "3" {
		warn("sync_binlog", s.Binlog)
	}
}
