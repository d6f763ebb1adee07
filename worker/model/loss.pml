/*
 * The lease of one worker ID on a registry that may lose acknowledged writes.
 *
 * What is modelled
 *   Registry   the cell of the worker ID (instance, term, horizon, stamp), and the stamp in
 *              another record, which a peer writes. A replica is brought up to date at any
 *              time. A fail-over puts the replica in their place: a new server epoch begins. It
 *              stands for a promotion, for a crash restart that loses writes, and, as the
 *              replica stays as it is, for a third server that is older still, and for the
 *              former one that is rebuilt. With SWITCH_BACK the former one may stay as it was,
 *              and take over again. The incarnation is the number of the epoch. With UNTRACKED a
 *              server may take over under the incarnation of the one before, once no node has
 *              been answered for more than GAP.
 *   Clock      the right time, which nodes have; the registry's is up to TOLERANCE off it, and
 *              far behind for a while, and is set at any time. Nodes are as slow as they like:
 *              a claim may be confirmed, and a process started, at any later time.
 *   Stamp      an incarnation, a time since when it is known to have answered, and, with
 *              UNTRACKED, the time of the look that this comes from.
 *   Node       asks for the time and the incarnation, claims a cell whose horizon has passed,
 *              looks for its claim until the incarnation has stood for the claim delay, issues
 *              ticks, extends its lease. It may die after every step; what is in its file
 *              then, the next process of the node goes on from alone, or hands back.
 *              With SENT the swap of an extension may arrive at any time after the node has
 *              compared the horizon with its clock, also at a server that has taken over, and
 *              after the end of the node; its answer may be lost, or it never arrives.
 *              With LOST that may happen to a claim: its node does not know the outcome, and
 *              claims again, or finds the claim and writes it again.
 *              With PAUSED the node extends its lease by the registry's clock: it asks for the
 *              incarnation, and for the time, perhaps of another server, and sends a swap, which
 *              arrives at any time. It may be paused before each of these.
 *
 * What is assumed of a node that holds a lease: it issues nothing DELAY beyond the time
 * at which the registry last agreed, because it extends the lease often enough, or is
 * not cut off for that long (HEARD_IN_TIME). Nothing of the kind is assumed before a
 * claim is confirmed, and after a start from the file alone.
 *
 * The property: no tick is issued twice.
 *
 * lease.pml has what is not here: copied files, clocks of nodes that are wrong. Not modelled at all: two primaries at a time,
 * an incarnation that comes back after another one.
 *
 * Bounds: TICKS, DELAY, HORIZON (beyond the clock), NODES, LIVES (of each node), EPOCHS,
 * TOLERANCE, SWITCH_BACK, SENT, LOST, PAUSED, SLOW_FIRST (the first server's clock is TOLERANCE
 * behind), UNTRACKED, GAP.
 *
 * Each rule below can be taken out: -DRULE=0.
 */
#ifndef TICKS
#define TICKS 6
#endif
#ifndef DELAY
#define DELAY 1
#endif
#ifndef HORIZON
#define HORIZON 3
#endif
#ifndef NODES
#define NODES 2
#endif
#ifndef LIVES
#define LIVES 1
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef TOLERANCE
#define TOLERANCE 0
#endif
#ifndef SWITCH_BACK
#define SWITCH_BACK 0
#endif
#ifndef SENT
#define SENT 0
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef PAUSED
#define PAUSED 0
#endif
#ifndef SLOW_FIRST
#define SLOW_FIRST 0
#endif
#ifndef UNTRACKED
#define UNTRACKED 0
#endif
#ifndef GAP
#define GAP 1
#endif

/* A claim counts only once the incarnation has stood for the claim delay. Out: it counts when
 * it is found. */
#ifndef CLAIM_WAITS
#define CLAIM_WAITS 1
#endif
/* Times below the end of that wait are never issued. Out: from the old horizon on. */
#ifndef FLOOR_ALWAYS
#define FLOOR_ALWAYS 1
#endif
/* A stamp counts for its own incarnation only. Out: any stamp will do. */
#ifndef STAMP_NAMES_EPOCH
#define STAMP_NAMES_EPOCH 1
#endif
/* With UNTRACKED a stamp counts only if the latest look before is at most GAP old. Out: any stamp of the
 * incarnation will do. */
