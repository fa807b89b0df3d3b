/** A transport whose requests are over after a while, on either side: the server is told how long whoever asks will wait. */
import { durationOfMs } from '#meta/duration.ts'

import type { Transport } from './api-client.ts'

export function timedTransport(transport: Transport, timeoutMs: number): Transport {
  return {
    request: (request) => {
      const url = String(request.url)
      const timed = `${url}${url.includes('?') ? '&' : '?'}timeout=${durationOfMs(timeoutMs)}`
      return transport.request({ ...request, url: timed, timeoutMs })
    },
  }
}
