package server

import "time"

// SetAnswerTimeout shortens how long a client may take to read an answer.
func (o *Options) SetAnswerTimeout(d time.Duration) { o.answerTimeout = d }

// SetUnsent lowers the bound on unread output.
func (o *Options) SetUnsent(bytes int64) { o.unsent = bytes }

// SetFilesInterval has the server look at its files so often.
func (o *Options) SetFilesInterval(d time.Duration) { o.filesInterval = d }