#ifndef GAP_ENDS_EPOCH
#define GAP_ENDS_EPOCH 1
#endif
/* With UNTRACKED the latest stamp counts. Out: the earliest. */
#ifndef LATEST_STAMP
#define LATEST_STAMP 1
#endif
/* Each epoch has an incarnation of its own. Out: a server that crashed, or comes back, has
 * the one that it had. */
#ifndef START_IN_INCARNATION
#define START_IN_INCARNATION 1
#endif
/* The time is not read before the incarnation. Out: the incarnation is asked for later. */
#ifndef CLOCK_NOT_BEFORE
#define CLOCK_NOT_BEFORE 1
#endif
/* Only a node whose clock agrees with the registry's stamps, or has a claim count. */
#ifndef STAMP_BY_RIGHT_CLOCK
#define STAMP_BY_RIGHT_CLOCK 1
#endif
/* The look that lets a claim count comes after the swap. Out: one before it will do. */
#ifndef LOOK_AFTER_SWAP
#define LOOK_AFTER_SWAP 1
#endif
/* The look finds the claim itself. Out: any answer will do. */
#ifndef LOOK_FINDS_CLAIM
#define LOOK_FINDS_CLAIM 1
#endif
/* A claim that is found after its answer was lost is written again, and waits like any other. Out: it
 * counts once it is found, by what was asked before. */
#ifndef FOUND_CLAIM_WAITS
#define FOUND_CLAIM_WAITS 1
#endif
/* All nodes have one claim delay. Out: a claimer has a shorter one than a holder. */
#ifndef ONE_DELAY
#define ONE_DELAY 1
#endif
/* A lease is extended, or put back, only before its horizon: later somebody else may have
 * claimed the cell, and that claim been lost. */
#ifndef EXTEND_BEFORE_HORIZON
#define EXTEND_BEFORE_HORIZON 1
#endif
/* The answer to an extension counts only before the horizon, too. Out: the node compares them
 * before it sends the swap. */
#ifndef ANSWER_BEFORE_HORIZON
#define ANSWER_BEFORE_HORIZON 1
#endif
/* With PAUSED the tolerance counts against the lease, unless the incarnation of its record gave the
 * time. Out: the time alone decides. */
#ifndef OTHER_CLOCK_COUNTS
#define OTHER_CLOCK_COUNTS 1
#endif
/* With PAUSED the node asks for the incarnation again: another server may have given the time. Out:
 * it asks before the time only. */
#ifndef ASKED_AGAIN
#define ASKED_AGAIN 1
#endif
/* It asks again after the answer to the swap: another server may have given that. Out: before it
 * sends the swap. */
#ifndef ASKED_AFTER_ANSWER
#define ASKED_AFTER_ANSWER 1
#endif
/* A swap compares the whole record. Out: a swap that arrives compares the instance. */
#ifndef LATE_SWAP_COMPARES
#define LATE_SWAP_COMPARES 1
#endif
/* A start from the file alone issues nothing DELAY beyond the time at which the registry
 * last agreed. Out: up to the horizon in the file. */
#ifndef ALONE_WITHIN_DELAY
#define ALONE_WITHIN_DELAY 1
#endif
/* The registry agrees only within that time to a lease that was continued from the file: later
 * others may have held the cell, and that been lost. Out: at any time. */
#ifndef ALONE_HEARD_IN_TIME
#define ALONE_HEARD_IN_TIME 1
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
#define FAR 4         /* a registry's clock may be so far behind */
#define NEVER 100

#define claimDelay (DELAY + TOLERANCE - !ONE_DELAY)

typedef Cell { byte inst, term, horizon, inc; short since, seen }

Cell cell, replica;
Cell former; /* the former primary, in a fail-over */
short was;
byte peer, peerCopy;           /* the stamp in the record of a peer: its incarnation */
short peerSince, peerSinceCopy, peerSeen, peerSeenCopy;
byte clock;
short off;                     /* of the registry's clock */
byte epoch = 1;
byte unmarked;                 /* the epochs with the incarnation of the one before */
byte silent;                   /* with UNTRACKED: no node is answered; one more than the ticks since then, at most GAP + 2 */
byte insts;                    /* that were made up */
bit issued[TICKS];

