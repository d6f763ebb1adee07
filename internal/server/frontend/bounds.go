package frontend

import "time"

// Bounds on connections.
const (
	RequestTimeout = 5 * time.Second  // to send the head of a request
	BodyTimeout    = 10 * time.Second // to send the body; bodies are a few bytes, so every network is faster
	AnswerTimeout  = 2 * time.Minute  // to read an answer, in addition to the wait for it
	IdleTimeout    = 2 * time.Minute
	MaxHeaderBytes = 16 << 10
	MaxStreams     = 250 // requests at a time on a connection of HTTP/2; net/http's own
)
