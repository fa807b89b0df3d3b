/**
 * Proxies an upgrade request and joins the two connections after the backend agrees. After any other response the
 * client's connection is closed, so the client cannot use the server's identity (CVE-2018-1002105).
 */
import {
  type RequestHeaders,
  responseHeaders,
  switchingProtocols,
  upgradeHeaders,
} from '#component/forwarding/headers.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import type { HttpClient, UpgradeResult } from '#lib/http/client.ts'
import { joinSockets } from '#lib/net/join-sockets.ts'
import { failure } from '#meta/status-errors.ts'

import { dialText } from './dial-text.ts'
import { relayed } from './relay.ts'

export interface UpgradeTarget {
  readonly client: HttpClient
  /** Scheme, host and port. */
  readonly url: string
  /** Path and query to forward. */
  readonly path: string
  /** The forwardable headers of the client by default. */
  readonly headers?: RequestHeaders
  /** The response for a failed connection; 500 by default. */
  readonly refuse?: (text: string, cause: unknown) => Error
}

export type Upgraded = Extract<UpgradeResult, { isUpgraded: true }>

/** Joins client and target byte for byte. */
export async function passUpgrade(call: Call, target: UpgradeTarget, clock: Clock): Promise<Answer> {
  const { method, exchange } = call
  const { headers: sent = upgradeHeaders(exchange) } = target
  const outcome = await askUpgrade(call, target, { method, headers: sent })
  if (!('isUpgraded' in outcome)) return outcome
  const { socket, headers, head } = outcome
  return {
    status: 101,
    drop: () => socket.destroy(),
    async upgrade(own, signal) {
      const { socket: client, head: early } = own.upgrade()
      client.write(switchingProtocols(headers))
      if (head.length > 0) client.write(head)
      if (early.length > 0) socket.write(early)
      await joinSockets(client, socket, { clock, signal })
    },
  }
}

/** The connection after the backend has agreed, or its other response. Throws StatusError. */
export async function askUpgrade(
  call: Call,
  { client, url, path, refuse = dialFailure }: UpgradeTarget,
  { method, headers }: { readonly method: string; readonly headers: RequestHeaders },
): Promise<Upgraded | Answer> {
  let result: UpgradeResult
  try {
    result = await client.upgrade({ method, url, path, headers, signal: call.signal })
  } catch (cause) {
    throw refuse(dialText(cause, new URL(url).host), cause)
  }
  if (result.isUpgraded) return result
  const { response } = result
  const { status } = response
  // A redirect is not followed, and a success without an upgrade is an error.
  if (status < 400) {
    response.discard()
    throw failure({ code: 500, message: `invalid upgrade response: status code ${status}` })
  }
  return {
    status,
    contentType: '',
    passedOn: responseHeaders(response.headers),
    ...relayed(response),
  }
}

function dialFailure(text: string, cause: unknown): Error {
  return failure({ code: 500, message: `error dialing backend: ${text}` }, { cause })
}
