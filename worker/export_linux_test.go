package worker

// What tests look at.
var (
	Identity    = identity
	RemoteKinds = remoteKinds
)
