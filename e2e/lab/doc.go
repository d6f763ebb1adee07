// Package lab checks what clients of many servers received: histories of ranges, and of
// the calls that the servers made to their store.
//
// A [History] has a [Receipt] for every range that a client received. Its checkers ignore
// the origin of the IDs:
//
//   - [History.Unique]: no two receipts of one ID space have an ID in common.
//   - [History.Fits]: an answer has as many IDs as its request asked for.
//   - [History.Explain]: the cause of each duplicate within a documented limit.
//   - [History.Ordered]: a server's answer is above its earlier answers.
//   - [History.Within]: the store granted each answer to its server.
//   - [History.Above]: a server issues nothing below the IDs that an operator reported.
//   - [History.Timely]: an ID's time is that of the server's clock, within the bound.
//   - [History.Clients], [History.CheckSilence]: failed calls, and how long each client got
//     nothing.
//   - [History.CheckLoss]: a crash costs at most the loss budget.
//   - [Ops.CheckCounter], [Ops.CheckCell]: the calls of the store are linearizable, also those
//     of unknown outcome.
//
// A [Result] is the outcome of a scenario, for the tables of a report.
//
// Package sim below it makes histories in virtual time.
package lab
