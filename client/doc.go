// Package client takes IDs from Leaf servers at the speed of memory. It keeps a stock of each
// tag in the program, out of the same buffer that a server has ([segment.Buffer]), and
// fetches the next range before the last one is missed.
//
//	ids, err := client.New("http://leaf-1:8080,leaf-2:8080", nil)
//	…
//	defer ids.Close(context.Background())
//	id, err := ids.Next(ctx, "order")
//
// # What always holds
//
//  1. No ID is issued twice, by this program or any other: a range leaves a server's memory
//     before it enters this one. A lost answer costs its IDs.
//  2. Next and Take make no call while there is stock. The stock has as many IDs as the
//     program took in the last outage budget, 10 minutes, at least a step of the tag, as far as
//     the loss budget allows.
//  3. A crash of the program loses at most the IDs of its busiest 10 minutes and two steps, and
//     at most the loss budget, [Options.MaxStock]; [Client.Close] gives back what no other
//     program has taken IDs behind.
//  4. The IDs of one tag increase within a range. From range to range, and between programs,
//     they interleave. [Client.Ordered] makes a call for each ID: those of one server
//     increase over all programs.
//  5. Every method ends with its context when it has to wait, and is safe for concurrent use.
//
// # Choice of the server
//
// The servers of one URL have one store. The client asks the one that answered last. If it
// takes longer than [Options.Hedge] the client asks another one as well, and the first answer
// counts. A server that fails, or takes longer than [Options.CallTimeout], comes last for a
// while. The client repeats a call only if that costs IDs at most: it never repeats a give-back.
package client
