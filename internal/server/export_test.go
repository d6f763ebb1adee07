package server

import "time"

// BoundBody is boundBody.
var BoundBody = boundBody

// SetAnswerTimeout shortens how long a client may take to read an answer.
func (o *Options) SetAnswerTimeout(d time.Duration) { o.answerTimeout = d }
