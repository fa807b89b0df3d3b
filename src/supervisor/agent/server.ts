/**
 * The requests of an agent to its server: open a tunnel, and get the plan (certificates, files and settings of the
 * node).
 */

/** The end of a tunnel, or the reason why it was not opened. */
export type TunnelEnd =
  /** The server closed it. */
  | { readonly kind: 'ended' }
  /** The server refused it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The network failed, or the server is unreachable. */
  | { readonly kind: 'broken'; readonly message: string }

export type PlanAnswer =
  | { readonly kind: 'plan'; readonly document: unknown }
  /** 503: the plan is not ready yet. */
  | { readonly kind: 'not-ready' }
  /** Any other 404: the node has no plan. */
  | { readonly kind: 'none' }
  /** The server's API has no such node. */
  | { readonly kind: 'not-found'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

export interface AgentServer {
  /** Resolves when the tunnel has ended; `opened` is called when it is open. Never rejects. */
  tunnel(mode: 'connect' | 'register', opened: () => void, signal: AbortSignal): Promise<TunnelEnd>
  /** Never rejects. */
  plan(signal: AbortSignal): Promise<PlanAnswer>
}

/**
 * Interprets an answer to a plan request. Only a Status of the API means that the node is gone: an error page of a
 * proxy or a 404 of another server does not.
 */
export function planAnswer(status: number, body: string, nodeName: string): PlanAnswer {
  const text = body.trim().slice(0, 500)
  if (status === 404) return isNodeNotFound(body, nodeName) ? { kind: 'not-found', message: text } : { kind: 'none' }
  if (status === 503) return { kind: 'not-ready' }
  if (status === 401) return { kind: 'failed', message: 'the server does not take the token (401)' }
  if (status !== 200) return { kind: 'failed', message: `the server answered ${status}: ${text}` }
  try {
    return { kind: 'plan', document: JSON.parse(body) as unknown }
  } catch (error) {
    return { kind: 'failed', message: `the plan is not valid JSON: ${(error as Error).message}` }
  }
}

/** `nodes "NAME" not found`, the API server's answer for a missing object. */
function isNodeNotFound(body: string, nodeName: string): boolean {
  const { kind, apiVersion, reason, code, details } = (parsed(body) ?? {}) as Partial<Status>
  const isNotFound = kind === 'Status' && apiVersion === 'v1' && reason === 'NotFound' && code === 404
  return isNotFound && details?.kind === 'nodes' && details.name?.toLowerCase() === nodeName.toLowerCase()
}

interface Status {
  readonly kind: string
  readonly apiVersion: string
  readonly reason: string
  readonly code: number
  readonly details: { readonly kind?: string; readonly name?: string } | undefined
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
