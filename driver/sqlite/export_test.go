package sqlite

// SettleTime is for tests.
var SettleTime = &settleTime
