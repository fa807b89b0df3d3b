/**
 * Rejects writes of a process that may have lost its lease. A suspended process can handle old events before its timers
 * notice that the lease expired; the fence stops those writes.
 */
import type { Transport } from './api-client.ts'
import { LeadershipLost } from './leader-election.ts'

export class Fence {
  #leads: () => boolean = () => true

  /** From now on, calls `leads` before every write. */
  guard(leads: () => boolean): void {
    this.#leads = leads
  }

  around(transport: Transport): Transport {
    return {
      request: (request) =>
        request.method === 'GET' || this.#leads()
          ? transport.request(request)
          : Promise.reject(new LeadershipLost('leader election lost')),
    }
  }
}
