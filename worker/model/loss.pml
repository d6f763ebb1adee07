/*
 * The lease of one worker ID on a registry that may lose acknowledged writes.
 *
 * What is modelled
 *   Registry   one cell (instance, term, horizon) and a replica, which is brought up to
 *              date at any time. A fail-over puts the replica in the cell's place. It
 *              happens once.
 *   Clock      the registry's, which never goes back. Nodes are as slow as they like: a
 *              claim may be confirmed, and a process started, at any later time.
 *   Node       claims a cell whose horizon has passed, confirms the claim by a look at
 *              the registry, issues ticks, extends its lease. It may die after every
 *              step; what is in its file then, the next process of the node goes on from
 *              alone, or hands back.
 *
 * What is assumed of a node that holds a lease: it issues nothing DELAY beyond the time
 * at which the registry last agreed, because it extends the lease often enough, or is
 * not cut off for that long (HEARD_IN_TIME). Nothing of the kind is assumed before a
 * claim is confirmed, and after a start from the file alone.
 *
 * The property: no tick is issued twice.
 *
 * lease.pml has what is not here: swaps of unknown outcome, copied files, clocks that are
 * wrong. Not modelled at all: a second fail-over while a holder has yet to notice the
 * first one, and two primaries at a time.
 *
 * Bounds: TICKS, DELAY, HORIZON (beyond the clock), NODES, LIVES (of each node).
 *
 * Each rule below can be taken out: -DRULE=0.
 */
#ifndef TICKS
#define TICKS 6
#endif
#ifndef DELAY
#define DELAY 2
#endif
#ifndef HORIZON
#define HORIZON 4
#endif
#ifndef NODES
#define NODES 2
#endif
#ifndef LIVES
#define LIVES 2
#endif

/* A claim counts only from DELAY beyond the registry's clock on. Out: from the horizon
 * that it replaced. */
#ifndef CLAIM_WAITS
#define CLAIM_WAITS 1
#endif
/* The look that confirms a claim finds the claim itself. Out: any answer will do. */
#ifndef LOOK_FINDS_CLAIM
#define LOOK_FINDS_CLAIM 1
#endif
/* A lease is extended, or put back, only before its horizon: later somebody else may have claimed the
 * cell, and that claim been lost. */
#ifndef EXTEND_BEFORE_HORIZON
#define EXTEND_BEFORE_HORIZON 1
#endif
/* A start from the file alone issues nothing DELAY beyond the time at which the registry
 * last agreed. Out: up to the horizon in the file. */
#ifndef ALONE_WITHIN_DELAY
#define ALONE_WITHIN_DELAY 1
#endif
/* Whoever started from the file alone puts no lost record back, but claims anew: others
 * may have held the cell meanwhile. Out: a cell that was never written is put back. */
#ifndef ALONE_PUTS_NOTHING_BACK
#define ALONE_PUTS_NOTHING_BACK 1
#endif
/* The assumption about holders. Out: a holder goes on up to its horizon. */
#ifndef HEARD_IN_TIME
#define HEARD_IN_TIME 1
#endif

#define NAME 'A' + id /* of a node, for printf */

typedef Cell { byte inst, term, horizon }

Cell cell, replica;
byte clock;
byte insts;         /* that were made up */
bool lost;          /* writes, which happens once */
bit issued[TICKS];

#define put(c, i, t, h) c.inst = i; c.term = t; c.horizon = h
#define copy(to, from) put(to, from.inst, from.term, from.horizon)

#define least(a, b) (a < b -> a : b)
#define most(a, b) (a > b -> a : b)

#define mine (cell.inst == inst && cell.term == term)
#define older (cell.term < term && cell.horizon <= prior) /* what the claim replaced, or something before it */
#define in_time (clock < horizon || !EXTEND_BEFORE_HORIZON)
#define extensible (mine && in_time)
#define restorable (older && in_time && clock < heard + DELAY)
#define heard_now() heard = clock; horizon = least(clock + HORIZON, TICKS)

/* usable: ticks before that may be issued. */
#define within(rule) (rule -> least(horizon, heard + DELAY) : horizon)
#define usable (at == HOLD -> within(HEARD_IN_TIME) : within(ALONE_WITHIN_DELAY))

