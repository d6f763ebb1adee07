package nats

import (
	"github.com/nats-io/nats.go/jetstream"

	sabotage "github.com/leaf-id/leaf"
)

// expectSequence has a write compare the number of the last message.
func expectSequence(n uint64) jetstream.PublishOpt {
	if sabotage.Broken("nats sequence") {
		return jetstream.WithMsgID("")
	}
	return jetstream.WithExpectLastSequencePerSubject(n)
}
