package filelock

// RemoteKinds is for tests.
var RemoteKinds = remoteKinds
