/**
 * A fence around a leader's writes: none leaves when it can no longer be sure that it leads. A process that was stopped for a while
 * hears of what happened meanwhile before any of its timers tells it that its time was over; what it would do then is refused here.
 */
import type { Transport } from './api-client.ts'
import { LeadershipLost } from './leader-election.ts'

export class Fence {
  #leads: () => boolean = () => true

  /** From now on `leads` is asked before every write. */
  guard(leads: () => boolean): void {
    this.#leads = leads
  }

  around(transport: Transport): Transport {
    return {
      request: (asked) =>
        asked.method === 'GET' || this.#leads()
          ? transport.request(asked)
          : Promise.reject(new LeadershipLost('leader election lost')),
    }
  }
}
