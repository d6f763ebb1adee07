import sys
import time

from leaf_id import LeafClient

with LeafClient(sys.argv[1], wait=2) as ids, open(sys.argv[2], "w") as out:
    begun, rate = time.monotonic(), int(sys.argv[4])
    for n in range(int(sys.argv[3])):
        out.write(f"{ids.next('order')}\n")
        if n % 1000 == 0:
            time.sleep(max(0.0, begun + n / rate - time.monotonic()))
