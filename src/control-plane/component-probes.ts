/** Health probes of control-plane components: at their default ports, and the store directly. */
import { dialText } from '#apiserver/connect/dial-text.ts'
import type { Clock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import type { ComponentHealth, ComponentProbes } from '#resources/core/componentstatus.ts'
import type { BackendHealth, HealthOptions } from '#storage/backend.ts'

/** Components run on this machine or not at all; upstream waits for twenty seconds. */
const TIMEOUT_MS = 5000
const MAX_ANSWER_BYTES = 10 << 10

const COMPONENTS: readonly (readonly [name: string, address: string])[] = [
  ['scheduler', '127.0.0.1:10259'],
  ['controller-manager', '127.0.0.1:10257'],
]

/** Fetches a URL. Rejects without a response. */
export type AskUrl = (url: string, signal: AbortSignal) => Promise<{ readonly status: number; readonly text: string }>

export interface ProbeParts {
  readonly ask: AskUrl
  readonly backend: Store
}

interface Store {
  health(signal?: AbortSignal, options?: HealthOptions): Promise<Pick<BackendHealth, 'ok' | 'message'>>
}

export function createComponentProbes({ ask, backend }: ProbeParts): ComponentProbes {
  return new Map([
    ...COMPONENTS.map(([name, address]) => [name, (signal: AbortSignal) => askHealth(ask, address, signal)] as const),
    ['etcd-0', (signal: AbortSignal) => askStore(backend, signal)] as const,
  ])
}

/**
 * Accepts any certificate: components mostly have self-signed ones, and no secret is sent. Creates a client per probe,
 * because probes are rare.
 */
export function createAskUrl(clock: Clock): AskUrl {
  return async (url, signal) => {
    const client = createHttpClient({ clock, tls: { insecure: true }, connectTimeoutMs: TIMEOUT_MS })
    try {
      const answer = await client.request({ url, signal, timeoutMs: TIMEOUT_MS })
      return { status: answer.status, text: await answer.text(MAX_ANSWER_BYTES) }
    } finally {
      client.close()
    }
  }
}

async function askHealth(ask: AskUrl, address: string, signal: AbortSignal): Promise<ComponentHealth> {
  const url = `https://${address}/healthz`
  try {
    const { status, text } = await ask(url, signal)
    const isWell = status >= 200 && status < 400
    const message = isWell ? text : `HTTP probe failed with statuscode: ${status}`
    return { status: isWell ? 'True' : 'False', message }
  } catch (error) {
    return { status: 'False', message: `Get "${url}": ${dialText(error, address)}` }
  }
}

async function askStore(backend: Store, signal: AbortSignal): Promise<ComponentHealth> {
  try {
    const { ok, message } = await backend.health(signal, { withoutSizes: true })
    return ok ? { status: 'True', message: 'ok' } : { status: 'False', error: message }
  } catch (error) {
    return { status: 'False', error: error instanceof Error ? error.message : String(error) }
  }
}
