/** The server as an agent sees it: a tunnel that is kept open, and a plan that is asked for. */

/** How a tunnel ended, or why there was none. */
export type TunnelEnd =
  /** The server said goodbye. */
  | { readonly kind: 'ended' }
  /** There was an answer, and it was no. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The network did it, or nobody was there. */
  | { readonly kind: 'broken'; readonly message: string }

export type PlanAnswer =
  | { readonly kind: 'plan'; readonly document: unknown }
  /** 503: there will be one. */
  | { readonly kind: 'not-ready' }
  /** Any other 404: this node is to run without. */
  | { readonly kind: 'none' }
  /** The API of the server has no such node. */
  | { readonly kind: 'not-found'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string }

export interface AgentServer {
  /** Resolves when the tunnel has ended; `opened` is called once it is there. Never rejects. */
  tunnel(way: 'connect' | 'register', opened: () => void, signal: AbortSignal): Promise<TunnelEnd>
  /** Never rejects. */
  plan(signal: AbortSignal): Promise<PlanAnswer>
}

/**
 * What an answer to the question for a plan means. Only a Status of the API itself says that the node has gone: a text on the
 * page of a proxy does not, nor does a 404 of another server.
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
    return { kind: 'failed', message: `the plan is no JSON: ${(error as Error).message}` }
  }
}

/** `nodes "NAME" not found`, as an API server answers for an object that is not there. */
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