#define incarnation (START_IN_INCARNATION -> epoch - unmarked : 1)
#define up (silent == 0)
#define registryTime (clock + off)
#define rightClock (off >= 0 - TOLERANCE && off <= TOLERANCE || !STAMP_BY_RIGHT_CLOCK)

#define put(c, i, t, h) c.inst = i; c.term = t; c.horizon = h
#define stamp(c, i, s, t) c.inc = i; c.since = s; c.seen = t
#define copy(to, from) put(to, from.inst, from.term, from.horizon); stamp(to, from.inc, from.since, from.seen)

#define least(a, b) (a < b -> a : b)
#define most(a, b) (a > b -> a : b)

/* since when an incarnation is known to have answered, by one stamp, and by two; and the latest look */
#define counts(i, t) (i != 0 && (i == incarnation || !STAMP_NAMES_EPOCH) && (!UNTRACKED || t <= registryTime + TOLERANCE))
#define by(i, s, t) (counts(i, t) -> s : NEVER)
#define looked(i, t) (counts(i, t) -> t : 0 - NEVER)
#define both(a, b) (UNTRACKED && LATEST_STAMP && a != NEVER && b != NEVER -> most(a, b) : least(a, b))
#define stamped both(by(cell.inc, cell.since, cell.seen), by(peer, peerSince, peerSeen))
#define stampSeen most(looked(cell.inc, cell.seen), looked(peer, peerSeen))
#define broken_off(t) (UNTRACKED && GAP_ENDS_EPOCH && registryTime - t > GAP)

#define mine (cell.inst == inst && cell.term == term)
#define older (cell.term < term && cell.horizon <= prior) /* what the claim replaced, or something before it */
#define in_time (clock < horizon || !EXTEND_BEFORE_HORIZON)
#define extensible (mine && in_time)
#define agreeable (at == ALONE && !ALONE_HEARD_IN_TIME || clock < heard + DELAY)
#define restorable (older && in_time && clock < heard + DELAY)
#define heard_now() heard = clock; horizon = least(clock + HORIZON, TICKS)

/* arrives: the swap under way finds what it expects. */
#define arrives (up && cell.inst == sender && (cell.horizon == expects || !LATE_SWAP_COMPARES))
#define landed() sent = 0; asked = 0; told = 0; timely = false; bids = false; expects = 0; sender = 0; sentInc = 0; sentSince = 0; sentSeen = 0

/* With PAUSED a claim, and an extension, go by the registry's time as well. */
#define claimable (cell.horizon <= clock && (!PAUSED || cell.horizon <= reading))
#define still (asked == incarnation || !ASKED_AGAIN || !ASKED_AFTER_ANSWER)
#define same_server (asked == cell.inc && still && !UNTRACKED)
#define told_in_time (clock + least(told + (same_server || !OTHER_CLOCK_COUNTS -> 0 : TOLERANCE), TOLERANCE) < horizon)

/* remember notes since when the present incarnation is known, which is now if it was not. */
#define remember(s, t) \
	since = (inc == incarnation -> both(since, s) : s); seen = (inc == incarnation -> most(seen, t) : t); \
	inc = incarnation; \
	since = (broken_off(seen) -> registryTime : least(since, registryTime)); \
	seen = (UNTRACKED -> registryTime : 0)
#define stamp_mine() \
	if \
	:: rightClock -> remember(stamped, stampSeen); stamp(cell, inc, since, seen) \
	:: else -> stamp(cell, 0, 0, 0) \
	fi

/* usable: ticks before that may be issued. */
#define within(rule) (rule -> least(horizon, heard + DELAY) : horizon)
#define usable (at == HOLD -> within(HEARD_IN_TIME) : within(ALONE_WITHIN_DELAY))

mtype = { DOWN, CLAIM, ASKED, TIMED, CONFIRM, LOOKED, HOLD, ALONE };

#define forget() inst = 0; reading = 0; asked = (sent != 0 -> asked : 0); term = 0; horizon = 0; prior = 0; cursor = 0; heard = 0; inc = 0; since = 0; seen = 0; stood = 0; listed = 0; found = 0; foundSeen = 0

#define settled (registryTime >= since + claimDelay || !CLAIM_WAITS)
#define floor() (FLOOR_ALWAYS && since + claimDelay > prior -> since + claimDelay : prior)

