/** Wraps a transport with a request timeout, which applies locally and is sent to the server as `timeout`. */
import { durationOfMs } from '#lib/go/duration.ts'

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
