package sqlite

// For tests.
var (
	SettleTime = &settleTime
	Connect    = connect
)