proctype node(byte id) {
	mtype at = CLAIM;
	byte inst, term, horizon, prior;
	byte cursor;  /* the next tick; what is below it was issued, or is not the node's */
	byte heard;   /* when the registry last agreed */
	byte inc;     /* the incarnation that is known, */
	short since;  /* since then, */
	short seen;   /* by a look at this time */
	byte listed;  /* the incarnation under which a look found the record, */
	short found, foundSeen; /* and what its stamps say */
	byte lives = 1;
	bool stood;   /* a look before the swap found that the incarnation has stood */
	bool file;    /* says what the variables above do; else they mean nothing */
	byte sent;    /* the horizon in a swap under way, 0 without one, */
	byte expects, sender; /* the horizon and the instance that the swap expects, */
	byte sentInc; short sentSince, sentSeen; /* and its stamp; */
	byte asked;   /* with PAUSED: the incarnation before the time, 0 if not asked for, */
	short told;   /* and by so much that time is off; */
	bool timely;  /* the answer comes in time */
	short reading; /* with PAUSED: the registry's time before a claim */
	bool bids;    /* it is the claim */
	byte bid, bidPrior; /* of this instance, whose outcome is unknown, and the horizon that it replaces */

end:	do
	/* start */
	:: atomic { at == DOWN && !file -> at = CLAIM }
	:: atomic { at == DOWN && file ->
		if
		:: at = ALONE; printf("%c starts from its file alone at %d: term %d, ticks from %d to %d\n", NAME, clock, term, cursor, horizon)
		:: up && mine -> printf("%c hands term %d back at %d\n", NAME, term, cursor);
			put(cell, 0, term, cursor); file = false; forget(); at = CLAIM
		:: up && !mine && cell.term < term && cell.horizon < cursor -> printf("%c puts back that term %d ended at %d\n", NAME, term, cursor);
			put(cell, cell.inst, term, cursor); file = false; forget(); at = CLAIM
		:: up && !mine -> file = false; forget(); at = CLAIM
		fi
	   }

	/* claim: the time and the incarnation are asked for, then the cell is swapped */
	:: atomic { up && at == CLAIM && clock < TICKS && rightClock ->
		if
		:: CLOCK_NOT_BEFORE ->
			remember(stamped, stampSeen);
			stood = !LOOK_AFTER_SWAP && settled;
			reading = (PAUSED -> registryTime : 0);
			at = ASKED;
			printf("%c asks at %d: incarnation %d since %d\n", NAME, clock, inc, since)
		:: !CLOCK_NOT_BEFORE ->
			since = registryTime; at = TIMED;
			printf("%c asks for the time at %d: %d\n", NAME, clock, since)
		fi
	   }
	:: atomic { up && at == TIMED ->
		inc = incarnation;
		since = least(since, stamped);
		at = ASKED;
		printf("%c asks for the incarnation at %d: %d\n", NAME, clock, inc)
	   }
	:: atomic { up && at == ASKED && claimable && clock < TICKS ->
		insts++;
		inst = insts; term = cell.term + 1; prior = cell.horizon;
		heard_now();
		put(cell, inst, term, horizon);
		stamp(cell, inc, since, seen);
		printf("%c claims at %d as instance %d: term %d, horizon %d\n", NAME, clock, inst, term, horizon);
		if
		:: !LOOK_AFTER_SWAP && stood -> cursor = floor(); file = true; at = HOLD
		:: else -> at = CONFIRM
		fi;
		stood = false; reading = 0
	   }
	:: atomic { LOST && at == ASKED && bid == 0 && sent == 0 && claimable && clock < TICKS ->
		insts++;
		bid = insts; bidPrior = cell.horizon; bids = true;
		sent = least(clock + HORIZON, TICKS); expects = cell.horizon; sender = cell.inst; sentInc = inc; sentSince = since; sentSeen = seen;
		printf("%c sends a claim at %d as instance %d, and hears nothing\n", NAME, clock, bid);
		forget(); at = CLAIM
	   }
	:: atomic { up && at == ASKED && bid != 0 && bidPrior != NEVER && cell.inst == bid ->
		inst = bid; term = cell.term; prior = bidPrior; bid = 0; bidPrior = 0;
		heard = clock; horizon = cell.horizon;
		printf("%c finds its claim at %d: instance %d, horizon %d\n", NAME, clock, inst, horizon);
		if
		:: !FOUND_CLAIM_WAITS && settled -> cursor = floor(); file = true; at = HOLD
		:: else -> at = CONFIRM
		fi;
		stood = false
	   }
	:: atomic { up && at == ASKED && !claimable -> forget(); at = CLAIM }
	:: atomic { up && at == CONFIRM && (mine || !LOOK_FINDS_CLAIM) ->
		printf("%c looks at %d and finds instance %d\n", NAME, clock, cell.inst);
		heard = clock;
		listed = incarnation;
		found = stamped; foundSeen = stampSeen;
		at = LOOKED
	   }
	:: atomic { up && at == LOOKED && rightClock ->
		remember((listed == incarnation -> found : NEVER), (listed == incarnation -> foundSeen : 0 - NEVER));
		printf("%c finds incarnation %d at %d, since %d\n", NAME, inc, clock, since);
		if
		:: settled -> cursor = floor(); file = true; at = HOLD
		:: else -> at = CONFIRM
		fi;
		listed = 0; found = 0; foundSeen = 0
	   }
	:: atomic { up && at == CONFIRM && !mine && LOOK_FINDS_CLAIM -> forget(); at = CLAIM }

	/* hold */
	:: atomic { (at == HOLD || at == ALONE) && cursor < usable ->
		printf("%c issues tick %d\n", NAME, cursor);
		assert(!issued[cursor]);
		issued[cursor] = true;
		cursor++
	   }
	:: atomic { up && (at == ALONE || at == HOLD) && (asked == 0 || sent != 0) && agreeable && extensible ->
		heard_now();
		cell.horizon = horizon;
		stamp_mine();
		at = HOLD;
		printf("%c extends term %d at %d to %d\n", NAME, term, clock, horizon)
	   }
	:: atomic { SENT && at == HOLD && sent == 0 && agreeable && in_time && clock + HORIZON > horizon && horizon < TICKS ->
		sent = least(clock + HORIZON, TICKS); expects = horizon; sender = inst;
		if
		:: rightClock -> remember(stamped, stampSeen); sentInc = inc; sentSince = since; sentSeen = seen
		:: else
		fi;
		printf("%c sends an extension to %d at %d\n", NAME, sent, clock)
	   }
	:: atomic { PAUSED && up && at == HOLD && sent == 0 && asked == 0 && agreeable && in_time ->
		asked = incarnation;
		printf("%c asks which server answers at %d: incarnation %d\n", NAME, clock, asked)
	   }
	:: atomic { PAUSED && up && at == HOLD && sent == 0 && asked != 0 && rightClock && registryTime < horizon && clock + HORIZON > horizon && horizon < TICKS ->
		told = off; sent = least(clock + HORIZON, TICKS); expects = horizon; sender = inst;
		if
		:: asked == incarnation -> remember(stamped, stampSeen); sentInc = inc; sentSince = since; sentSeen = seen
		:: else -> asked = (ASKED_AFTER_ANSWER -> asked : NEVER) /* a stamp of that incarnation would count no more */
		fi;
		printf("%c asks for the time at %d: %d, and sends an extension to %d\n", NAME, clock, registryTime, sent)
	   }
	:: atomic { sent != 0 && bids && arrives ->
		printf("the claim of %c arrives at %d: instance %d, horizon %d\n", NAME, clock, bid, sent);
		put(cell, bid, cell.term + 1, sent); stamp(cell, sentInc, sentSince, sentSeen);
		bid = (bidPrior == NEVER -> 0 : bid);
		landed()
	   }
	:: atomic { sent != 0 && !bids && arrives ->
		timely = (asked != 0 -> told_in_time : in_time) || !ANSWER_BEFORE_HORIZON;
		cell.horizon = sent; stamp(cell, sentInc, sentSince, sentSeen);
		if
		:: !(at == HOLD && inst == sender && horizon == expects) -> printf("a late extension of %c arrives at %d\n", NAME, clock)
		:: else -> printf("the extension of %c arrives at %d, the answer is lost\n", NAME, clock)
		:: at == HOLD && inst == sender && horizon == expects && timely ->
			heard = clock; horizon = sent;
			printf("%c hears at %d that its lease reaches %d\n", NAME, clock, horizon)
		:: at == HOLD && inst == sender && horizon == expects && !timely ->
			file = false; forget(); at = CLAIM;
			printf("%c hears too late, at %d\n", NAME, clock)
		fi;
		landed()
	   }
	:: atomic { sent != 0 || asked != 0 -> printf("a call of %c is lost\n", NAME); landed() }
	:: atomic { up && (at == HOLD && restorable || at == ALONE && cell.term == 0 && !ALONE_PUTS_NOTHING_BACK) ->
		heard_now();
		put(cell, inst, term, horizon);
		stamp_mine();
		at = HOLD;
		printf("%c puts term %d back at %d\n", NAME, term, clock)
	   }
	:: atomic { up && (at == ALONE && !(agreeable && extensible) || at == HOLD && !restorable && !extensible) ->
		printf("%c finds instance %d and stops\n", NAME, cell.inst);
		file = false; forget(); at = CLAIM
	   }

	:: atomic { lives < LIVES && (file || at == CONFIRM) ->
		lives++;
		printf("%c dies\n", NAME);
		at = DOWN;
		listed = 0; found = 0; foundSeen = 0; stood = 0; reading = 0; asked = (sent != 0 -> asked : 0); inc = 0; since = 0; seen = 0; bid = (bids -> bid : 0); bidPrior = (bids -> NEVER : 0); /* a file says nothing of these */
		if
		:: !file -> forget()
		:: else
		fi
	   }
	od
}