mtype = { DOWN, CLAIM, CONFIRM, HOLD, ALONE };

#define forget() inst = 0; term = 0; horizon = 0; prior = 0; cursor = 0; heard = 0

proctype node(byte id) {
	mtype at = DOWN;
	byte inst, term, horizon, prior;
	byte cursor;  /* the next tick; what is below it was issued, or is not the node's */
	byte heard;   /* when the registry last agreed */
	byte lives;
	bool file;    /* says what the variables above do; else they mean nothing */

end:	do
	/* start */
	:: atomic { at == DOWN && lives < LIVES && !file -> lives++; at = CLAIM }
	:: atomic { at == DOWN && lives < LIVES && file ->
		lives++;
		if
		:: at = ALONE; printf("%c starts from its file alone at %d: term %d, ticks from %d to %d\n", NAME, clock, term, cursor, horizon)
		:: mine -> printf("%c hands term %d back at %d\n", NAME, term, cursor);
			put(cell, 0, term, cursor); file = false; forget(); at = CLAIM
		:: !mine && cell.term < term && cell.horizon < cursor -> printf("%c puts back that term %d ended at %d\n", NAME, term, cursor);
			put(cell, cell.inst, term, cursor); file = false; forget(); at = CLAIM
		:: !mine -> file = false; forget(); at = CLAIM
		fi
	   }

	/* claim */
	:: atomic { at == CLAIM && cell.horizon <= clock && clock < TICKS ->
		insts++;
		inst = insts; term = cell.term + 1; prior = cell.horizon;
		cursor = (CLAIM_WAITS -> most(prior, clock + DELAY) : prior);
		heard_now();
		put(cell, inst, term, horizon);
		printf("%c claims at %d as instance %d: term %d, ticks from %d to %d\n", NAME, clock, inst, term, cursor, horizon);
		at = CONFIRM
	   }
	:: atomic { at == CONFIRM && (mine || !LOOK_FINDS_CLAIM) ->
		printf("%c looks at %d and finds instance %d\n", NAME, clock, cell.inst);
		heard = clock;
		file = true;
		at = HOLD
	   }
	:: atomic { at == CONFIRM && !mine && LOOK_FINDS_CLAIM -> forget(); at = CLAIM }

	/* hold */
	:: atomic { at == HOLD && cursor < horizon -> cursor++ } /* a tick that nobody asked for */
	:: atomic { (at == HOLD || at == ALONE) && cursor < usable ->
		printf("%c issues tick %d\n", NAME, cursor);
		assert(!issued[cursor]);
		issued[cursor] = true;
		cursor++
	   }
	:: atomic { (at == ALONE || at == HOLD && clock < heard + DELAY) && extensible ->
		heard_now();
		cell.horizon = horizon;
		at = HOLD;
		printf("%c extends term %d at %d to %d\n", NAME, term, clock, horizon)
	   }
	:: atomic { at == HOLD && restorable || at == ALONE && cell.term == 0 && !ALONE_PUTS_NOTHING_BACK ->
		heard_now();
		put(cell, inst, term, horizon);
		at = HOLD;
		printf("%c puts term %d back at %d\n", NAME, term, clock)
	   }
	:: atomic { (at == ALONE || at == HOLD && !restorable) && !extensible ->
		printf("%c finds instance %d and stops\n", NAME, cell.inst);
		file = false; forget(); at = CLAIM
	   }

	:: atomic { at != DOWN ->
		printf("%c dies\n", NAME);
		at = DOWN;
		if
		:: !file -> forget()
		:: else
		fi
	   }
	od
}

proctype registry() {
end:	do
	:: atomic { clock < TICKS -> clock++ }
	:: atomic { !lost -> copy(replica, cell) }
	:: atomic { !lost && (replica.inst != cell.inst || replica.term != cell.term || replica.horizon != cell.horizon) ->
		printf("the registry loses writes at %d: instance %d, term %d, horizon %d is what it has\n", clock, replica.inst, replica.term, replica.horizon);
		lost = true;
		copy(cell, replica);
		put(replica, 0, 0, 0)
	   }
	od
}

init {
	byte i;
	atomic {
		run registry();
		do
		:: i < NODES -> run node(i); i++
		:: else -> break
		od;
		i = 0
	}
}
