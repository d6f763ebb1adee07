// Package console serves the web pages of a server for operators.
//
// The pages are static files without a figure or a name in them, so everybody may have them. Their
// script calls AdminService as any client does, with the token that a person types in, so the
// console has no rights and no administration of its own. One stream of server-sent events brings
// the figures of /metrics to open pages, for callers with the right to read.
//
// A person's token stays in the memory of the page. The policy of the page forbids scripts, styles
// and connections of other origins, and writing text as HTML.
package console