proctype registry() {
end:	do
	:: atomic { clock < TICKS -> clock++; silent = (silent != 0 && silent < GAP + 2 -> silent + 1 : silent) }
	:: atomic { UNTRACKED && up && epoch < EPOCHS -> silent = 1; printf("the registry is away from %d on\n", clock) }
	:: atomic { epoch < EPOCHS -> copy(replica, cell); peerCopy = peer; peerSinceCopy = peerSince; peerSeenCopy = peerSeen }
	:: atomic { epoch < EPOCHS ->
		epoch++;
		if
		:: true
		:: silent > GAP + 1 -> unmarked++
		fi;
		silent = 0;
		if
		:: copy(cell, replica); peer = peerCopy; peerSince = peerSinceCopy; peerSeen = peerSeenCopy
		:: SWITCH_BACK ->
			copy(former, cell); copy(cell, replica); copy(replica, former);
			was = peer; peer = peerCopy; peerCopy = was;
			was = peerSince; peerSince = peerSinceCopy; peerSinceCopy = was;
			was = peerSeen; peerSeen = peerSeenCopy; peerSeenCopy = was;
			put(former, 0, 0, 0); stamp(former, 0, 0, 0); was = 0
		fi;
		if
		:: epoch == EPOCHS -> put(replica, 0, 0, 0); stamp(replica, 0, 0, 0); peerCopy = 0; peerSinceCopy = 0; peerSeenCopy = 0
		:: else
		fi;
		if
		:: off = 0
		:: TOLERANCE > 0 -> off = 0 - TOLERANCE
		:: TOLERANCE > 0 -> off = 0 - FAR
		fi;
		printf("epoch %d begins at %d as incarnation %d by the clock %d: instance %d, term %d, horizon %d\n", epoch, clock, incarnation, registryTime, cell.inst, cell.term, cell.horizon)
	   }
	:: atomic { off != TOLERANCE && TOLERANCE > 0 -> off = TOLERANCE; printf("the registry's clock is set to %d at %d\n", registryTime, clock) }
	:: atomic { up && rightClock && (peer != incarnation || UNTRACKED && peerSeen != registryTime) ->
		peerSince = (UNTRACKED && !broken_off(stampSeen) -> least(stamped, registryTime) : registryTime);
		peer = incarnation; peerSeen = (UNTRACKED -> registryTime : 0);
		printf("a peer writes at %d: incarnation %d since %d\n", clock, peer, peerSince) }
	od
}

init {
	byte i;
	atomic {
		peer = 1; peerCopy = 1; /* it has stood */
		off = (SLOW_FIRST -> 0 - TOLERANCE : 0);
		peerSince = off - claimDelay; peerSinceCopy = peerSince;
		run registry();
		do
		:: i < NODES -> run node(i); i++
		:: else -> break
		od;
		i = 0
	}
}
